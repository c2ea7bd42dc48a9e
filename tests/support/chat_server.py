"""What the tests of the OpenAI-compatible server share: a sampler that tells as it goes, and a server in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from openai import AsyncOpenAI, OpenAI

from loop_kit import RecordingSampler
from muarl.basics.web.addresses import listen
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.inference.base import Completion, OnTokens, Sampler, SamplingParams
from muarl_tools.serve_model.engine import ServedEngine
from muarl_tools.serve_model.http import ChatServer
from muarl_tools.serve_model.service import ChatService

TOKEN = "a-token-of-the-tests"


class TellingSampler(RecordingSampler):
    """A RecordingSampler that streams: ``step`` ids at a time, ``pause`` seconds apart. ``cancelled`` counts."""

    def __init__(self, chat: Qwen3Format, *replies: Any, step: int = 1, pause: float = 0.0) -> None:
        super().__init__(chat, *replies)
        self.step, self.pause = step, pause
        self.cancelled = self.running = self.most = 0

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None
    ) -> Completion:
        return await self.stream(prompt_ids, params, lambda ids, logprobs: None, session=session)

    async def stream(
        self, prompt_ids: Sequence[int], params: SamplingParams, on_tokens: OnTokens, *, session: str | None = None
    ) -> Completion:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            sampled = await super().sample(prompt_ids, params, session=session)
            for at in range(0, len(sampled.ids), self.step):
                await asyncio.sleep(self.pause)
                on_tokens(sampled.ids[at : at + self.step], sampled.logprobs[at : at + self.step])
            return sampled
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1


@contextmanager
def serving(
    sampler: Sampler,
    tokenizer: Any,
    *,
    context: int = 2048,
    most: int = 1024,
    deadline: float = 60.0,
    host: str = "127.0.0.1",
    token: str = TOKEN,
    grace: float = 5.0,
    body: int = 1 << 20,
    names: tuple[str, ...] = (),
    drops_thoughts: bool = False,
    name: str = "m",
    **service: Any,
) -> Iterator[ChatServer]:
    """A server over this sampler, in a thread of its own. ``drops_thoughts``: as the chat format's."""
    chats = (Qwen3Format(tokenizer), Qwen3Format(tokenizer, thinking=True, drops_thoughts=drops_thoughts))
    engine = ServedEngine(sampler, most=most, deadline=deadline)
    made = ChatService(engine, chats, name=name, max_context=context, **service)
    with serving_service(made, host=host, token=token, grace=grace, body=body, names=names) as server:
        yield server


@contextmanager
def serving_service(
    service: ChatService,
    *,
    host: str = "127.0.0.1",
    token: str = TOKEN,
    grace: float = 5.0,
    body: int = 1 << 20,
    names: tuple[str, ...] = (),
) -> Iterator[ChatServer]:
    """A server over this service, in a thread of its own."""
    server = ChatServer(service, listen(host, 0), host=host, token=token, grace=grace, body=body, names=names).start()
    try:
        yield server
    finally:
        server.close()


def client(server: ChatServer, key: str = TOKEN) -> OpenAI:
    """OpenAI's own client, which does not try again."""
    return OpenAI(base_url=server.address, api_key=key, max_retries=0, timeout=30)


def async_client(server: ChatServer) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=server.address, api_key=TOKEN, max_retries=0, timeout=60)


def asked(text: str = "Hi", system: str = "Be kind.") -> list[dict[str, Any]]:
    """The beginning of a conversation."""
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"To {name} an order.",
            "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
        },
    }
    for name in ("look", "cancel")
]
