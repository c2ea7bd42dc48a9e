"""What the scripted experts of all generated domains share: they hear, observe, and then take one step, with errors if
they have any.

They read only what any agent reads: the user's words and the tools' observations. What they say and do depends on the
order in which they draw from their random numbers, so that a change of that order changes every demonstration.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from muarl.types.chat import Message, ToolCall


class Expert(Protocol):
    """A scripted agent in one conversation. It reads only what any agent reads: words and observations."""

    def act(self, new: Sequence[Message]) -> Message:
        """Take in what came (user and tool messages) and answer: calls or a sentence, never both."""
        ...


@dataclass(frozen=True, slots=True)
class ErrorProfile:
    """The probability of each kind of error, where it is possible. All zero: an expert without errors.

    skip_confirmation: writes without asking. forget_second: drops what else was asked for at the start.
    needless_transfer: hands over at once (per episode). transfer_if_unavailable, transfer_if_forbidden: hands over
    instead of offering or refusing. try_forbidden: calls the tool though the policy forbids it. guess: fills a
    missing choice by itself instead of asking. wrong_id: gets an id wrong in a look-up first, and then recovers.
    skip_approval: does alone what a colleague must approve (per request).
    """

    skip_confirmation: float = 0.0
    forget_second: float = 0.0
    needless_transfer: float = 0.0
    transfer_if_unavailable: float = 0.0
    transfer_if_forbidden: float = 0.0
    try_forbidden: float = 0.0
    guess: float = 0.0
    wrong_id: float = 0.0
    skip_approval: float = 0.0


COMMON = (
    "skip_confirmation", "forget_second", "needless_transfer", "transfer_if_unavailable", "transfer_if_forbidden",
    "try_forbidden", "guess", "wrong_id",
)  # fmt: skip
"""The errors that are possible in any domain, in the order in which their probabilities are drawn for varied
conversations: one more would change all of them."""
SLOPPY = ErrorProfile(
    skip_confirmation=0.45, forget_second=0.45, needless_transfer=0.06, transfer_if_unavailable=0.5,
    transfer_if_forbidden=0.3, try_forbidden=0.3, guess=0.2, wrong_id=0.06, skip_approval=0.3,
)  # fmt: skip


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
