"""A conversation as its user has it, for the rules about users to look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.domains.tasks import Task
from muarl.types.chat import STOP_WORDS, Message, ToolSpec, visible_to_user


@dataclass(frozen=True, slots=True)
class UserConversation:
    """A conversation as its user has it."""

    task: Task
    messages: Sequence[Message]
    tools: frozenset[str]
    """The names of the user's tools."""
    said: tuple[int, ...]
    """Indices of the user's messages without calls."""
    agent: tuple[int, ...]
    """Indices of the agent's words."""
    told: str
    """What the user was told beforehand: its scenario and its agenda."""
    tool_specs: tuple[ToolSpec, ...] = ()
    """The declarations of the user's tools."""

    @classmethod
    def of(cls, task: Task, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> UserConversation:
        """The conversation about a task, in which the user had these tools."""
        said = tuple(i for i, m in enumerate(messages) if m.role == "user" and not m.tool_calls)
        agent = tuple(i for i, m in enumerate(messages) if m.role == "assistant" and not m.tool_calls)
        scenario = task.scenario + "\n" + " ".join(strings(task.agenda))
        return cls(task, messages, frozenset(t.name for t in tools), said, agent, scenario, tuple(tools))

    def text(self, turn: int) -> str:
        """A message's words without stop words."""
        text = self.messages[turn].content or ""
        for word in STOP_WORDS:
            text = text.replace(word, " ")
        return text.strip()

    def heard(self, turn: int) -> str:
        """What others said or showed to the user before a message: the agent's words, its own tools' results."""
        seen = visible_to_user(self.messages[:turn])
        return "\n".join(m.content or "" for m in seen if m.role != "user")

    def asked(self, turn: int) -> tuple[int, str]:
        """Index and words of the agent's last message to the user before a message; (-1, "") if there is none."""
        for index in range(turn - 1, -1, -1):
            message = self.messages[index]
            if message.role == "assistant" and not message.tool_calls:
                return index, message.content or ""
        return -1, ""

    def earlier(self, turn: int) -> str:
        """All that was said before a message, by either side."""
        return "\n".join(self.messages[i].content or "" for i in (*self.said, *self.agent) if i < turn)

    def calls_between(self, first: int, last: int) -> bool:
        """Whether the user called a tool after one message and before another."""
        return any(m.role == "user" and m.tool_calls for m in self.messages[first + 1 : last])


def strings(value: Any) -> Iterator[str]:
    """All text within a nested value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, Iterable):
        for inner in value:
            yield from strings(inner)
