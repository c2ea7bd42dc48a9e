"""A user whose words are fixed from turn to turn and may bring the agent new tools: BFCL's multi-turn entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muarl.domains.base import Task
from muarl.types.chat import STOP_WORDS, Message, ToolSpec
from muarl.users.base import User, UserTurn

Line = tuple[str, tuple[ToolSpec, ...]]
"""What the user says, and the tools that the agent has from then on."""


class TurnsUser:
    """Says one line whenever the agent has done with the one before, and then ###STOP###."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = tuple(lines)
        self._next = 0

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """The next line, whatever was said."""
        if self._next == len(self._lines):
            return UserTurn(Message("user", STOP_WORDS[0]))
        text, tools = self._lines[self._next]
        self._next += 1
        return UserTurn(Message("user", text), tools=tools)


class TurnsUserFactory:
    """Makes users from the lines that ``lines`` finds in each task."""

    def __init__(self, lines: Callable[[Task], Sequence[Line]], *, name: str = "scripted turns") -> None:
        self.lines, self.name = lines, name

    def __call__(self, task: Task, *, seed: int) -> User:
        return TurnsUser(self.lines(task))
