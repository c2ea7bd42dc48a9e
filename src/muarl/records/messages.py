"""Messages as the benchmarks and this project write them, read with care: a DataError says where and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.untrusted import parse_json
from muarl.records.rows import field, items
from muarl.types.chat import Message, ToolCall


def read_message(message: Any, place: str) -> Message:
    """One message of a recorded conversation. ``place`` is where it stands, for the error."""
    role = field(message, "role", str, "a string", place)
    if role not in ("system", "user", "assistant", "tool"):
        raise DataError(f"{place}.role: {role!r} is not one of system, user, assistant, tool")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise DataError(f"{place}.content: must be a string or null")
    if role == "tool":
        name = "id" if "id" in message else "tool_call_id"
        answered = field(message, name, str, "a string", place)
        requestor = "user" if message.get("requestor") == "user" else "assistant"
        error = bool(message.get("error"))
        return Message("tool", content, tool_call_id=answered, requestor=requestor, error=error)  # type: ignore[arg-type]
    made = (
        ()
        if message.get("tool_calls") is None
        else tuple(read_call(c, p) for c, p in items(message, "tool_calls", place))
    )
    return Message(role, content, tool_calls=made)


def read_call(call: Any, place: str) -> ToolCall:
    """One tool call: name and arguments (TAU1: kwargs), or the OpenAI form with the arguments as text."""
    called = call
    if isinstance(call, Mapping) and "name" not in call and isinstance(call.get("function"), Mapping):
        called = call["function"]
    name = field(called, "name", str, "a string", place)
    alias = "kwargs" if "kwargs" in called and "arguments" not in called else "arguments"
    if called is not call and isinstance(called.get(alias), str):
        called = {**called, alias: _json(called[alias])}
    arguments = field(called, alias, dict, "an object", place)
    requestor = call.get("requestor", "assistant")
    if requestor not in ("assistant", "user"):
        raise DataError(f"{place}.requestor: must be assistant or user, not {requestor!r}")
    identity = call.get("id", "")
    if not isinstance(identity, str):
        raise DataError(f"{place}.id: must be a string")
    return ToolCall(identity, name, arguments, requestor)


def _json(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text
