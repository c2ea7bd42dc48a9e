"""What BFCL makes of a model's message: the call strings in it, or nothing, at which the user has the word again.

Three ways of writing calls: as a Python list of calls ("prompt"), by native function calling ("native"), and as Qwen's
``<tool_call>`` blocks ("qwen"). The oddities are BFCL's own (model_handler/utils and the handlers): of a call's
arguments only those with names are kept, a bare word becomes a string, an object that holds objects alone becomes a
call. Where BFCL evaluates arithmetic while it decodes, so does this, but with harmless expressions only.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from muarl_worlds.bfcl.api import Revision
from muarl_worlds.bfcl.calls import MAX_LENGTH, call_text
from muarl_worlds.bfcl.expressions import ExpressionReader
from muarl_worlds.bfcl.syntax import parse

Style = Literal["native", "prompt", "qwen"]

_BLOCK = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)


class UndecodableCalls(Exception):
    """The message holds no calls that can be read."""


def decode(written: Any, style: Style, revision: Revision) -> list[str]:
    """The call strings of one message; empty where there are none or none can be read.

    ``written``: its text or, with "native", the list of ``{name: arguments}`` that BFCL's result files have.
    """
    try:
        if style == "native":
            found = native_calls(written)
        elif not isinstance(written, str):
            return []
        else:
            found = qwen_calls(written, revision) if style == "qwen" else prompt_calls(written, revision)
    except UndecodableCalls:
        return []
    return [] if is_empty(found) else found


def is_empty(calls: Sequence[str]) -> bool:
    """Whether BFCL takes a message's calls for none: it has none, or a single one that is empty."""
    return not calls or (len(calls) == 1 and not calls[0])


def without_thoughts(text: str) -> str:
    """What follows the last ``</think>``, the form in which BFCL's Qwen handlers decode and keep a message."""
    return text.split("</think>")[-1].lstrip("\n") if "</think>" in text else text


def native_calls(calls: Any) -> list[str]:
    """Call strings from ``{name: arguments}``, the arguments an object or its JSON. Undecodable if one is neither."""
    if isinstance(calls, Mapping):
        calls = [calls]
    try:
        return [_native_call(name, given) for call in calls for name, given in call.items()]
    except (TypeError, ValueError, AttributeError, RecursionError) as problem:
        raise UndecodableCalls(str(problem)) from None


def _native_call(name: Any, given: Any) -> str:
    arguments = json.loads(given) if type(given) is str else given
    arguments.items()  # only an object has these
    return call_text(name, arguments)


def qwen_calls(text: str, revision: Revision) -> list[str]:
    """Call strings from ``<tool_call>`` blocks.

    v3: a block that isn't a JSON object voids the message; v4: what is no JSON is passed over. Undecodable if a call
    lacks its name or its arguments are no object.
    """
    blocks: list[Any] = []
    for block in _BLOCK.findall(text):
        try:
            blocks.append(json.loads(block))
        except (ValueError, RecursionError):
            if revision == "v3":
                return []
    if any(type(block) is not dict for block in blocks):
        return []
    try:
        return native_calls([{block["name"]: block["arguments"]} for block in blocks])
    except (KeyError, TypeError) as problem:
        raise UndecodableCalls(f"a call lacks {problem}") from None


def prompt_calls(text: str, revision: Revision) -> list[str]:
    """Call strings from a list of calls in Python, with or without its brackets. Undecodable if it is anything else."""
    text = text.strip("`\n ")
    if len(text) > MAX_LENGTH:
        raise UndecodableCalls(f"the message is longer than {MAX_LENGTH} characters")
    text = text if text.startswith("[") else "[" + text
    text = text if text.endswith("]") else text + "]"
    text = text.strip("[]'") if revision == "v3" else text.strip().strip("'")
    try:
        body = parse(text, strip=False)
        found = [body] if isinstance(body, ast.Call) else body.elts  # type: ignore[attr-defined]
        if not all(isinstance(call, ast.Call) for call in found):
            raise UndecodableCalls("there is something else than calls")
        return [_as_text(name, given) for call in found for name, given in _call(call).items()]
    except UndecodableCalls:
        raise
    except Exception as problem:
        raise UndecodableCalls(f"{type(problem).__name__}: {problem}") from None


def _call(call: ast.Call) -> dict[str, dict[Any, Any]]:
    """Name and named arguments of a call, in the form in which BFCL keeps it."""
    parts: list[str] = []
    function = call.func
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        parts.append(function.id)
    return {".".join(reversed(parts)): {word.arg: _argument(word.value) for word in call.keywords}}


def _argument(node: ast.expr | None) -> Any:
    """An argument's value in the form in which BFCL keeps it: calls with named arguments are objects."""
    if isinstance(node, ast.Constant):
        return "..." if node.value is ... else node.value
    if isinstance(node, ast.UnaryOp):
        return -node.operand.value  # type: ignore[attr-defined]  # whatever the operator is
    if isinstance(node, ast.List):
        return [_argument(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {_argument(k): _argument(v) for k, v in zip(node.keys, node.values, strict=True)}
    if isinstance(node, ast.BinOp):
        return ExpressionReader().read(node)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call):
        return _call(node) if node.keywords else ast.unparse(node)
    if isinstance(node, ast.Tuple):
        return tuple(_argument(item) for item in node.elts)
    if isinstance(node, ast.Subscript):
        return f"{ast.unparse(node.value)}[{ast.unparse(node.slice)}]"
    raise UndecodableCalls(f"an argument is a {type(node).__name__}")


def _as_text(name: str, given: Mapping[Any, Any]) -> str:
    return f"{name}({_listed(given.items())})"


def _listed(items: Iterable[tuple[Any, Any]]) -> str:
    return ", ".join([f"{key}={_written(value)}" for key, value in items])


def _written(value: Any) -> str:
    """A value as BFCL writes it into a call string: an object that holds nothing but objects is taken for a call."""
    if not isinstance(value, dict):
        return repr(value)
    if all(isinstance(inner, dict) for inner in value.values()):
        name, given = next(iter(value.items()), (None, None))
        if given is None:
            raise UndecodableCalls("an argument is an object without fields")
        return _as_text(name, given)  # type: ignore[arg-type]
    return "{" + ", ".join([f"'{key}': {_written(inner)}" for key, inner in value.items()]) + "}"
