"""Discoverable tools: kept from the list of tools, told of in a document, unlocked and called by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from muarl.domains.tooling import Kind, Tool, tool, tools_of
from muarl.types.chat import ToolSpec

F = TypeVar("F", bound=Callable[..., Any])
UNLOCK, CALL = "unlock_discoverable_agent_tool", "call_discoverable_agent_tool"
"""The tools through which discoverable ones are used; TAU2's bank calls them so, too."""


@overload
def discoverable(function: F) -> F: ...
@overload
def discoverable(*, writes: bool = ..., kind: Kind | None = ...) -> Callable[[F], F]: ...
def discoverable(function: Any = None, *, writes: bool = False, kind: Kind | None = None) -> Any:
    """Mark a method as a tool that agents are not told of. They read of it in a document, unlock it, and call it by
    name through ``call_discoverable_agent_tool``. ``writes`` and ``kind``: as for ``tool``."""

    def mark(f: Any) -> Any:
        f.__discoverable__ = True
        return tool(writes=writes, kind=kind)(f)

    return mark if function is None else mark(function)


def discoverables_of(cls: type[Any]) -> dict[str, Tool]:
    """The discoverable tools of a domain class, by name."""
    return {name: one for name, one in tools_of(cls).items() if getattr(getattr(cls, name), "__discoverable__", False)}


def shown(spec: ToolSpec) -> str:
    """What unlocking a tool tells of it: its description, and its parameters with what each must be."""
    required = spec.parameters.get("required", ())
    lines = [f"Tool: {spec.name}", f"Description: {spec.description}", "Parameters:"]
    for name, schema in spec.parameters.get("properties", {}).items():
        must = "required" if name in required else "optional"
        lines.append(f"  - {name}: {_type(schema)} ({must}){_about(schema)}")
    return "\n".join(lines if len(lines) > 3 else [*lines, "  (no parameters)"])


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return f"one of {', '.join(repr(one) for one in schema['enum'])}"
    return str(schema.get("type", "any"))


def _about(schema: Mapping[str, Any]) -> str:
    return f" - {schema['description']}" if schema.get("description") else ""
