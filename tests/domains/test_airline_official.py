"""The airline on TAU2's own data: everything the original code was recorded to answer, store and score."""

from __future__ import annotations

import json

import pytest

from muarl.rewards.gold import gold_world
from muarl.rewards.outcome import do_nothing, score
from muarl.types.chat import Message, ToolCall
from muarl_worlds.tau.airline.domain import Airline, airline_database
from muarl_worlds.tau.tau2_benchmark.tasks import task_from_json

pytestmark = pytest.mark.data

INITIAL_HASH = "124e39a664b56402bcd09cb8a6a9cece6acb8462337c969799d5658e3250f263"


def lines(path):
    with open(path, encoding="utf-8") as file:
        return {row["id"]: row for row in map(json.loads, file) if row["domain"] == "airline"}


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "tau2" / "domains" / "airline"


@pytest.fixture(scope="module")
def database(folder):
    return airline_database(json.loads((folder / "db.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def domain(database, folder):
    policy = (folder / "policy.md").read_text(encoding="utf-8")
    return Airline(database=database, policy=policy, semantics="official")


@pytest.fixture(scope="module")
def tasks(folder):
    rows = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    return {row["id"]: task_from_json(row, "airline") for row in rows}


@pytest.fixture(scope="module")
def records(shared_data):
    return lines(shared_data / "oracle" / "tau2_gold_replay.jsonl")


@pytest.fixture(scope="module")
def trajectories(shared_data):
    return lines(shared_data / "oracle" / "tau2_gold_trajectories.jsonl")


def test_schemas_kinds_and_policy_are_the_official_ones(domain, shared_data):
    schemas = (shared_data / "oracle" / "tau2_tool_schemas.json").read_text(encoding="utf-8")
    official = json.loads(schemas)["airline"]
    tools = official["agent_tools"]
    assert list(domain.tool_names()) == list(tools) and len(tools) == 14
    assert {t.name: t.to_openai() for t in domain.tool_specs()} == {
        name: tool["schema"] for name, tool in tools.items()
    }
    assert all(domain.kind_of(name) == tool["type"] for name, tool in tools.items())
    assert domain.policy_text == official["policy"]


async def test_gold_states_and_the_reward_of_doing_nothing(domain, tasks, records):
    assert domain.world().full_hash() == INITIAL_HASH
    assert tasks.keys() == records.keys() and len(tasks) == 50
    idle = 0.0
    for name, task in tasks.items():
        recorded = records[name]
        assert list(task.reward_basis) == recorded["basis"]
        assert [domain.world(task).full_hash(), None] == recorded["init_hash"]
        assert [gold_world(domain, task).full_hash(), None] == recorded["gold_hash"]
        verdict = await do_nothing(domain, task)
        assert verdict.reward == recorded["control_reward"]
        idle += verdict.reward
    assert idle == 23


async def test_gold_trajectories_word_for_word_and_their_scores(domain, tasks, records, trajectories):
    assert tasks.keys() == trajectories.keys()
    count = 0
    for name, row in trajectories.items():
        world, recorded = domain.world(tasks[name]), records[name]
        results = {m["id"]: m for m in row["messages"] if m["role"] == "tool"}
        for call in (c for m in row["messages"] for c in m.get("tool_calls") or []):
            result = world.call(call["requestor"], ToolCall.from_json(call))
            wanted = results[call["id"]]
            assert (result.content, result.error) == (wanted["content"], wanted["error"])
            count += 1
        assert [world.full_hash(), world.full_hash("user")] == recorded["live_hash"]
        messages = [Message.from_json(m) for m in row["messages"]]
        verdict = await score(tasks[name], world, messages, "user_stop")
        assert (verdict.reward, dict(verdict.breakdown)) == (recorded["reward"], recorded["breakdown"])
    assert count == 142


def test_gold_trajectories_pass_with_fixed_semantics_too(database, trajectories, records):
    fixed = Airline(database=database, policy="")
    for name, row in trajectories.items():
        world = fixed.world()
        wrong = []
        for call in (c for m in row["messages"] for c in m.get("tool_calls") or []):
            result = world.call("assistant", ToolCall.from_json(call))
            if result.error:
                wrong.append(f"{call['name']}: {result.content}")
        assert wrong == records[name]["live_errors"]
