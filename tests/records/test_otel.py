"""GenAI spans become the conversations that they are of, whichever line they stand on."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop_kit import small_tokenizer
from muarl.basics.errors import DataError
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.records.conversation import LeftOutCounts
from muarl.records.otel import SpanLog
from muarl.records.reading import RecordReader
from muarl.records.rows import PlacedRow
from support.chat_server import TOKEN, TellingSampler, serving
from support.logged import TOOL, Messages, any_value, chats, export, otel_message, span, spans_of
from support.other_side import OTEL, ask

ASKED: Messages = [{"role": "user", "content": "Where is it?"}]
TRACE = "0af7651916cd43dd8448eb211c80319c"


def read(*exports: Any, lost: Counter[str] | None = None) -> list[dict[str, Any]]:
    path = Path("spans.jsonl")
    rows = [PlacedRow(value, f"{path}, line {n}", n, path) for n, value in enumerate(exports, 1)]
    left_out = LeftOutCounts(Counter() if lost is None else lost)
    return [dict(one.value) for one in RecordReader(left_out).of_rows(rows)]


@given(st.lists(chats(), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_spans_in_any_order_become_their_conversations(drawn: list[Messages], shuffle: random.Random) -> None:
    spans = [s for n, chat in enumerate(drawn) for s in spans_of(chat, trace=f"{n:032x}")]
    shuffle.shuffle(spans)
    found = {row["id"]: row["messages"] for row in read(*(export([s]) for s in spans))}
    assert found == {f"{n:032x}": chat for n, chat in enumerate(drawn)}


@given(chats())
def test_structured_attributes_are_read_as_text_is(chat: Messages) -> None:
    spans = spans_of(chat)
    for each in spans:
        for attribute in each["attributes"]:
            if attribute["key"].endswith(".messages"):
                attribute["value"] = any_value(json.loads(attribute["value"]["stringValue"]))
    assert read(export(spans)) == read(export(spans_of(chat)))


def test_one_trace_with_two_agents_is_two_conversations() -> None:
    first = [*ASKED, {"role": "assistant", "content": "Here."}]
    second = [{"role": "user", "content": "Sum it up."}, {"role": "assistant", "content": "Short."}]
    found = read(export([*spans_of(first), *spans_of(second, first=9)]))
    assert [row["messages"] for row in found] == [first, second]
    assert len({row["id"] for row in found}) == 2


def test_a_conversation_of_several_traces_is_told_by_its_id() -> None:
    chat = [*ASKED, {"role": "assistant", "content": "Here."}, {"role": "user", "content": "Thanks"},
            {"role": "assistant", "content": "Bye."}]  # fmt: skip
    one, two = (s for s in spans_of(chat, **{"gen_ai.conversation.id": "conv-1"}))
    two["traceId"] = TRACE
    (row,) = read(export([one]), export([two]))
    assert (row["id"], row["messages"]) == ("conv-1", chat)
    # Where the provider keeps what was said, a span has only what is new.
    two["attributes"][2]["value"]["stringValue"] = json.dumps([otel_message(chat[2])])
    assert read(export([one]), export([two])) == [row]


def test_tools_instructions_and_results_of_tool_spans() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"order_id": "#W1"}'}}
    chat = [*ASKED, {"role": "assistant", "content": None, "tool_calls": [call]}]
    told = {
        "gen_ai.system_instructions": '[{"type": "text", "content": "Be kind."}]',
        "gen_ai.tool.definitions": json.dumps([{"type": "function", **TOOL["function"]}, {"type": "web_search"}]),
    }  # fmt: skip
    result = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "no such order"}
    executed = {"gen_ai.operation.name": "execute_tool", **result}
    tool = span(executed, TRACE, "00000000000000ff", 9, status={"code": 2})
    (row,) = read(export([*spans_of(chat, trace=TRACE, **told), tool]))
    assert row["messages"] == [
        {"role": "system", "content": "Be kind."},
        *chat,
        {"role": "tool", "tool_call_id": "c1", "content": "no such order", "error": True},
    ]
    assert row["tools"] == [TOOL]
    assert "secret" not in json.dumps(row)


def test_messages_on_events_are_taken() -> None:
    chat = [*ASKED, {"role": "assistant", "content": "Here."}]
    (made,) = spans_of(chat)
    contents = [a for a in made["attributes"] if a["key"].endswith(".messages")]
    bare = {**made, "attributes": [a for a in made["attributes"] if a not in contents]}
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": contents}
    assert read(export([{**bare, "events": [event]}])) == read(export([made]))
    record = {**event, "eventName": event["name"], "traceId": made["traceId"], "spanId": made["spanId"]}
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    assert read(logs, export([bare])) == read(export([made]))


def test_what_is_left_out_is_counted() -> None:
    lost: Counter[str] = Counter()
    image = {
        "role": "user",
        "parts": [{"type": "text", "content": "This"}, {"type": "blob", "modality": "image", "content": "x"}],
    }
    choices = [otel_message({"role": "assistant", "content": text}) for text in ("A", "B")]
    attributes = {"gen_ai.input.messages": json.dumps([image]), "gen_ai.output.messages": json.dumps(choices)}
    (row,) = read(export([span({"gen_ai.operation.name": "chat", **attributes}, TRACE, "01", 1)]), lost=lost)
    assert [m["content"] for m in row["messages"]] == ["This", "A"]
    assert lost == {"parts of type blob": 1, "further choices of a model call": 1}


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        (
            {"gen_ai.operation.name": "chat"},
            r"line 1, .*spans\[0\]: the spans of its model calls have no gen_ai\.input",
        ),
        ({"http.method": "GET"}, "no span of a model call"),
        ({"gen_ai.input.messages": '[{"role": "us'}, r"gen_ai\.input\.messages: not JSON.*Was it cut off"),
        ({"gen_ai.input.messages": "3"}, "must be a list, not int"),
        ({"gen_ai.input.messages": '[{"role": "user"}]'}, r"messages\[0\]: must be an object with a role and a list"),
        ({"gen_ai.input.messages": '[{"role": "pope", "parts": []}]'}, "role must be one of"),
        ({"gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text"}]}]'}, "content must be a string"),
    ],
)
def test_what_is_wrong_is_named(attributes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read(export([span(attributes, TRACE, "01", 1)]))


def test_exports_that_are_malformed_are_named() -> None:
    for value, said in (
        ({"resourceSpans": 3}, "resourceSpans must be a list"),
        ({"resourceSpans": [3]}, r"resourceSpans\[0\]: must be an object"),
        (export([{"attributes": [{"key": "gen_ai.x", "value": 3}]}]), "value must be an object"),
        (export([{"startTimeUnixNano": "noon"}]), "nanoseconds"),
    ):
        with pytest.raises(DataError, match=said):
            read(value)
    former = {"eventName": "gen_ai.user.message", "attributes": []}
    with pytest.raises(DataError, match="earlier form of the GenAI conventions; have the instrumentation"):
        read({"resourceLogs": [{"scopeLogs": [{"logRecords": [former]}]}]})
    assert not list(SpanLog(LeftOutCounts()).rest(0))


INSTRUMENTED = """
import base64, json, sys
from google.protobuf.json_format import MessageToDict
from openai import OpenAI
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
try:
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
except ImportError:  # as it was called up to 2.4b0
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

kept, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
OpenAIInstrumentor().instrument(tracer_provider=provider)
client = OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
tools = json.loads(sys.argv[3])
messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
with provider.get_tracer("a").start_as_current_span("conversation"):
    for answer in ("pending", None):
        reply = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
        messages.append(reply.model_dump(exclude_none=True))
        if answer is not None:
            messages.append({"role": "tool", "tool_call_id": reply.tool_calls[0].id, "content": answer})
found = MessageToDict(encode_spans(kept.get_finished_spans()))
for resource in found["resourceSpans"]:
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:  # as OTLP's JSON has ids
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in span:
                    span[name] = base64.b64decode(span[name]).hex()
print(json.dumps({"spans": found, "messages": messages}))
"""


def test_spans_of_opentelemetrys_own_instrumentation(tmp_path: Path) -> None:
    chat = Qwen3Format(small_tokenizer())
    call = '<tool_call>\n{"name": "look", "arguments": {"order_id": "#W1"}}\n</tool_call>'
    with serving(TellingSampler(chat, call, "It is pending."), small_tokenizer()) as server:
        env = {
            "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        }
        told = json.loads(ask(OTEL, "-c", INSTRUMENTED, server.address, TOKEN, json.dumps([TOOL]), env=env))
    (row,) = read(told["spans"])
    said = [(m["role"], m.get("content") or "", m.get("tool_call_id")) for m in told["messages"]]
    assert [(m["role"], m["content"] or "", m.get("tool_call_id")) for m in row["messages"]] == said
    assert row["messages"][2]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"order_id": "#W1"}'}
