"""Generated shop tasks: right, and not the benchmark's. What all generators have in common: test_generators.py."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.chat import ToolCall
from muarl.domains.drawing import split_of
from muarl.domains.generated import SPLITS
from muarl.domains.retail import generator
from muarl.domains.retail.domain import Retail
from muarl.domains.retail.generated import TINY_TOOLS, generated_retail
from muarl.domains.retail.generator import KINDS, PERSONAS, combination, make_task
from muarl.domains.retail.shop import SIZES
from muarl.domains.retail.wishes import WRITES
from support.generated import agenda_task, made

ALL_SIZES = ("tiny", "small", "medium", "official")


def names(task):
    return [a.name for a in task.actions]


def writes(task):
    return [a for a in task.actions if a.name in WRITES.values()]


def check_task(task, split, size):
    """Everything that must hold of any generated task, recomputed from its parts."""
    agenda, tables = task.agenda, task.database
    assert task.domain == "retail" and not task.benchmark and task.scenario
    who, requests = agenda["identity"], agenda["requests"]
    assert 1 <= len(requests) <= 2 and agenda["persona"] in PERSONAS
    assert split_of(who["first_name"], who["last_name"]) == split == task.tags["split"]
    assert agenda["wrong_zip"] != who["zip"]
    world = generated_retail(size).world(task)
    untouched = world.digest()
    for action in task.actions:
        result = world.call("assistant", ToolCall("", action.name, action.arguments))
        assert not result.error, (task.id, action, result.content)
    wanted = writes(task)
    assert [w.name for w in world.writes] == [a.name for a in wanted]
    assert (world.digest() != untouched) == bool(wanted), "the database changes exactly when a write is expected"
    if size == "tiny":
        assert set(names(task)) <= set(TINY_TOOLS)
    orders = []
    for request in requests:
        wish = request["wish"]
        assert request["kind"] in (*WRITES, "question", "outside")
        assert request["unknown"] in ([], ["order_id"]) and (not request["unknown"] or "described" in wish)
        assert not (request["then"] and request["fallback"])
        for slot in ("then", "fallback"):
            later = request[slot]
            assert later is None or later.get("drop") or (later["order_id"] == wish["order_id"] and later != wish)
        if "to" in wish and request["intent"] != "forbidden":
            assert split_of("swap", wish["items"][0], wish["to"][0]) == split
        orders.append(wish.get("order_id"))
        if request["kind"] != "outside":
            mine = world.toolkit().db["orders"].peek(wish["order_id"])
            assert mine["user_id"] == who["user_id"]
            assert set(wish.get("items", ())) <= {i["name"] for i in mine["items"]}
    assert len(set(orders)) == len(orders), "two requests are about two orders"
    answers = tuple(r["answer"] for r in requests if r["answer"] is not None)
    assert task.communicate_info == answers
    outside = requests[0]["kind"] == "outside"
    assert task.reward_basis == (("DB", "ACTION") if outside else ("DB", "COMMUNICATE") if answers else ("DB",))
    assert ("transfer_to_human_agents" in names(task)) == outside
    forbidden = requests[0]["intent"] == "forbidden"
    assert task.tags["feasible"] is not forbidden and (wanted or answers or forbidden or outside)
    assert task.tags["intent"] == (requests[0]["intent"] if len(requests) == 1 else "two_requests")
    hard = [
        len(requests) > 1,
        any(r["then"] for r in requests),
        any(r["fallback"] for r in requests),
        any(r["unknown"] for r in requests),
        agenda["wrong_zip"] is not None,
    ]
    assert task.tags["difficulty"] == 1 + sum(hard)
    assert tables is not None


@pytest.mark.parametrize("size", ALL_SIZES)
@pytest.mark.parametrize("split", SPLITS)
def test_tasks_of_every_size_and_split_are_sound(size, split):
    for task in made(size, split, 40):
        check_task(task, split, size)


@given(st.integers(-(2**40), 2**40), st.sampled_from(SPLITS), st.integers(0, 10**6), st.sampled_from(["tiny", "small"]))
@settings(max_examples=40)
def test_any_seed_split_and_number_gives_a_sound_task(seed, split, index, size):
    check_task(make_task(split, index, size=size, seed=seed), split, size)


def test_a_shop_is_shared_by_the_tasks_that_fit_into_it():
    tasks = made("small", "train", 40)
    assert len({id(t.database) for t in tasks}) == 1 and SIZES["small"].tasks_per_shop == 40
    assert len({id(t.database) for t in made("tiny", "train", 40)}) == 40


# splits


def test_every_name_and_swap_has_one_split_and_each_split_gets_its_share():
    counts = Counter(split_of("caller", str(n)) for n in range(4000))
    assert counts["train"] / 4000 == pytest.approx(0.8, abs=0.03)
    assert counts["validation"] / 4000 == pytest.approx(0.1, abs=0.03)
    assert set(counts) == set(SPLITS)


def test_a_combination_is_only_defined_for_generated_tasks():
    task = agenda_task()
    assert combination(task) == ("Mia Berg",)
    with pytest.raises(ValueError, match="was not generated"):
        combination(type(task)("x", "retail", "", None))


@pytest.mark.data
def test_no_generated_task_is_an_official_one(shared_data):
    rows = json.loads((shared_data / "tau2/domains/retail/tasks.json").read_text(encoding="utf-8"))
    tools = set(WRITES.values())

    def keys(actions):
        return tuple(sorted(n + json.dumps(a, sort_keys=True) for n, a in actions if n in tools))

    official_writes, official_calls, official_plans = set(), set(), set()
    for row in rows:
        actions = [(a["name"], a["arguments"]) for a in (row.get("evaluation_criteria") or {}).get("actions") or []]
        official_writes.add(keys(actions))
        official_calls |= set(keys(actions))
        told = json.dumps(row["user_scenario"]).lower()
        official_plans.add((tuple(n for n, _ in actions), told))
    for size in ALL_SIZES:
        for split in SPLITS:
            for task in made(size, split, 150):
                mine = keys((a.name, dict(a.arguments)) for a in task.actions)
                assert not mine or mine not in official_writes, task.id
                assert not set(mine) & official_calls, task.id
                who = task.agenda["identity"]
                caller = f"{who['first_name']} {who['last_name']}".lower()
                plan = tuple(names(task))
                assert not any(caller in told and plan == theirs for theirs, told in official_plans), task.id


# what tasks are like


def test_every_intent_has_its_share():
    tasks = made("small", "train", 600)
    first = Counter()
    for task in tasks:
        request = task.agenda["requests"][0]
        first["forbidden" if request["intent"] == "forbidden" else request["kind"]] += 1
    for kind, share in KINDS.items():
        assert first[kind] / len(tasks) == pytest.approx(share, abs=0.05), kind
    intents = Counter(t.tags["intent"] for t in tasks)
    assert {"exchange_unavailable", "modify_items_unavailable", "two_requests"} <= set(intents)
    assert intents["two_requests"] / len(tasks) == pytest.approx(generator.SECOND_REQUEST * 0.88, abs=0.06)
    assert 0.2 < sum(t.tags["changes_mind"] for t in tasks) / len(tasks) < 0.5
    assert 0.05 < sum(t.agenda["wrong_zip"] is not None for t in tasks) / len(tasks) < 0.2
    assert 0.04 < sum(any(r["unknown"] for r in t.agenda["requests"]) for t in tasks) / len(tasks) < 0.2
    personas = Counter(t.tags["persona"] for t in tasks)
    assert all(personas[p] / len(tasks) == pytest.approx(0.25, abs=0.07) for p in PERSONAS)
    assert {1, 2, 3} <= {t.tags["difficulty"] for t in tasks}


def test_the_scenario_tells_an_llm_user_all_that_matters():
    for task in made("small", "test", 60):
        who = task.agenda["identity"]
        assert f"{who['first_name']} {who['last_name']}" in task.scenario and who["zip"] in task.scenario
        for request in task.agenda["requests"]:
            wishes = [request["wish"], request["then"], request["fallback"]]
            for wish in (w for w in wishes if w and not w.get("drop")):
                for slot in ("items", "to"):
                    assert all(v in task.scenario for v in wish.get(slot, ()))
                assert wish.get("reason", "") in task.scenario
                assert ("order_id" not in wish) or request["unknown"] or wish["order_id"] in task.scenario
            if request["unknown"]:
                assert request["wish"]["order_id"] not in task.scenario
            if any(w and w.get("drop") for w in wishes):
                assert "you drop this wish" in task.scenario
        if task.agenda["wrong_zip"]:
            assert task.agenda["wrong_zip"] in task.scenario


def test_the_gold_actions_run_on_the_benchmarks_own_semantics_to_the_same_state():
    official = Retail(database={}, policy="", semantics="official")
    for task in made("small", "validation", 40):
        ends = []
        for domain in (official, generated_retail("small")):
            world = domain.world(task)
            assert not any(world.call("assistant", ToolCall("", a.name, a.arguments)).error for a in task.actions)
            ends.append(world.digest())
        assert ends[0] == ends[1]
