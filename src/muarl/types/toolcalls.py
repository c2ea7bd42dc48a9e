"""The text of one tool call, as Hermes JSON, and its strict reading."""

from __future__ import annotations

import json
from typing import Any

from muarl.types.chat import ToolCall

MAX_DEPTH = 32
"""Deeper nesting in a tool call's JSON makes the call invalid."""
_NESTED = f"the JSON is nested deeper than {MAX_DEPTH} levels"


def call_text(call: ToolCall) -> str:
    """What stands between <tool_call> and </tool_call>: Hermes JSON, or the raw text of an unreadable call."""
    if call.invalid is not None and call.raw is not None:
        return call.raw
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {arguments}}}'


def parse_call(text: str, call_id: str, *, closed: bool = True) -> ToolCall:
    """A tool call from the JSON text of its block; never raises. What is wrong with it stands in ``invalid``."""

    def bad(reason: str, name: object = "") -> ToolCall:
        return ToolCall(call_id, name if isinstance(name, str) else "", invalid=reason, raw=text)

    if not closed:
        return bad("the <tool_call> block has no </tool_call>")
    try:
        value = _load(text)
        problem = argument_problem(value, escaped="\\u" in text)
    except (ValueError, RecursionError) as broken:
        problem = _why(broken)
    if problem is not None:
        return bad(problem)
    if not isinstance(value, dict):
        return bad("a tool call is a JSON object with name and arguments")
    name, arguments = value.get("name"), value.get("arguments", {})
    if not isinstance(name, str) or not name:
        return bad("the tool call has no name")
    if not isinstance(arguments, dict):
        return bad("arguments must be a JSON object", name)
    return ToolCall(call_id, name, arguments)


def strict_json(text: str) -> str | None:
    """What is wrong with a JSON text; None if nothing is. Doubled keys, NaN and numbers without end are wrong."""
    try:
        _load(text)
    except (ValueError, RecursionError) as broken:
        return _why(broken)
    return None


def strict_value(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins at ``at``, and where it ends. ValueError as ``strict_json`` has it."""
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError) as broken:
        raise ValueError(_why(broken)) from None


def argument_problem(value: Any, *, escaped: bool = True) -> str | None:
    """What no tool call may hold in a JSON value that was read: deep nesting, half a character, a number without end.
    ``escaped``: whether the text had escapes, which alone can smuggle in half a character."""
    try:
        if _depth(value) > MAX_DEPTH:
            return _NESTED
        if escaped:
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "the JSON holds half a surrogate pair"
    except (ValueError, RecursionError) as broken:
        return _why(broken)
    return None


def _load(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)


def _why(problem: ValueError | RecursionError) -> str:
    return _NESTED if isinstance(problem, RecursionError) else f"not valid JSON: {problem}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        keys = [k for k, _ in pairs]
        raise ValueError(f"the key {next(k for k in keys if keys.count(k) > 1)!r} stands twice in one object")
    return out


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level:
        depth += 1
        level = [
            child for v in level if isinstance(v, (dict, list)) for child in (v.values() if isinstance(v, dict) else v)
        ]
    return depth - 1


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
