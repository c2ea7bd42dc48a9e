"""What scripted experts of all generated domains share: how they act, and the errors that they may make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from muarl.types.chat import Message


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
    """

    skip_confirmation: float = 0.0
    forget_second: float = 0.0
    needless_transfer: float = 0.0
    transfer_if_unavailable: float = 0.0
    transfer_if_forbidden: float = 0.0
    try_forbidden: float = 0.0
    guess: float = 0.0
    wrong_id: float = 0.0


SLOPPY = ErrorProfile(
    skip_confirmation=0.45, forget_second=0.45, needless_transfer=0.06, transfer_if_unavailable=0.5,
    transfer_if_forbidden=0.3, try_forbidden=0.3, guess=0.2, wrong_id=0.06,
)  # fmt: skip
