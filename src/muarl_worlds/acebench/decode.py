"""How ACEBench reads calls out of an agent's message, oddities included (ACEBench/ACEBench, MIT licence).

A message such as ``[send_message(sender_name='Grace', ...), ...]`` is parsed as Python, and each call is written anew
as a text, which is what is run. Upstream does so three times with small differences: where it decides who a message is
for, and in the executors of multi-turn and multi-step tasks.
"""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from muarl_worlds.acebench.reckon import Reckoner

__all__ = ["MAX_CALLS", "MAX_TEXT", "Call", "UndecodableMessage", "decode", "parse", "to_execution"]

MAX_TEXT = 128_000
"""Longer messages, in characters, count as unreadable."""

MAX_CALLS = 1_000
"""Messages with more calls count as unreadable."""

Others = Literal["refused", "passed over"]
"""What becomes of a list's items that are no calls: the message is unreadable, or the calls among them are run."""

_warnings_lock = threading.Lock()


class UndecodableMessage(ValueError):
    """A message that holds no readable calls. Its text says why."""


@dataclass(frozen=True)
class Call:
    """One call. ``arguments``: keyword to value, nested calls as {name: arguments}. ``text``: what is run."""

    name: str
    arguments: dict[str, Any]
    text: str


def to_execution(message: str) -> bool:
    """Whether a multi-turn agent's message goes to the executor; if not, it is for the user."""
    if not any(0 <= line.find("[") < line.rfind("]") for line in message.split("\n")):
        return False
    try:
        decode(message)
    except UndecodableMessage:
        return False
    return True


def decode(message: str, *, others: Others = "refused") -> tuple[Call, ...]:
    """The calls of a message; none where it holds a lone value such as a name. Undecodable if it cannot be read."""
    if not message:
        raise UndecodableMessage("the message is empty")
    if len(message) > MAX_TEXT:
        raise UndecodableMessage(f"the message is longer than {MAX_TEXT} characters")
    text = message.removeprefix(" ")
    text = text if text.startswith("[") else "[" + text
    text = text if text.endswith("]") else text + "]"
    try:
        body = parse(text.strip("[]'")).body
        sums = Reckoner()
        found = []
        for node in _calls(body, others):
            found.append(_written(_call(node, sums)))
            if len(found) > MAX_CALLS:
                raise UndecodableMessage(f"the message holds more than {MAX_CALLS} calls")
    except UndecodableMessage:
        raise
    except Exception as problem:  # of the parser, of sums, and of values that have no form as a call
        raise UndecodableMessage(f"{type(problem).__name__}: {problem}"[:300]) from None
    return tuple(found)


def parse(text: str) -> ast.Expression:
    """A Python expression as a tree. SyntaxError and the parser's other errors pass through; nothing is printed."""
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, "<string>", "eval")


def _calls(body: ast.expr, others: Others) -> Iterator[ast.Call]:
    if isinstance(body, ast.Call):
        yield body
    elif isinstance(body, (ast.Tuple, ast.List)):
        for item in body.elts:
            if isinstance(item, ast.Call):
                yield item
            elif others == "refused":
                raise UndecodableMessage("a list of calls holds something else")


def _call(node: ast.Call, sums: Reckoner) -> dict[str, Any]:
    """{name: arguments}: keywords only, and of the name what stands after the last thing that is no name."""
    parts: list[str] = []
    function: ast.expr = node.func
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        parts.append(function.id)
    return {".".join(reversed(parts)): {str(k.arg): _value(k.value, sums) for k in node.keywords}}


def _value(node: ast.expr | None, sums: Reckoner) -> Any:
    match node:
        case ast.Constant():
            return "..." if node.value is Ellipsis else node.value
        case ast.UnaryOp():
            return -node.operand.value  # type: ignore[attr-defined]  # whatever the operator
        case ast.List():
            return [_value(item, sums) for item in node.elts]
        case ast.Dict():
            return {_value(k, sums): _value(v, sums) for k, v in zip(node.keys, node.values, strict=True)}
        case ast.BinOp():
            return sums.value(node)
        case ast.Name():
            return node.id
        case ast.Call():
            return _call(node, sums) if node.keywords else ast.unparse(node)
        case ast.Tuple():
            return tuple(_value(item, sums) for item in node.elts)
        case ast.Subscript():
            return f"{ast.unparse(node.value)}[{ast.unparse(node.slice)}]"
    raise UndecodableMessage(f"{type(node).__name__} is no value")


def _written(call: dict[str, Any]) -> Call:
    ((name, arguments),) = call.items()
    return Call(name, arguments, f"{name}({_listed(arguments)})")


def _listed(arguments: Any) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in arguments.items())


def _text(value: Any) -> str:
    """An argument as it is run. An object is taken for a nested call, of its first key and that key's arguments."""
    if isinstance(value, dict):
        name = list(value)[0]  # noqa: RUF015 (IndexError where it is empty, as upstream)
        return f"{name}({_listed(value[name])})"
    return repr(value)


def shown(calls: Sequence[Call]) -> str:
    """The calls as a message."""
    return f"[{', '.join(call.text for call in calls)}]"
