"""Methods as tools: the mark ``@tool``, and the tools that a domain class has."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar, cast, overload

from muarl.domains.authoring import check_tool
from muarl.domains.schema import ToolSchema, tool_schema

Kind = Literal["read", "write", "generic"]
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
WATCHED = 1000
"""Calls of a tool that are watched; what it has not done by then, it will hardly do."""


@overload
def tool(function: F) -> F: ...
@overload
def tool(*, writes: bool = ..., kind: Kind | None = ...) -> Callable[[F], F]: ...
def tool(function: Any = None, *, writes: bool = False, kind: Kind | None = None) -> Any:
    """Mark a domain's method as a tool; it may be a coroutine (``async def``).

    ``writes=True`` if it changes the database. ``kind`` says it in full: "read", "write", or "generic" for tools that
    have nothing to do with the database, such as a calculator. The schema comes from type hints and docstring.
    """

    def mark(f: Any) -> Any:
        f.__tool_kind__ = kind or ("write" if writes else "read")
        return f

    return mark if function is None else mark(function)


@dataclass(slots=True)
class Tool:
    """A tool of a domain class."""

    name: str
    kind: Kind
    schema: ToolSchema
    waits: bool = False
    """It is a coroutine (``async def``)."""
    watched: int = WATCHED
    """How many more of its calls are looked at for changes of the database, of a tool that is not marked as writing."""


def tools_of(cls: type[Any]) -> dict[str, Tool]:
    """All tools of a domain class in the order of definition, base classes first.

    ConfigError, naming the tool, for one that cannot work; AuthoringWarning for what is probably a mistake (see
    ``domains.authoring``). The checks run once for a class.
    """
    return _tools_of(cast(Any, cls))


@cache
def _tools_of(cls: Any) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    for owner in reversed(cls.__mro__):
        for name, member in vars(owner).items():
            kind = getattr(member, "__tool_kind__", None)
            if kind is None and isinstance(member, (staticmethod, classmethod)):
                kind = getattr(member.__func__, "__tool_kind__", None)
            if kind is not None:
                schema = tool_schema(member)
                check_tool(member, schema, described=getattr(cls, "described", True))
                tools[name] = Tool(name, kind, schema, inspect.iscoroutinefunction(member))
    return tools


def finished(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, for plain code. Where an event loop runs in this thread, which then has to wait, the
    coroutine gets one of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def tool_kinds(cls: type[Any]) -> dict[str, Kind]:
    """What each tool of a domain class is: "read", "write" or "generic"."""
    return {name: t.kind for name, t in tools_of(cls).items()}
