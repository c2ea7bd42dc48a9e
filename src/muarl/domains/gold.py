"""Gold actions run in a fresh world, and what keeps one of them from succeeding.

A gold action that fails changes nothing. A task whose only gold action fails would be solved by doing nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from muarl.domains.base import World
from muarl.domains.tasks import Action, Task
from muarl.types.chat import ToolCall, ToolResult

_TOLD = re.compile(r"Errors?\b")
"""How a result begins that a tool returns, rather than raises, to say that it did not do it."""


@dataclass(frozen=True, slots=True)
class GoldFailure:
    """A gold action that fails: its place among the task's actions (from 0), and why, in words."""

    task_id: str
    index: int
    action: Action
    cause: str

    def __str__(self) -> str:
        return f"task {self.task_id}: {self.what}"

    @property
    def what(self) -> str:
        """The action and the cause, without the task."""
        arguments = json.dumps(dict(self.action.arguments), ensure_ascii=False, default=str)
        side = "" if self.action.requestor == "assistant" else f" by the {self.action.requestor}"
        return f"actions[{self.index}], {self.action.name}({arguments}){side}: {self.cause}"


def run_gold(world: World, task: Task) -> list[GoldFailure]:
    """Run a task's gold actions in a fresh world of it; the failing ones, which change nothing."""
    failures: list[GoldFailure] = []
    for number, action, call in _calls(task, world):
        failures += _told(task, number, action, world.call(action.requestor, call))
    return failures


async def run_gold_slowly(world: World, task: Task) -> list[GoldFailure]:
    """``run_gold`` for worlds that must be waited for."""
    failures: list[GoldFailure] = []
    for number, action, call in _calls(task, world):
        async for result in world.answers(action.requestor, [call]):
            failures += _told(task, number, action, result)
    return failures


def undone_write(world: World, task: Task) -> GoldFailure | None:
    """The first gold action that would change a fresh world, and does not, since its tool is not marked as writing."""
    for number, action, _ in _calls(task, world):
        kit = world.toolkit(action.requestor)
        declared = None if kit is None else kit._tools.get(action.name)
        if declared is None or declared.kind != "read" or not hasattr(kit, "db"):
            continue
        kit.db.begin()
        with suppress(Exception):  # what fails is told elsewhere
            world.invoke(action.requestor, action.name, declared.schema.convert(action.arguments))
        where = kit.db.changed()
        kit.db.rollback()
        if where is not None:
            place = f"table {where[0]!r}, record {where[1]!r}"
            cause = f"its change of the database ({place}) is undone, since the tool is not marked @tool(writes=True)"
            return GoldFailure(task.id, number, action, cause)
    return None


def _calls(task: Task, world: World) -> Iterator[tuple[int, Action, ToolCall]]:
    for number, action in enumerate(task.actions or ()):
        if action.name not in world.domain.unreplayed:
            yield number, action, ToolCall(f"gold-{number}", action.name, dict(action.arguments), action.requestor)


def _told(task: Task, number: int, action: Action, result: ToolResult) -> Iterator[GoldFailure]:
    cause = why_failed(result)
    if cause is not None:
        yield GoldFailure(task.id, number, action, cause)


def why_failed(result: ToolResult) -> str | None:
    """What is wrong, in words for a domain's author, if the result of a call says that it failed; else None.

    A tool may say so by raising, or by what it returns: a text that begins with "Error", or an object with nothing in
    it but ``error``.
    """
    text = result.content
    if result.error:
        return f"{result.cause or 'returns an error'}: {text.removeprefix('Error: ')}"
    says_so = bool(_TOLD.match(text))
    if not says_so and text.startswith('{"error":'):
        try:
            says_so = set(json.loads(text)) == {"error"}
        except (ValueError, RecursionError):
            says_so = False
    return f"returns an error: {text}" if says_so else None
