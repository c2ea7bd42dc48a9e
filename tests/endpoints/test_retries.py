"""What the endpoint client tries again, how long it waits, and what it gives up."""

from __future__ import annotations

import time
from typing import Any

import pytest

from muarl.basics.errors import InfrastructureError
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.endpoints.failures import PromptRefused
from support.endpoint_calls import HELLO, Waits, ask, endpoint, failure
from support.fake_openai import CUT, FakeOpenAI, Script, completion, nonsense, slow, status, text

SECRET = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.parametrize(
    "fault",
    [
        status(429),
        status(500),
        status(503),
        status(408),
        CUT,
        nonsense(),
        nonsense("[1, 2]"),
        nonsense('{"choices": []}'),
        nonsense('{"choices": [{"message": {"content": 5}}]}'),
        nonsense('{"choices": [{"message": {"content": null, "tool_calls": [{}]}}]}'),
        text(""),
        text("   "),
        completion(None),
        completion("<think>only thoughts", finish_reason="length"),
    ],
)
async def test_what_may_pass_is_retried(fault: Script) -> None:
    waits = Waits()
    reply, server = await ask([fault, fault, text("at last")], waits)
    assert reply.content == "at last"
    assert len(server.requests) == 3
    assert (reply.usage.requests, reply.usage.retries) == (3, 2)
    assert waits == [0.5, 1.0]


@pytest.mark.parametrize("fault", [status(500, message="boom"), text(""), CUT])
async def test_attempts_are_bounded_and_the_last_failure_is_named(fault: Script) -> None:
    problem, server = await failure(fault, attempts=3)
    assert len(server.requests) == 3
    assert "gave up after 3 attempts" in str(problem)
    assert server.url in str(problem)
    assert problem.retryable
    assert problem.boundary == "user"


async def test_backoff_doubles_up_to_the_maximum_with_jitter() -> None:
    with FakeOpenAI(status(500)) as server:
        for jitter, expected in ((0.0, [0.5, 1.0, 2.0, 2.5]), (1.0, [1.0, 2.0, 4.0, 5.0])):
            waits = Waits()
            config = EndpointSettings(model="m", base_url=server.url, attempts=5, max_backoff=5.0)
            async with Endpoint(config, sleep=waits, jitter=lambda j=jitter: j) as client:  # type: ignore[misc]
                with pytest.raises(InfrastructureError):
                    await client.chat(HELLO)
            assert waits == expected


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({"Retry-After": "3"}, 3.0), ({"Retry-After": "0"}, 0.0), ({"retry-after-ms": "250"}, 0.25)],
)
async def test_retry_after_is_honoured(headers: dict[str, str], wait: float) -> None:
    waits = Waits()
    await ask([status(429, headers), text("ok")], waits)
    assert waits == [wait]


async def test_retry_after_as_a_date_and_as_nonsense() -> None:
    waits = Waits()
    await ask([status(503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), text("ok")], waits)
    await ask([status(503, {"Retry-After": "soon"}), text("ok")], waits)
    assert waits == [0.0, 0.5]


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    problem, server = await failure(status(429, {"Retry-After": "3600"}), deadline=60.0)
    assert len(server.requests) == 1
    assert "3600 s" in str(problem)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (status(401), "set OPENAI_API_KEY"),
        (status(403), "OPENAI_API_KEY has no permission"),
        (status(404, message="model not found"), "does not know the model 'm'"),
        (status(404), "/v1"),
        (status(405, message="not that way"), "not that way"),
        (status(429, code="insufficient_quota"), "no credit"),
    ],
)
async def test_what_cannot_pass_is_not_retried(fault: Script, says: str) -> None:
    problem, server = await failure(fault)
    assert len(server.requests) == 1
    assert not problem.retryable
    assert says in str(problem)
    assert "\n" not in str(problem)


async def test_a_request_that_is_refused_is_not_sent_again_but_others_may_pass() -> None:
    for number in (400, 413, 422):
        problem, server = await failure(status(number, message="bad schema"))
        assert len(server.requests) == 1
        assert isinstance(problem, PromptRefused)
        assert problem.retryable
        assert not problem.too_long
        assert "bad schema" in str(problem)


async def test_a_conversation_that_is_too_long_is_its_own_kind_of_failure() -> None:
    for fault in (
        status(400, code="context_length_exceeded"),
        status(400, message="This model's maximum context length is 4096 tokens."),
    ):
        problem, server = await failure(fault)
        assert isinstance(problem, PromptRefused)
        assert problem.too_long
        assert problem.retryable, "one long conversation must not end the run"
        assert len(server.requests) == 1


async def test_parameters_a_model_refuses_are_left_out_from_then_on() -> None:
    def picky(body: dict[str, Any]) -> Any:
        if "max_tokens" in body:
            return status(400, code="unsupported_parameter", param="max_tokens")
        if body.get("temperature") == 0.0:
            return status(400, code="unsupported_value", param="temperature")
        return text("ok")

    with FakeOpenAI(picky) as server:
        async with endpoint(server) as client:
            await client.chat(HELLO, temperature=0.0, max_tokens=9)
            await client.chat(HELLO, temperature=0.0, max_tokens=9)
    assert len(server.requests) == 4
    assert server.bodies[-1] == {"model": "m", "messages": HELLO, "max_completion_tokens": 9}


async def test_timeout_of_one_attempt_is_retried() -> None:
    reply, server = await ask([slow(5.0), text("quick")], timeout=0.5)
    assert reply.content == "quick"
    assert len(server.requests) == 2


async def test_deadline_ends_the_request_with_all_its_retries() -> None:
    with FakeOpenAI(slow(5.0)) as server:
        config = EndpointSettings(model="m", base_url=server.url, timeout=0.1, deadline=0.4, backoff=0.01)
        started = time.monotonic()
        async with Endpoint(config) as client:
            with pytest.raises(InfrastructureError, match=r"0\.[14] s") as caught:
                await client.chat(HELLO)
    assert time.monotonic() - started < 4.0
    assert caught.value.retryable
    assert len(server.requests) >= 2


async def test_deadline_cuts_an_attempt_short() -> None:
    with FakeOpenAI([status(500, message="boom"), slow(5.0)]) as server:
        started = time.monotonic()
        async with endpoint(server, timeout=5.0, deadline=1.0, backoff=0.01) as client:
            with pytest.raises(InfrastructureError, match=r"deadline of 1 s \(last failure: HTTP 500: boom\)"):
                await client.chat(HELLO)
    assert time.monotonic() - started < 4.0
