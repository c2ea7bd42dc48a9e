"""TAU1's official tasks and scoring: on a tiny installation, and against records of the original code."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pytest

from muarl.basics.errors import DataError
from muarl.records.reading import read
from muarl.rewards.gold import gold_digest, gold_world
from muarl.rewards.replay import ReplayError
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import StopReason
from muarl.users.guidelines import load_guidelines
from muarl_worlds import data, install
from muarl_worlds.tau import tau1_benchmark as tau1

ADDRESS = {"address1": "2 Oak St", "address2": "", "city": "Reno", "state": "NV", "country": "USA", "zip": "89501"}
MOVE = {"name": "modify_user_address", "kwargs": {"user_id": "ann_1", **ADDRESS}}
TABLES = {
    "retail": {"orders": {}, "products": {}, "users": {"ann_1": {"email": "a@b.c", "address": {}}}},
    "airline": {"flights": {}, "reservations": {}, "users": {"bo_1": {"payment_methods": {}}}},
}


def row(*actions, outputs=(), user_id="ann_1"):
    return {"user_id": user_id, "instruction": "Move house.", "actions": list(actions), "outputs": list(outputs)}


TASKS = {
    "retail/tasks_test": [row(MOVE), row(MOVE, outputs=["1200", "Oak st"]), row(outputs=["x"])],
    "retail/tasks_train": [row()],
    "retail/tasks_dev": [row(MOVE), row()],
    "airline/tasks_test": [
        row({"name": "send_certificate", "kwargs": {"user_id": "bo_1", "amount": 5}}, user_id="bo_1")
    ],
}


@pytest.fixture
def small(tmp_path_factory):
    """A tiny installation in the form of TAU1's."""
    root = tmp_path_factory.mktemp("tau1")
    texts = {f"{name}.json": json.dumps(rows) for name, rows in TASKS.items()}
    for name, tables in TABLES.items():
        texts[f"{name}/wiki.md"] = f"# {name.capitalize()} policy"
        texts |= {f"{name}/data/{table}.json": json.dumps(records) for table, records in tables.items()}
    for name, text in texts.items():
        (root / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "source" / name).write_text(text)
    files = {n: {"sha256": hashlib.sha256(t.encode()).hexdigest(), "bytes": len(t)} for n, t in texts.items()}
    manifest = {"name": "tau1", "repository": "o/r", "commit": "c" * 40, "folder": "envs", "files": files}
    (root / "manifests").mkdir()
    (root / "manifests" / "tau1.json").write_text(json.dumps(manifest))
    patch = pytest.MonkeyPatch()
    patch.setattr(data, "_MANIFESTS", root / "manifests")
    patch.setenv("MUARL_DATA", str(root / "home"))
    data.manifest.cache_clear()
    install.add("tau1", root / "source")
    yield
    patch.undo()
    data.manifest.cache_clear()


def call(name, arguments, identity="c1"):
    return Message("assistant", None, (ToolCall(identity, name, arguments),))


def answer(content, identity="c1"):
    return Message("tool", content, tool_call_id=identity)


HI, STOP = Message("user", "Hi"), Message("user", "###STOP###")
MOVED = (call("modify_user_address", MOVE["kwargs"]), answer(json.dumps({"email": "a@b.c", "address": ADDRESS})))


def test_tasks_splits_and_ids(small):
    assert [t.id for t in tau1.tasks("retail")] == ["test/0", "test/1", "test/2"]
    assert [t.id for t in tau1.tasks("retail", None)][-3:] == ["train/0", "dev/0", "dev/1"]
    assert {k: len(v) for k, v in tau1.splits("retail").items()} == {"test": 3, "train": 1, "dev": 2}
    assert list(tau1.splits("airline")) == ["test"] and tau1.DOMAINS == ("retail", "airline")
    task = tau1.task("retail", "test/1")
    assert (task.scenario, task.benchmark, task.reward_basis) == ("Move house.", True, ("DB", "COMMUNICATE"))
    assert task.communicate_info == ("1200", "Oak st") and task.tags["split"] == "test"
    for same in ("test-1", "1", 1, "test/01"):
        assert tau1.task("retail", same) is task
    assert tau1.task("retail", 1, split="dev").id == "dev/1" and tau1.task("retail", "dev/1", split="dev").id == "dev/1"
    for wrong in ("test/3", "validation/0", "x", "-1", "", "test/", "1.0", "9" * 40, None, True, "²", "test/0\n"):
        with pytest.raises(DataError, match="retail has no such task"):
            tau1.task("retail", wrong)
    with pytest.raises(DataError, match="no such task in train"):
        tau1.task("retail", "dev/0", split="train")
    with pytest.raises(DataError, match="airline has no split 'train'; it has test"):
        tau1.tasks("airline", "train")
    for use in (tau1.domain, tau1.tasks, tau1.splits):
        with pytest.raises(DataError, match="domain 'telecom': tau1 has retail, airline"):
            use("telecom")


@pytest.mark.parametrize(
    ("line", "task_id"),
    [
        ({"task_id": "dev/1"}, "dev/1"),
        ({"task_id": 4}, 4),
        ({"task_id": 4, "split": "dev"}, "dev/4"),
        ({"task_id": "4", "split": "train"}, "train/4"),
        ({"split": "test", "i": 7}, "test/7"),
        ({"split": "test", "i": 7, "task_id": None}, None),
        ({}, None),
    ],
)
def test_lines_may_name_a_task_by_split_and_number(line, task_id):
    assert tau1.task_id_of(line) == task_id


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"outputs": None}, "is malformed"),
        ({"outputs": [3]}, "instruction and outputs must be text"),
        ({"actions": [{"name": "x"}]}, "it lacks the field 'kwargs'"),
        ({"actions": [{"name": "x", "kwargs": []}]}, "an action has a name and an object kwargs"),
    ],
)
def test_a_malformed_task_is_named(change, part):
    with pytest.raises(DataError, match=f"tau1 retail task 'test/0'.*{part}"):
        tau1.task_from_json({**row(), **change}, "retail", "test/0")
    with pytest.raises(DataError, match="malformed"):
        tau1.task_from_json([], "retail", "test/0")


def test_domain_policy_and_prompts(small):
    domain = tau1.domain("airline")
    assert domain.semantics == "official" and tau1.agent_prompt(domain.policy_text) == "# Airline policy"
    assert tau1.domain("retail", tools=["think"], semantics="fixed").tool_names() == ("think",)
    user = load_guidelines("tau1").system_prompt("Move {house}.")
    assert user.startswith("You are a user interacting with an agent.\n\nInstruction: Move {house}.\n\nRules:\n- Just")
    assert tau1.MAX_STEPS == 30 and tau1.STOP_WORD in user


def test_the_database_and_what_was_said_are_scored(small):
    domain, plain, wordy = tau1.domain("retail"), tau1.task("retail", 0), tau1.task("retail", 1)

    def scored(task, *messages, stop=StopReason.USER_STOP):
        verdict = tau1.score_trajectory(domain, task, (HI, *messages, STOP), stop)
        return verdict.reward, dict(verdict.breakdown)

    assert scored(plain, *MOVED) == (1.0, {"DB": 1.0}) and scored(plain) == (0.0, {"DB": 0.0})
    told = Message("assistant", "That is $1,200 at OAK ST.")
    assert scored(wordy, *MOVED, told) == (1.0, {"DB": 1.0, "COMMUNICATE": 1.0})
    assert scored(wordy, told) == (0.0, {"DB": 0.0, "COMMUNICATE": 1.0})
    beside = (Message("assistant", "1200 Oak st", MOVED[0].tool_calls), MOVED[1])
    assert scored(wordy, *beside) == (0.0, {"DB": 1.0, "COMMUNICATE": 0.0})
    assert scored(wordy, *MOVED, Message("user", "1200 Oak st"), Message("assistant", "1200 oak")) == (
        0.0,
        {"DB": 1.0, "COMMUNICATE": 0.0},
    )
    greeted = (Message("assistant", "1200 Oak st"), HI, *MOVED, STOP)  # the greeting is no answer of the agent's
    assert tau1.score_trajectory(domain, wordy, greeted, "user_stop").breakdown["COMMUNICATE"] == 0.0
    for stop in (StopReason.MAX_TURNS, "max_steps", "unexpected_error", StopReason.TOOL_ERRORS):
        assert scored(plain, *MOVED, stop=stop) == (0.0, {})


def test_where_it_ended_is_told_from_the_messages(small):
    domain, task = tau1.domain("retail"), tau1.task("retail", 0)

    def reward(*messages):
        return tau1.score_trajectory(domain, task, messages).reward

    again = Message("assistant", "Done.")
    transfer = call("transfer_to_human_agents", {"summary": "x"}, "c2")
    assert reward(HI, *MOVED, again, STOP) == 1.0 and reward(HI, *MOVED, again, HI) == 0.0
    assert reward(STOP, *MOVED, again, HI) == 0.0 and reward(HI, *MOVED, STOP) == 0.0  # neither answers the agent
    assert reward(HI, *MOVED, transfer, answer("Transfer successful", "c2")) == 1.0
    assert reward(HI, *MOVED, transfer) == 1.0
    assert reward(HI, transfer, answer("Transfer successful", "c2"), *MOVED, again, STOP) == 0.0  # too late


def test_a_conversation_that_does_not_replay(small):
    domain, task = tau1.domain("retail"), tau1.task("retail", 0)
    other = (MOVED[0], answer("Error: user not found"))
    with pytest.raises(ReplayError, match="modify_user_address now answers .* but the recorded answer is 'Error: user"):
        tau1.score_trajectory(domain, task, (HI, *other, STOP), "user_stop")
    verdict = tau1.score_trajectory(domain, task, (HI, *other, STOP), "user_stop", strict=False)
    assert verdict.reward == 1.0 and verdict.note == "1 tool answers otherwise than recorded"
    spaced = (MOVED[0], answer(json.dumps(json.loads(MOVED[1].content), indent=2)))
    assert tau1.score_trajectory(domain, task, (HI, *spaced, STOP), "user_stop").reward == 1.0
    with pytest.raises(ReplayError, match="no tool message follows it"):
        tau1.score_trajectory(domain, task, (HI, MOVED[0], STOP), "user_stop")
    with pytest.raises(ReplayError, match="'c1' is followed by the result of 'c9'"):
        tau1.score_trajectory(domain, task, (HI, MOVED[0], answer("x", "c9"), STOP), "user_stop")


def test_a_tool_that_gives_no_text_ends_it_with_nothing(small):
    domain, task = tau1.domain("airline"), tau1.task("airline", 0)
    send = task.actions[0].arguments
    sent = [
        m
        for n in range(4)
        for m in (
            call("send_certificate", send, f"c{n}"),
            answer(f"Certificate certificate_{3221322 + n} added to user bo_1 with amount 5.", f"c{n}"),
        )
    ]
    assert tau1.score_trajectory(domain, task, (HI, *sent[:2], STOP), "user_stop").reward == 1.0
    verdict = tau1.score_trajectory(domain, task, (HI, *sent, STOP), "user_stop")
    assert verdict.reward == 0.0 and "breaks off" in verdict.note


def test_a_recorded_run_finds_its_task(small, tmp_path):
    def entry(index, given=None, name="modify_user_address"):
        call = {"id": "c", "function": {"name": name, "arguments": json.dumps(MOVE["kwargs"])}}
        traj = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
        return {"task_id": index, "traj": traj, "info": {} if given is None else {"task": given}}

    rows = [entry(1), entry(1, row()), entry(0, row()), entry(9), entry(0, name="think"), entry(0, row(user_id="z"))]
    (tmp_path / "run.json").write_text(json.dumps(rows))
    runs = list(read(tmp_path / "run.json"))
    assert tau1.recorded_task(runs[0]).id == "test/1" and tau1.recorded_task(runs[0], split="dev").id == "dev/1"
    assert tau1.recorded_task(runs[1]).id == "dev/1" and tau1.recorded_task(runs[2]).id == "train/0"
    assert tau1.recorded_task(runs[5]).id == "test/0"
    with pytest.raises(DataError, match=r"run\.json, entry 3: task_id 9"):
        tau1.recorded_task(runs[3])
    with pytest.raises(DataError, match=r"entry 4: nothing in it tells the domain; name one of retail, airline"):
        tau1.recorded_task(runs[4])
    assert tau1.recorded_task(runs[4], domain_name="airline").domain == "airline"


def test_without_the_data_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    for use in (tau1.domain, tau1.tasks, tau1.splits):
        with pytest.raises(DataError, match="muarl data add tau1 --from DIR"):
            use("retail")


@pytest.fixture(scope="module")
def records(shared_data, module_data):
    """The original's results, one for each task, with the official data installed."""
    module_data("tau1")
    with open(shared_data / "oracle" / "tau1_gold_replay.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {(r["domain"], r["split"], r["i"]): r for r in rows}


@pytest.mark.data
def test_official_tasks_and_policies(records):
    counts = Counter((domain, split) for domain, split, _ in records)
    assert counts == {
        ("retail", "test"): 115, ("retail", "train"): 500, ("retail", "dev"): 20, ("airline", "test"): 50
    }  # fmt: skip
    for (name, split), count in counts.items():
        tasks = tau1.tasks(name, split)
        assert len(tasks) == count and [t.id for t in tasks] == [f"{split}/{i}" for i in range(count)]
    assert tau1.domain("retail").policy_text.startswith("# Retail agent policy\n")
    assert tau1.domain("airline").policy_text.startswith("# Airline Agent Policy\n")


@pytest.mark.data
@pytest.mark.parametrize("name", tau1.DOMAINS)
def test_every_gold_replay_is_the_originals(records, name):
    domain = tau1.domain(name)
    mine = {key: r for key, r in records.items() if key[0] == name}
    for record in mine.values():
        task = tau1.task(name, tau1.task_id_of(record))
        world, errors = domain.world(task), []
        assert world.full_hash() == record["init"] and list(task.communicate_info) == record["outputs"]
        for action in task.actions:
            result = world.call("assistant", ToolCall("", action.name, action.arguments))
            errors += [f"{action.name}: {result.content}"] if result.error else []
        assert (len(task.actions), errors, world.full_hash()) == (record["n"], record["errors"], record["live"])
        assert world.digest() == gold_digest(domain, task)
        said = [HI, Message("assistant", " and ".join(record["outputs"]))]
        assert tau1.score(task, world, said).reward == record["reward"]
        assert tau1.score(task, domain.world(task), ()).reward == record["control"]


@pytest.mark.data
@pytest.mark.parametrize("name", tau1.DOMAINS)
def test_gold_actions_pass_the_checks_of_fixed_semantics(records, name):
    """A gold action fails in "fixed" semantics exactly if it fails in the original."""
    domain, official = tau1.domain(name, semantics="fixed"), tau1.domain(name)
    for task in tau1.tasks(name, None):
        world, other = domain.world(task), official.world(task)
        for action in task.actions:
            asked = ToolCall("", action.name, action.arguments)
            mended, original = world.call("assistant", asked), other.call("assistant", asked)
            assert mended.error == original.error and (not mended.error or mended.content == original.content)
        assert world.digest() == gold_world(domain, task).digest()
