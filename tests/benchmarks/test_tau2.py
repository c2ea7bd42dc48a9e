"""TAU2's official tasks in all of its domains, against records of the original code."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from muarl.basics.errors import DataError, InfrastructureError
from muarl.rewards.gold import gold_world
from muarl.rewards.judge import FixedJudge
from muarl.rewards.outcome import do_nothing, score
from muarl.rewards.replay import replay
from muarl.types.chat import Message, ToolCall
from muarl_tools.commands import bench
from muarl_worlds.tau import tau2_benchmark as tau2
from muarl_worlds.tau.telecom.domain import Telecom, TelecomWorkflow, official_policy

RECORDED = {"retail": 114, "airline": 50, "telecom": 114}
PASSES = FixedJudge(True)


def test_without_the_data_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    for use in (tau2.domain, tau2.tasks, tau2.splits):
        for name in tau2.DOMAINS:
            with pytest.raises(DataError, match="muarl data add tau2 --from DIR"):
                use(name)
    with pytest.raises(DataError, match="domain 'banking': tau2 has retail, airline, telecom"):
        tau2.domain("banking")


data = pytest.mark.data


@pytest.fixture(scope="module")
def records(official_tau2, oracle):
    """What the original code found, by domain and task id."""
    found = {name: {} for name in RECORDED}
    for row in oracle("tau2_gold_replay.jsonl"):
        found[row["domain"]][row["id"]] = row
    assert {name: len(rows) for name, rows in found.items()} == RECORDED
    return found


@pytest.fixture(scope="module")
def trajectories(oracle):
    """The gold trajectories by domain."""
    found = {name: [] for name in RECORDED}
    for row in oracle("tau2_gold_trajectories.jsonl"):
        found[row["domain"]].append(row)
    return found


def hashes_of(world):
    """TAU2's own hashes of both sides."""
    return [world.full_hash("assistant"), world.full_hash("user")]


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@data
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("retail", {"base": 114, "train": 74, "test": 40}),
        ("airline", {"base": 50, "train": 30, "test": 20}),
        ("telecom", {"full": 2285, "base": 114, "train": 74, "test": 40, "small": 20}),
        ("telecom-workflow", {"full": 2285, "base": 114, "train": 74, "test": 40, "small": 20}),
        ("mock", {"base": 10}),
    ],
)
def test_splits_are_the_official_ones(official_tau2, name, sizes):
    assert {k: len(v) for k, v in tau2.splits(name).items()} == sizes
    everything = tau2.tasks(name, None)
    assert len(everything) == max(sizes.values())
    assert [t.id for t in everything if t.id in tau2.splits(name)["base"]] == [t.id for t in tau2.tasks(name)]
    if "test" in sizes:
        assert Counter(t.tags["split"] for t in tau2.tasks(name)) == {"train": sizes["train"], "test": sizes["test"]}
        assert {t.id for t in tau2.tasks(name, "train")}.isdisjoint(t.id for t in tau2.tasks(name, "test"))
    with pytest.raises(DataError, match=f"{name} has no split 'dev'"):
        tau2.tasks(name, "dev")


@data
def test_telecoms_tasks_carry_intent_persona_and_difficulty(official_tau2, shared_data):
    base = tau2.tasks("telecom")
    assert Counter(t.tags["intent"] for t in base) == {"mms_issue": 49, "mobile_data_issue": 36, "service_issue": 29}
    assert Counter(t.tags["persona"] for t in base) == {"None": 40, "Easy": 38, "Hard": 36}
    assert {t.tags["difficulty"] for t in base} == set(range(2, 10))
    assert all(t.initial_actions and t.ticket and t.env_assertions for t in base)
    small = json.loads((shared_data / "tau2/domains/telecom/tasks_small.json").read_text(encoding="utf-8"))
    assert {t.id for t in tau2.tasks("telecom", "small")} == {row["id"] for row in small}
    for row in small:  # the file repeats the tasks of the split, as TAU2's own loader takes them
        given = tau2.task("telecom", row["id"])
        read = tau2.task_from_json(row, "telecom", split=given.tags["split"])
        assert read == given


@data
@pytest.mark.parametrize("name", RECORDED)
def test_policies_prompts_and_schemas_are_the_official_ones(official_tau2, shared_data, name):
    official = json.loads((shared_data / "oracle/tau2_tool_schemas.json").read_text(encoding="utf-8"))[name]
    domain = tau2.domain(name)
    assert domain.policy_text == official["policy"]
    assert f"<policy>\n{domain.policy_text}\n</policy>" in tau2.agent_prompt(domain.policy_text)
    for side in ("assistant", "user"):
        tools = official["agent_tools" if side == "assistant" else "user_tools"] or {}
        assert list(domain.tool_names(side)) == list(tools)
        ours = {t.name: json.dumps(t.to_openai()) for t in domain.tool_specs(side)}
        assert ours == {n: json.dumps(t["schema"]) for n, t in tools.items()}
        assert all(domain.kind_of(n) == t["type"] for n, t in tools.items())
    assert "###STOP###" in tau2.user_guidelines() and tau2.user_guidelines() != tau2.user_guidelines(tools=True)


@data
def test_telecoms_policies_without_a_user_and_with_workflows(official_tau2, shared_data):
    folder = shared_data / "tau2/domains/telecom"
    for policy, main, support in [
        (Telecom(solo=True).policy_text, "main_policy_solo", "tech_support_manual"),
        (TelecomWorkflow().policy_text, "main_policy", "tech_support_workflow"),
        (official_policy(workflow=True, solo=True), "main_policy_solo", "tech_support_workflow_solo"),
    ]:
        texts = [(folder / f"{name}.md").read_text(encoding="utf-8") for name in (main, support)]
        assert policy == "<main_policy>\n{}\n</main_policy>\n<tech_support_policy>\n{}\n</tech_support_policy>".format(
            *texts
        )


@data
def test_the_two_telecoms_differ_in_their_policy_alone(official_tau2):
    manual, workflow = tau2.domain("telecom"), tau2.domain("telecom-workflow")
    assert manual.tool_specs() == workflow.tool_specs()
    assert manual.base is workflow.base  # read once
    assert (
        manual.policy_text.split("<tech_support_policy>")[0] == workflow.policy_text.split("<tech_support_policy>")[0]
    )
    assert manual.policy_text != workflow.policy_text


@data
@pytest.mark.parametrize(
    ("name", "hashes"),
    [
        ("airline", ["124e39a664b56402bcd09cb8a6a9cece6acb8462337c969799d5658e3250f263", None]),
        (
            "telecom",
            [
                "304cf5ef059852e117ea801ab9a5efc24c9713ec887679dc2e30acceb4b6742d",
                "e1f3a8637388808221228ff3f87294444e6b64caf721f5eb243a85d0a9380b28",
            ],
        ),
    ],
)
def test_untouched_databases_have_the_official_hashes(official_tau2, name, hashes):
    assert hashes_of(tau2.domain(name).world()) == hashes


@data
@pytest.mark.parametrize("name", RECORDED)
async def test_initial_and_gold_states_and_the_reward_of_doing_nothing(records, name):
    domain, tasks = tau2.domain(name), tau2.tasks(name)
    assert [t.id for t in tasks] == list(records[name])
    for task in tasks:
        recorded = records[name][task.id]
        assert list(task.reward_basis) == recorded["basis"]
        for world, wanted in ((domain.world(task), "init_hash"), (gold_world(domain, task), "gold_hash")):
            assert hashes_of(world) == recorded[wanted], (task.id, wanted)
        assert (await do_nothing(domain, task, judge=PASSES)).reward == recorded["control_reward"]


@data
async def test_what_doing_nothing_earns(records):
    fails = FixedJudge(False)
    earned = {
        (name, judge.answer): sum(
            [(await do_nothing(tau2.domain(name), t, judge=judge)).reward for t in tau2.tasks(name)]
        )
        for name in RECORDED
        for judge in (PASSES, fails)
    }
    assert earned == {
        ("retail", True): 11, ("retail", False): 6, ("airline", True): 23, ("airline", False): 23,
        ("telecom", True): 0, ("telecom", False): 0,
    }  # fmt: skip


@data
@pytest.mark.parametrize("name", RECORDED)
def test_every_tool_result_of_the_gold_trajectories_word_for_word(records, trajectories, name):
    domain, count = tau2.domain(name), 0
    for row in trajectories[name]:
        world = domain.world(tau2.task(name, row["id"]))
        results = {m["id"]: m for m in row["messages"] if m["role"] == "tool"}
        for call in (c for m in row["messages"] for c in m.get("tool_calls") or []):
            result = world.call(call["requestor"], ToolCall.from_json(call))
            wanted = results[call["id"]]
            assert (result.content, result.error) == (wanted["content"], wanted["error"])
            count += 1
        assert hashes_of(world) == records[name][row["id"]]["live_hash"]
    assert count > 100


@data
@pytest.mark.parametrize("name", ["retail", "airline"])
def test_gold_trajectories_pass_with_fixed_semantics_too(records, trajectories, name):
    official = tau2.domain(name)
    fixed = type(official)(database=official.base, policy="")
    for row in trajectories[name]:
        world = fixed.world()
        calls = [ToolCall.from_json(c) for m in row["messages"] for c in m.get("tool_calls") or []]
        results = [(call.name, world.call("assistant", call)) for call in calls]
        wrong = [f"{called}: {result.content}" for called, result in results if result.error]
        assert wrong == records[name][row["id"]]["live_errors"]


@data
async def test_telecoms_gold_actions_earn_the_reward_in_all_tasks(official_tau2):
    tasks, official = tau2.tasks("telecom", "full"), tau2.domain("telecom")
    assert len(tasks) == 2285
    for semantics, step in (("official", 1), ("fixed", 10)):
        played = Telecom(database=official.base, phone=official.toolkit("user").base, policy="-", semantics=semantics)
        for task in tasks[::step]:
            live = played.world(task)
            calls = tuple(ToolCall("", a.name, a.arguments, a.requestor) for a in task.actions)
            for call in calls:
                live.call(call.requestor, call)
            verdict = await score(task, live, [Message("assistant", tool_calls=calls)], "user_stop")
            assert verdict.reward == 1.0, (task.id, semantics, verdict)


@data
@pytest.mark.parametrize("name", RECORDED)
def test_scoring_the_gold_trajectories_gives_the_recorded_rewards(records, trajectories, tmp_path, name):
    source = tmp_path / "in.jsonl"
    with open(source, "w", encoding="utf-8") as out:
        for row in trajectories[name]:
            out.write(json.dumps({**row, "task_id": row["id"], "termination_reason": "user_stop"}) + "\n")
    bench.score("tau2", source, tmp_path / "out.jsonl", "pass", details=True)
    for row in lines(tmp_path / "out.jsonl"):
        recorded, met = records[name][row["task_id"]], row["criteria"]
        assert (row["reward"], row["breakdown"]) == (recorded["reward"], recorded["breakdown"])
        assert met["db"] == recorded["db_match"]
        assert (met["env_assertions"], met["actions"], met["communicate"]) == (
            recorded["env_assert"],
            recorded["action_match"],
            recorded["comm"],
        )
    bench.score("tau2", source, tmp_path / "out.jsonl", "fail")
    failed = {r["task_id"] for r in lines(tmp_path / "out.jsonl") if r["reward"] == 0.0}
    assert failed == {i for i, r in records[name].items() if r["n_nl"] and "NL_ASSERTION" in r["basis"]}


@data
@pytest.mark.parametrize("name", ["telecom", "mock"])
def test_a_command_replays_calls_on_official_tasks(official_tau2, records, tmp_path, name):
    task = tau2.tasks(name)[0]
    calls = [{"requestor": "assistant", "name": "get_users", "arguments": {}}]
    row = {"task_id": task.id, "calls": calls}
    (tmp_path / "in.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    bench.replay("tau2", tmp_path / "in.jsonl", tmp_path / "out.jsonl", domain=name)
    (answered,) = lines(tmp_path / "out.jsonl")
    if name == "telecom":
        assert [answered["agent_hash"], answered["user_hash"]] == records[name][task.id]["init_hash"]
        assert answered["calls"][0]["content"] == "Error: Tool 'get_users' not found."
    else:
        assert answered["user_hash"] is not None and not answered["calls"][0]["error"]


# For each task of mock what the original code makes of it: the first digits of both sides' hashes at the start and
# after the gold actions, and the reward of these actions with and without them. None: the evaluation breaks off.
MOCK = {
    "create_task_1": (("107f83", "4cf3d2"), ("3b8258", "4cf3d2"), 1.0, 0.0),
    "create_task_1_with_env_assertions": (("107f83", "4cf3d2"), ("3b8258", "4cf3d2"), 1.0, None),
    "create_task_1_nl_eval": (("107f83", "4cf3d2"), ("107f83", "4cf3d2"), 1.0, 1.0),
    "update_task_1": (("107f83", "4cf3d2"), ("b1f6b6", "4cf3d2"), 1.0, 0.0),
    "update_task_with_message_history": (("107f83", "4cf3d2"), ("4d5107", "4cf3d2"), 1.0, 0.0),
    "update_task_with_initialization_data": (("7229fa", "7229fa"), ("4d5107", "4d5107"), 0.0, 0.0),
    "update_task_with_initialization_actions": (("7229fa", "4cf3d2"), ("4d5107", "4cf3d2"), 1.0, 0.0),
    "update_task_with_history_and_env_assertions": (("107f83", "4cf3d2"), ("7229fa", "4cf3d2"), 0.0, 0.0),
    "update_task_with_user_tools": (("107f83", "4cf3d2"), ("b1f6b6", "4cf3d2"), 0.0, 0.0),
    "impossible_task_1": (("107f83", "4cf3d2"), ("107f83", "4cf3d2"), 1.0, 0.0),
}


@data
async def test_mocks_tasks_are_set_up_and_scored_as_by_the_original(official_tau2):
    domain = tau2.domain("mock")
    assert set(MOCK) == {t.id for t in tau2.tasks("mock")}
    for task in tau2.tasks("mock"):
        start, gold, solved, idle = MOCK[task.id]

        def hashes(world):
            return world.full_hash("assistant")[:6], world.full_hash("user")[:6]

        assert (hashes(domain.world(task)), hashes(gold_world(domain, task))) == (start, gold)
        world, talk = domain.world(task), list(task.history)
        replay(world, task.history)
        for number, action in enumerate(task.actions or ()):
            call = ToolCall(str(number), action.name, action.arguments, action.requestor)
            answer = world.call(action.requestor, call).content
            talk += [Message(action.requestor, None, (call,)), Message("tool", answer, tool_call_id=call.id)]
        assert (await score(task, world, talk, "user_stop", judge=PASSES)).reward == solved
        if idle is None:
            with pytest.raises(InfrastructureError, match="Task task_2 not found"):
                await do_nothing(domain, task, judge=PASSES)
        else:
            assert (await do_nothing(domain, task, judge=PASSES)).reward == idle
