"""The single criteria of a task, each met or not: what the parts of its reward and its completion rate are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.basics.errors import InfrastructureError
from muarl.domains.base import Domain, World
from muarl.domains.tasks import Action, Task
from muarl.types.chat import Message, ToolCall


@dataclass(frozen=True)
class Checks:
    """Which criteria of a task hold, in the task's order."""

    db: bool | None = None
    """Whether both sides' databases are as the gold actions leave them, None where that was not asked."""
    env_assertions: tuple[bool, ...] = ()
    actions: tuple[bool, ...] = ()
    """Whether each gold action was called by somebody."""
    communicate: tuple[bool, ...] = ()
    """Whether the agent said each string."""

    @property
    def completion(self) -> float | None:
        """The share of the criteria that are met: environment assertions, gold actions, things to say; None if none.

        This is the task completion rate that MUA-RL reports for TAU2's telecom, whose tasks list assertions and gold
        actions. Since a task can be solved by other actions than the gold ones, it may lie below the success rate.
        """
        everything = (*self.env_assertions, *self.actions, *self.communicate)
        return sum(everything) / len(everything) if everything else None

    def part(self, name: str) -> float:
        """A component of TAU2's reward, 0.0 or 1.0. KeyError for one that is not decided here."""
        held: Mapping[str, Sequence[bool]] = {
            "DB": (self.db is not False,),
            "ENV_ASSERTION": self.env_assertions,
            "ACTION": self.actions,
            "COMMUNICATE": self.communicate,
        }
        return float(all(held[name]))

    def to_json(self) -> dict[str, Any]:
        """A plain dict of the fields and the completion rate."""
        return {
            "db": self.db,
            "env_assertions": list(self.env_assertions),
            "actions": list(self.actions),
            "communicate": list(self.communicate),
            "completion": self.completion,
        }


def said(messages: Sequence[Message], infos: Sequence[str]) -> tuple[bool, ...]:
    """For each text whether the agent said it: case does not count, nor commas in what it said (TAU2)."""
    texts = [m.content for m in messages if m.role == "assistant" and m.content and m.content.strip()]
    plain = [text.lower().replace(",", "") for text in texts]
    return tuple(any(info.lower() in text for text in plain) for info in infos)


def acted(messages: Sequence[Message], actions: Sequence[Action]) -> tuple[bool, ...]:
    """For each gold action whether a call by either side matches it, whatever came of the call (TAU2)."""
    calls = [c for m in messages if m.role in ("assistant", "user") for c in m.tool_calls]
    return tuple(any(matches(action, call) for call in calls) for action in actions)


def matches(action: Action, call: ToolCall) -> bool:
    """TAU2's comparison: only the call's own arguments count (or ``compare_args``), so one that gives none matches."""
    if action.name != call.name:
        return False
    names = call.arguments.keys() if action.compare_args is None else action.compare_args
    expected = {k: v for k, v in action.arguments.items() if k in names}
    return {k: v for k, v in call.arguments.items() if k in names} == expected


def asserted(task: Task, world: World) -> tuple[bool, ...]:
    """For each environment assertion whether it holds. All of them run, since each brings the two sides in step.

    One that raises, or answers neither true nor false: InfrastructureError (boundary "world") in "official" semantics,
    where TAU2's own evaluation breaks off; in "fixed" semantics it does not hold.
    """
    return tuple(_holds(task, world, assertion) for assertion in task.env_assertions)


def _holds(task: Task, world: World, assertion: Mapping[str, Any]) -> bool:
    try:
        name = assertion["func_name"]
        answer = _function(world, assertion)(**assertion["arguments"])
        if not isinstance(answer, bool):
            raise TypeError(f"{name} answered {answer!r} instead of true or false")
        world.domain.sync(world)
    except Exception as problem:
        if world.domain.semantics == "fixed":
            return False
        raise InfrastructureError(
            f"task {task.id}: the assertion {assertion.get('func_name')!r} failed: {problem}", boundary="world"
        ) from problem
    return bool(answer == assertion.get("assert_value", True))


def _function(world: World, assertion: Mapping[str, Any]) -> Any:
    """The method that an assertion names: one that the domain's author wrote, never one of the machinery's own."""
    name, kit = assertion["func_name"], world.toolkit(assertion["env_type"])
    function = None if name.startswith("_") or hasattr(Domain, name) else getattr(kit, name, None)
    if not callable(function):
        raise AttributeError(f"the {assertion['env_type']}'s side has no function {name!r}")
    return function
