"""One task with the model of an endpoint: scored, or a typed failure; the same as natively."""

from __future__ import annotations

import asyncio
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import muarl
from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.environments.task_addresses import TaskAddress
from support.fake_openai import FakeOpenAI, call, completion, status, text
from support.scripted_replies import Outcome, Replies, natively, stub, texts, written
from support.toy_shop import Lines, Toy, toy_task

KEY = "sk-of-the-trainer"


class Users:
    name = "lines"

    def __init__(self, *lines: Any) -> None:
        self.lines = lines

    def __call__(self, task: Task, *, seed: int) -> Lines:
        return Lines(*self.lines)


def toy() -> Environment:
    return Environment(name="toy", domain=Toy, tasks={"test": [toy_task()]})


@pytest.mark.parametrize("name", ["retail-generated", "airline-generated", "telecom-generated"])
async def test_the_same_replies_give_the_same_as_natively(name: str) -> None:
    environment = find(name)
    tasks = environment.make_tasks("test", 6, seed=2)
    replies = await asyncio.to_thread(written, environment, tasks)
    native = await asyncio.to_thread(natively, environment, tasks, Replies(replies), 3)
    with FakeOpenAI(stub({t.id: replies[t.id] for t in tasks}), key=KEY) as server:
        played = await asyncio.gather(
            *(
                muarl.play(str(t.origin.address), base_url=server.url, api_key=KEY, model=t.id, seed=3)  # type: ignore[union-attr]
                for t in tasks
            )
        )
    for task, result in zip(tasks, played, strict=True):
        episode = native[task.id]
        assert result.episode is not None and result.failure is None
        assert Outcome.of(result.episode) == Outcome.of(episode)
        assert (result.reward, result.parts, result.stop) == (
            episode.reward,
            dict(episode.verdict.breakdown),  # type: ignore[union-attr]
            episode.stop,
        )
        asked = [b["messages"] for b in server.bodies if b["model"] == task.id]
        assert texts(result.messages)[: len(asked[-1])] == texts(asked[-1]), "as the agent saw it"
        assert result.usage["agent"].requests == len(asked)
    assert "temperature" not in server.bodies[0] and {b["seed"] for b in server.bodies} != {3}


async def test_the_result_says_what_happened() -> None:
    task = toy().task("test", 0)
    with FakeOpenAI([completion(tool_calls=[call("look", '{"order_id": "#W12"}')]), text("Shipped.")]) as server:
        played = await muarl.play(task, base_url=server.url, model="m", users=Users("Hi."), temperature=0.5)
    said = json.loads(json.dumps(played.to_json()))
    assert said["reward"] == 1.0 and said["parts"] == {"DB": 1.0} and said["stop"] == "user_stop"
    assert [m["role"] for m in said["messages"]] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert said["usage"]["agent"] == {
        "prompt_tokens": 20, "completion_tokens": 10, "requests": 2, "retries": 0, "cost": 0.0,
    }  # fmt: skip
    assert said["failure"] is None and said["tools"][0]["function"]["name"] == "look"
    assert server.bodies[0]["temperature"] == 0.5


async def test_failures_say_whose_they_are_and_are_no_reward() -> None:
    task = toy().task("test", 0)
    with FakeOpenAI(status(401, message=f"bad key {KEY}")) as server:
        played = await muarl.play(task, base_url=server.url, model="m", api_key=KEY, users=Users("Hi."))
        assert played.reward is None and played.parts == {} and played.failure is not None
        assert (played.failure.boundary, played.failure.retryable) == ("agent", False)
        assert "set api_key to a key that it accepts" in played.failure.text and KEY not in str(played.to_json())
        with pytest.raises(muarl.MuarlError, match="refuses the API key"):
            raise played.failure.error()
    with FakeOpenAI(text("Hello.")) as agent, FakeOpenAI([text("Hi."), status(500)]) as user:
        users = muarl.Endpoint.of(f"u@{user.url}", attempts=1)
        async with users:
            played = await muarl.play(task, base_url=agent.url, model="m", api_key="", users=users, retries=1)
        assert played.failure is not None and played.failure.boundary == "user" and played.failure.retryable
        assert played.episode is not None and played.episode.tags["attempts"] == 2
        assert "authorization" not in agent.requests[0].headers or KEY not in agent.requests[0].headers["authorization"]


async def test_what_cannot_be_played_is_refused() -> None:
    where: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}
    with pytest.raises(ConfigError, match="did you mean retail-generated"):
        await muarl.play("retail-generatd:test:1", **where)
    with pytest.raises(ConfigError, match="does not say which environment"):
        await muarl.play(toy_task(), **where)
    with pytest.raises(ConfigError, match="no option 'temprature'"):
        await muarl.play("retail-generated:test:1", temprature=1, **where)
    with pytest.raises(ConfigError, match="base URL"):
        await muarl.play("retail-generated:test:1", base_url="localhost:1", model="m")


def test_an_address_names_one_task_and_imports_no_code(tmp_path: Path) -> None:
    shop = find("retail-generated")
    made = shop.make_tasks("train", 2, size="small" if "small" in shop.sizes else shop.sizes[1], seed=4, start=7)[1]
    address = str(made.origin.address)
    assert address == f"retail-generated:train:8?size={made.origin.address.size}&seed=4"
    again = muarl.load_task(address)
    assert again == made and again.origin.environment is shop and str(again.origin.address) == address
    assert str(shop.task("test", 3).origin.address) == "retail-generated:test:3"
    file = tmp_path / "own.py"
    file.write_text(
        "from muarl import *\n"
        "class Own(Domain):\n    'A place.'\n    name = 'own'\n    policy = 'x'\n    database = {'a': {}}\n"
        "OWN = Environment(name='own', domain=Own, tasks={'test': [Task('t', 'own', 'x', None)]})\n"
    )
    with pytest.raises(ConfigError, match="call muarl.load_environment"):
        muarl.load_task(f"{file}:OWN:test:0")
    with pytest.raises(ConfigError, match="no environment 'own'.*loaded first"):
        muarl.load_task("own:test:0")
    own = muarl.load_environment(f"{file}:OWN")
    for name in (f"{file}:OWN", "own"):
        task = muarl.load_task(f"{name}:test:0")
        assert task.id == "t" and task.origin.environment is own


STRANGE = "x x:test x:test:one x:test:-1 x::1 x:test:1?size= x:test:1?y=1 x:test:1?seed=a"


@pytest.mark.parametrize("text", ["", *STRANGE.split()])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no address of a task: write ENVIRONMENT:SPLIT:NUMBER"):
        TaskAddress.parse(text)


def test_where_a_task_comes_from_is_no_part_of_it() -> None:
    task = find("retail-generated").task("test", 0)
    bare = replace(task, origin=None)
    assert task == bare and "origin" not in repr(task)
    plain = replace(task, database=None)
    copy = pickle.loads(pickle.dumps(plain))
    assert plain.origin is not None and copy.origin is None and copy == plain
