"""Conversations whose settings and tasks are plain values."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from dataclasses import replace

import pytest

from muarl.basics.errors import ConfigError
from muarl.environments.registry import find
from muarl.environments.results import EpisodeFailure
from muarl_integrations.conversations import Conversations
from support.fake_openai import FakeOpenAI, status, text
from support.scripted_replies import Outcome, Replies, natively, stub, written


@pytest.mark.parametrize("name", ["retail-generated", "airline-generated", "telecom-generated"])
async def test_a_row_is_played_as_natively(name: str) -> None:
    environment = find(name)
    tasks = environment.make_tasks("test", 2)
    replies = await asyncio.to_thread(written, environment, tasks)
    native = await asyncio.to_thread(natively, environment, tasks, Replies(replies), 3)
    with FakeOpenAI(stub({t.id: replies[t.id] for t in tasks}), key="k") as server:
        played = [
            await Conversations(model=t.id).play(
                {"task": str(t.origin.address), "seed": 3},  # type: ignore[union-attr]
                base_url=server.url,
                api_key="k",
            )
            for t in tasks
        ]
    for task, result in zip(tasks, played, strict=True):
        assert result.episode is not None and Outcome.of(result.episode) == Outcome.of(native[task.id])


async def test_the_policy_is_asked_once_and_a_failure_is_no_reward() -> None:
    with FakeOpenAI(status(500)) as server:
        played = await Conversations().play({"task": "retail-generated:test:1"}, base_url=server.url, api_key="")
        assert len(server.bodies) == 1 and server.bodies[0]["model"] == "default"
    assert played.reward is None and played.failure is not None and played.failure.boundary == "agent"
    with FakeOpenAI(text("Hello.")) as server, FakeOpenAI(status(401)) as user:
        led = Conversations(user=f"endpoint:u@{user.url}")
        played = await led.play({"task": "retail-generated:test:1"}, base_url=server.url, api_key="")
        assert played.failure is not None and played.failure.boundary == "user" and not server.bodies
    void = replace(played, failure=EpisodeFailure("agent", True, "an empty message", void=True))
    assert led.counted(void).reward is None and led.counted(played) is played
    counted = replace(led, void_is_zero=True).counted(void)
    assert counted.reward == 0.0 and counted.failure is None
    assert replace(led, void_is_zero=True).counted(played) is played


async def test_seeds_of_a_row_are_kept_and_else_every_conversation_has_its_own() -> None:
    with FakeOpenAI(text("Hello.")) as server:
        for row in ({"seed": 4}, {"seed": 4}, {}, {"user_seed": 1}):
            led = Conversations(options={"temperature": 0.5})
            await led.play({"task": "retail-generated:test:1", **row}, base_url=server.url, api_key="")
        seeds = [body["seed"] for body in server.bodies if len(body["messages"]) <= 3]
        assert seeds[0] == seeds[1] and len({*seeds}) == 3 and server.bodies[0]["temperature"] == 0.5


async def test_what_cannot_be_played_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    where = {"base_url": "http://127.0.0.1:9/v1", "api_key": ""}
    with pytest.raises(ConfigError, match=r"column `task`.*this one has prompt, uid"):
        await Conversations().play({"uid": 1, "prompt": "x"}, **where)
    with pytest.raises(ConfigError, match="'oracle' is unknown"):
        await Conversations(user="oracle").play({"task": "retail-generated:test:1"}, **where)
    monkeypatch.setenv("MUARL_VOID_IS_ZERO", "yes")
    with pytest.raises(ConfigError, match="MUARL_VOID_IS_ZERO: must be 0 or 1"):
        Conversations.of_variables()
    monkeypatch.setenv("MUARL_VOID_IS_ZERO", "1")
    monkeypatch.setenv("MUARL_USER", "endpoint:m")
    assert Conversations.of_variables() == Conversations(user="endpoint:m", void_is_zero=True)
    assert pickle.loads(pickle.dumps(Conversations.of_variables())) == Conversations.of_variables()


def test_what_an_endpoint_holds_open_in_the_background_is_closed_at_exit() -> None:
    program = """
import sys
from muarl.endpoints.client import Endpoint
from muarl_integrations.blocking import run
endpoint = Endpoint(model="m", base_url=sys.argv[1], api_key="")
print(run(endpoint.chat([{"role": "user", "content": "Hi."}])).content)
"""
    with FakeOpenAI(text("Hello.")) as server:
        ended = subprocess.run([sys.executable, "-c", program, server.url], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("Hello.\n", "")
