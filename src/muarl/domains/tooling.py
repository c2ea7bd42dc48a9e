"""Methods as tools: the mark ``@tool``, and the tools that a domain class has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar, cast, overload

from muarl.domains.schema import ToolSchema, tool_schema

Kind = Literal["read", "write", "generic"]
F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F) -> F: ...
@overload
def tool(*, writes: bool = ..., kind: Kind | None = ...) -> Callable[[F], F]: ...
def tool(function: Any = None, *, writes: bool = False, kind: Kind | None = None) -> Any:
    """Mark a domain's method as a tool.

    ``writes=True`` if it changes the database. ``kind`` says it in full: "read", "write", or "generic" for tools that
    have nothing to do with the database, such as a calculator. The schema comes from type hints and docstring.
    """

    def mark(f: Any) -> Any:
        f.__tool_kind__ = kind or ("write" if writes else "read")
        return f

    return mark if function is None else mark(function)


@dataclass(frozen=True)
class Tool:
    """A tool of a domain class."""

    name: str
    kind: Kind
    schema: ToolSchema


def tools_of(cls: type[Any]) -> dict[str, Tool]:
    """All tools of a domain class in the order of definition, base classes first."""
    return _tools_of(cast(Any, cls))


@cache
def _tools_of(cls: Any) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for owner in reversed(cls.__mro__):
        for name, member in vars(owner).items():
            kind = getattr(member, "__tool_kind__", None)
            if kind is not None:
                found[name] = Tool(name, kind, tool_schema(member))
    return found


def tool_kinds(cls: type[Any]) -> dict[str, Kind]:
    """What each tool of a domain class is: "read", "write" or "generic"."""
    return {name: t.kind for name, t in tools_of(cls).items()}
