"""Generated phone and travel tasks: deterministic, solvable, disjoint by split, unlike the benchmark."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.chat import ToolCall
from muarl.commands.generate import task_row
from muarl.domains.acebench import catalogue
from muarl.domains.acebench.generated import TINY_TOOLS, generated_acebench
from muarl.domains.acebench.generator import FAMILIES, PERSONAS, combination, make_task
from muarl.domains.acebench.gold import TRANSFER, WRITES
from muarl.domains.acebench.phone import CAPACITY
from muarl.domains.acebench.reading import refusal
from muarl.domains.acebench.wishes import kinds, request_key
from muarl.domains.acebench.worlds import SIZES
from muarl.domains.drawing import split_of
from muarl.domains.generated import SPLITS, generated
from support.acebench import agenda_task, expert, made, play

ALL_SIZES = ("tiny", "small", "medium", "official")


def names(task):
    return [a.name for a in task.actions]


def state(task):
    return task.initial_data["state"]


def me(task):
    return task.agenda["identity"].get("user_id", task.agenda["identity"]["name"])


def check_task(task, split, size):
    """Everything that must hold of any generated task, recomputed from its parts."""
    agenda, domain = task.agenda, generated_acebench(size)
    assert task.domain == "acebench" and not task.benchmark and task.scenario and task.tags["language"] == "en"
    who, requests = agenda["identity"], agenda["requests"]
    assert 1 <= len(requests) <= 2 and agenda["persona"] in PERSONAS
    offered = {t.name for t in domain.specs_for(task)}
    world = domain.world(task)
    untouched = world.digest()
    for action in task.actions:
        assert action.name in offered
        result = world.call("assistant", ToolCall("", action.name, action.arguments))
        assert not result.error and refusal(result.content) is None, (task.id, action, result.content)
    changing = [a.name for a in task.actions if domain.kind_of(a.name) == "write"]
    assert [w.name for w in world.writes] == changing, "every gold write changes something"
    assert (world.digest() != untouched) == bool(changing)
    if task.tags["family"] == "phone":
        account = state(task)["FoodPlatform"]["users"][who["name"]]
        assert len(state(task)["MessageApi"]["inbox"]) <= CAPACITY
    else:
        account = state(task)["Travel"]["users"][who["user_id"]]
    assert account["password"] == who["password"] != agenda["wrong_password"]
    for request in requests:
        wish = request["wish"]
        assert split_of(*request_key(me(task), request["kind"], wish)) == split == task.tags["split"]
        assert not (request["then"] and request["fallback"])
        assert set(request["unknown"]) <= set(wish)
        for later in (request["then"], request["fallback"]):
            assert later is None or later.get("drop") or (set(later) == set(wish) and later != wish)
    assert len({r["kind"] for r in requests}) == len(requests)
    answers = tuple(r["answer"] for r in requests if r["answer"] is not None)
    assert task.communicate_info == answers
    transfer = any(r["intent"] in ("outside", "flown") for r in requests)
    assert task.reward_basis == (("DB", "ACTION") if transfer else ("DB", "COMMUNICATE") if answers else ("DB",))
    assert (TRANSFER in names(task)) == transfer
    forbidden = requests[0]["intent"] == "forbidden" and len(requests) == 1
    assert task.tags["feasible"] is not forbidden and (changing or answers or forbidden or transfer)
    assert task.tags["intent"] == (requests[0]["intent"] if len(requests) == 1 else "two_requests")
    hard = [
        len(requests) > 1,
        any(r["then"] for r in requests),
        any(r["fallback"] for r in requests),
        any(r["unknown"] for r in requests),
        agenda["wrong_password"] is not None,
    ]
    assert task.tags["difficulty"] == 1 + sum(hard)


@pytest.mark.parametrize("size", ALL_SIZES)
@pytest.mark.parametrize("split", SPLITS)
def test_tasks_of_every_size_and_split_are_sound(size, split):
    for task in made(size, split, 60):
        check_task(task, split, size)


@given(st.integers(-(2**40), 2**40), st.sampled_from(SPLITS), st.integers(0, 10**6), st.sampled_from(ALL_SIZES))
@settings(max_examples=30)
def test_any_seed_split_and_number_gives_a_sound_task(seed, split, index, size):
    check_task(make_task(split, index, size=size, seed=seed), split, size)


def test_the_domain_is_found_by_its_name():
    world = generated("acebench-generated")
    assert world.sizes == ALL_SIZES and world.name == "acebench-generated"
    assert set(world.domain("tiny").tool_names()) == {*TINY_TOOLS, TRANSFER}
    assert len(world.domain("tiny").policy_text) < 1200 < len(world.domain("small").policy_text)
    assert task_row(world.tasks("test", 1)[0]) == task_row(made("tiny", "test", 60)[0])


def test_each_family_has_its_own_tools_and_policy():
    domain = generated_acebench("official")
    by_family = {t.tags["family"]: t for t in made("official", "test", 60)}
    tools = {name: {t.name for t in domain.specs_for(task)} for name, task in by_family.items()}
    assert tools["phone"] & tools["travel"] == {TRANSFER}
    assert {"send_message", "add_reminder", "check_balance", "turn_on_wifi"} <= tools["phone"]
    assert {"reserve_flight", "find_transfer_flights"} <= tools["travel"]
    assert not tools["travel"] & {"authenticate_user", "update_balance", "process_refund"}
    policies = {name: domain.policy_for(task) for name, task in by_family.items()}
    assert "Wi-Fi" in policies["phone"] and "Wi-Fi" not in policies["travel"]
    tiny = generated_acebench("tiny")
    assert len({tiny.policy_for(t) for t in made("tiny", "test", 60)}) == 1


def test_thousands_of_worlds_of_one_task_do_not_touch_each_other():
    domain = generated_acebench("small")
    for task in made("small", "train", 60)[:10]:
        before = json.dumps(task.initial_data)
        worlds = [domain.world(task) for _ in range(20)]
        for action in task.actions:
            worlds[0].call("assistant", ToolCall("", action.name, action.arguments))
        assert len({w.digest() for w in worlds[1:]}) == 1
        assert json.dumps(task.initial_data) == before


# splits


def test_a_combination_is_only_defined_for_generated_tasks():
    task = agenda_task()
    assert combination(task) == ()
    with pytest.raises(ValueError, match="was not generated"):
        combination(type(task)("x", "acebench", "", None))


@pytest.mark.data
def test_no_generated_task_is_an_official_one(shared_data):
    """Nobody and nothing of the benchmark's worlds and tasks stands in ours: not a name, a dish, a flight or a call."""
    folder = shared_data / "acebench"
    questions, calls = [], set()
    for path in sorted(folder.rglob("data_agent_multi_*.json")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "question" in row:
                questions.append(row["question"])
            calls |= {c.strip().strip("[]") for c in _flat(row.get("mile_stone", []))}
    assert len(questions) == 100 and len(calls) > 50
    worlds = [
        json.loads((Path(catalogue.__file__).parent / f"world_{lang}.json").read_text(encoding="utf-8"))
        for lang in ("en", "zh")
    ]
    theirs = {n for w in worlds for n in w["MessageApi"]["user_list"]} | {
        f["flight_no"] for w in worlds for f in w["Travel"]["flights"]
    }
    theirs |= {n for w in worlds for n in w["FoodPlatform"]["merchant_list"]}
    theirs |= {d["product"] for w in worlds for m in w["FoodPlatform"]["merchant_list"].values() for d in m["menu"]}
    theirs |= {f[end] for w in worlds for f in w["Travel"]["flights"] for end in ("origin", "destination")}
    writes = {*WRITES.values()}
    for size in ALL_SIZES:
        for split in SPLITS:
            for task in made(size, split, 60):
                said = json.dumps([task.scenario, task.initial_data], ensure_ascii=False)
                words = set(re.findall(r"[\w']+", said))
                assert not words & {n for n in theirs if " " not in n}, task.id
                assert not any(n in said for n in theirs if " " in n), task.id
                assert task.scenario not in questions
                for a in task.actions:
                    text = f"{a.name}({', '.join(f'{k}={v!r}' for k, v in a.arguments.items())})"
                    # A message's number alone says nothing of a task.
                    assert a.name not in writes - {"delete_message"} or text not in calls


def _flat(milestones):
    return [c for m in milestones for c in (m if isinstance(m, list) else [m])]


# what tasks are like


@pytest.mark.parametrize("size", ["tiny", "official"])
def test_every_kind_has_its_share(size):
    tasks = made(size, "train", 400)
    for family, of_all in FAMILIES.items():
        mine = [t for t in tasks if t.tags["family"] == family]
        assert len(mine) / len(tasks) == pytest.approx(of_all, abs=0.07)
        first = Counter()
        for task in mine:
            request = task.agenda["requests"][0]
            named = request["intent"] in ("forbidden", "flown", "outside", "question")
            first[request["intent"] if named else request["kind"]] += 1
        expected = Counter()
        for kind, share in kinds(family, tiny=size == "tiny").items():
            expected["question" if kind in ("note", "balance") else kind] += share
        for kind, share in expected.items():
            assert first[kind] / len(mine) == pytest.approx(share, abs=0.07), kind
    intents = Counter(t.tags["intent"] for t in tasks)
    assert {"unavailable", "insufficient", "two_requests", "forbidden", "flown", "outside"} <= set(intents)
    assert 0.2 < intents["two_requests"] / len(tasks) < 0.35
    assert 0.15 < sum(t.tags["changes_mind"] for t in tasks) / len(tasks) < 0.45
    assert 0.04 < sum(t.agenda["wrong_password"] is not None for t in tasks) / len(tasks) < 0.2
    assert 0.02 < sum(any(r["unknown"] for r in t.agenda["requests"]) for t in tasks) / len(tasks) < 0.3
    personas = Counter(t.tags["persona"] for t in tasks)
    assert all(personas[p] / len(tasks) == pytest.approx(0.25, abs=0.07) for p in PERSONAS)
    assert {1, 2, 3} <= {t.tags["difficulty"] for t in tasks}


def test_every_write_tool_and_every_forbidden_wish_occurs():
    tasks = made("official", "train", 400)
    assert {n for t in tasks for n in names(t)} >= {*WRITES.values(), "login_device", "turn_on_wifi"}
    refused = {r["kind"] for t in tasks for r in t.agenda["requests"] if r["intent"] == "forbidden"}
    assert {"snoop", "lend", "fewer_bags", "destination"} <= refused
    assert refused <= {"snoop", "lend", "fewer_bags", "destination", "compensation"}


def test_some_steps_are_mentioned_by_nobody():
    """A locked device, Wi-Fi that is off and a full inbox are found out only by trying."""
    tasks = [t for t in made("small", "train", 400) if t.tags["family"] == "phone"]
    hidden = Counter(n for t in tasks for n in set(names(t)) & {"login_device", "turn_on_wifi"})
    assert all(count / len(tasks) > 0.15 for count in hidden.values()) and len(hidden) == 2
    full = [t for t in tasks if any("room" in r["wish"] for r in t.agenda["requests"])]
    assert len(full) / len(tasks) > 0.05
    for task in tasks:
        assert "Wi-Fi" not in task.scenario and "logged in" not in task.scenario


def test_the_scenario_tells_an_llm_user_all_that_matters():
    for task in made("official", "test", 60):
        who = task.agenda["identity"]
        assert all(value in task.scenario for value in who.values())
        for request in task.agenda["requests"]:
            for wish in (request["wish"], request["then"], request["fallback"]):
                if wish is None:
                    continue
                if wish.get("drop"):
                    assert "you drop this wish" in task.scenario
                    continue
                for slot in ("to", "text", "title", "date", "origin", "destination", "via", "cabin", "payment", "room"):
                    assert slot in request["unknown"] or str(wish.get(slot, "")) in task.scenario, (slot, task.scenario)
                assert "reservation_id" in request["unknown"] or wish.get("reservation_id", "") in task.scenario
        if task.agenda["wrong_password"]:
            assert task.agenda["wrong_password"] in task.scenario


def test_an_official_world_is_as_large_as_the_benchmarks():
    for task in made("official", "test", 60):
        if task.tags["family"] == "phone":
            assert len(state(task)["MessageApi"]["user_list"]) == len(state(task)["FoodPlatform"]["merchant_list"]) == 6
        else:
            assert len(state(task)["Travel"]["users"]) == 3 and len(state(task)["Travel"]["flights"]) >= 11
    assert SIZES["tiny"].people < SIZES["medium"].people < SIZES["official"].people


# what they are worth


@pytest.mark.parametrize("size", ALL_SIZES)
@pytest.mark.parametrize("split", SPLITS)
def test_the_expert_solves_every_task(size, split):
    tasks = made(size, split, 60)
    failed = [e.task_id for e in expert(tasks, size) if e.reward != 1.0]
    assert not failed


@pytest.mark.parametrize("persona", PERSONAS)
def test_the_expert_gets_along_with_every_persona(persona):
    from muarl.agents.expert import ExpertAgent
    from muarl.domains.acebench.expert import AceExpert

    agent = ExpertAgent(make=AceExpert)
    failed = [
        e.task_id
        for size in ("tiny", "official")
        for e in play(agent, made(size, "validation", 60), size, user_seed=8, persona=persona)
        if e.reward != 1.0
    ]
    assert not failed
