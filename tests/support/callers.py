"""Conversations with simulated users, line by line, without a world."""

from __future__ import annotations

import asyncio

from muarl.types.chat import GREETING, STOP_WORDS, Message
from muarl.users.base import User


class Conversation:
    """A conversation with a user: ``opening`` is what it says to the greeting, ``hear`` what it answers."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.messages: list[Message] = []
        self.opening = self.hear(GREETING)

    def hear(self, text: str | None) -> str:
        self.messages.append(Message("assistant", text))
        turn = asyncio.run(self.user.reply(self.messages))
        assert turn.message.role == "user" and turn.message.content and not turn.message.tool_calls
        self.messages.append(turn.message)
        return turn.message.content

    @property
    def over(self) -> bool:
        return any(w in (self.messages[-1].content or "") for w in STOP_WORDS)


def ended(text: str) -> bool:
    return "###STOP###" in text
