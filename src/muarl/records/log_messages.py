"""How logs of live agents and other trainers write messages and ends, and what muarl makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.untrusted import parse_json
from muarl.records.formats.chat_forms import chat_messages
from muarl.records.messages import items, read_message
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason


def stop_of(reason: Any) -> str:
    """A stop reason of ours for whatever a log says of a conversation's end; unknown ones are taken as the user's."""
    known = {s.value for s in StopReason}
    other = {"max_steps": "max_turns", "too_many_errors": "tool_errors", "infrastructure_error": "infrastructure"}
    text = str(reason)
    return text if text in known else other.get(text, "user_stop")


def messages_of_row(row: Mapping[str, Any], place: str, lost: Counter[str] | None = None) -> tuple[Message, ...]:
    """The messages of a row of a log, which is a conversation or an episode of muarl's. ``lost`` counts what was left
    out, by kind. DataError names what is wrong with it."""
    if "turns" in row and "messages" not in row:
        try:
            return tuple(Episode.from_json(row).messages)
        except (ValueError, TypeError, AttributeError) as problem:
            raise DataError(f"{place}: {problem}") from None
    lost = Counter() if lost is None else lost
    return conversation_of(row, place, lost, lost)


def conversation_of(
    row: Mapping[str, Any], place: str, lost: Counter[str], unread: Counter[str]
) -> tuple[Message, ...]:
    """The messages of a row of chat messages. ``lost``, ``unread``: see ``chat_forms.chat_messages``."""
    given = chat_messages(items(row, "messages", place), lost, unread)
    return tuple(_message_of(m, p) for m, p in given)


def _message_of(value: Mapping[str, Any], place: str) -> Message:
    """A message of a log, which may have its calls' arguments broken, and errors unmarked."""
    row = dict(value)
    if row.get("role") in ("developer", "function"):
        row["role"] = "system" if row["role"] == "developer" else "tool"
    if row.get("role") == "tool":
        row.setdefault("tool_call_id", "")
        message = read_message(row, place)
        return replace(message, name=value.get("name"), error=message.error or _is_error(message.content or ""))
    broken: dict[int, ToolCall] = {}
    calls = row.get("tool_calls")
    for i, call in enumerate(calls if isinstance(calls, list) else []):
        made = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(made, Mapping) and isinstance(made.get("arguments"), str) and not _is_object(made["arguments"]):
            name, raw = str(made.get("name", "")), made["arguments"]
            broken[i] = ToolCall(str(call.get("id", "")), name, invalid="its arguments are no JSON object", raw=raw)
    if broken:
        row["tool_calls"] = [{"name": "", "arguments": {}} if i in broken else c for i, c in enumerate(calls or [])]
    message = read_message(row, place)
    if not broken:
        return message
    return replace(message, tool_calls=tuple(broken.get(i, c) for i, c in enumerate(message.tool_calls)))


def _is_object(text: str) -> bool:
    try:
        return isinstance(parse_json(text), dict)
    except ValueError:
        return False


def _is_error(text: str) -> bool:
    """Whether a result is an error: logs of the OpenAI form do not mark them otherwise than in the text."""
    start = text.lstrip()[:200].lower()
    if start.startswith(("error", "exception", "traceback")):
        return True
    if not start.startswith("{"):
        return False
    try:
        found = parse_json(text)
    except ValueError:
        return False
    return isinstance(found, dict) and (bool(found.get("error")) or found.get("status") == "error")
