"""BFCL multi-turn as a domain: worlds of some of eight API classes, each with the state that its task gives.

A task's ``initial_data`` says what its world is made of: "involved_classes", "initial_config" (class to state) and
"long_context". Its ``agenda`` says how it is played (see bfcl/official/tasks.py): "turns", what the user says
turn by turn, and "brings", the tools that are withheld until a turn. As in BFCL, a withheld tool is not offered, but
works if it is called.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from muarl.basics.errors import ConfigError, DataError
from muarl.domains.base import Domain, Renderer, Semantics, World
from muarl.domains.tasks import Task
from muarl.types.chat import Requestor, ToolCall, ToolResult, ToolSpec
from muarl_worlds.bfcl.api import Api, LongContext, Revision
from muarl_worlds.bfcl.apis import APIS, CLASSES
from muarl_worlds.bfcl.calls import call_text
from muarl_worlds.bfcl.environment import Instances, class_tools, json_state, load_apis, tool_names

__all__ = ["Bfcl", "BfclWorld", "classes_of", "offered_specs", "withheld"]

_KEPT = 1024
"""How many tasks' initial states a domain remembers."""


def classes_of(task: Task | None) -> tuple[str, ...]:
    """The API classes of a task's world; all of them where there is no task. DataError names one that is unknown."""
    if task is None:
        return CLASSES
    found = tuple((task.initial_data or {}).get("involved_classes", ()))
    for name in found:
        if name not in CLASSES:
            raise DataError(f"task {task.id!r}: BFCL has no API class {name!r}; it has {', '.join(CLASSES)}")
    return found


def withheld(task: Task) -> dict[int, tuple[str, ...]]:
    """The tools that a task's user brings later: turn to their names."""
    brings: Mapping[str, Any] = (task.agenda or {}).get("brings", {})
    return {int(turn): tuple(names) for turn, names in brings.items()}


def offered_specs(revision: Revision, task: Task) -> tuple[ToolSpec, ...]:
    """The tools that a task offers at its start, as our own docstrings describe them: its classes' in their order."""
    later = {name for names in withheld(task).values() for name in names}
    return tuple(
        tool.schema.spec
        for owner in classes_of(task)
        for name, tool in class_tools(revision, owner).items()
        if name not in later
    )


class Bfcl(Domain):
    """One revision of BFCL's multi-turn tools.

    ``long_context``: the literals that BFCL's long_context entries add to their worlds (installed data); without them
    no such task can be played. ``specs``: what a benchmark task offers at its start, where that is not what our own
    docstrings say. ``label``: the name of the model, which official worlds show where a call's text names a tool.
    """

    name: ClassVar[str] = "bfcl"

    def __init__(
        self,
        revision: Revision = "v4",
        *,
        semantics: Semantics = "fixed",
        policy: str | None = None,
        render: Renderer | None = None,
        long_context: LongContext | None = None,
        specs: Callable[[Task], tuple[ToolSpec, ...]] | None = None,
        label: str = "muarl",
    ) -> None:
        if revision not in APIS:
            raise ConfigError(f"revision: BFCL has {' and '.join(APIS)}, not {revision!r}")
        super().__init__(policy=policy, render=render, semantics=semantics)
        self.revision: Revision = revision
        self._tools = {name: tool for owner in CLASSES for name, tool in class_tools(revision, owner).items()}
        self._long_context, self._specs, self._label = long_context, specs, label
        self._initial: OrderedDict[str, tuple[Any, dict[str, Api]]] = OrderedDict()

    def specs_for(self, task: Task) -> tuple[ToolSpec, ...]:
        """The tools that the agent is offered at the start of a task."""
        if task.benchmark and self._specs is not None:
            return self._specs(task)
        return offered_specs(self.revision, task)

    def world(self, task: Task | None = None) -> BfclWorld:
        """The fresh state of one episode."""
        return BfclWorld(self, task)

    def instances(self, task: Task | None, *, label: str | None = None, checked: bool | None = None) -> Instances:
        """Fresh API objects in a task's initial state. ``label``, ``checked``: see Instances, None for the domain's.

        DataError if the state cannot be loaded.
        """
        fixed = self.semantics == "fixed"
        return Instances(
            self.revision,
            {name: api.copy() for name, api in self._apis_of(task).items()},
            label=f"{self._label if label is None else label}_{'world' if task is None else task.id}",
            checked=fixed if checked is None else checked,
        )

    def _apis_of(self, task: Task | None) -> dict[str, Api]:
        """A task's initial state, to be copied. It is remembered, since every rollout of a task begins in it."""
        if task is None:
            return load_apis(self.revision, CLASSES, {})
        known = self._initial.get(task.id)
        if known is not None and known[0] is task.initial_data:
            return known[1]
        made = self._load(task)
        self._initial[task.id] = (task.initial_data, made)
        while len(self._initial) > _KEPT:
            self._initial.popitem(last=False)
        return made

    def _load(self, task: Task) -> dict[str, Api]:
        given = task.initial_data or {}
        literals = self._long_context if given.get("long_context") else None
        if given.get("long_context") and literals is None:
            raise DataError(f"task {task.id!r} is one of long_context, which needs BFCL's data: muarl data fetch bfcl")
        try:
            return load_apis(self.revision, classes_of(task), given.get("initial_config", {}), literals)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as problem:
            raise DataError(f"task {task.id!r}: its initial state is malformed: {problem!r}") from None


class BfclWorld(World):
    """One episode's API objects."""

    __slots__ = ("instances",)

    def __init__(self, domain: Bfcl, task: Task | None) -> None:
        self.domain, self.task = domain, task
        self.writes: list[ToolCall] = []
        self._kits: dict[str, Domain | None] = {"assistant": domain}
        self.instances = domain.instances(task)
        domain.prepare(self)

    def call(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        """Run one tool call.

        A call that a model wrote as text, which stands in ``raw``, is run as that text; in official semantics a native
        call is made into text first, as BFCL does.
        """
        if requestor != "assistant":
            return ToolResult("Error: the user has no tools here.", True)
        if call.invalid is not None:
            return ToolResult(f"Error: the tool call could not be read: {call.invalid}", True)
        if call.raw is not None:
            outcome = self.instances.execute(call.raw)
        elif self.domain.semantics == "official":
            outcome = self.instances.execute(call_text(call.name, call.arguments))
        else:
            outcome = self.instances.call(call.name, call.arguments)
        if outcome.wrote:
            self.writes.append(call)
        return ToolResult(outcome.content, outcome.error)

    def invoke(self, requestor: Requestor, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool without checks or rendering; whatever it raises passes through. ValueError if there is none."""
        assert isinstance(self.domain, Bfcl)
        owner = tool_names(self.domain.revision, tuple(self.instances.apis)).owners.get(name)
        if requestor != "assistant" or owner is None:
            raise ValueError(f"Tool '{name}' not found.")
        return getattr(self.instances.apis[owner], name)(**arguments)

    def digest(self) -> str:
        """64 hex digits of the state that BFCL compares, equal for states that it takes for equal."""
        return self.instances.digest()

    def json_state(self) -> Mapping[str, Mapping[str, Any]]:
        """The public attributes of every object, by class."""
        return json_state(self.instances.state())

    def full_hash(self, requestor: Requestor = "assistant") -> str | None:
        """The same over the whole state, what BFCL does not compare included; None for the user, who has none."""
        return self.instances.digest(private=True) if requestor == "assistant" else None
