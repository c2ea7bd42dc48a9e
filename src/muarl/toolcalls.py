"""The text of one tool call, as Hermes JSON, and its strict reading."""

from __future__ import annotations

import json
from typing import Any

from muarl.chat import ToolCall

MAX_DEPTH = 32
"""Deeper nesting in a tool call's JSON makes the call invalid."""


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
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
        if _depth(value) > MAX_DEPTH:
            return bad(f"the JSON is nested deeper than {MAX_DEPTH} levels")
        if "\\u" in text:  # only an escape can smuggle in half a character
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        return bad(f"the JSON is nested deeper than {MAX_DEPTH} levels")
    except UnicodeEncodeError:
        return bad("the JSON holds half a surrogate pair")
    except ValueError as problem:
        return bad(f"not valid JSON: {problem}")
    if not isinstance(value, dict):
        return bad("a tool call is a JSON object with name and arguments")
    name, arguments = value.get("name"), value.get("arguments", {})
    if not isinstance(name, str) or not name:
        return bad("the tool call has no name")
    if not isinstance(arguments, dict):
        return bad("arguments must be a JSON object", name)
    return ToolCall(call_id, name, arguments)


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
