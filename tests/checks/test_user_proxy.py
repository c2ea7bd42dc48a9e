"""The guarding proxy, asked by OpenAI's own client: what it fixes, counts, passes on and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from muarl.basics.errors import ConfigError
from muarl.basics.web.addresses import listen
from muarl_tools.checks.user.proxy.http import ProxyServer
from muarl_tools.checks.user.proxy.service import GuardingProxy, ProxySettings
from support.fake_openai import CUT, Answer, FakeOpenAI, call, completion, nonsense, status, text

SCENARIO = "You are Ann Lee. Your zip code is 53111. You want to cancel #W1112223."
SYSTEM = f"Play a customer.\n\n<scenario>\n{SCENARIO}\n</scenario>"
ASKED = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": "Hi! How can I help you today?"},
    {"role": "assistant", "content": "I want to cancel an order."},
    {"role": "user", "content": "What is your zip code?"},
]
TOKEN = "t0ken-for-tests"


@contextmanager
def proxied(script: Any, **options: Any) -> Iterator[tuple[openai.OpenAI, FakeOpenAI, GuardingProxy]]:
    """OpenAI's client, the upstream behind the proxy, and the proxy."""
    with FakeOpenAI(script) as upstream:
        proxy = GuardingProxy(ProxySettings(upstream.url, **{"key": "upstream-key-1", **options}))
        with (
            ProxyServer(proxy, listen("127.0.0.1", 0), token=TOKEN, grace=1.0).start() as server,
            openai.OpenAI(base_url=server.address, api_key=TOKEN, max_retries=0) as client,
        ):
            yield client, upstream, proxy


def fixes(wrong: str, right: str) -> Callable[[dict[str, Any]], Answer]:
    return lambda body: text(right if "was not sent" in body["messages"][0]["content"] else wrong)


def test_a_good_reply_passes_with_the_request_as_it_was() -> None:
    with proxied(text("It is 53111.")) as (client, upstream, proxy):
        made = client.chat.completions.create(model="m", messages=ASKED, temperature=0.3, seed=7, stop=["x"])  # type: ignore[arg-type]
    assert made.choices[0].message.content == "It is 53111."
    (asked,) = upstream.requests
    assert asked.body == {"model": "m", "messages": ASKED, "temperature": 0.3, "seed": 7, "stop": ["x"]}
    assert {k.lower(): v for k, v in asked.headers.items()}["authorization"] == "Bearer upstream-key-1"
    assert proxy.totals.to_json()["requests"] == 1
    assert proxy.totals.asked_again == 0


def test_a_fault_is_asked_again_and_all_tries_are_in_the_usage(tmp_path: Path) -> None:
    log = tmp_path / "faults.jsonl"
    with proxied(fixes("It is 99999.", "It is 53111."), model="other", log=log) as (client, upstream, proxy):
        made = client.chat.completions.create(model="m", messages=ASKED)  # type: ignore[arg-type]
    assert made.choices[0].message.content == "It is 53111."
    assert made.usage is not None
    assert (made.usage.prompt_tokens, made.usage.completion_tokens, made.usage.total_tokens) == (20, 10, 30)
    assert [r.body["model"] for r in upstream.requests] == ["other", "other"]
    assert "zip '99999'" in upstream.requests[1].body["messages"][0]["content"]
    assert upstream.requests[1].body["messages"][1:] == ASKED[1:]
    told = made.model_dump()["muarl"]
    assert told == {"asked_again": 1, "left": []}
    assert (proxy.totals.fixed, dict(proxy.totals.found)) == (1, {"contradicts": 1})
    (line,) = map(json.loads, log.read_text().splitlines())
    assert line["tries"][0]["said"] == "It is 99999."
    assert "upstream-key-1" not in log.read_text()


def test_what_stays_bad_goes_through_and_is_counted() -> None:
    with proxied(text("It is 99999."), retries=1) as (client, upstream, proxy):
        made = client.chat.completions.create(model="m", messages=ASKED)  # type: ignore[arg-type]
    assert made.choices[0].message.content == "It is 99999."
    assert len(upstream.requests) == 2
    assert made.model_dump()["muarl"]["left"] == [{"rule": "contradicts", "detail": "zip '99999'"}]
    assert proxy.totals.to_json()["left"] == {"contradicts": 1}


def test_a_call_of_a_tool_that_the_user_does_not_have_is_asked_again() -> None:
    tools = [{"type": "function", "function": {"name": "restart", "parameters": {"type": "object", "properties": {}}}}]

    def answer(body: dict[str, Any]) -> Answer:
        name = "restart" if "was not sent" in body["messages"][0]["content"] else "get_order_details"
        return completion(None, tool_calls=[call(name, {})])

    with proxied(answer) as (client, _, proxy):
        made = client.chat.completions.create(model="m", messages=ASKED, tools=tools)  # type: ignore[call-overload]
    assert made.choices[0].message.tool_calls[0].function.name == "restart"
    assert proxy.totals.found["unknown_tool"] == 1


def test_streams_are_one_piece() -> None:
    with proxied(fixes("It is 99999.", "It is 53111.")) as (client, upstream, _):
        pieces = client.chat.completions.create(model="m", messages=ASKED, stream=True)  # type: ignore[call-overload]
        said = "".join(p.choices[0].delta.content or "" for p in pieces)
    assert said == "It is 53111."
    assert "stream" not in upstream.requests[0].body


@pytest.mark.parametrize(
    ("answer", "code"), [(status(429, {"Retry-After": "3"}), 429), (status(401), 502), (CUT, 502), (nonsense(), 502)]
)
def test_failures_of_the_upstream_reach_the_client_with_their_status(answer: Answer, code: int) -> None:
    with proxied(answer) as (client, _, __), pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="m", messages=ASKED)  # type: ignore[arg-type]
    assert caught.value.status_code == code
    assert "upstream-key-1" not in str(caught.value)
    if code == 429:
        assert caught.value.response.headers["retry-after"] == "3"


ODD = {
    "choices[0] is no object": ['{"choices": ["a"]}', '{"choices": [null]}'],
    "choices is no list": ['{"choices": "text"}', '{"choices": {"0": 1}}'],
    "choices[0].message is no object": ['{"choices": [{"message": "Hi"}]}'],
    "choices[0].message.tool_calls is no list of objects": [
        '{"choices": [{"message": {"tool_calls": "x"}}]}', '{"choices": [{"message": {"tool_calls": ["x"]}}]}'
    ],
    "the answer is not JSON": ['{"choices": [], "x": NaN}', '{"choices": [], "x": 1e999}'],
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
def test_odd_answers_are_the_upstreams_failure(stream: bool) -> None:
    odd = [(told, body) for told, bodies in ODD.items() for body in bodies]
    with proxied([nonsense(body) for _, body in odd]) as (client, _, __):
        for told, body in odd:
            with pytest.raises(openai.APIStatusError) as caught:
                client.chat.completions.create(model="m", messages=ASKED, stream=stream)  # type: ignore[call-overload]
            assert (caught.value.status_code, told in str(caught.value)) == (502, True), (body, caught.value)


def test_several_choices_and_wrong_tokens_are_refused() -> None:
    with proxied(text("Hi.")) as (client, upstream, _):
        with pytest.raises(openai.BadRequestError, match="one reply at a time"):
            client.chat.completions.create(model="m", messages=ASKED, n=2)  # type: ignore[arg-type]
        stranger = openai.OpenAI(base_url=client.base_url, api_key="wrong", max_retries=0)
        with pytest.raises(openai.AuthenticationError):
            stranger.chat.completions.create(model="m", messages=ASKED)  # type: ignore[arg-type]
    assert upstream.requests == []


def test_an_unknown_rule_is_told_before_anything_is_served() -> None:
    with pytest.raises(ConfigError, match="there is no rule 'lies'"):
        ProxySettings("http://localhost:1/v1", rules=("lies",))
