"""What clients may ask for, and what they are told where they may not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from muarl.basics.web.json_api import ApiError
from muarl.types.chat import Message, ToolSpec
from muarl_tools.serve_model.reading import RequestReader
from muarl_tools.serve_model.responses import as_chat
from support.chat_server import TOOLS, asked


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": asked(), **fields}).encode()


def refused(data: bytes) -> ApiError:
    with pytest.raises(ApiError) as problem:
        RequestReader().chat(data)
    assert problem.value.status == 400
    return problem.value


def test_defaults_are_those_of_the_api() -> None:
    request = RequestReader().chat(body())
    wanted = request.wanted
    assert (wanted.temperature, wanted.top_p, wanted.top_k, wanted.n) == (1.0, 1.0, 0, 1)
    assert (wanted.max_tokens, wanted.seed, wanted.stop, wanted.stream, wanted.logprobs) == (
        None,
        None,
        (),
        False,
        False,
    )
    assert (request.system, request.messages) == ("Be kind.", (Message("user", "Hi"),))
    assert (request.tool_choice, request.named, request.parallel, request.thinking) == ("auto", None, True, None)


def test_null_is_the_default_everywhere() -> None:
    names = ["temperature", "top_p", "max_tokens", "seed", "stop", "n", "stream", "stream_options", "tools"]
    names += ["tool_choice", "parallel_tool_calls", "logprobs", "top_logprobs", "frequency_penalty", "response_format"]
    assert RequestReader().chat(body(**dict.fromkeys(names))) == RequestReader().chat(body())


def test_messages_of_every_kind() -> None:
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}]},
        {"role": "assistant", "content": "Hello", "refusal": None, "annotations": []},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}], "name": "Ann"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "They greet.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"id": 7}'}},
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": '{"id": '}},
            ],
        },
        {"role": "tool", "content": "a lamp", "tool_call_id": "a"},
        {"role": "system", "content": "Hurry."},
    ]
    request = RequestReader().chat(body(messages=messages))
    assert request.system == "Be kind."
    hello, hi, calls, tool, hurry = request.messages
    assert hello == Message("assistant", "Hello")
    assert hi == Message("user", "Hi", name="Ann")
    assert calls.reasoning == "They greet."
    assert [dict(c.arguments) for c in calls.tool_calls] == [{"id": 7}, {}]
    assert calls.tool_calls[1].invalid
    assert tool == Message("tool", "a lamp", tool_call_id="a")
    assert hurry == Message("system", "Hurry.")


def test_the_same_tools_are_the_same_objects_and_shown_as_sent() -> None:
    reader = RequestReader()
    first, second = reader.chat(body(tools=TOOLS)).tools, reader.chat(body(tools=TOOLS)).tools
    assert first is second
    assert [json.dumps(tool.to_openai()) for tool in first] == [json.dumps(tool) for tool in TOOLS]
    backwards = {"parameters": {"type": "object", "properties": {}}, "returns": "nothing", "name": "look"}
    shown = reader.chat(body(tools=[{"function": backwards, "type": "function"}])).tools[0]
    as_said = {"name": "look", "parameters": backwards["parameters"], "returns": "nothing"}
    assert json.dumps(shown.to_openai()) == json.dumps({"type": "function", "function": as_said})


SEARCH = ToolSpec(
    "search",
    "To search.",
    {
        "properties": {
            "title": {"description": "Of what.", "title": "Title", "type": "string"},
            "most": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Most"},
        },
        "required": ["title"],
        "title": "parameters",
        "type": "object",
    },
)


def _backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _backwards(value[key]) for key in reversed(value)}
    return [_backwards(one) for one in value] if isinstance(value, list) else value


def _without(value: Any, leaves: Callable[[str, Any], bool]) -> Any:
    if isinstance(value, dict):
        return {key: _without(one, leaves) for key, one in value.items() if not leaves(key, one)}
    return [_without(one, leaves) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "respell",
    [
        _backwards,
        lambda function: {**function, "strict": True},
        lambda function: {**function, "strict": None},
        lambda function: _without(function, lambda _, value: value is None),
        lambda function: _without(function, lambda key, value: key == "title" and isinstance(value, str)),
        lambda function: {**function, "parameters": {**function["parameters"], "additionalProperties": False}},
    ],
    ids=["order of keys", "strict", "strict null", "no nulls", "no titles", "no other parameters"],
)
def test_a_tool_that_the_model_knows_is_shown_as_it_knows_it(respell: Callable[[Any], Any]) -> None:
    own = SEARCH.to_openai()
    sent = {"type": "function", "function": respell(own["function"])}
    asked_in_chat = RequestReader([SEARCH]).chat(body(tools=[sent])).tools[0]
    flat = {"type": "function", **sent["function"]}
    asked_as_response = (
        RequestReader([SEARCH]).chat_of(as_chat({"model": "m", "input": "Hi", "tools": [flat]})).tools[0]
    )
    for tool in (asked_in_chat, asked_as_response):
        assert json.dumps(tool.to_openai()) == json.dumps(own)
        assert json.dumps(tool.parameters) == json.dumps(SEARCH.parameters)


@pytest.mark.parametrize(
    "changed",
    [
        {"description": "To find."},
        {"returns": "a list"},
        {"parameters": {**SEARCH.parameters, "required": []}},
        {"parameters": _without(dict(SEARCH.parameters), lambda key, _: key == "most")},
    ],
)
def test_a_tool_that_says_something_else_is_shown_as_sent(changed: dict[str, Any]) -> None:
    sent = {"type": "function", "function": {**SEARCH.to_openai()["function"], **changed}}
    shown = RequestReader([SEARCH]).chat(body(tools=[sent])).tools[0]
    assert json.dumps(shown.to_openai()) == json.dumps(sent)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": [{"role": "robot", "content": "Hi"}]}, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages.0.content",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]}]},
            "messages.0.tool_calls.0.function",
        ),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "0.5"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
        ({"n": 0}, "n"),
        ({"n": 1000}, "n"),
        ({"seed": "a"}, "seed"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"tools": [{"type": "retrieval"}]}, "tools.0.type"),
        ({"tools": [TOOLS[0], TOOLS[0]]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": "always"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "fly"}}}, "tool_choice"),
        ({"chat_template_kwargs": {"enable_thinking": "no"}}, "chat_template_kwargs.enable_thinking"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    problem = refused(body(**fields))
    assert problem.param == param
    assert problem.to_json()["error"]["type"] == "invalid_request_error"
    assert param in problem.message


@pytest.mark.parametrize(
    "fields",
    [
        {"frequency_penalty": 0.5},
        {"logit_bias": {"5": 1}},
        {"response_format": {"type": "json_object"}},
        {"functions": [{"name": "f"}]},
        {"top_logprobs": 2, "logprobs": True},
        {"min_p": 0.1},
    ],
)
def test_what_would_change_the_reply_and_is_not_there_is_refused(fields: dict[str, Any]) -> None:
    assert refused(body(**fields)).code == "unsupported_parameter"


def test_what_asks_for_nothing_and_what_nobody_knows_is_let_through() -> None:
    fields = {"frequency_penalty": 0, "response_format": {"type": "text"}, "user": "u", "metadata": {"a": "b"}}
    assert RequestReader().chat(body(**fields, store=False, brand_new=1)).wanted == RequestReader().chat(body()).wanted


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b'{"model": NaN}', b"[" * 100_000, b'{"a":' * 50_000])
def test_what_is_no_request(data: bytes) -> None:
    assert "request" in refused(data).message


def test_missing_fields() -> None:
    problem = refused(b'{"messages": [{"role": "user", "content": "Hi"}]}')
    assert (problem.param, problem.code) == ("model", "missing_required_parameter")


def test_prompts_of_text_and_ids() -> None:
    reader = RequestReader()

    def text(**fields: Any) -> Any:
        return reader.text(json.dumps({"model": "m", **fields}).encode())

    assert text(prompt="Hi").prompt == "Hi"
    assert text(prompt=[1, 2]).prompt == text(prompt=[[1, 2]]).prompt == (1, 2)
    assert text(prompt="Hi").wanted.max_tokens == 16
    assert text(prompt="Hi", logprobs=0).wanted.logprobs
    for wrong in ({"prompt": ""}, {"prompt": []}, {"prompt": ["a", "b"]}, {"prompt": "a", "echo": True}, {}):
        with pytest.raises(ApiError):
            text(**wrong)
