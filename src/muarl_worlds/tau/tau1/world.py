"""What both worlds of TAU1 share: tool interfaces as given to models, calls as TAU1 answers them, its state hash."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from muarl.basics.errors import DataError, InfrastructureError
from muarl.domains.base import Domain, Renderer, Semantics, World
from muarl.domains.database import Database, View
from muarl.domains.schema import ToolSchema, compile_check
from muarl.domains.tasks import Task
from muarl.types.chat import Requestor, ToolCall, ToolResult, ToolSpec
from muarl_worlds.tau import calculator
from muarl_worlds.tau.tau1.state import StateTexts

Record = dict[str, Any]
Schema = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])

NO_OBSERVATION = (
    "Error: 1 validation error for EnvResponse\n"
    "observation\n"
    "  Input should be a valid string [type=string_type, input_value=None, input_type=NoneType]"
)
"""What TAU1's environment raises, and its episode ends with, where a tool returns nothing."""


def text(description: str | None = None, *, enum: Sequence[str] = ()) -> Schema:
    """A string parameter."""
    out: Schema = {"type": "string"}
    if enum:
        out["enum"] = list(enum)
    if description is not None:
        out["description"] = description
    return out


def interface(description: str, /, **parameters: Schema) -> Callable[[F], F]:
    """Give a tool the description and parameters that TAU1 shows to models; every parameter is required."""

    def mark(function: F) -> F:
        schema = {"type": "object", "properties": parameters, "required": list(parameters)}
        function.__tau1__ = ToolSchema(  # type: ignore[attr-defined]
            spec=ToolSpec(function.__name__, description, schema),
            _fields={name: compile_check(s, {}) for name, s in parameters.items()},
            _required=tuple(parameters),
            _converters={},
        )
        return function

    return mark


class Tau1Domain(Domain):
    """The base of both domains. A tool raises ValueError where TAU1's returns a text that begins with "Error: ".

    ``database``: a Database, or tables; without it, and without a ``policy``, those of the installed benchmark are
    used (DataError says how to install it). The other options are those of ``Domain``.
    """

    tables: ClassVar[tuple[str, ...]] = ()
    described = False  # by TAU1's own files

    def __init__(
        self,
        *,
        database: Any = None,
        policy: str | None = None,
        tools: Sequence[str] | None = None,
        render: Renderer | None = None,
        semantics: Semantics = "fixed",
    ) -> None:
        super().__init__(database=database, policy=policy, tools=tools, render=render, semantics=semantics)
        cls = type(self)
        self._tools = {
            n: replace(t, schema=getattr(getattr(cls, n), "__tau1__", t.schema)) for n, t in self._tools.items()
        }
        self._texts: list[StateTexts] = []  # shared by all worlds, which are shallow copies

    @classmethod
    def own_tools(cls) -> tuple[str, ...]:
        """The names of the tools that TAU1 gives the agent, in its order."""
        return tuple(n for n, member in vars(cls).items() if hasattr(member, "__tau1__"))

    @property
    def policy_text(self) -> str:
        """The policy given, else the installed benchmark's. DataError if that is not installed."""
        if not self._policy_text:
            from muarl_worlds.data import read_text

            self._policy_text = read_text("tau1", f"{self.name}/wiki.md")
        return self._policy_text

    @property
    def base(self) -> Database:
        """The database given, else the installed benchmark's. DataError if that is not installed, or lacks a table."""
        if self._base is None:
            given = self._given_database
            if given is None:
                from muarl_worlds.data import read_json

                given = {table: read_json("tau1", f"{self.name}/data/{table}.json") for table in self.tables}
            self._base = given if isinstance(given, Database) else tau1_database(given, self.tables)
        return self._base

    def render(self, tool_name: str, value: Any) -> str:
        """TAU1's text (strings as they are, records as a line of ASCII JSON), or what the caller's ``render`` gives."""
        if self._render is not None:
            return self._render(tool_name, value)
        return value if isinstance(value, str) else json.dumps(value)

    def world(self, task: Task | None = None) -> Tau1World:
        """The fresh state of one episode."""
        return Tau1World(self, task)

    def texts_of(self, view: View) -> StateTexts:
        """The record texts of the view's base; those of the domain's own base are kept."""
        if self._base is None or view.base is not self._base:
            return StateTexts(view.base)
        if not self._texts:
            self._texts.append(StateTexts(view.base))
        return self._texts[0]

    def _record(self, table: str, key: Any, missing: str, *, change: bool = False) -> Record:
        """A record to read, or with ``change`` this world's own copy. ValueError(missing) if there is none."""
        records = self.db[table]
        if key not in records:
            raise ValueError(missing)
        found: Record = records[key] if change else records.peek(key)
        return found


class Tau1World(World):
    """One episode's live state, with TAU1's answers in "official" semantics and TAU1's hash in both."""

    __slots__ = ()

    def _call_official(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        """As TAU1's environment answers: raw arguments, Python 3.12's own error texts, nothing undone."""
        kit = self._kits.get(requestor)
        if kit is None or call.name not in kit._tools:
            return ToolResult(f"Unknown action {call.name}", True)
        if call.invalid is not None:
            return ToolResult(f"Error: the tool call could not be read: {call.invalid}", True)
        try:
            value = self.invoke(requestor, call.name, call.arguments)
            content = NO_OBSERVATION if value is None else kit.render(call.name, value)
        except (InfrastructureError, MemoryError):
            raise
        except Exception as error:
            return ToolResult(f"Error: {error}", True)
        if kit._tools[call.name].kind == "write":
            self.writes.append(call)
        return ToolResult(content, value is None)

    def invoke(self, requestor: Requestor, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool without checks or rendering; whatever it raises passes through. ValueError if there is none."""
        kit = self._kits.get(requestor)
        if kit is None or name not in kit._tools:
            raise ValueError(f"Unknown action {name}")
        problem = misfit(
            name, tuple(kit._tools[name].schema.spec.parameters["properties"]), arguments, self.domain.name
        )
        if problem is not None:
            raise TypeError(problem)
        return getattr(kit, name)(**arguments)

    def digest(self) -> str:
        """64 hex digits, equal if and only if TAU1's hashes are; costs what was touched."""
        view = self.toolkit().db
        return self.domain.texts_of(view).digest(view)  # type: ignore[attr-defined]

    def full_hash(self, requestor: Requestor = "assistant") -> str | None:
        """TAU1's sha256 over the whole state; None for the user, who has none."""
        kit = self.toolkit(requestor)
        return None if kit is None else self.domain.texts_of(kit.db).full_hash(kit.db)  # type: ignore[attr-defined]


def misfit(name: str, parameters: Sequence[str], arguments: Mapping[str, Any], domain: str) -> str | None:
    """Python 3.12's words for arguments that do not fit TAU1's tool function; None if they do.

    Spelled out because other versions word it otherwise, and because TAU1's functions bear other names than ours and
    take the database as ``data``.
    """
    owner = f"{''.join(part.capitalize() for part in name.split('_'))}.invoke()"
    if "data" in arguments:
        module = f"tau_bench.envs.{domain}.tools.{name}"
        return f"{module}.{owner} got multiple values for keyword argument 'data'"
    for given in arguments:
        if given not in parameters:
            return f"{owner} got an unexpected keyword argument '{given}'"
    missing = [repr(p) for p in parameters if p not in arguments]
    if not missing:
        return None
    words = missing[0]
    if len(missing) == 2:
        words = " and ".join(missing)
    elif len(missing) > 2:
        words = f"{', '.join(missing[:-1])}, and {missing[-1]}"
    return f"{owner} missing {len(missing)} required positional argument{'s' * (len(missing) > 1)}: {words}"


def calculate(expression: Any) -> str:
    """The value of an arithmetic expression in TAU1's words. Raises what Python raises, and ValueError."""
    if not all(char in calculator.ALLOWED for char in expression):
        raise ValueError("invalid characters in expression")
    try:
        return calculator.calculate(expression)
    except SyntaxError as problem:  # Python 3.13 has a text of its own where 3.12 has none
        raise SyntaxError(str(problem).replace("Invalid star expression", "invalid syntax")) from None


def tau1_database(tables: Mapping[str, Any], names: Sequence[str]) -> Database:
    """A database of TAU1 from its files' contents, kept as they are. DataError if a table is missing or is none."""
    for name in names:
        if not isinstance(tables, Mapping) or not isinstance(tables.get(name), Mapping):
            raise DataError(f"tau1 database: it lacks the table {name!r}, or it is not an object of records")
    return Database({name: tables[name] for name in names})
