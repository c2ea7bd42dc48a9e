"""Domains, tasks and worlds: what an agent acts on.

An author subclasses ``Domain``: policy text, a database, and methods marked ``@tool``. ``Domain.world(task)`` gives the
fresh state of one episode. Tool calls never raise: whatever is wrong with one becomes an error observation.

Two semantics. "fixed" (training): arguments are checked against the schema before the tool runs, a read changes
nothing, a write that raises leaves the database as it was. "official" (benchmarks): no checks, no rollback, upstream's
texts.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path, PurePath
from typing import Any, ClassVar, Literal
from uuid import UUID

from muarl.basics.copies import copied, shared
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.auditing import AuditRules
from muarl.domains.authoring import tell_bug, tell_result, tell_unmarked
from muarl.domains.database import Database, View
from muarl.domains.sources import as_database, policy_text
from muarl.domains.task_rules import TaskRules
from muarl.domains.tasks import REWARD_BASIS, Action, Task
from muarl.domains.tooling import Kind, Tool, finished, tool, tool_kinds, tools_of
from muarl.types.chat import Message, Requestor, ToolCall, ToolResult, ToolSpec

__all__ = [
    "REWARD_BASIS", "Action", "Database", "Domain", "Kind", "Renderer", "Semantics", "Task", "World", "tool",
    "tool_kinds",
]  # fmt: skip

Semantics = Literal["fixed", "official"]
Renderer = Callable[[str, Any], str]
_SUGGESTION = re.compile(r"(?<=')\. Did you mean '\w+'\?\Z")
"""What Python 3.13 adds to the error for an unknown argument; benchmarks' texts are those of Python 3.12."""


_AS_TEXT = (date, time, timedelta, Decimal, UUID, PurePath)
"""Values whose text says it all (datetime is a date)."""


class Domain:
    """A domain: subclass it, give ``policy`` and ``database``, mark methods with ``@tool``.

    Options of an instance: another ``database`` or ``policy``; ``tools``, a subset of tool names to offer; ``render``,
    which turns a tool's result into the observation's text; ``semantics``.
    """

    name: ClassVar[str] = ""
    """Where neither a class nor one that it extends gives a name, it is the class's own in lower case."""
    policy: ClassVar[Path | str] = ""
    """Text, or a Path relative to the module that defines the class."""
    database: ClassVar[Any] = None
    """Tables of records as a plain dict, a ``Database``, a Path to such a JSON file, or a pydantic model (class with
    defaults, or instance); a Path to a SQLite file, the URL of a database, or a ``SqlDatabase``, which names some of
    its tables. In tools, ``self.db`` is the episode's own view."""
    user_toolkit: ClassVar[type[Domain] | None] = None
    """Another Domain class whose tools the user has."""
    audit: ClassVar[AuditRules | None] = None
    """What audits must know of it (``domains.auditing``)."""
    task_rules: ClassVar[TaskRules | None] = None
    """What checks of its tasks must know (``domains.task_rules``)."""
    described: ClassVar[bool] = True
    """The agent is told of tools what their docstrings and hints say; False where ``tool_specs`` says something
    else."""
    allow_failing_gold: bool = False
    """Tasks whose gold actions fail may be played all the same (see ``rewards.gold.check_tasks``); also on an
    instance."""
    waits: bool = False
    """Whether one of its tools is a coroutine."""
    unreplayed: frozenset[str] = frozenset()
    """Reads that replays of gold actions leave out: a search that asks a model changes nothing, and costs."""

    db: View

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.name:
            cls.name = cls.__name__.lower()

    def __init__(
        self,
        *,
        database: Any = None,
        policy: Path | str | None = None,
        tools: Sequence[str] | None = None,
        render: Renderer | None = None,
        semantics: Semantics = "fixed",
    ) -> None:
        if semantics not in ("fixed", "official"):
            raise ConfigError(f"semantics: must be 'fixed' or 'official', not {semantics!r}")
        everything = tools_of(type(self))
        taken = next((n for n in everything if n == "db" or hasattr(Domain, n)), None)
        if taken is not None:
            raise ConfigError(f"{self.name}: a tool cannot be called {taken!r}, which is a name of Domain itself")
        unknown = [n for n in tools or () if n not in everything]
        if unknown:
            raise ConfigError(f"tools: {self.name} has no tool {unknown[0]!r}; it has {', '.join(everything)}")
        self.semantics: Semantics = semantics
        self._tools = {n: t for n, t in everything.items() if tools is None or n in tools}
        self._render = render
        self._policy_text = policy_text(type(self), type(self).policy if policy is None else policy)
        self._base: Database | None = None
        self._given_database = database
        user = type(self).user_toolkit
        self._user: Domain | None = None if user is None else user(semantics=semantics)
        sides = [self._tools, *([] if self._user is None else [self._user._tools])]
        self.waits = any(t.waits for tools_ in sides for t in tools_.values())

    @property
    def policy_text(self) -> str:
        """The policy that the agent is told."""
        return self._policy_text

    @property
    def declared_database(self) -> Any:
        """The database as its author gave it: tables, a Path, a ``SqlDatabase``; nothing is opened."""
        return self._given_database if self._given_database is not None else type(self).database

    @property
    def base(self) -> Database:
        """The domain's own database, which worlds of tasks without one share."""
        if self._base is None:
            self._base = as_database(self.declared_database, type(self))
        return self._base

    def toolkit(self, requestor: Requestor) -> Domain | None:
        """The side's tools: this domain for the assistant, ``user_toolkit``'s instance for the user, None if none."""
        if requestor == "assistant":
            return self
        return self._user if requestor == "user" else None

    def tool_names(self, requestor: Requestor = "assistant") -> tuple[str, ...]:
        """The names of one side's tools, in the order of definition; empty if it has none."""
        kit = self.toolkit(requestor)
        return () if kit is None else tuple(kit._tools)

    def tool_specs(self, requestor: Requestor = "assistant") -> tuple[ToolSpec, ...]:
        """The tools one side has, as a model sees them, in the order of definition."""
        kit = self.toolkit(requestor)
        return () if kit is None else tuple(t.schema.spec for t in kit._tools.values())

    def specs_for(self, task: Task) -> tuple[ToolSpec, ...]:
        """The tools that the agent is offered at the start of a task; hook for domains where tasks differ in them."""
        return self.tool_specs("assistant")

    def policy_for(self, task: Task) -> str:
        """The policy that the agent is told in a task; hook for domains where tasks differ in it."""
        return self.policy_text

    def kind_of(self, tool_name: str) -> Kind:
        """ "read", "write" or "generic". KeyError if neither side has such a tool."""
        for kit in (self, self._user):
            if kit is not None and tool_name in kit._tools:
                return kit._tools[tool_name].kind
        raise KeyError(tool_name)

    def world(self, task: Task | None = None) -> World:
        """The fresh state of one episode; microseconds, since it copies nothing."""
        return World(self, task)

    def render(self, tool_name: str, value: Any) -> str:
        """A tool's result as the observation's text: strings as they are, the rest as JSON."""
        if self._render is not None:
            return self._render(tool_name, value)
        if isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, default=partial(_plain, type(self), tool_name))

    def prepare(self, world: World) -> None:
        """Hook: called once when a world is made, before its first call (initial actions of a task)."""

    def sync(self, world: World) -> None:
        """Hook: called after every tool call, for domains whose two sides must be kept in step."""


class World:
    """The live state of one episode: tools are called on it, and change its own copy of the database.

    ``Domain.world(task)`` makes one. ``call`` runs a tool for the agent or the user and gives its observation;
    ``digest`` is equal for equal states. ``writes``: the write calls that succeeded, in order.
    """

    __slots__ = ("_kits", "domain", "task", "writes")

    def __init__(self, domain: Domain, task: Task | None) -> None:
        self.domain, self.task = domain, task
        self.writes: list[ToolCall] = []
        own = task.database if task is not None and task.database is not None else domain.base
        self._kits: dict[str, Domain | None] = {"assistant": _bind(domain, own)}
        if domain._user is not None:
            self._kits["user"] = _bind(domain._user, domain._user.base)
        domain.prepare(self)

    def toolkit(self, requestor: Requestor = "assistant") -> Any:
        """The live toolkit of a side (a Domain whose ``db`` is this world's view), or None."""
        return self._kits.get(requestor)

    async def aopen(self) -> None:
        """Hook: start what the world needs (processes, connections), before the first turn."""

    async def aclose(self) -> None:
        """Hook: end what the world has started. Called once an episode is over and scored, also after a failure."""

    def hear(self, message: Message) -> None:
        """Hook: the user has said this to the agent, for worlds in which it matters when a tool is called."""

    def fork(self) -> World:
        """A copy that goes on by itself: the same state, between two calls. What nobody changes is shared.

        ConfigError where the state cannot be copied (on a server, say).
        """
        new = object.__new__(type(self))
        memo = shared(self.domain, self.task)
        sides: tuple[Requestor, ...] = ("assistant", "user")
        kits = {s: _forked(self._kits[s], self.domain.toolkit(s), memo) for s in sides if s in self._kits}
        memo[id(self._kits)] = kits
        for name, value in _attributes(self):
            setattr(new, name, copied(f"a world of {self.domain.name}", value, memo))
        return new

    def another(self) -> World:
        """A fresh world of the same task, for work that is done while this one is kept (replaying gold actions)."""
        return self.domain.world(self.task)

    async def answers(self, requestor: Requestor, calls: Iterable[ToolCall]) -> AsyncIterator[ToolResult]:
        """The results of all calls of one message, in order. Worlds with slow tools wait for them here."""
        if self.domain.waits:
            for call in calls:
                yield await self.acall(requestor, call)
        else:
            for result in self.call_all(requestor, calls):
                yield result

    def call_all(self, requestor: Requestor, calls: Iterable[ToolCall]) -> Iterator[ToolResult]:
        """Run the calls of one message, each when its result is asked for."""
        for call in calls:
            yield self.call(requestor, call)

    async def state_digest(self) -> str:
        """``digest``, for worlds that must ask somebody for their state."""
        return self.digest()

    def call(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        """Run one tool call. Never raises for what is wrong with the call: that becomes an error result. What no call
        can help passes through: InfrastructureError, and MemoryError.

        A tool that is a coroutine is run to its end here, in an event loop of its own; ``acall`` waits for it.
        """
        if self.domain.semantics == "official":
            return self._call_official(requestor, call)
        kit = self._kits.get(requestor)
        declared = None if kit is None else kit._tools.get(call.name)
        if kit is None or declared is None or call.invalid is not None:
            return _unknown(kit, call)
        if declared.waits:
            return finished(self.acall(requestor, call))
        problem = declared.schema.check(call.arguments)
        if problem is not None:
            return ToolResult(f"Error: {call.name}: {problem}", True, "wrong argument")
        kit.db.begin()
        try:
            content = kit.render(call.name, getattr(kit, call.name)(**declared.schema.convert(call.arguments)))
            kit.db.check_columns()
        except BaseException as error:
            return _broken_off(kit, call, error)
        return self._completed(kit, declared, call, content)

    async def acall(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        """``call``, but that a tool which is a coroutine is waited for in the running event loop."""
        kit = self._kits.get(requestor)
        declared = None if kit is None else kit._tools.get(call.name)
        if kit is None or declared is None or not declared.waits or call.invalid is not None:
            return self.call(requestor, call)
        if self.domain.semantics == "official":
            return await self._acall_official(requestor, kit, call)
        problem = declared.schema.check(call.arguments)
        if problem is not None:
            return ToolResult(f"Error: {call.name}: {problem}", True, "wrong argument")
        kit.db.begin()
        try:
            content = kit.render(call.name, await getattr(kit, call.name)(**declared.schema.convert(call.arguments)))
            kit.db.check_columns()
        except BaseException as error:
            return _broken_off(kit, call, error)
        return self._completed(kit, declared, call, content)

    def _completed(self, kit: Domain, declared: Tool, call: ToolCall, content: str) -> ToolResult:
        """A call that has succeeded: its changes are kept if its tool may write."""
        view = kit.db
        if declared.kind == "write":
            view.commit()
            self.writes.append(call)
        else:
            changed = _changed(view, declared) if declared.watched else None
            if declared.kind == "read":
                view.rollback()  # a read changes nothing, whatever its code does
            else:
                view.commit()
            if changed is not None:
                tell_unmarked(type(kit), declared.name, declared.kind, changed)
        self.domain.sync(self)
        return ToolResult(content)

    def _call_official(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        """As TAU2's environment answers: raw arguments, Python's own error texts, nothing undone."""
        if call.invalid is not None:
            return ToolResult(f"Error: the tool call could not be read: {call.invalid}", True)
        try:
            _refuse_collisions(call.arguments)
            return self._official_result(requestor, call, self.invoke(requestor, call.name, call.arguments))
        except (InfrastructureError, MemoryError):
            raise
        except Exception as error:
            return _official_error(error)

    async def _acall_official(self, requestor: Requestor, kit: Domain, call: ToolCall) -> ToolResult:
        """The same for a tool that is a coroutine, waited for in the running event loop."""
        try:
            _refuse_collisions(call.arguments)
            return self._official_result(requestor, call, await getattr(kit, call.name)(**call.arguments))
        except (InfrastructureError, MemoryError):
            raise
        except Exception as error:
            return _official_error(error)

    def _official_result(self, requestor: Requestor, call: ToolCall, value: Any) -> ToolResult:
        self.domain.sync(self)
        content = self.domain.render(call.name, value)
        kit = self._kits[requestor]
        if kit is not None and kit._tools[call.name].kind == "write":
            self.writes.append(call)
        return ToolResult(content)

    def invoke(self, requestor: Requestor, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool without checks, sync or rendering; whatever it raises passes through (gold actions)."""
        kit = self._kits.get(requestor)
        if kit is None:
            raise ValueError("User tools not available")
        if name not in kit._tools:
            raise ValueError(f"Tool '{name}' not found.")
        value = getattr(kit, name)(**arguments)
        return finished(value) if kit._tools[name].waits else value

    def digest(self) -> str:
        """64 hex digits of the whole state, equal if and only if two states are equal; costs what was touched."""
        views = [kit.db for kit in self._kits.values() if kit is not None]
        return views[0].digest() if len(views) == 1 else "-".join(v.digest() for v in views)

    def json_state(self) -> Mapping[str, Mapping[str, Any]] | None:
        """Hook: the whole state as JSON values, by what holds it and by name, for worlds whose state is no database;
        None: the tables are the state."""
        return None

    def full_hash(self, requestor: Requestor = "assistant") -> str | None:
        """TAU2's sha256 over one side's whole state; None if that side has none."""
        kit = self._kits.get(requestor)
        return None if kit is None else kit.db.full_hash()


def _official_error(error: Exception) -> ToolResult:
    return ToolResult(f"Error: {_SUGGESTION.sub('', str(error))}", True)


def _refuse_collisions(arguments: Mapping[str, Any]) -> None:
    """Argument names that TAU2's own call takes meet these Python errors there."""
    if "requestor" in arguments:
        owner = "tau2.environment.environment.Environment"
        raise TypeError(f"{owner}.make_tool_call() got multiple values for keyword argument 'requestor'")
    for name in arguments:
        if name in ("self", "tool_name"):
            raise TypeError(f"Environment.make_tool_call() got multiple values for argument '{name}'")


def _unknown(kit: Domain | None, call: ToolCall) -> ToolResult:
    """The answer to a call that cannot be read, or of a tool that the side does not have."""
    if call.invalid is not None:
        return ToolResult(f"Error: the tool call could not be read: {call.invalid}", True, "unreadable call")
    names = "none" if kit is None else ", ".join(kit._tools)
    return ToolResult(f"Error: there is no tool {call.name!r}. Tools: {names}.", True, "unknown tool")


def _broken_off(kit: Domain, call: ToolCall, error: BaseException) -> ToolResult:
    """A call whose tool raised: undone, and an error result. What is no doing of the agent's is raised again: the
    episode cannot count."""
    kit.db.rollback()
    if isinstance(error, (InfrastructureError, MemoryError)) or not isinstance(error, Exception):
        raise error
    tell_bug(type(kit), call.name, error)
    name = type(error).__name__
    return ToolResult(f"Error: {error}" if str(error) else f"Error: {name}", True, f"raises {name}")


def _changed(view: View, declared: Tool) -> tuple[str, str] | None:
    """A record that a call of a tool which is not marked as writing has changed, None if there is none."""
    declared.watched -= 1
    where = view.changed()
    if where is not None:
        declared.watched = 0
    return where


def _bind(domain: Domain, base: Database) -> Domain:
    """The domain with a view of its own: a shallow copy, so that everything else is shared."""
    kit = object.__new__(type(domain))
    kit.__dict__.update(domain.__dict__)
    kit.db = View(base)
    return kit


def _forked(kit: Domain | None, owner: Domain | None, memo: dict[int, Any]) -> Domain | None:
    """A copy of a bound toolkit: of its view, and of what it holds besides; what is its domain's is shared."""
    if kit is None or kit is owner:
        return kit
    new = memo[id(kit)] = object.__new__(type(kit))
    of_domain = {} if owner is None else owner.__dict__
    for name, value in kit.__dict__.items():
        if isinstance(value, View):
            new.__dict__[name] = memo[id(value)] = value.fork()
        else:
            own = name not in of_domain or of_domain[name] is not value
            new.__dict__[name] = copied(f"a toolkit of {kit.name}", value, memo) if own else value
    return new


def _attributes(thing: object) -> Iterator[tuple[str, Any]]:
    """What an object holds, in slots or not."""
    slots = [name for cls in type(thing).__mro__ for name in getattr(cls, "__slots__", ())]
    yield from ((name, getattr(thing, name)) for name in slots if hasattr(thing, name))
    yield from getattr(thing, "__dict__", {}).items()


def _plain(owner: type[Any], tool_name: str, value: Any) -> Any:
    """What JSON shall hold for a value of a result that it has no form for."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("the tool gave back a coroutine: define it, and whatever decorates it, with async def")
    if not isinstance(value, _AS_TEXT):
        tell_result(owner, tool_name, value)
    return str(value)
