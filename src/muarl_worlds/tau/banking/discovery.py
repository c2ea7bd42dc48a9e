"""Discoverable tools: kept from the tool list, told of in documents, and called by name through another tool.

Their descriptions and parameters stand in discoverable.json, word for word as TAU2 shows them (sierra-research/
tau2-bench, MIT licence, Copyright Sierra Research). What the tools do is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from muarl.domains.base import Domain, Semantics
from muarl.domains.tooling import Kind, tool, tools_of
from muarl.types.chat import Requestor
from muarl_worlds.tau.banking import query
from muarl_worlds.tau.banking.records import TABLES

F = TypeVar("F", bound=Callable[..., Any])
Side = Literal["agent", "user"]
_OWNERS = {"agent": "KnowledgeTools", "user": "KnowledgeUserTools"}


@dataclass(frozen=True)
class Description:
    """What is told of a discoverable tool. ``parameters``: name to (type, text); an optional one's type says so."""

    text: str
    parameters: Mapping[str, tuple[str, str]]


def _read() -> dict[str, dict[str, Description]]:
    raw = json.loads(Path(__file__).with_name("discoverable.json").read_text(encoding="utf-8"))
    return {
        side: {name: Description(d["description"], d["parameters"]) for name, d in tools.items()}
        for side, tools in raw.items()
    }


DESCRIPTIONS = _read()
"""By side ("agent", "user"), then by the tool's name, in TAU2's order."""


def discoverable(kind: Kind, side: Side = "agent") -> Callable[[F], F]:
    """Mark a method as a discoverable tool.

    Its qualified name becomes that of TAU2's method, since Python's errors about arguments tell it.
    """

    def mark(function: Any) -> Any:
        name = function.__name__
        function.__doc__ = DESCRIPTIONS[side][name].text
        function.__qualname__ = f"{_OWNERS[side]}.{name}"
        return tool(kind=kind)(function)

    return mark


def shown(name: str) -> str:
    """An agent's discoverable tool as its unlocking shows it."""
    described = DESCRIPTIONS["agent"][name]
    lines = []
    for parameter, (kind, text) in described.parameters.items():
        plain, optional, _ = kind.partition(", optional")
        lines.append(f"  - {parameter}: {plain} {'(optional)' if optional else '(required)'} - {text}")
    return f"Tool: {name}\nDescription: {described.text}\nParameters:\n" + "\n".join(lines or ["  (no parameters)"])


class BankSide(Domain):
    """What both sides' tools are made with."""

    discoverables: Mapping[str, Description] = {}
    """The side's discoverable tools. In "official" semantics they can also be called by their own names, past the tool
    that records their use, as in TAU2; "fixed" refuses that."""

    def __init__(self, *, semantics: Semantics = "fixed", **options: Any) -> None:
        super().__init__(semantics=semantics, **options)
        hidden = {n: t for n, t in tools_of(type(self)).items() if n in self.discoverables}
        offered = {n: t for n, t in self._tools.items() if n not in hidden}
        self._tools = {**offered, **hidden} if semantics == "official" else offered

    def tool_names(self, requestor: Requestor = "assistant") -> tuple[str, ...]:
        """The names of one side's tools, without the discoverable ones."""
        return tuple(spec.name for spec in self.tool_specs(requestor))

    def tool_specs(self, requestor: Requestor = "assistant") -> tuple[Any, ...]:
        """The tools one side has, without the discoverable ones."""
        kit = self.toolkit(requestor)
        if not isinstance(kit, BankSide):
            return ()
        return tuple(t.schema.spec for t in kit._tools.values() if t.name not in kit.discoverables)

    def _refused(self, text: str) -> str:
        """A call of a discoverable tool that broke off. In "fixed" semantics ValueError, so that it is undone."""
        if self.semantics == "fixed":
            raise ValueError(text)
        return f"Error: {text}"

    def _report(self, table: str, field: str, value: Any) -> str:
        """The records with a value in a field, as text."""
        if self.semantics == "official":
            return query.report_of_text(self.db, table, f'{{"{field}": "{value}"}}')
        return query.report(self.db, table, {field: value})

    def _everything(self, table: str) -> str:
        return query.report(self.db, table, {})

    def _add(self, table: str, key: str, record: dict[str, Any]) -> bool:
        """Whether a new record was stored: not over another one, and not in a table that TAU2 does not have."""
        if table not in TABLES or key in self.db[table]:
            return False
        self.db[table][key] = record
        return True


def holdings(account: Mapping[str, Any]) -> float:
    """An account's balance in dollars, which may stand there as a number or as text such as "$2,850.00"."""
    value = account.get("current_holdings", account.get("balance", 0))
    if isinstance(value, (int, float)):
        return float(value)
    return dollars(value) if isinstance(value, str) else 0.0


def dollars(text: str) -> float:
    """A number from text such as "$2,850.00". ValueError if it is none."""
    return float(text.replace("$", "").replace(",", ""))


def titled(text: str) -> str:
    """snake_case as a title."""
    return text.replace("_", " ").title()


def told(*parts: str) -> str:
    """Lines of text."""
    return "\n".join(parts)


def not_one_of(what: str, options: tuple[str, ...]) -> str:
    """The refusal of a value that is not among the options."""
    return f"Error: Invalid {what}. Must be one of: {list(options)}"


def executed(name: str, arguments: dict[str, Any] | None = None) -> tuple[str, str]:
    """The two lines that tell which tool ran, and with what."""
    return (
        f"Executed: {name}",
        f"Arguments: {'(no arguments)' if arguments is None else json.dumps(arguments, indent=2)}",
    )
