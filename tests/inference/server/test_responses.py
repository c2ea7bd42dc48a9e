"""The Responses API, asked by OpenAI's own client: the same replies as chat completions, id for id."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from loop_kit import small_tokenizer
from muarl.chat_formats.qwen3 import Qwen3Format
from support.chat_server import TOKEN, TOOLS, TellingSampler, asked, client, serving
from support.logged import items_of

CALL = '<tool_call>\n{"name": "look", "arguments": {"order_id": "#W1"}}\n</tool_call>'
FLAT = [{"type": "function", **tool["function"]} for tool in TOOLS]
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def made(*replies: Any, **how: Any) -> tuple[TellingSampler, Any]:
    sampler = TellingSampler(Qwen3Format(small_tokenizer()), *replies)
    return sampler, serving(sampler, small_tokenizer(), **how)


def test_a_conversation_with_tools_goes_on_from_the_exact_ids() -> None:
    sampler, server = made(CALL, "It is pending.")
    with server as live, client(live) as api:
        items: list[Any] = [{"role": "user", "content": "Where is it?"}]
        first = api.responses.create(model="m", instructions="Be kind.", input=items, tools=FLAT, store=False)
        (call,) = first.output
        assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "look", {"order_id": "#W1"})
        assert (first.status, first.object, first.output_text) == ("completed", "response", "")
        items += [*first.output, {"type": "function_call_output", "call_id": call.call_id, "output": "pending"}]
        second = api.responses.create(model="m", instructions="Be kind.", input=items, tools=FLAT)
        assert second.output_text == "It is pending."
        used = second.usage
        assert used is not None and used.total_tokens == used.input_tokens + used.output_tokens > 0
    before, after = (list(prompt) for _, prompt, _ in sampler.seen)
    replied = list(sampler.chat.tokenizer.encode(CALL))
    assert after[: len(before)] == before and after[len(before) : len(before) + len(replied)] == replied


def test_a_response_says_what_a_chat_completion_says() -> None:
    sampler, server = made(CALL, CALL)
    with server as live, client(live) as api:
        chat = api.chat.completions.create(model="m", messages=asked("Hi"), tools=TOOLS, seed=7)  # type: ignore[arg-type]
        response = api.responses.create(
            model="m",
            instructions="Be kind.",
            input="Hi",
            tools=FLAT,
            extra_body={"seed": 7},  # type: ignore[arg-type]
        )
    (_, one, how), (_, other, likewise) = sampler.seen
    assert one == other and how == likewise, "the model sees the tools in the one form that it knows"
    assert chat.choices[0].message.tool_calls[0].function.arguments == response.output[0].arguments


@pytest.mark.parametrize(
    ("reply", "kinds"),
    [("Hello there", ["message"]), (f"One moment.\n{CALL}", ["message", "function_call"]), (CALL, ["function_call"])],
)
def test_a_stream_adds_up_to_the_response(reply: str, kinds: list[str]) -> None:
    _, server = made(reply, reply, reply)
    with server as live, client(live) as api:
        whole = api.responses.create(model="m", input="Hi", tools=FLAT)
        assert [item.type for item in whole.output] == kinds
        with api.responses.stream(model="m", input="Hi", tools=FLAT) as stream:  # which checks events one by one
            events = list(stream)
            final = stream.get_final_response()
        raw = api.responses.create(model="m", input="Hi", tools=FLAT, stream=True)
        told = [EVENTS.validate_python(event.model_dump(), strict=False) for event in raw]
    assert [e.sequence_number for e in told] == list(range(len(told)))
    assert [e.type for e in told[:2]] == ["response.created", "response.in_progress"]
    assert told[-1].type == events[-1].type == "response.completed"
    assert final.output_text == whole.output_text == "".join(
        e.delta for e in told if e.type == "response.output_text.delta"
    )  # fmt: skip
    said = [(i.type, getattr(i, "arguments", None)) for i in whole.output]
    assert [(i.type, getattr(i, "arguments", None)) for i in final.output] == said
    added = [e.item.id for e in told if e.type == "response.output_item.added"]
    assert added == [e.item.id for e in told if e.type == "response.output_item.done"]
    assert [i.id for i in told[-1].response.output] == added


def test_thoughts_are_an_item_and_are_understood_when_they_come_back() -> None:
    sampler, server = made("<think>\nSay so.\n</think>\n\nHello", "Bye", thinking=True)
    with server as live, client(live) as api:
        first = api.responses.create(model="m", input="Hi")
        thought, message = first.output
        assert (thought.type, thought.content[0].text, message.type) == ("reasoning", "Say so.", "message")
        assert first.usage is not None and first.usage.output_tokens_details.reasoning_tokens > 0
        items = [{"role": "user", "content": "Hi"}, *first.output, {"role": "user", "content": "Bye"}]
        api.responses.create(model="m", input=items)  # type: ignore[arg-type]
    before, after = (list(prompt) for _, prompt, _ in sampler.seen)
    assert after[: len(before)] == before


def test_a_reply_that_is_cut_is_incomplete() -> None:
    _, server = made("one two three four five six", "one two three four five six")
    with server as live, client(live) as api:
        cut = api.responses.create(model="m", input="Hi", max_output_tokens=2)
        assert cut.status == "incomplete" and cut.output[0].status == "incomplete"
        assert cut.incomplete_details is not None and cut.incomplete_details.reason == "max_output_tokens"
        *_, last = api.responses.create(model="m", input="Hi", max_output_tokens=2, stream=True)
        assert last.type == "response.incomplete"


def test_ids_and_log_probabilities_on_request() -> None:
    _, server = made("Hello")
    with server as live, client(live) as api:
        more = {"return_token_ids": True}
        found = api.responses.create(model="m", input="Hi", include=["message.output_text.logprobs"], extra_body=more)
        dumped = found.model_dump()
        logprobs = dumped["output"][0]["content"][0]["logprobs"]
        assert len(logprobs) == len(dumped["token_ids"]) > 0 and all(t["logprob"] <= 0 for t in logprobs)
        assert len(dumped["prompt_token_ids"]) == found.usage.input_tokens


def test_items_of_any_shape_are_understood() -> None:
    sampler, server = made("A", "B")
    chat = [*asked("Hi"), {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "Go"}]
    with server as live, client(live) as api:
        api.chat.completions.create(model="m", messages=chat)  # type: ignore[arg-type]
        api.responses.create(model="m", input=items_of(chat))  # type: ignore[arg-type]
    (_, one, _), (_, other, _) = sampler.seen
    assert one == other


@pytest.mark.parametrize(
    ("changed", "param", "code"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id", "unsupported_parameter"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format", "unsupported_parameter"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "invalid_value"),
        ({"input": None}, "input", "invalid_value"),
        ({"input": []}, "input", "invalid_value"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type", "invalid_value"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0].type",
            "invalid_value",
        ),
        ({"max_output_tokens": 0}, "max_output_tokens", "invalid_value"),
        ({"instructions": [1]}, "instructions", "invalid_value"),
        ({"model": "other"}, "model", "model_not_found"),
    ],
)
def test_what_is_wrong_is_named(changed: dict[str, Any], param: str, code: str) -> None:
    sampler, server = made("A")
    with server as live:
        sent = {"model": "m", "input": "Hi", **changed}
        headers = {"authorization": f"Bearer {TOKEN}"}
        answer = httpx.post(f"{live.address}/responses", json=sent, headers=headers, timeout=20)
        error = answer.json()["error"]
        assert (answer.status_code in (400, 404), error["param"], error["code"]) == (True, param, code), error
        assert not sampler.seen
        with client(live, "wrong") as api, pytest.raises(openai.AuthenticationError):
            api.responses.create(model="m", input="Hi")


def test_a_number_that_no_answer_could_echo_is_the_requests_mistake() -> None:
    _, server = made("A")
    with server as live:
        answer = httpx.post(
            f"{live.address}/responses",
            content='{"model": "m", "input": "Hi", "user": 1e999}',
            headers={"authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
        )
    assert answer.status_code == 400 and "1e999 is too large" in answer.text


def test_the_answer_is_what_the_api_says_it_is() -> None:
    _, server = made(f"One moment.\n{CALL}")
    with server as live:
        sent = {"model": "m", "input": "Hi", "tools": FLAT, "metadata": {"run": "1"}, "temperature": 0.5}
        headers = {"authorization": f"Bearer {TOKEN}"}
        told = httpx.post(f"{live.address}/responses", json=sent, headers=headers, timeout=20).json()
    found = Response.model_validate(told)
    assert (found.metadata, found.temperature, len(found.tools), found.model) == ({"run": "1"}, 0.5, 2, "m")
    assert told["store"] is False
