"""The endpoint client against a local server: what it sends, retries, counts, and never says."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
import traceback
from pathlib import Path

import pytest

from muarl.basics.errors import InfrastructureError
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings, Price
from muarl.types.chat import ToolSpec
from support.endpoint_calls import HELLO, Waits, ask, endpoint, failure
from support.fake_openai import CUT, FakeOpenAI, Script, call, completion, nonsense, slow, status, text

SECRET = "sk-very-secret-0123456789"
TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]})


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


async def test_request_carries_exactly_what_was_given() -> None:
    with FakeOpenAI() as server:
        async with endpoint(server, extra={"chat_template_kwargs": {"enable_thinking": False}}) as client:
            await client.chat(HELLO, tools=[TOOL], seed=7, temperature=0.5, top_p=0.9, max_tokens=64)
            await client.chat(HELLO)
        async with endpoint(server, temperature=None, max_tokens=99) as client:
            await client.chat(HELLO)
    assert server.bodies[0] == {
        "model": "m",
        "messages": HELLO,
        "tools": [TOOL.to_openai()],
        "tool_choice": "auto",
        "seed": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 64,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert server.bodies[1] == {
        "model": "m",
        "messages": HELLO,
        "temperature": 0.0,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert server.bodies[2] == {"model": "m", "messages": HELLO, "max_tokens": 99}
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"


async def test_key_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "other-key")
    with FakeOpenAI(key="other-key") as server:
        async with endpoint(server, api_key_env="MY_KEY") as client:
            assert (await client.chat(HELLO)).content == "ok"


async def test_key_comes_from_a_file_that_nobody_else_can_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("other-key\n")
    path.chmod(0o600)
    monkeypatch.setenv("MY_KEY_FILE", str(path))
    with FakeOpenAI(key="other-key") as server:
        async with endpoint(server, api_key_env="MY_KEY") as client:
            assert (await client.chat(HELLO)).content == "ok"
        path.chmod(0o644)
        async with endpoint(server, api_key_env="MY_KEY") as client:
            with pytest.raises(InfrastructureError, match="MY_KEY_FILE.*mode 644") as caught:
                await client.chat(HELLO)
    assert not caught.value.retryable and "other-key" not in str(caught.value)


async def test_own_server_needs_no_key_but_openai_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    reply, _ = await ask(text("fine"))
    assert reply.content == "fine"
    with pytest.raises(InfrastructureError, match="set OPENAI_API_KEY") as caught:
        await Endpoint(EndpointSettings(model="gpt-x")).check()
    assert not caught.value.retryable


def test_settings_may_be_given_one_by_one() -> None:
    settings = EndpointSettings(model="m", base_url="http://localhost:8000/v1", temperature=0.5)
    made = Endpoint(model="m", base_url="http://localhost:8000/v1", temperature=0.5)
    assert made.config == settings == Endpoint(settings).config
    for wrong, told in (
        (lambda: Endpoint(model="m", url="http://localhost:8000/v1"), "no option 'url'; there are model, base_url,"),
        (lambda: Endpoint(base_url="http://localhost:8000/v1"), 'give Endpoint(model="MODEL", base_url='),
        (lambda: Endpoint(settings, model="n"), 'give Endpoint(model="MODEL", base_url='),
        (lambda: Endpoint("m"), 'give Endpoint(model="MODEL", base_url='),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=re.escape(told)):
            wrong()


async def test_concurrency_is_bounded() -> None:
    with FakeOpenAI(completion("ok", delay=0.1)) as server:
        async with endpoint(server, concurrency=3) as client:
            await asyncio.gather(*(client.chat(HELLO) for _ in range(12)))
    assert len(server.requests) == 12
    assert server.peak == 3


async def test_requests_do_not_block_the_event_loop() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    with FakeOpenAI(completion("ok", delay=0.3)) as server:
        async with endpoint(server) as client:
            ticking = asyncio.create_task(tick())
            await client.chat(HELLO)
            ticking.cancel()
    assert ticks >= 5


async def test_cancellation_passes_and_frees_the_slot() -> None:
    with FakeOpenAI([slow(5.0), text("next")]) as server:
        async with endpoint(server, concurrency=1) as client:
            first = asyncio.create_task(client.chat(HELLO))
            while not server.requests:
                await asyncio.sleep(0.01)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert (await client.chat(HELLO)).content == "next"


async def test_usage_and_cost_add_up_failed_attempts_included() -> None:
    script = [text("", prompt_tokens=100, completion_tokens=1), text("a", prompt_tokens=200, completion_tokens=20)]
    with FakeOpenAI(script) as server:
        async with endpoint(server, price=Price(prompt=2.0, completion=10.0)) as client:
            first = await client.chat(HELLO)
            second = await client.chat(HELLO)
            total = client.usage
            words = client.cost_text
    assert (first.usage.prompt_tokens, first.usage.completion_tokens, first.usage.retries) == (300, 21, 1)
    assert first.usage.cost == pytest.approx((300 * 2.0 + 21 * 10.0) / 1e6)
    assert total == first.usage + second.usage
    assert words == f"${total.cost:.4f}"


async def test_unknown_price_is_said_and_costs_nothing() -> None:
    with FakeOpenAI() as server:
        async with endpoint(server) as client:
            assert (await client.chat(HELLO)).usage.cost == 0.0
            assert client.cost_text.startswith("unknown")


async def test_the_key_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen = []
    faults = [
        status(401, message=f"Incorrect key {SECRET}"),
        status(400, message=f"bad {SECRET}"),
        status(500, message=f"boom {SECRET}"),
        CUT,
    ]
    for fault in faults:
        with FakeOpenAI(fault) as server:
            client = endpoint(server, attempts=2)
            with pytest.raises(InfrastructureError) as caught:
                await client.chat(HELLO)
            seen.append(repr(client) + repr(client.config) + repr(vars(client)) + str(client))
            seen += traceback.format_exception(caught.value)
            problem: BaseException | None = caught.value
            while problem is not None:
                seen.append(f"{problem!r} {vars(problem)}")
                problem = problem.__cause__ or problem.__context__
            await client.aclose()
    assert SECRET not in "".join(seen)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("key", ["sk-abc def", "sk-ключ", "sk-a\nb"])
async def test_a_garbled_key_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    problem, server = await failure(text("ok"))
    assert "OPENAI_API_KEY" in str(problem)
    assert key not in str(problem)
    assert not server.requests


async def test_check_finds_wrong_key_unknown_model_and_dead_address() -> None:
    with FakeOpenAI(key=SECRET, models=["m"]) as server:
        async with endpoint(server) as client:
            await client.check()
            assert server.bodies[0]["max_tokens"] == 16
        async with Endpoint(EndpointSettings(model="other", base_url=server.url)) as client:
            with pytest.raises(InfrastructureError, match="does not know the model 'other'"):
                await client.check()
    with FakeOpenAI(key="another") as server:
        async with endpoint(server) as client:
            with pytest.raises(InfrastructureError, match="API key") as caught:
                await client.check(boundary="judge")
            assert caught.value.boundary == "judge"
    dead = server.url
    async with endpoint(dead) as client:
        with pytest.raises(InfrastructureError, match="unreachable") as caught:
            await client.check()
    assert dead in str(caught.value)
    assert not caught.value.retryable


async def test_check_lets_a_rate_limit_pass_and_does_not_mind_an_empty_answer() -> None:
    with FakeOpenAI([status(429), status(429), completion(None, finish_reason="length")]) as server:
        async with endpoint(server, attempts=2) as client:
            await client.check()
            await client.check()
    assert len(server.requests) == 3


@pytest.mark.parametrize("fault", [status(500), status(503), CUT, nonsense()])
async def test_check_bears_what_a_request_of_the_run_bears(fault: Script) -> None:
    with FakeOpenAI([fault, fault, fault, text("ready")]) as server:
        async with endpoint(server) as client:
            await client.check()
    assert len(server.requests) == 4


async def test_check_does_not_wait_for_a_server_where_there_is_none() -> None:
    with FakeOpenAI() as server:
        dead = server.url
    waits = Waits()
    async with endpoint(dead, waits) as client:
        with pytest.raises(InfrastructureError, match="unreachable.*gave up after 2 attempts"):
            await client.check()
        with pytest.raises(InfrastructureError, match="unreachable.*gave up after 6 attempts"):
            await client.chat(HELLO)
    assert len(waits) == 1 + 5


async def test_a_run_that_tolerates_half_of_all_requests_failing_begins() -> None:
    """Six attempts fail together once in 64 starts; two did once in four."""
    rng = random.Random(0)
    with FakeOpenAI(lambda body: status(500) if rng.random() < 0.5 else text("ready")) as server:
        refused = 0
        for _ in range(60):
            async with endpoint(server) as client:
                try:
                    await client.check()
                except InfrastructureError:
                    refused += 1
    assert refused <= 2


async def test_a_server_that_goes_away_is_said_at_once_and_once(caplog: pytest.LogCaptureFixture) -> None:
    with FakeOpenAI() as server:
        async with endpoint(server) as client:
            await client.chat(HELLO)
            url = server.url
    async with endpoint(url) as client:
        for _ in range(3):
            with pytest.raises(InfrastructureError):
                await client.chat(HELLO, boundary="agent")
    told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(told) == 1
    assert told[0].startswith("agent endpoint m: unreachable (")
    assert "trying again up to 5 times, until " in told[0]
    assert re.search(r"unreachable \(no connection to 127\.0\.0\.1:\d+: Connection refused\)", told[0]), told[0]


async def test_what_is_said_of_an_endpoint_that_is_down_agrees(caplog: pytest.LogCaptureFixture) -> None:
    with FakeOpenAI() as server:
        dead = server.url
    async with endpoint(dead) as client:
        with pytest.raises(InfrastructureError, match="gave up after 2 attempts"):
            await client.check(boundary="agent")
    (told,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert "trying again once, until " in told, "of two attempts one is left"


async def test_passing_failures_are_said_once_and_an_outage_each_time(caplog: pytest.LogCaptureFixture) -> None:
    from muarl.endpoints.failures import EndpointFailure, Outages

    outages, where = Outages(), EndpointSettings(model="m")
    passing = EndpointFailure("HTTP 500: no", where, "user", again=True)
    gone = EndpointFailure("unreachable (refused)", where, "user", again=True, nobody=True)
    for problem in (passing, passing, gone, gone, None, passing, gone):
        if problem is None:
            outages.over()
        else:
            outages.note(problem, time.time(), 3)
    assert [r.getMessage().split(";")[0] for r in caplog.records] == [
        "user endpoint m: HTTP 500: no",
        *["user endpoint m: unreachable (refused)"] * 2,
    ]


@pytest.mark.parametrize("closes", [True, False])
def test_one_endpoint_serves_several_event_loops_one_after_another(closes: bool) -> None:
    with FakeOpenAI() as server:
        client = endpoint(server, concurrency=1)

        async def some() -> None:
            await asyncio.gather(*(client.chat(HELLO) for _ in range(3)))
            if closes:
                await client.aclose()

        asyncio.run(some())
        asyncio.run(some())
    assert client.usage.requests == 6


def test_two_event_loops_at_once_are_a_mistake_that_is_named() -> None:
    with FakeOpenAI() as server, asyncio.Runner() as one, asyncio.Runner() as other:
        client = endpoint(server)
        one.run(client.chat(HELLO))
        with pytest.raises(RuntimeError, match="serves another event loop: close it there first"):
            other.run(client.chat(HELLO))
        one.run(client.aclose())
        other.run(client.chat(HELLO))
        other.run(client.aclose())
    assert client.usage.requests == 2


async def test_cache_answers_the_same_request_without_asking_again(tmp_path: Path) -> None:
    calls = [call("look", {"id": "1"})]
    with FakeOpenAI([text("first"), completion(None, tool_calls=calls)]) as server:
        async with endpoint(server, cache=tmp_path, price=Price(1.0, 1.0)) as client:
            one = await client.chat(HELLO, seed=1)
            again = await client.chat(HELLO, seed=1)
            other = await client.chat(HELLO, seed=2, tools=[TOOL])
        async with endpoint(server, cache=tmp_path) as client:
            later = await client.chat(HELLO, seed=2, tools=[TOOL])
    assert len(server.requests) == 2
    assert (one.cached, again.cached, again.content) == (False, True, "first")
    assert later.tool_calls == other.tool_calls
    assert (again.usage.prompt_tokens, again.usage.requests, again.usage.cost) == (10, 0, 0.0)
    stored = list(tmp_path.rglob("*"))
    assert not [p for p in stored if p.suffix == ".tmp"]
    assert SECRET not in "".join(p.read_text() for p in stored if p.is_file())


async def test_a_damaged_cache_file_is_asked_for_again(tmp_path: Path) -> None:
    with FakeOpenAI(text("right")) as server:
        async with endpoint(server, cache=tmp_path) as client:
            await client.chat(HELLO)
            (file,) = tmp_path.rglob("*.json")
            for damage in ("{half", "[]", json.dumps({"response": {"choices": []}})):
                file.write_text(damage)
                assert (await client.chat(HELLO)).content == "right"
            assert (await client.chat(HELLO)).cached
    assert len(server.requests) == 4


async def test_failures_are_not_cached(tmp_path: Path) -> None:
    with FakeOpenAI([text(""), text("now")]) as server:
        async with endpoint(server, cache=tmp_path, attempts=1) as client:
            with pytest.raises(InfrastructureError):
                await client.chat(HELLO)
            assert (await client.chat(HELLO)).content == "now"


async def test_the_endpoints_own_top_p_is_sent_unless_a_request_says_otherwise() -> None:
    with FakeOpenAI() as server:
        async with endpoint(server, top_p=0.8) as client:
            await client.chat(HELLO)
            await client.chat(HELLO, top_p=0.5)
    assert [b["top_p"] for b in server.bodies] == [0.8, 0.5]


async def test_no_key_is_sent_where_none_is_named() -> None:
    with FakeOpenAI([text("ok"), status(401)]) as server:
        async with endpoint(server, api_key_env="") as client:
            await client.chat(HELLO)
            with pytest.raises(InfrastructureError, match="OPENAI_API_KEY_HOST=127.0.0.1:"):
                await client.chat(HELLO)
    assert SECRET not in repr([r.headers for r in server.requests])


async def test_a_key_of_one_letter_does_not_garble_what_the_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    failed, _ = await failure(status(404, message="The model `m` does not exist; key given: x", code="model_not_found"))
    assert "does not exist; key given: ***" in str(failed)


@pytest.mark.parametrize("allowed", [False, True])
def test_what_is_said_of_no_key_holds_whoever_chose_it(monkeypatch: pytest.MonkeyPatch, allowed: bool) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY_HOST", "box.example" if allowed else "other.example")
    about = Endpoint(EndpointSettings("m", "https://box.example/v1", api_key_env="")).about
    assert about.startswith("m at box.example without a key")
    assert ("where it is not your choice, OPENAI_API_KEY is not allowed" in about) is not allowed
