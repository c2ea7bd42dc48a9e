"""The scripted replies as texts, for trainers that hand over what a model wrote, and how a conversation's rows find
users that a test brings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from muarl.rewards.judge import Judge
from muarl.types.chat import Message
from muarl.types.toolcalls import call_text
from muarl.users.base import UserFactory
from muarl_integrations.conversations import Conversations
from muarl_integrations.spoken import read_hermes


def as_text(message: Message) -> str:
    """A message as a Qwen writes it."""
    calls = [f"<tool_call>\n{call_text(call)}\n</tool_call>" for call in message.tool_calls]
    return "\n".join([*([message.content] if message.content else []), *calls])


def read_back(replies: Mapping[str, Sequence[Message]]) -> dict[str, list[Message]]:
    """The replies as muarl reads their texts."""
    return {name: [read_hermes(as_text(m), n) for n, m in enumerate(said)] for name, said in replies.items()}


@dataclass(frozen=True)
class WithUsers(Conversations):
    """Conversations with users and a judge of a test's own."""

    users: UserFactory | None = None
    own_judge: Judge | None = None

    @asynccontextmanager
    async def _means(self, row: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        async with super()._means(row) as means:
            own = {"users": self.users, "judge": self.own_judge}
            yield {**means, **{name: value for name, value in own.items() if value is not None}}
