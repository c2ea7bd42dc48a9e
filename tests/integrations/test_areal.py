"""AReaL's agent workflow, as AReaL calls it. test_areal_proxy.py has it behind AReaL's own proxy."""

from __future__ import annotations

import asyncio
import json
import pickle

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.environments.registry import find
from muarl_integrations.areal import MuarlAgent
from muarl_integrations.turn_values import turn_values
from support.fake_openai import FakeOpenAI, completion, status, text
from support.scripted_replies import natively, stub

ROW = {"task": "retail-generated:test:1", "seed": 3}


async def test_the_reward_of_a_session_with_its_own_key() -> None:
    with FakeOpenAI(text("Hello."), key="session-key") as server:
        reward = await MuarlAgent().run(ROW, base_url=server.url, api_key="session-key", http_client=object())
        assert reward == 0.0 and isinstance(reward, float)
        assert "http_client" not in server.bodies[0]


async def test_in_a_subprocess_the_address_is_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = pickle.loads(pickle.dumps(MuarlAgent(options={"max_tokens": 5})))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL is not set"):
        await agent.run(ROW)
    with FakeOpenAI(text("Hello."), key="of-the-session") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "of-the-session")
        assert await agent.run(ROW) == 0.0
        assert server.bodies[0]["max_tokens"] == 5


async def test_a_failure_is_raised_and_not_a_reward() -> None:
    with FakeOpenAI(status(500)) as server, pytest.raises(InfrastructureError):
        await MuarlAgent().run(ROW, base_url=server.url, api_key="")


async def test_what_the_policy_said_goes_back_as_its_server_said_it() -> None:
    """AReaL's export joins the turns of a conversation whose messages are exactly those that it gave."""
    call = {"id": "c9", "type": "function", "function": {"name": "find", "arguments": '{"a":1,  "b": 2}'}}
    answers = [completion("", tool_calls=[call], reasoning_content="Hm."), text("Hello.", extra_field=[1])]
    with FakeOpenAI([*answers, *[text("Bye.")] * 40]) as server:
        await MuarlAgent().run(ROW, base_url=server.url, api_key="")
        seen = server.bodies[2]["messages"]
    said = [message for message in seen if message["role"] == "assistant"][-2:]
    given = [json.loads(answer.body)["choices"][0]["message"] for answer in answers]
    assert said == given


async def test_by_turn_each_response_has_what_the_state_gained_by_it() -> None:
    environment = find("retail-generated")
    tasks = [t for t in environment.make_tasks("test", 40) if t.tags["intent"] == "cancel"][:2]
    expert = ExpertAgent(make=environment.needed_expert())
    played = await asyncio.to_thread(natively, environment, tasks, expert, 3)
    replies = {name: [m for m in e.messages if m.role == "assistant"][1:] for name, e in played.items()}
    turn_values.cache_clear()
    agent, sums = MuarlAgent(by_turn=True), []
    for replied in (True, False, True):
        for task in tasks:
            assert task.origin is not None
            row = {"task": str(task.origin.address), "seed": 3}
            with FakeOpenAI(stub({"default": replies[task.id] if replied else []})) as server:
                gains = await agent.run(row, base_url=server.url, api_key="")
            assert isinstance(gains, dict) and [*gains] == [f"response-{n}" for n in range(len(server.bodies))]
            sums.append(sum(gains.values()))
    assert sums[:2] == [1.0, 0.0], "nothing is known, so that the end has the reward; then the beginning is worth it"
    # Half of the conversations went well, and the write brings what the beginning lacked: its end brings no more.
    assert sums[4] > 0.4 and max(gains, key=lambda name: gains[name]) != [*gains][-1]


async def test_by_turn_the_whole_reward_where_responses_have_no_names() -> None:
    with FakeOpenAI(text("Hello.")) as server:  # all have the same
        assert await MuarlAgent(by_turn=True).run(ROW, base_url=server.url, api_key="") == 0.0
