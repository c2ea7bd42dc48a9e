"""Reading replies: the odd forms that servers send, and tool calls that can't be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.endpoints.replies import (
    MalformedReply,
    read_reply,
    read_token_counts,
    read_tool_call,
    split_thinking,
    tells_usage,
)
from muarl.types.chat import ToolCall


def body(**message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


def test_arguments_as_text_or_object() -> None:
    expected = ToolCall("1", "f", {"a": 1})
    assert read_tool_call("1", "f", '{"a": 1}') == expected
    assert read_tool_call("1", "f", {"a": 1}) == expected
    assert read_tool_call("1", "f", "") == read_tool_call("1", "f", None) == ToolCall("1", "f")


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": ',
        "[1]",
        '"text"',
        "5",
        "null",
        '{"a": NaN}',
        '{"a": 1, "a": 2}',
        '{"a": "\\ud800"}',
        '{}, "name": "g"',
        '{}}, {"a": 1',
        "[" * 100_000,
        '{"a": ' + "[" * 50 + "]" * 50 + "}",
    ],
)
def test_unreadable_arguments_become_an_invalid_call_that_keeps_the_text(arguments: str) -> None:
    call = read_tool_call("1", "f", arguments)
    assert call.invalid
    assert call.raw == arguments
    assert call.arguments == {}
    assert call.name == "f"


def test_half_characters_are_replaced_so_that_episodes_can_be_stored() -> None:
    reply = read_reply(
        json.loads(
            '{"choices": [{"message": {"content": "a\\ud800b", "tool_calls": [{"function": '
            '{"name": "f\\ud800", "arguments": "{\\"x\\": \\"\\ud800\\"}"}}]}}]}'
        )
    )
    assert reply.content == "a?b"
    json.dumps(reply.tool_calls[0].to_json(), ensure_ascii=False).encode()


def test_a_call_without_a_name_is_invalid() -> None:
    for name in (None, "", 5, ["f"]):
        assert read_tool_call("1", name, "{}").invalid


def test_missing_and_repeated_ids_are_made_unique() -> None:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": "a", "function": function}, {"id": "a", "function": function}, {"function": function}]
    ids = [c.id for c in read_reply(body(content=None, tool_calls=calls)).tool_calls]
    assert ids[0] == "a"
    assert len(set(ids)) == 3


def test_thinking_is_kept_apart_from_speech() -> None:
    assert read_reply(body(content="Hi", reasoning_content="hm")).reasoning == "hm"
    reply = read_reply(body(content="<think>\nshe wants\n</think>\n\nHello"))
    assert (reply.content, reply.reasoning) == ("Hello", "she wants")
    assert split_thinking("<think>cut off") == (None, "cut off")
    assert split_thinking("a <think> b") == ("a <think> b", None)


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    assert read_reply(body(content=parts)).content == "Hello"


def test_token_counts_may_be_missing() -> None:
    assert read_token_counts({"usage": {"prompt_tokens": 3, "completion_tokens": 4}}) == (3, 4)
    for odd in ({}, {"usage": None}, {"usage": {"prompt_tokens": "3"}}, [], None):
        assert read_token_counts(odd) == (0, 0)
    assert read_token_counts({"usage": {"prompt_tokens": 1000.0, "completion_tokens": 4}}) == (1000, 4)


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, True),
        ({"prompt_tokens": 3.0, "completion_tokens": 4.0}, True),
        (None, False),
        ({}, False),
        ({"prompt_tokens": 0, "completion_tokens": 0}, False),
        ({"prompt_tokens": 3}, False),
        ({"prompt_tokens": 3, "completion_tokens": 0}, False),
        ({"prompt_tokens": -3, "completion_tokens": 4}, False),
        ({"prompt_tokens": 3, "completion_tokens": -4}, False),
        ({"prompt_tokens": "3", "completion_tokens": "4"}, False),
        ({"prompt_tokens": float("nan"), "completion_tokens": 4}, False),
        ({"prompt_tokens": float("inf"), "completion_tokens": 4}, False),
        ({"prompt_tokens": 3.5, "completion_tokens": 4}, False),
        ({"prompt_tokens": True, "completion_tokens": True}, False),
        ({"prompt_tokens": 10**400, "completion_tokens": 4}, False),
    ],
)
def test_whether_an_answer_says_what_it_took(usage: Any, told: bool) -> None:
    body = {"choices": [{"message": {"role": "assistant", "content": "Hello"}}], "usage": usage}
    assert tells_usage(body) is told
    assert all(isinstance(n, int) and n >= 0 for n in read_token_counts(body))


def test_answers_without_words_or_tokens_of_their_own_say_it_too() -> None:
    assert tells_usage(
        {"choices": [{"message": {"content": ""}}], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}
    )
    assert tells_usage({"data": [{"embedding": [1.0]}], "usage": {"prompt_tokens": 3}})
    assert tells_usage({"results": [{}], "usage": {"total_tokens": 3}})
    assert not tells_usage({"results": [{}]})
    for nothing in ({"error": {"message": "no"}}, {"choices": []}, [], None):
        assert tells_usage(nothing), "no answer was given, so none was to be counted"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SHAPES = st.fixed_dictionaries(
    {"choices": JSON | st.lists(st.fixed_dictionaries({"message": JSON, "finish_reason": JSON}), max_size=2)}
)


@given(JSON | SHAPES)
def test_any_json_is_read_or_refused_but_never_crashes(value: Any) -> None:
    try:
        read_reply(json.loads(json.dumps(value)))
    except MalformedReply:
        pass
    read_token_counts(value)


def test_calls_that_muarl_serve_marks_as_unreadable_are_calls() -> None:
    bad = {"id": "a", "name": "f", "arguments": {}, "invalid": "no end", "raw": '{"name": "f"'}
    good = {"id": "b", "name": "f", "arguments": {"x": 1}}
    reply = read_reply(
        body(content='Hm.\n<tool_call>{"name"', muarl_reply={"content": "Hm.", "tool_calls": [bad, good]})
    )
    assert reply.content == "Hm."
    assert reply.tool_calls == (ToolCall("a", "f", invalid="no end", raw='{"name": "f"'), ToolCall("b", "f", {"x": 1}))
    for calls in (None, [1], [bad, bad], [{"name": "f"}]):
        with pytest.raises(MalformedReply, match="muarl_reply"):
            read_reply(body(content="", muarl_reply={"content": "Hm.", "tool_calls": calls}))
