"""OpenTelemetry's GenAI spans (OTLP as JSON) as conversations: semantic conventions for GenAI 0.1, messages on spans or
on ``gen_ai.client.inference.operation.details`` events.

Each call of a model is a span with all of the conversation so far; a conversation is put together from the spans of one
``gen_ai.conversation.id``, else of one trace, of which each goes on from another. Nothing but messages and tool
definitions is taken: resources, headers and other attributes may hold what is nobody's business.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.untrusted import parse_json
from muarl.records.chat import UNREAD, ChatConversation, Located
from muarl.records.conversation import Format, LeftOutCounts, RecordedConversation
from muarl.records.rows import PlacedRow, text_field

DETAILS = "gen_ai.client.inference.operation.details"
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
SYSTEM, TOOLS = "gen_ai.system_instructions", "gen_ai.tool.definitions"
RECORD_CONTENT = (
    "have the instrumentation record them (OpenTelemetry's own: OTEL_SEMCONV_STABILITY_OPT_IN="
    "gen_ai_latest_experimental and OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only)"
)

_OUTER = ("invoke_agent", "invoke_workflow", "create_agent")
"""Operations around calls of a model, whose messages stand on those calls, too."""
_FAILED = (2, "2", "STATUS_CODE_ERROR")
_VALUES = ("stringValue", "boolValue", "intValue", "doubleValue", "bytesValue")


def is_export(value: Any) -> bool:
    """Whether a JSON value is an export of spans or log records, as a collector writes them, one a line."""
    return isinstance(value, Mapping) and ("resourceSpans" in value or "resourceLogs" in value)


@dataclass
class _Span:
    """What is known of a span."""

    place: str
    trace: str
    start: int = 0
    """Nanoseconds."""
    failed: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def operation(self) -> str:
        return str(self.attributes.get("gen_ai.operation.name", ""))

    @property
    def group(self) -> str:
        return str(self.attributes.get("gen_ai.conversation.id") or self.trace)

    @property
    def speaks(self) -> bool:
        return INPUT in self.attributes or OUTPUT in self.attributes


@dataclass
class _Conversation:
    messages: list[dict[str, Any]]
    span: _Span


class SpanLog(Format):
    """Collects exports, and puts the conversations in them together."""

    def __init__(self, left_out: LeftOutCounts) -> None:
        super().__init__(left_out)
        self.lost = left_out.lost
        self._spans: dict[tuple[str, str], _Span] = {}
        self._former: str | None = None
        self._path = Path()

    def of_row(self, row: PlacedRow) -> Iterable[RecordedConversation] | None:
        """One more export. DataError where it is malformed."""
        if not is_export(row.value):
            return None
        self._path = row.path
        self._add(row.value, row.place)
        return ()

    def rest(self, number: int) -> Iterator[RecordedConversation]:
        """The conversations in all of them. DataError if there are spans, and none has messages."""
        for n, (value, place) in enumerate(self._conversations(), number + 1):
            yield ChatConversation(PlacedRow(value, place, n, self._path), self.left_out)

    def _add(self, export: Mapping[str, Any], place: str) -> None:
        for scope, where in _scopes(export, "resourceSpans", "scopeSpans", place):
            for span, at in _each(scope, "spans", where):
                self._span(span, at)
        for scope, where in _scopes(export, "resourceLogs", "scopeLogs", place):
            for record, at in _each(scope, "logRecords", where):
                self._event(record, at, record.get("traceId"), record.get("spanId"), record.get("timeUnixNano"))

    def _span(self, span: Mapping[str, Any], place: str) -> None:
        entry = self._known(span.get("traceId"), span.get("spanId"), span.get("startTimeUnixNano"), place)
        status = span.get("status")
        entry.failed = isinstance(status, Mapping) and status.get("code") in _FAILED
        entry.attributes |= _attributes(span, place)
        for event, at in _each(span, "events", place):
            self._event(event, at, span.get("traceId"), span.get("spanId"), span.get("startTimeUnixNano"))

    def _event(self, event: Mapping[str, Any], place: str, trace: Any, span: Any, time: Any) -> None:
        attributes = _attributes(event, place)
        name = str(event.get("eventName") or event.get("name") or attributes.get("event.name") or "")
        if name == DETAILS:
            self._known(trace, span, time, place).attributes |= attributes
        elif name.startswith("gen_ai.") and name.endswith((".message", ".choice")):
            self._former = self._former or place

    def _known(self, trace: Any, span: Any, time: Any, place: str) -> _Span:
        key = (str(trace or place), str(span or place))
        entry = self._spans.setdefault(key, _Span(place, key[0]))
        try:
            entry.start = entry.start or int(time or 0)
        except (TypeError, ValueError):
            raise DataError(f"{place}: its time must be a number of nanoseconds, not {time!r}") from None
        return entry

    def _conversations(self) -> Iterator[Located]:
        """The conversations as rows of chat messages, and where they begin."""
        if not self._spans and self._former is None:
            return
        spoken = [s for s in self._spans.values() if s.speaks and s.operation != "execute_tool"]
        if not spoken:
            self._refuse()
        groups: dict[str, list[_Span]] = defaultdict(list)
        for span in sorted(spoken, key=lambda s: s.start):
            groups[span.group].append(span)
        answers = {
            str(s.attributes["gen_ai.tool.call.id"]): s
            for s in self._spans.values()
            if s.operation == "execute_tool" and "gen_ai.tool.call.id" in s.attributes
        }
        for name, spans in groups.items():
            calls = [s for s in spans if s.operation not in _OUTER]
            chains = self._chains(calls or spans)
            for number, chain in enumerate(chains, 1):
                yield self._row(name if len(chains) == 1 else f"{name}-{number}", chain, answers), chain.span.place

    def _refuse(self) -> None:
        asked = [s for s in self._spans.values() if s.operation and s.operation != "execute_tool"]
        if self._former is not None:
            raise DataError(
                f"{self._former}: its messages are events of an earlier form of the GenAI conventions; {RECORD_CONTENT}"
            )
        place = next(iter(asked or self._spans.values())).place
        if asked:
            raise DataError(f"{place}: the spans of its model calls have no {INPUT}; {RECORD_CONTENT}")
        raise DataError(f"{place}: it has no span of a model call (gen_ai.operation.name)")

    def _chains(self, spans: Sequence[_Span]) -> list[_Conversation]:
        """The conversations that these spans, in the order of their time, make up."""
        chains: list[_Conversation] = []
        for span in spans:
            asked = [message for group in self._said(span, INPUT) for message in group]
            choices = self._said(span, OUTPUT)
            if len(choices) > 1:
                self.lost["further choices of a model call"] += len(choices) - 1
            answered = choices[0] if choices else []
            chain = next((c for c in reversed(chains) if _begins(asked, c.messages)), None)
            if chain is not None:
                chain.messages = [*asked, *answered]
            elif (delta := self._delta(span, chains, asked)) is not None:
                delta.messages += [*asked, *answered]
            else:
                chains.append(_Conversation([*asked, *answered], span))
        return chains

    def _delta(self, span: _Span, chains: list[_Conversation], asked: list[dict[str, Any]]) -> _Conversation | None:
        """The conversation that a span goes on from whose input is only what is new: the provider keeps the rest."""
        if "gen_ai.conversation.id" not in span.attributes or not chains or not asked:
            return None
        last = chains[-1]
        new = all(m["role"] in ("user", "tool") for m in asked)
        agent = "gen_ai.agent.name"
        same = span.attributes.get(agent) == last.span.attributes.get(agent)
        first = next((m for m in last.messages if m["role"] == "user"), None)
        return last if new and same and (first is None or _key(asked[0]) != _key(first)) else None

    def _said(self, span: _Span, name: str) -> list[list[dict[str, Any]]]:
        """The chat messages of each message of an attribute."""
        messages = []
        for i, message in enumerate(_json(span.attributes.get(name), f"{span.place}, {name}")):
            place = f"{span.place}, {name}[{i}]"
            if not isinstance(message, Mapping) or not isinstance(message.get("parts"), list):
                raise DataError(f"{place}: must be an object with a role and a list of parts")
            messages.append(list(self._messages(message, place)))
        return messages

    def _messages(self, message: Mapping[str, Any], place: str) -> Iterator[dict[str, Any]]:
        role = {"developer": "system"}.get(str(message.get("role")), message.get("role"))
        if role not in ("system", "user", "assistant", "tool"):
            raise DataError(f"{place}: role must be one of system, user, assistant, tool, not {role!r}")
        texts, thoughts, calls, left = [], [], [], []
        for i, part in enumerate(message["parts"]):
            where = f"{place}.parts[{i}]"
            kind = part.get("type") if isinstance(part, Mapping) else None
            if kind == "text":
                texts.append(text_field(part, "content", where))
            elif kind == "reasoning":
                thoughts.append(text_field(part, "content", where))
            elif kind == "tool_call":
                made = {"name": text_field(part, "name", where), "arguments": _arguments(part.get("arguments"))}
                calls.append({"id": str(part.get("id") or ""), "type": "function", "function": made})
            elif kind == "tool_call_response":
                response = part.get("response", part.get("result"))
                content = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
                yield {"role": "tool", "tool_call_id": str(part.get("id") or ""), "content": content}
            elif role == "assistant" and "call" in str(kind):
                left.append(kind)
            else:
                self.lost[f"parts of type {kind}"] += 1
        if role == "tool" or not (texts or thoughts or calls or left):
            return
        said: dict[str, Any] = {"role": role, "content": "\n".join(texts) if texts else None}
        if calls:
            said["tool_calls"] = calls
        if left:
            said[UNREAD] = left
        yield said | ({"reasoning": "\n".join(thoughts)} if thoughts else {})

    def _row(self, name: str, conversation: _Conversation, answers: Mapping[str, _Span]) -> dict[str, Any]:
        messages = conversation.messages
        instructions = "\n".join(
            str(part.get("content", ""))
            for part in _json(conversation.span.attributes.get(SYSTEM), f"{conversation.span.place}, {SYSTEM}")
            if isinstance(part, Mapping) and part.get("type") == "text"
        )
        if instructions and instructions not in [m["content"] for m in messages if m["role"] == "system"]:
            messages = [{"role": "system", "content": instructions}, *messages]
        answered = {m["tool_call_id"] for m in messages if m["role"] == "tool"}
        for call in (messages[-1].get("tool_calls") or ()) if messages else ():
            span = answers.get(call["id"])
            if span is not None and call["id"] not in answered and "gen_ai.tool.call.result" in span.attributes:
                result = span.attributes["gen_ai.tool.call.result"]
                content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
                messages = [*messages, {"role": "tool", "tool_call_id": call["id"], "content": content}]
        failed = {identity for identity, span in answers.items() if span.failed or "error.type" in span.attributes}
        messages = [m | {"error": True} if m["role"] == "tool" and m["tool_call_id"] in failed else m for m in messages]
        tools = [
            {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}
            for tool in _json(conversation.span.attributes.get(TOOLS), f"{conversation.span.place}, {TOOLS}")
            if isinstance(tool, Mapping) and tool.get("type", "function") == "function"
        ]
        return {"id": name, "messages": messages} | ({"tools": tools} if tools else {})


def _begins(messages: Sequence[Mapping[str, Any]], past: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a conversation begins with another one."""
    return len(messages) >= len(past) and all(map(_same, messages, past))


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return _key(one) == _key(other)


def _key(message: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a message says; thoughts, which are seldom sent back, and white space aside."""
    calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]
    return message["role"], (message["content"] or "").strip(), message.get("tool_call_id"), calls


def _arguments(arguments: Any) -> str:
    """A call's arguments as text, in one writing, so that it is the same when it is sent back."""
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments)
        except ValueError:
            return str(arguments)
    return json.dumps({} if arguments is None else arguments, ensure_ascii=False)


def _json(value: Any, place: str) -> list[Any]:
    """A list that an attribute holds, as JSON text or in parts."""
    if value is None:
        return []
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as problem:
            raise DataError(f"{place}: not JSON: {problem}. Was it cut off? Raise the limit on attributes") from None
    if not isinstance(value, list):
        raise DataError(f"{place}: must be a list, not {type(value).__name__}")
    return value


def _scopes(
    export: Mapping[str, Any], resources: str, scopes: str, place: str
) -> Iterator[tuple[Mapping[str, Any], str]]:
    for resource, where in _each(export, resources, place):
        yield from _each(resource, scopes, where)


def _each(part: Mapping[str, Any], name: str, place: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The objects of a list field, each with its place; nothing where there is no such field."""
    values = part.get(name) or []
    if not isinstance(values, list):
        raise DataError(f"{place}: {name} must be a list, not {type(values).__name__}")
    for i, item in enumerate(values):
        where = f"{place}, {name}[{i}]"
        if not isinstance(item, Mapping):
            raise DataError(f"{where}: must be an object, not {type(item).__name__}")
        yield item, where


def _attributes(part: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The ``gen_ai`` attributes, and the kind of error."""
    attributes = {}
    for item, where in _each(part, "attributes", place):
        key = item.get("key")
        if isinstance(key, str) and (key.startswith("gen_ai.") or key in ("error.type", "event.name")):
            attributes[key] = _value(item.get("value"), where)
    return attributes


def _value(value: Any, place: str) -> Any:
    """What an AnyValue holds."""
    if not isinstance(value, Mapping):
        raise DataError(f'{place}: value must be an object such as {{"stringValue": ...}}, not {type(value).__name__}')
    for kind in _VALUES:
        if kind in value:
            return _whole_number(value[kind], place) if kind == "intValue" else value[kind]
    if isinstance(value.get("arrayValue"), Mapping):
        return [_value(v, place) for v in value["arrayValue"].get("values") or ()]
    if isinstance(value.get("kvlistValue"), Mapping):
        return {str(v.get("key")): _value(v.get("value"), place) for v in value["kvlistValue"].get("values") or ()}
    return None


def _whole_number(number: Any, place: str) -> int:
    """JSON in the form of protocol buffers has whole numbers as text."""
    try:
        return int(number)
    except (TypeError, ValueError):
        raise DataError(f"{place}: intValue must be a whole number, not {number!r}") from None
