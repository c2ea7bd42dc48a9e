"""What of a server's tools an agent is offered: which, under what names, with which arguments already filled in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.mcp.client import ServerTool
from muarl.domains.mcp.launch import filled
from muarl.domains.schema import ToolSchema, compile_check
from muarl.domains.tooling import Kind
from muarl.types.chat import ToolSpec

KINDS = ("read", "write", "generic")
_SAY_NOTHING = ("title", "description", "$schema", "examples", "default", "additionalProperties")
"""Keywords that may change without changing what a call has to look like."""


@dataclass(frozen=True)
class OfferedTool:
    """One of the server's tools as the agent gets it."""

    tool: str
    named: str = ""
    """The name that the agent calls it by."""
    kind: Kind | None = None
    """None: as the server's annotation says, "write" where it says nothing."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that are filled in for the agent, who does not see them; ``{folder}`` stands for the episode's
    folder."""
    hidden: tuple[str, ...] = ()
    """Optional arguments that the agent is not shown."""
    description: str = ""

    @property
    def name(self) -> str:
        """What the agent calls it by."""
        return self.named or self.tool


@dataclass(frozen=True)
class AgentTool:
    """A tool that the agent has: its offer, its kind, and the schema that its calls are checked against."""

    offer: OfferedTool
    kind: Kind
    schema: ToolSchema
    source: ServerTool

    def arguments(self, values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """The arguments that the server is sent."""
        fixed = {k: filled(v, folder) if isinstance(v, str) else v for k, v in self.offer.fixed.items()}
        return {**values, **fixed}


def toolbox(listing: Mapping[str, ServerTool], offers: Iterable[OfferedTool] | None) -> dict[str, AgentTool]:
    """The agent's tools by name, in the order of the offers; None offers everything that the server has.

    ConfigError if an offer names a tool or an argument that the server does not have, or a name is taken twice.
    """
    tools: dict[str, AgentTool] = {}
    for offer in [OfferedTool(name) for name in listing] if offers is None else offers:
        source = listing.get(offer.tool)
        if source is None:
            raise ConfigError(f"tools: the server has no tool {offer.tool!r}; it has {', '.join(listing) or 'none'}")
        if offer.name in tools:
            raise ConfigError(f"tools: two tools would be called {offer.name!r}; rename one of them")
        reads = "read" if source.reads_only else "write"
        spec = ToolSpec(offer.name, offer.description or source.description, _parameters(offer, source))
        tools[offer.name] = AgentTool(offer, offer.kind or reads, _schema(spec), source)  # type: ignore[arg-type]
    return tools


def _parameters(offer: OfferedTool, source: ServerTool) -> dict[str, Any]:
    """The tool's input schema without what the agent is not shown."""
    schema = json.loads(json.dumps(source.parameters))
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise ConfigError(f"tools: {offer.tool}: the server's schema has no properties")
    required = [n for n in schema.get("required", ()) if n not in offer.fixed]
    for name in (*offer.fixed, *offer.hidden):
        if name not in properties:
            raise ConfigError(f"tools: {offer.tool} has no argument {name!r}; it has {', '.join(properties) or 'none'}")
        if name in required:
            raise ConfigError(f"tools: {offer.tool} needs the argument {name!r}: fix it instead of hiding it")
        del properties[name]
    out = {k: v for k, v in schema.items() if k not in ("$schema", "required", "properties")}
    return {"type": "object", **out, "properties": properties, "required": required}


def _schema(spec: ToolSpec) -> ToolSchema:
    definitions = {**spec.parameters.get("$defs", {}), **spec.parameters.get("definitions", {})}
    fields = {n: _careful(s, definitions) for n, s in spec.parameters["properties"].items()}
    return ToolSchema(spec, fields, tuple(spec.parameters["required"]), {})


def _careful(schema: Any, definitions: Mapping[str, Any]) -> Callable[[Any, str], str | None]:
    """The check of a schema that came from outside: where it cannot be made sense of, the server decides."""
    nonsense = (KeyError, TypeError, AttributeError, RecursionError)
    try:
        check = compile_check(schema, definitions)
    except nonsense:
        return lambda value, path: None

    def careful(value: Any, path: str) -> str | None:
        try:
            return check(value, path)
        except nonsense:
            return None

    return careful


def changed(offered: Iterable[AgentTool], listing: Mapping[str, ServerTool]) -> str | None:
    """How a server's tools differ from those that the agent was offered, in words; None if they do not."""
    for one in offered:
        name = one.offer.tool
        if name not in listing:
            return f"the tool {name} is gone"
        if _shape(listing[name].parameters) != _shape(one.source.parameters):
            return f"the tool {name} takes other arguments than before"
    return None


def _shape(schema: Any, *, names: bool = False) -> Any:
    """A schema without what says nothing about calls. ``names``: its keys are the names of arguments."""
    if isinstance(schema, Mapping):
        telling = {k: v for k, v in schema.items() if names or k not in _SAY_NOTHING}
        return {k: _shape(v, names=k == "properties" and not names) for k, v in sorted(telling.items())}
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [_shape(v) for v in schema]
    return schema


def to_json(listing: Iterable[ServerTool]) -> list[dict[str, Any]]:
    """A server's tools as plain data, for a file."""
    return [
        {"name": t.name, "description": t.description, "parameters": dict(t.parameters), "reads_only": t.reads_only}
        for t in listing
    ]


def from_json(rows: Sequence[Mapping[str, Any]]) -> dict[str, ServerTool]:
    """The inverse of ``to_json``, by name."""
    tools = (ServerTool(r["name"], r["description"], r["parameters"], r.get("reads_only")) for r in rows)
    return {t.name: t for t in tools}
