"""What the authors of domains are told of their mistakes.

A mistake that makes a tool unusable is refused with a ConfigError when the domain is first made. One that muarl can
play on with is warned of (AuthoringWarning, with file and line of the tool), once. A bug in a tool is the author's
business, not the model's: the model gets an error observation, and the traceback is logged, once.
"""

from __future__ import annotations

import inspect
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.schema import ToolSchema, place

log = logging.getLogger(__name__)

BUGS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, NotImplementedError,
    RecursionError, TypeError,
)  # fmt: skip
"""Exceptions that hint at a bug of the author's; others, such as ValueError, are how tools refuse a call."""

_told: set[tuple[Any, ...]] = set()
_untold: ContextVar[bool] = ContextVar("untold", default=False)
"""What has been told in this process."""


class AuthoringWarning(UserWarning):
    """Something in a domain or its tasks is probably not what its author means. The text names the remedy."""


def nearest(name: str, names: list[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, if there is any."""
    near = get_close_matches(name, names, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def check_tool(method: Callable[..., Any], schema: ToolSchema, *, described: bool = True) -> None:
    """What is wrong with a tool as it is written. ConfigError for what cannot work, warnings for the rest.

    ``described``: the agent is told of it what docstring and hints say."""
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise ConfigError(f"{place(method)}: it yields, and a tool answers once: return a list instead")
    own = next(iter(inspect.signature(method).parameters.values()), None)
    if isinstance(method, (staticmethod, classmethod)) or own is None or own.annotation is not own.empty:
        raise ConfigError(f"{place(method)}: it must be an ordinary method, whose first parameter is self")
    if not described:
        return
    if not (method.__doc__ or "").strip():
        _warn(method, "it has no docstring, so the agent sees only its name: add one that says what it does")
    if schema.unhinted:
        first, names = schema.unhinted[0], ", ".join(map(repr, schema.unhinted))
        _warn(method, f"{names} without a type hint, so that any value is accepted: write one, such as {first}: str")
    parameters = list(schema.spec.parameters.get("properties", {}))
    for name in schema.documented:
        if name not in parameters:
            rest = f"it takes {', '.join(parameters) or 'none'}{nearest(name, parameters)}"
            _warn(method, f"its docstring describes the parameter {name!r}, which it does not have; {rest}")


@contextmanager
def bugs_untold() -> Iterator[None]:
    """While records are tried out that muarl has changed: what a tool makes of them is no bug of its author's."""
    token = _untold.set(True)
    try:
        yield
    finally:
        _untold.reset(token)


def tell_bug(owner: type[Any], name: str, error: Exception) -> None:
    """Log the traceback of what looks like a bug in a tool, the first time that it is met at this line."""
    if not isinstance(error, BUGS) or _untold.get():
        return
    last = traceback.extract_tb(error.__traceback__)[-1]
    if _first("bug", owner, name, type(error), last.filename, last.lineno):
        ours = owner.__module__.startswith(
            ("muarl.", "muarl_worlds.")
        )  # a benchmark's tools may fail as the originals do
        log.log(
            logging.DEBUG if ours else logging.ERROR,
            "%s.%s raised %s. The agent reads %r and nothing else. If that is a way to refuse a call, raise ValueError "
            "with a sentence that helps; if it is a bug, here is the traceback (logged once):",
            owner.__qualname__, name, type(error).__name__, f"Error: {error}", exc_info=error,
        )  # fmt: skip


def tell_unmarked(owner: type[Any], name: str, kind: str, where: tuple[str, str]) -> None:
    """Warn of a tool that changes the database and is not marked so."""
    method = getattr(owner, name)
    if _first("unmarked", method):
        what = "undone" if kind == "read" else "kept, but counts as no write in audits"
        _warn(
            method,
            f"it changes the database (table {where[0]!r}, record {where[1]!r}) but is not marked as writing, so that "
            f"the change is {what}: mark it @tool(writes=True), or let it change a copy (copy.deepcopy(record))",
        )


def tell_result(owner: type[Any], name: str, value: Any) -> None:
    """Warn of a result that JSON has no form for."""
    method = getattr(owner, name, None)
    if method is not None and _first("result", method, type(value)):
        _warn(
            method,
            f"it returns a {type(value).__name__}, which JSON has no form for, so that the agent reads "
            f"{str(value)[:80]!r}: return strings, numbers, lists or dicts",
        )


def tell_unknowable(table: str) -> None:
    """Warn of audit rules that ask for records of which they can know nothing."""
    if _first("unknowable", table):
        warnings.warn(
            f"audit rules: they look at records of {table!r} and say nothing from which these could be known, so that "
            f"they find nothing there: add replays=True, or a Resource({table!r}, ...), to AuditRules",
            AuthoringWarning,
            stacklevel=2,
        )


def _first(*key: Any) -> bool:
    """Whether something is to be told for the first time."""
    if key in _told:
        return False
    _told.add(key)
    return True


def _warn(method: Callable[..., Any], text: str) -> None:
    code = getattr(inspect.unwrap(method), "__code__", None)
    file, line = ("<unknown>", 0) if code is None else (code.co_filename, code.co_firstlineno)
    end = "" if text.endswith("?") else "."
    warnings.warn_explicit(f"tool {method.__name__}: {text}{end}", AuthoringWarning, file, line)
