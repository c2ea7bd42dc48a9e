"""What the scripted experts share: they hear, observe, and then take one step, with errors if they have any.

They read only what any agent reads: the user's words and the tools' observations. What they say and do depends on the
order in which they draw from their random numbers, so that a change of that order changes every demonstration.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from muarl.domains.error_profile import ErrorProfile
from muarl.types.chat import Message, ToolCall

TRANSFER = "transfer_to_human_agents"
TRANSFERRED = "You are being transferred to a human agent. Please hold on."


AnyFrame = TypeVar("AnyFrame")


class ScriptedExpert(Generic[AnyFrame]):
    """One conversation's worth of expert. A subclass writes ``_listen``, ``_observe`` and ``_decide``."""

    def __init__(self, name: str, *, seed: int, error_profile: ErrorProfile) -> None:
        """``name``: what sets its random numbers apart from other domains'."""
        self._rng = random.Random(f"{name} expert {seed}")
        self._error_profile = error_profile
        self._frames: list[AnyFrame] = []  # what the user wants, the request that is being served first
        self._last: ToolCall | None = None  # the call whose observation is awaited
        self._waiting = ""  # what the user was asked for
        self._calls = 0
        self._was_wrong = False  # whether the last call was wrong on purpose
        self._handed_over = False
        self._transfer = self._has("needless_transfer")

    def _has(self, error: str) -> bool:
        return self._rng.random() < getattr(self._error_profile, error)

    def act(self, new: Sequence[Message]) -> Message:
        """Take in what came (user and tool messages) and answer: one call or one sentence, never both."""
        for message in new:
            if message.role == "user":
                self._listen(message.content or "")
            elif message.role == "tool":
                self._observe(message)
        return self._decide()

    def _listen(self, text: str) -> None:
        """Take in what the user says."""
        raise NotImplementedError

    def _observe(self, message: Message) -> None:
        """Take in what a tool answers."""
        raise NotImplementedError

    def _decide(self) -> Message:
        """The next step."""
        raise NotImplementedError

    def _say(self, text: str, waiting: str = "") -> Message:
        self._waiting, self._last = waiting, None
        return Message("assistant", text)

    def _call(self, tool: str, /, **arguments: Any) -> Message:
        self._calls += 1
        self._last = ToolCall(f"call_{self._calls}", tool, arguments)
        return Message("assistant", None, (self._last,))

    def _hand_over(self, why: str) -> Message:
        return self._call(TRANSFER, summary=why)

    def _maybe_wrong(self, value: str) -> str:
        """An id, number or password, now and then a wrong one: the tool's error is then seen and fixed."""
        self._was_wrong = not self._was_wrong and self._has("wrong_id")
        if not self._was_wrong:
            return value
        return value[:-1] + (str((int(value[-1]) + 1) % 10) if value[-1:].isdigit() else "")
