"""Environments over HTTP, as a client that knows nothing of muarl meets them: plain httpx and JSON."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
import pytest

from muarl.basics.errors import InfrastructureError
from muarl.basics.web.addresses import listen
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.types.chat import Message, to_openai
from muarl_tools.serve_environments.http import EnvironmentServer
from muarl_tools.serve_environments.service import EnvironmentService, ServedEnvironments
from support.fake_openai import Answer, FakeOpenAI, call, completion, text
from support.scripted_replies import Outcome, Replies, natively, stub, written
from support.served import TOKEN, Clock, Users, serving, toy
from support.toy_shop import Lines
from support.trainers import AS_NATIVELY, Told
from support.waiting import happened, settled

KEY = "sk-secret-of-the-trainer"
PARTS = ("reward", "parts", "stop")


async def led(client: httpx.AsyncClient, address: str, say: Callable[[int], Any], seed: int = 3) -> dict[str, Any]:
    """A conversation from its first message to its verdict: its last state, and all that was seen."""
    began = await client.post("/sessions", json={"task": address, "seed": seed})
    assert began.status_code == 201, began.text
    state = began.json()
    seen, number = [*state["messages"]], 0
    while not state["done"]:
        answer = await client.post(f"/sessions/{state['id']}/step", json={"message": say(number)})
        assert answer.status_code == 200, answer.text
        state, number = answer.json(), number + 1
        seen += state["messages"]
    assert (await client.delete(f"/sessions/{state['id']}")).status_code == 204
    return {**state, "seen": seen}


async def test_a_stranger_leads_a_whole_conversation() -> None:
    async with serving(toy(), users=Users("Cancel #W12.", "Thanks.")) as (client, _):
        listed = (await client.get("/tasks", params={"split": "test", "start": 1, "count": 5})).json()
        assert listed == {
            "environment": "toy", "split": "test", "total": 2,
            "tasks": [{"index": 1, "id": "b", "task": "toy:test:1"}],
        }  # fmt: skip
        began = (await client.post("/sessions", json={"split": "test", "index": 1, "seed": 7})).json()
        assert began["task"] == "toy:test:1" and not began["done"] and began["reward"] is None
        assert began["system"].startswith("Be kind.") and len(began["tools"]) == 3
        assert began["messages"] == [{"role": "user", "content": "Cancel #W12."}]
        url = f"/sessions/{began['id']}"
        look = {"role": "assistant", "content": None, "tool_calls": [call("look", {"order_id": "#W12"})]}
        state = (await client.post(f"{url}/step", json={"message": look})).json()
        assert state["messages"][0]["content"] == "pending" and "tools" not in state
        state = (await client.post(f"{url}/step", json={"message": "Done."})).json()
        whole = (await client.get(url)).json()
        assert [m["role"] for m in whole["conversation"]] == [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]
        assert len(whole["tools"]) == 3
        state = (await client.post(f"{url}/step", json={"message": "Bye."})).json()
        assert state["done"] and (state["reward"], state["parts"], state["stop"]) == (1.0, {"DB": 1.0}, "user_stop")
        again = await client.post(f"{url}/step", json={"message": "Bye."})
        assert (again.status_code, again.json()["error"]["message"]) == (409, "The conversation is over.")
        assert (await client.get(url)).json()["reward"] == 1.0
        assert (await client.delete(url)).status_code == 204
        gone = await client.get(url)
        assert gone.status_code == 404 and "Start another one" in gone.json()["error"]["message"]


def heard(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the agent heard; the greeting, which it is taken to have said, stands in TAU2's contexts."""
    return [message for message in messages if message["role"] in ("user", "tool")]


async def all_ways(
    environment: Environment, tasks: Sequence[Task], replies: Mapping[str, Sequence[Message]], **played: Any
) -> Counter[float | None]:
    """Check that natively, by /run and by sessions the same replies end the same; how often each reward is given."""
    native = await asyncio.to_thread(natively, environment, tasks, Replies(replies), 3, **played)

    def says(task: Task) -> Callable[[int], Any]:
        own = replies[task.id]
        return lambda n: to_openai(own[n]) if n < len(own) else "Anything else?"

    async with serving(environment, **played) as (client, _):
        with FakeOpenAI(stub(replies), key=KEY) as agent:
            for task in tasks:
                outcome, address = Outcome.of(native[task.id]), str(task.origin.address)
                expected = {"reward": outcome.reward, "parts": outcome.parts, "stop": outcome.stop}
                body = {"task": address, "base_url": agent.url, "model": task.id, "api_key": KEY, "seed": 3}
                run = (await client.post("/run", json=body)).json()
                assert {k: run[k] for k in PARTS} == expected
                state = await led(client, address, says(task))
                assert {k: state[k] for k in PARTS} == expected
                for way in (run, state):
                    assert (way["failure"] is None) == (outcome.stop != "infrastructure")
                assert heard(state["seen"]) == heard(run["messages"])
    return Counter(Outcome.of(episode).reward for episode in native.values())


async def test_a_client_may_set_limits() -> None:
    async with serving(find("retail-generated")) as (client, _):
        with FakeOpenAI(text("Hello.")) as agent:
            body = {"split": "test", "index": 3, "base_url": agent.url, "model": "m", "limits": {"turns": 2}}
            run = (await client.post("/run", json=body)).json()
            assert run["stop"] == "max_turns" and sum(m["role"] == "assistant" for m in run["messages"]) == 2
            wrong = await client.post("/run", json={**body, "limits": {"turns": 0}})
            assert wrong.status_code == 400 and wrong.json()["error"]["param"] == "limits.turns"
        began = (await client.post("/sessions", json={"index": 3, "limits": {"tool_errors": 1}})).json()
        unknown = {"role": "assistant", "content": None, "tool_calls": [call("no_such_tool", {})]}
        state = (await client.post(f"/sessions/{began['id']}/step", json={"message": unknown})).json()
        assert state["done"] and state["stop"] == "tool_errors"


@AS_NATIVELY
async def test_both_ways_give_the_same_as_natively(told: Told) -> None:
    rewards = await all_ways(told.environment, told.tasks, told.replies, **told.means)
    told.check(rewards)
    assert not told.means or rewards[None] > 5, "some replies are void by TAU2's rules"


async def test_failures_are_answers_and_no_reward() -> None:
    wrong = InfrastructureError("the user's server is down", boundary="user")
    async with serving(toy(), users=Users("Hi.", wrong)) as (client, _):
        with FakeOpenAI(text("What is it?")) as agent:
            answer = await client.post("/run", json={"task": "toy:test:0", "base_url": agent.url, "model": "m"})
        assert answer.status_code == 200
        played = answer.json()
        assert played["reward"] is None and played["parts"] == {} and played["stop"] == "infrastructure"
        assert played["failure"] == {
            "boundary": "user", "retryable": True, "text": "user: the user's server is down", "void": False,
        }  # fmt: skip
        state = await led(client, "toy:test:0", lambda _: "What is it?")
        assert state["reward"] is None and state["failure"]["boundary"] == "user"


async def test_what_is_asked_wrong_is_said_with_its_field(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    model = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key": KEY}
    async with serving(toy(), toy("other"), users=Users("Hi.")) as (client, _):
        for path, body, param, words in (
            ("/run", {"task": "toy:test:0"}, "base_url", "required"),
            ("/run", {"task": "toy:test:0", **model, "temprature": 1}, "temprature", "no such field; known: task"),
            ("/run", {"task": "toy:test:0", **model, "seed": "x"}, "seed", "valid integer"),
            ("/run", {**model}, "task", "give task, an address"),
            ("/run", {"index": 1, **model}, "environment", "say which; this server has toy, other"),
            ("/run", {"task": "toy:test:9", **model}, "task", "has no task number 9"),
            ("/run", {"task": "toy:train:0", **model}, "task", "no tasks for the split 'train'"),
            ("/run", {"task": "retail-generated:test:0", **model}, "task", "this server has no environment"),
            ("/run", {"task": "./code.py:X:test:0", **model}, "task", "this server has no environment"),
            ("/run", {"task": "toy:test:0", "index": 1, **model}, "task", "give either task"),
            ("/run", {"task": "toy:test:0", **model, "base_url": "ftp://x"}, None, "base URL must look like"),
            ("/sessions", {"task": "toy"}, "task", "is no address of a task"),
            ("/sessions", [], None, "valid dictionary"),
        ):
            answer = await client.post(path, json=body)
            error = answer.json()["error"]
            assert answer.status_code == 400 and error["param"] == param and words in error["message"], error
            assert KEY not in answer.text
        broken = await client.post("/run", content=b'{"task": ')
        assert broken.status_code == 400 and "no JSON" in broken.json()["error"]["message"]
        began = (await client.post("/sessions", json={"task": "toy:test:0"})).json()
        said = await client.post(f"/sessions/{began['id']}/step", json={"message": {"role": "user", "content": "x"}})
        assert said.status_code == 400 and "must be 'assistant'" in said.json()["error"]["message"]
        assert (await client.post("/nothing")).json()["error"]["message"].startswith("No such path")
        assert (await client.get("/run")).status_code == 405
    assert KEY not in caplog.text


async def test_who_has_no_token_is_refused() -> None:
    async with serving(toy(), users=Users("Hi.")) as (client, _):
        for path in ("/tasks", "/environments", "/sessions/x", "/run"):
            answer = await client.get(path, headers={"authorization": "Bearer wrong"})
            assert answer.status_code == 401 and answer.json()["error"]["code"] == "invalid_api_key"
        assert (await client.get("/health", headers={"authorization": ""})).json() == {"status": "ok"}
        told = (await client.get("/environments")).json()["environments"]
        assert told == [
            {"name": "toy", "about": "", "splits": ["test"], "sizes": [], "endless": False, "benchmark": False}
        ]


async def test_only_allowed_addresses_are_asked_and_redirects_not_followed() -> None:
    moved = Answer(b"", 307, {"location": "http://127.0.0.1:9/v1/chat/completions"})
    with FakeOpenAI(moved) as agent:
        async with serving(toy(), users=Users("Hi."), base_urls=(f"{agent.url}/of", agent.url + "2")) as (client, _):
            hidden = [f"{agent.url}/of/{up}/x" for up in ("..", "%2e%2e", ".%2e", "%2E%2E", "%252e%252e", "..%2f..")]
            for url in (agent.url, f"{agent.url}/offer", *hidden, "http://10.0.0.1/v1"):
                body = {"task": "toy:test:0", "base_url": url, "model": "m"}
                answer = await client.post("/run", json=body)
                assert (answer.status_code, answer.json()["error"]["param"]) == (403, "base_url"), url
            assert not agent.requests
        async with serving(toy(), users=Users("Hi."), base_urls=(agent.url,)) as (client, _):
            body = {"task": "toy:test:0", "base_url": agent.url, "model": "m", "attempts": 1}
            played = (await client.post("/run", json=body)).json()
            assert played["failure"]["boundary"] == "agent" and "307" in played["failure"]["text"]
            assert "authorization" not in agent.requests[0].headers or KEY not in str(agent.requests[0].headers)


async def test_sessions_that_nobody_asks_for_are_closed() -> None:
    clock = Clock()
    async with serving(toy(), users=Users("Hi.", "Well?"), idle=60, clock=clock, concurrency=2) as (client, service):
        old = (await client.post("/sessions", json={"task": "toy:test:0"})).json()
        clock.now = 50.0
        young = (await client.post("/sessions", json={"task": "toy:test:1"})).json()
        full = await client.post("/sessions", json={"task": "toy:test:1"})
        assert full.status_code == 429 and full.headers["retry-after"] == "1"
        clock.now = 61.0
        assert await service.expire() == 1
        assert (await client.get(f"/sessions/{old['id']}")).status_code == 404
        assert (await client.get(f"/sessions/{young['id']}")).status_code == 200
        clock.now = 121.0
        assert await service.expire() == 0, "it was asked for at 61"
        clock.now = 122.0
        assert await service.expire() == 1 and len(service.sessions) == 0
        assert (await client.post("/sessions", json={"task": "toy:test:0"})).status_code == 201


@pytest.mark.parametrize(
    ("path", "body"),
    [("/sessions", '{"task": "toy:test:0"}'), ("/environments", '{"domain": "toy", "task_id": "a"}')],
)
async def test_a_session_whose_client_left_at_once_is_not_kept(path: str, body: str) -> None:
    service = EnvironmentService(ServedEnvironments(environments=[toy()], users=Users("Hi."), concurrency=4))
    with contextlib.closing(listen("127.0.0.1", 0)) as listener:
        server = EnvironmentServer(service, listener, token=TOKEN)
        serving_it = asyncio.ensure_future(server.run())
        host, port = listener.getsockname()
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        known = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=known) as client:
            for _ in range(8):
                _, writer = await asyncio.open_connection(host, port)
                writer.write((head + body).encode())
                writer.close()
                await writer.wait_closed()
            began = await client.post("/sessions", json={"task": "toy:test:0"})
            assert began.status_code == 201, began.text
            assert len(service.sessions) == 1
        server.stop()
        await serving_it


async def test_a_full_server_says_so_and_lets_the_next_one_in() -> None:
    gate = asyncio.Event()

    class Slow(Users):
        def __call__(self, task: Task, *, seed: int) -> Any:
            user = Lines("Bye. ###STOP###")
            reply = user.reply

            async def slow(conversation: Any) -> Any:
                await gate.wait()
                return await reply(conversation)

            user.reply = slow  # type: ignore[method-assign]
            return user

    async with serving(toy(), users=Slow(), concurrency=2, queue=1) as (client, service):
        body = {"task": "toy:test:0", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
        runs = [asyncio.ensure_future(client.post("/run", json=body)) for _ in range(3)]
        await happened(lambda: service.room.waiting == 1)
        refused = await client.post("/run", json=body)
        assert refused.status_code == 429 and refused.headers["retry-after"] == "1"
        assert (await client.post("/sessions", json={"task": "toy:test:0"})).status_code == 429
        gate.set()
        assert [r.json()["stop"] for r in await asyncio.gather(*runs)] == ["user_stop"] * 3
        service.room.stopping = True
        ended = await client.post("/run", json=body)
        assert ended.status_code == 503 and "retry-after" in ended.headers
        assert (await client.get("/health")).status_code == 503


@pytest.mark.slow
async def test_two_hundred_conversations_at_once_mix_nothing_up() -> None:
    environment = find("retail-generated")
    tasks = environment.make_tasks("test", 20)
    replies = await asyncio.to_thread(written, environment, tasks)
    native = await asyncio.to_thread(natively, environment, tasks, Replies(replies), 3)

    def says(own: list[Message]) -> Callable[[int], Any]:
        return lambda n: to_openai(own[n]) if n < len(own) else "Anything else?"

    async with serving(environment) as (client, service):
        found = await asyncio.gather(
            *(led(client, str(t.origin.address), says(replies[t.id])) for _ in range(10) for t in tasks)
        )
        assert len(service.sessions) == 0 and service.played == 200
    for number, state in enumerate(found):
        task = tasks[number % 20]
        episode = native[task.id]
        words = [m.content for m in episode.messages if m.role in ("user", "tool")]
        assert state["task"] == str(task.origin.address) and state["reward"] == episode.reward
        assert [m["content"] for m in state["seen"]] == words


async def test_exact_tokens_can_be_sent() -> None:
    async with serving(toy(), users=Users("Hi.")) as (client, service):
        began = (await client.post("/sessions", json={"task": "toy:test:0"})).json()
        tokens = {"prompt_ids": [1, 2], "ids": [3], "logprobs": [-0.5], "version": 4}
        step = {"message": "Hello.", "tokens": tokens}
        assert (await client.post(f"/sessions/{began['id']}/step", json=step)).json()["done"]
        episode = service.sessions.find(began["id"]).session.episode
        assert episode.tokens.ids == [1, 2, 3] and episode.tokens.versions == [-1, -1, 4]


async def test_a_client_that_goes_away_ends_its_run() -> None:
    service = EnvironmentService(ServedEnvironments(environments=[toy()], users=Users("Hi.", 3600.0), concurrency=1))
    server = EnvironmentServer(service, listen("127.0.0.1", 0), token=TOKEN, grace=0.0)
    running = asyncio.ensure_future(server.run())
    headers = {"authorization": f"Bearer {TOKEN}"}
    with FakeOpenAI(completion("What is it?")) as agent:
        body = {"task": "toy:test:0", "base_url": agent.url, "model": "m"}
        async with httpx.AsyncClient(base_url=server.where.url, headers=headers, timeout=60) as client:
            run = asyncio.ensure_future(client.post("/run", json=body))
            await happened(lambda: agent.requests)
            assert service.room.free == 0
            await settled()
            run.cancel()
        await happened(lambda: service.room.free == 1)
    server.stop()
    await running
    assert service.played == 0
