"""A whole episode through the server is the episode that the same policy plays in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loop_kit import RecordingSampler
from muarl.agents.base import Agent
from muarl.agents.endpoint import EndpointAgent
from muarl.agents.sampled import SampledAgent, Sampling
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.environments.environment import GENERATED_RULES
from muarl.environments.registry import find
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoints import Policy, load_policy
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.rules import Limits
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode
from muarl.users.agenda import AgendaUserFactory
from support.chat_server import TOKEN, serving

CONTEXT, TURN = 1024, 64
WORLD = find("retail-generated")


@pytest.fixture(scope="module")
def policy(repository: Path) -> Policy:
    return load_policy(repository / "src/muarl/assets/base")


@pytest.fixture(scope="module")
def served(policy: Policy) -> Iterator[Any]:
    engine = TorchEngine(policy.model, max_slots=8, max_context=CONTEXT)
    with serving(engine, policy.tokenizer, context=CONTEXT) as server:
        yield server, engine


async def episode(agent: Agent, number: int, seed: int) -> Episode:
    task = WORLD.make_tasks("test", 1, size="tiny", start=number)[0]
    world = WORLD.make_domain("tiny").world(task)
    user = AgendaUserFactory(WORLD.needed_user())(task, seed=seed)
    return await run_episode(
        task, world, agent, user, Limits(turns=30), seed=seed, episode_id=f"e{number}", rules=GENERATED_RULES
    )


def told(episode: Episode) -> list[tuple[Any, ...]]:
    """What was said and called, without the calls' ids."""
    return [
        (m.role, m.content or "", [(c.name, dict(c.arguments)) for c in m.tool_calls])
        for m in (t.message for t in episode.turns)
    ]


@pytest.mark.parametrize(("temperature", "numbers"), [(0.0, (0, 1)), (1.0, (2, 3))])
async def test_the_same_episode(
    policy: Policy, served: Any, monkeypatch: pytest.MonkeyPatch, temperature: float, numbers: tuple[int, ...]
) -> None:
    server, engine = served
    monkeypatch.setenv("MUARL_TEST_TOKEN", TOKEN)
    asked: list[tuple[int, ...]] = []
    ask = engine.sample

    async def remembering(prompt: Any, params: Any, *, session: str | None = None) -> Any:
        asked.append(tuple(prompt))
        return await ask(prompt, params, session=session)

    monkeypatch.setattr(engine, "sample", remembering)
    here = SampledAgent(
        TorchEngine(policy.model, max_slots=8, max_context=CONTEXT),
        Qwen3Format(policy.tokenizer),
        Sampling(TURN, CONTEXT, temperature),
    )
    config = EndpointSettings("m", server.address, "MUARL_TEST_TOKEN", temperature=temperature, max_tokens=TURN)
    async with Endpoint(config) as endpoint:
        for number in numbers:
            asked.clear()
            there = await episode(EndpointAgent(endpoint), number, seed=number + 7)
            alone = await episode(here, number, seed=number + 7)
            assert told(there) == told(alone)
            assert there.stop == alone.stop
            assert len(alone.turns) > 6
            ids = tuple(alone.tokens.ids)
            assert asked and all(prompt == ids[: len(prompt)] for prompt in asked)  # id for id
            assert there.agent_usage.completion_tokens == alone.agent_usage.completion_tokens
    assert engine.stats.reused_tokens > engine.stats.prefill_tokens


@pytest.mark.parametrize("verbatim", [False, True])
async def test_calls_that_cannot_be_read_are_answered_as_natively(
    policy: Policy, monkeypatch: pytest.MonkeyPatch, verbatim: bool
) -> None:
    """The world answers them, and the user never sees them, though other clients get them as text."""
    monkeypatch.setenv("MUARL_TEST_TOKEN", TOKEN)
    chat = Qwen3Format(policy.tokenizer)
    broken = ToolCall("", "", invalid="broken", raw='{"name": "get_user_details", "arguments": {"user_id"')
    good = ToolCall("", "get_user_details", {"user_id": "nobody"})
    script = [
        Message("assistant", "One moment.", (broken, good, broken)),
        Message("assistant", None, (broken,)),
        Message("assistant", "Which order is it?"),
        Message("assistant", None, (good,)),
        *[Message("assistant", "I do not know.")] * 30,
    ]
    here, served = (RecordingSampler(chat, *[chat.reply_ids(m) for m in script]) for _ in range(2))
    with serving(served, policy.tokenizer, context=4096) as server:
        config = EndpointSettings("m", server.address, "MUARL_TEST_TOKEN", max_tokens=200, verbatim=verbatim)
        async with Endpoint(config) as endpoint:
            there = await episode(EndpointAgent(endpoint), 0, seed=7)
    alone = await episode(SampledAgent(here, chat, Sampling(200, 4096, 0.0)), 0, seed=7)
    assert told(there) == told(alone) and there.stop == alone.stop
    read = [[call.invalid is None for call in turn.message.tool_calls] for turn in there.turns]
    assert [False, True, False] in read and [False] in read
    assert not any("<tool_call>" in (turn.message.content or "") for turn in there.turns)
    assert [prompt for _, prompt, _ in served.seen] == [prompt for _, prompt, _ in here.seen]  # id for id
