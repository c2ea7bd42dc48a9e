"""Items of OpenAI's Responses API as chat messages: in requests, and in logs of them.

What one turn of the model gave, its reasoning, text and calls, are items of their own there, and one message here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.basics.errors import DataError
from muarl.records.chat import UNREAD, ChatConversation
from muarl.records.conversation import Format, LeftOutCounts, RecordedConversation
from muarl.records.rows import PlacedRow

_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_ROLES = ("system", "developer", "user", "assistant")


def messages_of(items: Any, place: str, lost: Counter[str] | None = None) -> list[dict[str, Any]]:
    """Chat messages (as muarl reads them) of a request's ``input`` or a response's ``output``: a text, or a list.

    Items and parts that no text model has, such as images and searches at the provider, are counted in ``lost``;
    without it they are a DataError, as is anything malformed. It names the item and the field.
    """
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    if not isinstance(items, list):
        raise DataError(f"{place}: must be text or a list of items, not {type(items).__name__}")
    reader = _Reader(lost)
    for i, item in enumerate(items):
        reader.add(item, f"{place}[{i}]")
    return reader.messages


@dataclass
class _Reader:
    """Puts the items of a response together as messages."""

    lost: Counter[str] | None
    messages: list[dict[str, Any]] = field(default_factory=list)
    open: bool = False
    """Whether further items of the assistant belong to the last message."""

    def add(self, item: Any, place: str) -> None:
        if not isinstance(item, Mapping):
            raise DataError(f"{place}: must be an object")
        kind = item.get("type") or ("message" if "role" in item else None)
        if kind == "message":
            self._message(item, place)
        elif kind == "reasoning":
            self._reasoning(item, place)
        elif kind == "function_call":
            call = {"name": _string(item, "name", place), "arguments": _string(item, "arguments", place)}
            identity = _string(item, "call_id", place)
            self._agent().setdefault("tool_calls", []).append({"id": identity, "type": "function", "function": call})
        elif kind == "function_call_output":
            answer = self._text(item.get("output"), f"{place}.output")
            self._other({"role": "tool", "tool_call_id": _string(item, "call_id", place), "content": answer})
        elif self.lost is not None and str(kind).endswith("_call") and "search" not in str(kind):
            self._agent().setdefault(UNREAD, []).append(kind)
        else:
            self._leave_out(f"items of type {kind}", f"{place}.type: {kind!r} is not supported")

    def _message(self, item: Mapping[str, Any], place: str) -> None:
        role = item.get("role")
        if role not in _ROLES:
            raise DataError(f"{place}.role: must be one of {', '.join(_ROLES)}, not {role!r}")
        text = self._text(item.get("content"), f"{place}.content")
        if role != "assistant":
            self._other({"role": "system" if role == "developer" else role, "content": text})
            return
        message = self._agent()
        message["content"] = text if message["content"] is None else f"{message['content']}\n{text}"

    def _reasoning(self, item: Mapping[str, Any], place: str) -> None:
        thoughts = item.get("content") or item.get("summary") or []
        text = self._text(thoughts, f"{place}.content")
        if not text and item.get("encrypted_content"):
            self._leave_out("encrypted reasoning", f"{place}.encrypted_content: this server did not encrypt it")
        elif text:
            message = self._agent()
            message["reasoning"] = f"{message['reasoning']}\n{text}" if "reasoning" in message else text

    def _agent(self) -> dict[str, Any]:
        if not self.open:
            self.messages.append({"role": "assistant", "content": None})
            self.open = True
        return self.messages[-1]

    def _other(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self.open = False

    def _text(self, value: Any, place: str) -> str:
        if isinstance(value, str):
            return value
        if not isinstance(value, list):
            raise DataError(f"{place}: must be text or a list of parts, not {type(value).__name__}")
        texts = []
        for i, part in enumerate(value):
            kind = part.get("type") if isinstance(part, Mapping) else None
            if kind in _TEXTS:
                texts.append(_string(part, "text", f"{place}[{i}]"))
            elif kind == "refusal":
                texts.append(_string(part, "refusal", f"{place}[{i}]"))
            else:
                self._leave_out(f"parts of type {kind}", f"{place}[{i}].type: {kind!r} is not supported; send text")
        return "".join(texts)

    def _leave_out(self, what: str, problem: str) -> None:
        if self.lost is None:
            raise DataError(problem)
        self.lost[what] += 1


def _string(item: Mapping[str, Any], name: str, place: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise DataError(f"{place}.{name}: must be a string, not {type(value).__name__}")
    return value


def chat_tools(tools: Any, place: str, lost: Counter[str] | None = None) -> list[dict[str, Any]]:
    """Tools in the chat API's form. What is no function, such as a search at the provider, is counted in ``lost``, or
    without it a DataError."""
    if not isinstance(tools, list):
        raise DataError(f"{place}: must be a list, not {type(tools).__name__}")
    out = []
    for i, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, Mapping) else None
        if kind == "function":
            said = {name: v for name, v in tool.items() if name not in ("type", "strict") and v is not None}
            out.append({"type": "function", "function": said})
        elif lost is None:
            raise DataError(f"{place}[{i}].type: {kind!r} is not supported; only functions are")
        else:
            lost[f"tools of type {kind}"] += 1
    return out


# ---- logs


def is_logged(row: Any) -> bool:
    """Whether a JSON value is a logged request and response: ``input`` and ``output`` of items, or ``items``."""
    if not isinstance(row, Mapping) or "messages" in row or "turns" in row:
        return False
    return row.get("object") == "response" or any(_holds_items(row.get(name)) for name in ("output", "input", "items"))


def _holds_items(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


class ResponseLog(Format):
    """Logged responses, put together to conversations.

    A row is ``input`` (or ``items``), ``output``, and if you like ``instructions``, ``tools``, ``id``; a row with
    ``previous_response_id`` goes on from the row of that id. The conversations are those rows from which none goes on.
    """

    def __init__(self, left_out: LeftOutCounts) -> None:
        super().__init__(left_out)
        self.lost = left_out.lost
        self._rows: list[PlacedRow] = []

    def of_row(self, row: PlacedRow) -> Iterable[RecordedConversation] | None:
        """One more row."""
        if not is_logged(row.value):
            return None
        self._rows.append(row)
        return ()

    def rest(self, number: int) -> Iterator[RecordedConversation]:
        """The conversations of all rows, in order. DataError for a row that is malformed, or goes on from one that is
        not there."""
        by_response: dict[str, list[dict[str, Any]]] = {}
        values = [row.value for row in self._rows]
        continued = {str(value["previous_response_id"]) for value in values if value.get("previous_response_id")}
        for row in self._rows:
            past: list[dict[str, Any]] = []
            if before := row.value.get("previous_response_id"):
                if str(before) not in by_response:
                    raise DataError(
                        f"{row.place}: it goes on from the response {before!r}, which no line before has: add that "
                        "line, or give all of the conversation as input and remove previous_response_id"
                    )
                past = by_response[str(before)]
            messages = [*past, *self._new(row.value, row.place)]
            identity = row.value.get("id")
            if isinstance(identity, str):
                by_response[identity] = messages
            if identity not in continued:
                number += 1
                value = self._row(row.value, messages, row.place)
                yield ChatConversation(PlacedRow(value, row.place, number, row.path), self.left_out)

    def _new(self, row: Mapping[str, Any], place: str) -> Iterable[dict[str, Any]]:
        items = row.get("items", row.get("input", []))
        asked = messages_of(items, f"{place}, {'items' if 'items' in row else 'input'}", self.lost)
        answered = messages_of(row.get("output") or [], f"{place}, output", self.lost)
        return [*asked, *answered]

    def _row(self, row: Mapping[str, Any], messages: list[dict[str, Any]], place: str) -> Mapping[str, Any]:
        text = row.get("instructions")
        instructions = messages_of(text, f"{place}, instructions", self.lost) if text else []
        told_as_system = [{**m, "role": "system"} if m["role"] == "user" else m for m in instructions]
        carried = ("id", "task_id", "domain", "reward", "termination_reason")
        out = {name: row[name] for name in carried if name in row} | {"messages": [*told_as_system, *messages]}
        if row.get("tools"):
            out["tools"] = chat_tools(row["tools"], f"{place}, tools", self.lost)
        return out
