"""One conversation in several formats of logs, as others write them: chat messages, GenAI spans, responses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

Messages = list[dict[str, Any]]
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).map(lambda t: f"w{t}w")
ARGUMENTS = st.dictionaries(WORDS, WORDS | st.integers(-5, 5) | st.none() | st.lists(WORDS, max_size=2), max_size=2)
TOOL = {"type": "function", "function": {"name": "look", "description": "To look.", "parameters": {"type": "object"}}}


@st.composite
def chats(draw: st.DrawFn) -> Messages:
    """A conversation of the chat API: the user asks, the agent calls and answers."""
    messages: Messages = [{"role": "system", "content": draw(WORDS)}]
    for turn in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": f"{turn} {draw(WORDS)}"})
        for step in range(draw(st.integers(0, 2))):
            ids = [f"call-{turn}-{step}-{n}" for n in range(draw(st.integers(1, 2)))]
            calls = [call(i, draw(ARGUMENTS)) for i in ids]
            messages.append({"role": "assistant", "content": draw(st.none() | WORDS), "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": i, "content": draw(WORDS)} for i in ids]
        messages.append({"role": "assistant", "content": draw(WORDS)})
    return messages


def call(identity: str, arguments: dict[str, Any]) -> dict[str, Any]:
    made = {"name": "look", "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": identity, "type": "function", "function": made}


# ---- spans


def spans_of(
    messages: Messages, *, trace: str = "4bf92f3577b34da6a3ce929d0e0e4736", first: int = 0, **more: Any
) -> list[dict[str, Any]]:
    """The spans of a conversation: one for each message of the agent, with all that went before.
    ``first``: the number of the first span."""
    spans = []
    for at in (n for n, m in enumerate(messages) if m["role"] == "assistant"):
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.input.messages": json.dumps([otel_message(m) for m in messages[:at]]),
            "gen_ai.output.messages": json.dumps([{**otel_message(messages[at]), "finish_reason": "stop"}]),
            **more,
        }
        spans.append(span(attributes, trace, f"{first + at:016x}", first + at))
    return spans


def span(attributes: dict[str, Any], trace: str, identity: str, start: int, **more: Any) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": identity,
        "name": "chat m",
        "startTimeUnixNano": str(1_700_000_000_000_000_000 + start),
        "attributes": [{"key": key, "value": any_value(value)} for key, value in attributes.items()],
        **more,
    }


def any_value(value: Any) -> dict[str, Any]:
    """A value as OTLP writes it."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(v) for v in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": any_value(v)} for k, v in value.items()]}}
    return {} if value is None else {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def export(spans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a collector writes on a line."""
    resource = {"attributes": [{"key": "api.key", "value": {"stringValue": "sk-secret"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}]}


def otel_message(message: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if message["role"] == "tool":
        parts.append({"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]})
    elif message["content"] is not None:
        parts.append({"type": "text", "content": message["content"]})
    for made in message.get("tool_calls", ()):
        arguments = json.loads(made["function"]["arguments"])
        parts.append({"type": "tool_call", "id": made["id"], "name": made["function"]["name"], "arguments": arguments})
    return {"role": message["role"], "parts": parts}


# ---- responses


def items_of(messages: Messages) -> list[dict[str, Any]]:
    """The items of a conversation in the Responses API."""
    items: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            answered = {"call_id": message["tool_call_id"], "output": message["content"]}
            items.append({"type": "function_call_output", **answered})
        elif message["content"] is not None:
            kind = "output_text" if message["role"] == "assistant" else "input_text"
            text = {"type": kind, "text": message["content"]}
            items.append({"type": "message", "role": message["role"], "content": [text]})
        for made in message.get("tool_calls", ()):
            items.append({"type": "function_call", "call_id": made["id"], **made["function"]})
    return items


def responses_of(messages: Messages) -> list[dict[str, Any]]:
    """A conversation as requests of which each goes on from the response to the one before."""
    rows: list[dict[str, Any]] = []
    asked: Messages = []
    for message in messages:
        if message["role"] != "assistant":
            asked.append(message)
            continue
        row = {"id": f"resp_{len(rows)}", "input": items_of(asked), "output": items_of([message])}
        rows.append(row | ({"previous_response_id": f"resp_{len(rows) - 1}"} if rows else {}))
        asked = []
    return rows
