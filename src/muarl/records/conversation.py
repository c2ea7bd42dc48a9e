"""What a recorded conversation is, whatever program wrote it, and what a format of such records says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from muarl import moved
from muarl.basics.errors import DataError
from muarl.basics.untrusted import to_float
from muarl.records.rows import PlacedRow
from muarl.types.chat import Message
from muarl.types.episode import StopReason


@dataclass
class LeftOutCounts:
    """What readers did not take over, counted by kind."""

    lost: Counter[str] = field(default_factory=Counter)
    """What has no place in a conversation."""
    unread: Counter[str] = field(default_factory=Counter)
    """What an agent may have done by, and nobody could read."""

    @classmethod
    def together(cls) -> LeftOutCounts:
        """Both in one count, where nobody asks what an agent may have done."""
        both: Counter[str] = Counter()
        return cls(both, both)

    def __str__(self) -> str:
        """A sentence about what was lost; empty if nothing was."""
        if not self.lost:
            return ""
        counts = ", ".join(f"{n} {what}" for what, n in self.lost.items())
        return f"Left out, as a conversation has no place for it: {counts}"


@dataclass
class RecordedConversation:
    """One recorded conversation. What its file says is read when it is asked for: a DataError then names the place, and
    what is malformed in one field does not keep another from being read."""

    row: PlacedRow
    """As the file has it, and where."""
    left_out: LeftOutCounts = field(default_factory=LeftOutCounts)
    """Counts what reading the messages leaves out, together with all that was read before."""

    format: ClassVar[str] = ""
    """The format's name."""

    benchmark: ClassVar[str] = ""
    """The benchmark by whose program it was recorded, such as "tau2", if any."""

    @property
    def value(self) -> Mapping[str, Any]:
        """The object in the file."""
        return self.row.value

    @property
    def place(self) -> str:
        """Where it stands, for errors."""
        return self.row.place

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """What was said and done."""
        raise NotImplementedError

    @property
    def id(self) -> str | None:
        """Its own name; None if it has none."""
        return next((str(self.value[name]) for name in ("id", "task_id") if name in self.value), None)

    @property
    def task_id(self) -> str | None:
        """The name of its task; None if there is none."""
        return str(self.value["task_id"]) if "task_id" in self.value else None

    @property
    def trial(self) -> int | None:
        """Which of the attempts at its task it is, from 0; None if the file does not tell."""
        trial = self.value.get("trial")
        return trial if type(trial) is int else None

    @property
    def seed(self) -> int | None:
        """Its seed; None if the file does not tell."""
        seed = self.value.get("seed")
        return seed if type(seed) is int else None

    @property
    def domain(self) -> str | None:
        """The domain that it is of; None if the file does not tell."""
        domain = self.value.get("domain")
        if domain is not None and not isinstance(domain, str):
            raise DataError(f"{self.place}: domain must be a string, not {type(domain).__name__}")
        return domain

    @property
    def reward(self) -> float | None:
        """The recorded reward; None if there is none."""
        reward = self.value.get("reward")
        if isinstance(reward, bool) or not isinstance(reward, (int, float)):
            return None
        return to_float(reward, f"{self.place}: reward")

    @property
    def stop(self) -> StopReason:
        """How it ended."""
        return stop_of(self.value.get("termination_reason", self.value.get("stop")))

    @property
    def tools(self) -> Any:
        """The definitions of the agent's tools, as the file has them; None if it has none."""
        return self.value.get("tools", self.value.get("functions"))


def stop_of(reason: Any) -> StopReason:
    """A stop reason of ours for whatever a file says of a conversation's end; unknown ones are taken as the user's."""
    reasons = {s.value for s in StopReason}
    other = {"max_steps": "max_turns", "too_many_errors": "tool_errors", "infrastructure_error": "infrastructure"}
    text = str(reason)
    return StopReason(text if text in reasons else other.get(text, "user_stop"))


class Format:
    """One format, for one reading. Each method gives the conversations of what it is asked about, or None where that is
    not of this format; a format overrides those that it needs.

    A package brings formats of its own by entry points in the group ``muarl.records``, each a class like this.
    """

    def __init__(self, left_out: LeftOutCounts) -> None:
        self.left_out = left_out

    def at(self, path: Path) -> Iterable[RecordedConversation] | None:
        """Of a file or folder that is known by its place."""
        return None

    def of_row(self, row: PlacedRow) -> Iterable[RecordedConversation] | None:
        """Of an object: a line, an entry of a list, or all that its file holds. A format in which several rows make up
        a conversation gives nothing here, and all of them in ``rest``."""
        return None

    def rest(self, number: int) -> Iterable[RecordedConversation]:
        """The conversations that rows make up together, when all rows have been seen. ``number``: of the last row,
        after which they are counted on."""
        return ()


moved.keep_old_names(__name__)
