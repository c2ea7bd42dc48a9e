"""Tool calls as parsers of the ``renderers`` package read them, held to muarl's own rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from muarl.types.chat import ToolCall
from muarl.types.toolcalls import argument_problem, strict_json

_REASONS = {
    "invalid_json": "the arguments are not valid JSON, or not of the type that the tool declares",
    "unclosed_block": "the call does not end",
    "missing_name": "the tool call has no name",
    "malformed_structure": "the call is not written as the chat format asks for",
}
_WORDS = {"True": True, "False": False, "None": None}
_NONE: Mapping[str, Any] = MappingProxyType({})
_NUMBER = re.compile(r"\d+$")


def checked_call(parsed: Any, call_id: str, *, json_arguments: bool, parameters: Mapping[str, Any] = _NONE) -> ToolCall:
    """A ``ParsedToolCall`` as a ToolCall; never raises. What is wrong with it stands in ``invalid``.

    ``json_arguments``: the arguments were written as one JSON object, which is read once more, strictly.
    ``parameters``: what the tool declares of each argument, where they were written one by one. That a tool or an
    argument is unknown is for the world to say.
    """
    name = parsed.name if isinstance(parsed.name, str) else ""
    raw = parsed.raw if isinstance(parsed.raw, str) else ""

    def bad(reason: str) -> ToolCall:
        return ToolCall(call_id, name, invalid=reason, raw=raw)

    status = str(getattr(parsed.status, "value", parsed.status))
    arguments = {} if parsed.arguments is None else parsed.arguments
    if status == "invalid_json" and isinstance(arguments, dict):
        arguments, status = _by_word(arguments, parameters)
    if status in _REASONS:
        return bad(_REASONS[status])
    if not name:
        return bad(_REASONS["missing_name"])
    if not isinstance(arguments, dict):
        return bad("arguments must be a JSON object")
    if not arguments and not json_arguments and raw.partition("{")[2].rpartition("}")[0].strip():
        return bad(_REASONS["malformed_structure"])  # Gemma's parser drops what it cannot read
    problem = _strictly(raw) if json_arguments else None
    problem = problem or argument_problem(arguments)
    return bad(problem) if problem else ToolCall(call_id, name, arguments)


def _by_word(arguments: dict[str, Any], parameters: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Arguments that were written without quotes and are no JSON: Python's words, which Qwen3.5's template writes, are
    values, text is text unless the tool declares something else. With the status that follows."""
    out = {}
    for key, value in arguments.items():
        declared = parameters.get(key)
        kinds = declared.get("type") if isinstance(declared, Mapping) else None
        if not isinstance(value, str) or kinds is None or "string" in kinds:
            out[key] = value
        elif value in _WORDS:
            out[key] = _WORDS[value]
        else:
            return arguments, "invalid_json"
    return out, "ok"


def _strictly(raw: str) -> str | None:
    """What is wrong with the JSON object in a call's text, if there is one."""
    begin, end = raw.find("{"), raw.rfind("}")
    return strict_json(raw[begin : end + 1]) if 0 <= begin < end else None


def native_id(call_id: str, name: str, position: int) -> str:
    """A call's id as Kimi's models write it, ``functions.NAME:NUMBER``, counted over the conversation; for all formats
    that show ids. A call without a number in its id has that of its position."""
    number = _NUMBER.search(call_id)
    return f"functions.{name}:{number[0] if number else position}"
