"""Users that play fixed lines, whatever the agent says: for tests, demonstrations and replays, and BFCL's multi-turn
entries, in which a user's turn may bring the agent new tools.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.types.chat import STOP_WORDS, Message, ToolSpec
from muarl.users.base import User, UserTurn


class ScriptedUser:
    """Says its lines one after another, then ###STOP###. A line may itself end the conversation, or be a Message (with
    tool calls, say)."""

    def __init__(self, lines: Sequence[str | Message]) -> None:
        self._lines = list(lines)
        self._next = 0

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """The next line, whatever was said."""
        line = self._lines[self._next] if self._next < len(self._lines) else STOP_WORDS[0]
        self._next += 1
        return UserTurn(line if isinstance(line, Message) else Message("user", line))


class ScriptedUserFactory:
    """Makes scripted users: the same lines for all tasks, lines by task id, or (None) those in each task's agenda."""

    def __init__(
        self,
        lines: Sequence[str | Message] | Mapping[str, Sequence[str | Message]] | None = None,
        *,
        name: str = "scripted",
    ) -> None:
        self.lines = lines
        self.name = name

    def __call__(self, task: Task, *, seed: int) -> User:
        if self.lines is None:
            lines = (task.agenda or {}).get("lines")
            if lines is None:
                raise ConfigError(f"scripted user: the task {task.id!r} lists no lines in its agenda")
            return ScriptedUser(lines)
        if not isinstance(self.lines, Mapping):
            return ScriptedUser(self.lines)
        if task.id not in self.lines:
            raise ConfigError(f"scripted user: there are no lines for the task {task.id!r}")
        return ScriptedUser(self.lines[task.id])


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
