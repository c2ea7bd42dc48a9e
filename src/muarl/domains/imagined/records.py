"""What is kept of tools that a model played, so that the same conversation can be had again without the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from muarl.basics.errors import DataError
from muarl.types.chat import ToolCall
from muarl.types.episode import Usage


@dataclass(frozen=True, slots=True)
class ImaginedCall:
    """One call and how it was answered. ``answers``: the model's own texts, the last of which was used; none where the
    ledger knew the answer. ``rejected``: why each of the others was not used. ``observation``: what the agent saw."""

    name: str
    arguments: Mapping[str, Any]
    observation: str
    error: bool = False
    answers: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A plain dict that ``from_json`` restores exactly."""
        return {
            "name": self.name,
            "arguments": dict(self.arguments),
            "observation": self.observation,
            "error": self.error,
            "answers": list(self.answers),
            "rejected": list(self.rejected),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ImaginedCall:
        """The inverse of ``to_json``. DataError if a field is missing."""
        try:
            return cls(
                data["name"],
                dict(data["arguments"]),
                data["observation"],
                bool(data.get("error", False)),
                tuple(data.get("answers", ())),
                tuple(data.get("rejected", ())),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise DataError(f"a recorded call of a tool lacks or spoils a field: {problem}") from None


class Teacher(Protocol):
    """Whoever plays the tools."""

    async def play(self, call: ToolCall, messages: Sequence[Mapping[str, Any]], seed: int) -> tuple[str, Usage]:
        """The answer to a prompt about a call, and what it cost."""
        ...


@dataclass
class ReplayedTeacher:
    """A teacher that repeats what another one said, in order. DataError where it is asked something else."""

    calls: Sequence[ImaginedCall]
    _left: list[tuple[ImaginedCall, str]] = field(init=False)

    def __post_init__(self) -> None:
        self._left = [(call, text) for call in self.calls for text in call.answers]

    async def play(self, call: ToolCall, messages: Sequence[Mapping[str, Any]], seed: int) -> tuple[str, Usage]:
        """The next recorded text."""
        if not self._left:
            raise DataError(f"{call.name} was called, and the recorded conversation has no further answers")
        recorded, text = self._left.pop(0)
        if (recorded.name, dict(recorded.arguments)) != (call.name, dict(call.arguments)):
            raise DataError(f"{call.name} was called with other arguments, or where {recorded.name} was recorded")
        return text, Usage()
