"""Telecom's official tasks against records of the original code: hashes, texts, rewards, schemas, policies."""

from __future__ import annotations

import json
import tomllib

import pytest

from muarl.domains.tasks import Action, Task
from muarl.rewards.gold import gold_world
from muarl.rewards.outcome import do_nothing, score
from muarl.rewards.replay import replay
from muarl.types.chat import Message, ToolCall
from muarl_worlds.tau.telecom.domain import Telecom, TelecomWorkflow, official_policy
from muarl_worlds.tau.telecom.records import phone_database, telecom_database

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "tau2" / "domains" / "telecom"


@pytest.fixture(scope="module")
def domain(folder):
    accounts, phone = ((folder / f).read_text(encoding="utf-8") for f in ("db.toml", "user_db.toml"))
    return Telecom(
        database=telecom_database(tomllib.loads(accounts)),
        phone=phone_database(tomllib.loads(phone)),
        policy="-",
        semantics="official",
    )


@pytest.fixture(scope="module")
def tasks(folder):
    rows = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    return {row["id"]: read(row) for row in rows}


def read(row):
    criteria = row["evaluation_criteria"]
    actions = (
        Action(a["name"], a["arguments"], a["requestor"], a["action_id"], None if a["compare_args"] is None else ())
        for a in criteria["actions"]
    )
    return Task(
        id=row["id"],
        domain="telecom",
        scenario="",
        actions=tuple(actions),
        reward_basis=tuple(criteria["reward_basis"]),
        env_assertions=tuple(criteria["env_assertions"] or ()),
        initial_actions=tuple(row["initial_state"]["initialization_actions"]),
        benchmark=True,
    )


def records(shared_data, name):
    with open(shared_data / "oracle" / name, encoding="utf-8") as file:
        rows = (json.loads(line) for line in file)
        return {row["id"]: row for row in rows if row["domain"] == "telecom"}


def message(row):
    calls = tuple(ToolCall(c["id"], c["name"], c["arguments"], c["requestor"]) for c in row.get("tool_calls") or ())
    side = row.get("requestor", "assistant")
    return Message(
        row["role"],
        row.get("content"),
        calls,
        tool_call_id=row.get("id"),
        requestor=side,
        error=row.get("error", False),
    )


def hashes(world):
    return [world.full_hash(), world.full_hash("user")]


def test_the_untouched_databases_have_the_official_hashes(domain):
    assert hashes(domain.world()) == [
        "304cf5ef059852e117ea801ab9a5efc24c9713ec887679dc2e30acceb4b6742d",
        "e1f3a8637388808221228ff3f87294444e6b64caf721f5eb243a85d0a9380b28",
    ]


def test_schemas_kinds_and_policies_are_the_official_ones(install_data, domain, folder, shared_data):
    text = (shared_data / "oracle" / "tau2_tool_schemas.json").read_text(encoding="utf-8")
    official = json.loads(text)["telecom"]
    for side, tools in (("assistant", official["agent_tools"]), ("user", official["user_tools"])):
        assert list(domain.tool_names(side)) == list(tools)
        for spec in domain.tool_specs(side):
            assert json.dumps(spec.to_openai()) == json.dumps(tools[spec.name]["schema"])
            assert domain.kind_of(spec.name) == tools[spec.name]["type"]
    install_data("tau2")
    assert Telecom().policy_text == official["policy"]
    assert hashes(Telecom().world()) == hashes(domain.world())
    files = {
        "main_policy",
        "main_policy_solo",
        "tech_support_manual",
        "tech_support_workflow",
        "tech_support_workflow_solo",
    }
    texts = {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in files}
    for policy, main, support in [
        (Telecom(solo=True).policy_text, "main_policy_solo", "tech_support_manual"),
        (TelecomWorkflow().policy_text, "main_policy", "tech_support_workflow"),
        (official_policy(workflow=True, solo=True), "main_policy_solo", "tech_support_workflow_solo"),
    ]:
        assert policy == (
            f"<main_policy>\n{texts[main]}\n</main_policy>\n"
            f"<tech_support_policy>\n{texts[support]}\n</tech_support_policy>"
        )


async def test_recorded_conversations_are_answered_to_the_letter(domain, tasks, shared_data):
    results, trajectories = (records(shared_data, f"tau2_gold_{name}.jsonl") for name in ("replay", "trajectories"))
    assert len(results) == len(trajectories) == 114
    calls = 0
    for task_id, recorded in results.items():
        task = tasks[task_id]
        live = domain.world(task)
        assert hashes(live) == recorded["init_hash"], task_id
        messages = [message(m) for m in trajectories[task_id]["messages"]]
        asked = {}
        for each in messages:
            asked |= {call.id: call for call in each.tool_calls}
            if each.role == "tool":
                call = asked[each.tool_call_id]
                found = live.call(call.requestor, call)
                assert (found.content, found.error) == (each.content, each.error), (task_id, call)
                calls += 1
        assert hashes(live) == recorded["live_hash"], task_id
        assert hashes(gold_world(domain, task)) == recorded["gold_hash"], task_id
        verdict = await score(task, live, messages, "user_stop")
        assert (verdict.reward, dict(verdict.breakdown)) == (recorded["reward"], recorded["breakdown"]), task_id
        assert (await do_nothing(domain, task)).reward == recorded["control_reward"], task_id
        again = domain.world(task)
        replay(again, messages)
        assert again.digest() == live.digest(), task_id
    assert calls > 400


async def test_the_gold_actions_of_all_tasks_earn_the_reward(domain, tasks):
    assert len(tasks) == 2285
    for semantics, step in (("official", 1), ("fixed", 10)):
        played = Telecom(database=domain.base, phone=domain.toolkit("user").base, policy="-", semantics=semantics)
        for task in list(tasks.values())[::step]:
            live = played.world(task)
            calls = tuple(ToolCall("", a.name, a.arguments, a.requestor) for a in task.actions)
            for call in calls:
                live.call(call.requestor, call)
            verdict = await score(task, live, [Message("assistant", tool_calls=calls)], "user_stop")
            assert verdict.reward == 1.0, (task.id, semantics, verdict)
