"""ART's tau protocol, by a client that follows art.tau_bench's own: one action a step, calls as Python writes them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest

from muarl.basics.errors import InfrastructureError
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.types.chat import Message, to_openai
from muarl.types.episode import Episode
from muarl_tools.serve_environments.tau import read_action
from support.scripted_replies import Outcome, Replies, natively, readable, written
from support.served import Clock, Users, serving, toy
from support.trainers import AS_NATIVELY, Told

COMPANY = "bank-knowledge-generated"
BEGIN = {"domain": "toy", "task_id": "toy:test:0"}


def actions(message: Message) -> list[str]:
    """A message as art.tau_bench.rollout sends it, from a chat completion."""
    sent = to_openai(message)
    calls = [c["function"] for c in sent.get("tool_calls", ())]
    made = [(c["name"], json.loads(c["arguments"])) for c in calls]
    return [f"{n}({', '.join(f'{k}={v!r}' for k, v in a.items())})" for n, a in made] or [sent["content"] or ""]


async def rollout(
    client: httpx.AsyncClient, domain: str, task_id: str, replies: Sequence[Message], seed: int = 3
) -> tuple[float, list[str]]:
    """The reward, and the observations, as art.tau_bench.rollout sums and reads them."""
    begin = {
        "domain": domain, "task_id": task_id, "user_llm": "gpt-4.1-2025-04-14",
        "user_llm_args": {"temperature": 0.0, "seed": seed}, "idle_timeout_seconds": 1800,
    }  # fmt: skip
    began = await client.post("/environments", json=begin)
    assert began.status_code == 201, began.text
    seen, reward, over, left = [began.json()["observation"]], 0.0, False, list(replies)
    url = f"/environments/{began.json()['id']}"
    while not over:
        for action in actions(left.pop(0) if left else Message("assistant", "Anything else?")):
            answer = await client.post(f"{url}/step", json={"action": action})
            answer.raise_for_status()
            state = answer.json()
            assert state.keys() == {"id", "observation", "info", "reward", "terminated", "truncated"}
            seen.append(state["observation"])
            reward, over = reward + state["reward"], state["terminated"]
    deleted = await client.delete(url)
    assert deleted.json() == {"id": began.json()["id"], "deleted": True}
    return reward, seen


async def test_a_whole_conversation() -> None:
    async with serving(toy(), users=Users("Cancel #W12.", "Thanks.")) as (client, service):
        listed = (await client.get("/scenarios", params={"domain": "toy", "split": "test"})).json()
        assert listed["scenarios"][1] == {"domain": "toy", "task": {"id": "toy:test:1", "description": "b"}}
        began = (await client.post("/environments", json=BEGIN)).json()
        assert began["observation"] == "user: Cancel #W12."
        assert began["info"]["policy"].startswith("Be kind.") and len(began["info"]["tools"]) == 3
        step = f"/environments/{began['id']}/step"
        state = (await client.post(step, json={"action": "look(order_id='#W12')"})).json()
        assert (state["observation"], state["reward"], state["terminated"]) == ("tool: pending", 0.0, False)
        state = (await client.post(step, json={"action": "Done."})).json()
        assert state["observation"] == "user: Thanks."
        state = (await client.post(step, json={"action": "Bye."})).json()
        assert (state["reward"], state["terminated"], state["truncated"]) == (1.0, True, False)
        assert state["info"]["parts"] == {"DB": 1.0} and state["info"]["stop"] == "user_stop"
        again = (await client.post(step, json={"action": "look(order_id='#W12')"})).json()
        assert (again["reward"], again["terminated"], again["observation"]) == (0.0, True, "")
        assert service.played == 1 and len(service.sessions) == 1
        assert (await client.delete(f"/environments/{began['id']}")).status_code == 200
        assert (await client.post(step, json={"action": "Hello?"})).status_code == 404
        assert len(service.sessions) == 0


async def compare(
    environment: Environment, tasks: Sequence[Task], replies: Mapping[str, Sequence[Message]], **served: Any
) -> Counter[float | None]:
    """The rewards of the tasks, whose conversations were compared with native ones."""
    native: Mapping[str, Episode] = await asyncio.to_thread(natively, environment, tasks, Replies(replies), 3, **served)
    async with serving(environment, **served) as (client, service):
        ended: dict[str, Episode] = {}
        remove = service.sessions.remove

        async def removed(held: Any) -> None:
            ended[held.session.task.id] = held.session.episode
            await remove(held)

        service.sessions.remove = removed
        for number, task in enumerate(tasks):
            outcome = Outcome.of(native[task.id])
            name = str(task.origin.address) if number % 2 or environment.endless else task.id
            try:
                reward, seen = await rollout(client, environment.name.removeprefix("tau2-"), name, replies[task.id])
            except httpx.HTTPStatusError as problem:
                reward, seen = problem.response.status_code, []
            if outcome.reward is None:
                assert reward == 502
                continue
            assert reward == outcome.reward
            assert Outcome.of(ended[task.id]) == outcome
            said = [(m.role, m.content) for m in native[task.id].messages if m.role in ("user", "tool")
                    and not m.tool_calls and not (m.role == "tool" and m.requestor == "user")]  # fmt: skip
            assert "\n".join(text for text in seen if text) == "\n".join(f"{role}: {text}" for role, text in said)
    return Counter(Outcome.of(episode).reward for episode in native.values())


@AS_NATIVELY
async def test_the_same_replies_give_the_same_as_natively(told: Told) -> None:
    told.check(await compare(told.environment, told.tasks, readable(told.replies), **told.means))


async def test_a_failure_is_an_error_and_no_reward() -> None:
    wrong = InfrastructureError("the user's server is down", boundary="user")
    async with serving(toy(), users=Users("Hi.", wrong)) as (client, service):
        began = (await client.post("/environments", json=BEGIN)).json()
        for _ in range(2):
            answer = await client.post(f"/environments/{began['id']}/step", json={"action": "What is it?"})
            assert answer.status_code == 502 and "the user's server is down" in answer.json()["error"]["message"]
        assert (await client.delete(f"/environments/{began['id']}")).status_code == 200
    async with serving(toy(), users=Users(wrong)) as (client, service):
        answer = await client.post("/environments", json=BEGIN)
        assert answer.status_code == 502 and len(service.sessions) == 0 and service.room.free == 1024


async def test_limits_are_told() -> None:
    async with serving(toy(), users=Users("Hi.", "Well?")) as (client, _):
        began = (await client.post("/environments", json=BEGIN)).json()
        answer = await client.post(f"/environments/{began['id']}/step", json={"action": ""})
        state = answer.json()
        assert (state["reward"], state["terminated"], state["truncated"]) == (0.0, True, True)
        assert state["info"]["stop"] == "empty_reply"


async def test_what_is_asked_wrong_is_said_with_its_field() -> None:
    key = "sk-of-the-users-model"
    async with serving(toy(), toy("other"), users=Users("Hi.")) as (client, _):
        for change, param, words in (
            ({"domain": "retail"}, "domain", "this server has no environment 'retail'; it has toy, other"),
            ({"task_id": "toy:test:9"}, "task", "has no task number 9"),
            ({"task_id": "x"}, "task", "no address of a task"),
            ({"task_id": "other:test:0"}, "task_id", "is of other, not of toy"),
            ({"retrieval_config": "bm25"}, "retrieval_config", "toy has no documents to search; leave it out"),
            ({"idle_timeout_seconds": 0.5}, "idle_timeout_seconds", "greater than or equal to 1"),
            ({"user_llm_args": {"seed": "x", "api_key": key}}, "user_llm_args.seed", "whole number"),
            ({"user_llm_args": key}, "user_llm_args", "valid dictionary"),
            ({"temperature": 1}, "temperature", "no such field"),
        ):
            answer = await client.post("/environments", json={**BEGIN, **change})
            error = answer.json()["error"]
            assert answer.status_code == 400 and error["param"] == param and words in error["message"], error
            assert key not in answer.text
        wrong = await client.get("/scenarios", params={"domain": "toy", "split": "train"})
        assert wrong.status_code == 400 and "no tasks for the split 'train'" in wrong.json()["error"]["message"]
        every = (await client.get("/scenarios", params={"split": "test"})).json()["scenarios"]
        assert [s["domain"] for s in every] == ["toy", "toy", "other", "other"]
        for path in ("/scenarios", "/environments/x/step"):
            assert (await client.request("GET", path, headers={"authorization": ""})).status_code == 401


@pytest.mark.slow
async def test_a_company_with_documents_gives_the_same_as_natively() -> None:
    environment = find(COMPANY)
    tasks = environment.make_tasks("test", 4)
    replies = await asyncio.to_thread(written, environment, tasks)
    assert any(c.name == "KB_search" for said in replies.values() for m in said for c in m.tool_calls)
    assert set(await compare(environment, tasks, readable(replies))) <= {0.0, 1.0}


async def test_clients_choose_how_documents_are_searched() -> None:
    begin = {"domain": COMPANY, "task_id": str(find(COMPANY).task("test", 0, size="small").origin.address)}
    async with serving(find(COMPANY), users=Users("Hi.", "Well?")) as (client, _):

        async def begun(**changes: Any) -> tuple[set[str], str]:
            began = (await client.post("/environments", json={**begin, **changes})).json()
            tools = {tool["function"]["name"] for tool in began["info"]["tools"]}
            call = "KB_search(query='fee')" if "KB_search" in tools else "grep(pattern='fee')"
            step = await client.post(f"/environments/{began['id']}/step", json={"action": call})
            return tools & {"KB_search", "grep"}, step.json()["observation"]

        tools, shown = await begun()
        assert tools == {"KB_search", "grep"} and shown.count("   ID: ") == 10
        tools, few = await begun(retrieval_config="bm25", retrieval_config_kwargs={"top_k": 2})
        assert tools == {"KB_search"} and few.count("   ID: ") == 2 and shown.startswith(few.rstrip())
        assert (await begun(retrieval_config_kwargs={"top_k": 2})) == ({"KB_search", "grep"}, few)
        assert (await begun(retrieval_config="grep_only"))[0] == {"grep"}
        for change, param, words in (
            ({"retrieval_config": "openai_embeddings"}, "retrieval_config", "asks none for its clients; take a"),
            ({"retrieval_config": "bm25_reranker_grep"}, "retrieval_config", "asks none for its clients; take a"),
            ({"retrieval_config": "full_kb"}, "retrieval_config", "a prompt of TAU2's bank; take one of"),
            ({"retrieval_config": "x" * 61}, "retrieval_config", "at most 60 characters"),
            ({"retrieval_config_kwargs": {"top_k": 0}}, "retrieval_config_kwargs.top_k", "greater than"),
            ({"retrieval_config_kwargs": {"cache": "/etc"}}, "retrieval_config_kwargs", "no 'cache' to choose here"),
        ):
            answer = await client.post("/environments", json={**begin, **change})
            error = answer.json()["error"]
            assert answer.status_code == 400 and error["param"] == param and words in error["message"], error


async def test_tasks_that_have_no_end_are_listed_in_part() -> None:
    async with serving(find("retail-generated")) as (client, _):
        query = {"domain": "retail-generated", "split": "test", "start": 3, "count": 2}
        listed = (await client.get("/scenarios", params=query)).json()["scenarios"]
        assert [s["task"]["id"] for s in listed] == ["retail-generated:test:3", "retail-generated:test:4"]


async def test_a_client_may_be_slower_than_others() -> None:
    clock = Clock()
    async with serving(toy(), users=Users("Hi.", "Well?"), idle=60, clock=clock) as (client, service):
        await client.post("/environments", json=BEGIN)
        await client.post("/environments", json={**BEGIN, "idle_timeout_seconds": 1800})
        clock.now = 61.0
        assert await service.expire() == 1
        clock.now = 1801.0
        assert await service.expire() == 1 and len(service.sessions) == 0


@pytest.mark.parametrize(
    ("action", "name", "arguments"),
    [
        ("look(order_id='#W12')", "look", {"order_id": "#W12"}),
        ("look()", "look", {}),
        ("""f(a="it's, (here) = ]", b=[{'c': None, 'd': [1, -2.5]}], e=True)""", "f",
         {"a": "it's, (here) = ]", "b": [{"c": None, "d": [1, -2.5]}], "e": True}),
        ("book(from='SFO', class='a', order-id=3)", "book", {"from": "SFO", "class": "a", "order-id": 3}),
        ("say(text='two\\nlines \\'x\\' \\\\')", "say", {"text": "two\nlines 'x' \\"}),
        ("unknown.tool-x(a='1')", "unknown.tool-x", {"a": "1"}),
    ],
)  # fmt: skip
def test_calls_are_read(action: str, name: str, arguments: dict[str, Any]) -> None:
    (call,) = read_action(action, "call_1", ("look",)).tool_calls
    assert (call.name, dict(call.arguments), call.invalid, call.id) == (name, arguments, None, "call_1")


@pytest.mark.parametrize("text", ["Hello (again).", "", "Sure(thanks)", "f(x) = 2", "a b(c=1)", "look(order_id='1') ?"])
def test_texts_are_texts(text: str) -> None:
    assert read_action(text, "call_1", ("look",)) == Message("assistant", text)


@pytest.mark.parametrize("arguments", ["order_id=nan", "order_id={1}", "order_id=print(1)", "1", "x=" + "[" * 5000])
def test_a_call_that_cannot_be_read_is_a_broken_one(arguments: str) -> None:
    (call,) = read_action(f"look({arguments})", "call_1", ("look",)).tool_calls
    assert call.name == "look" and call.invalid and call.raw == arguments
