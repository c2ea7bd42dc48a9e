"""Generated telecom tasks: right, solvable, not TAU2's own. What generators have in common: test_generators.py."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.chat import ToolCall
from muarl.domains.drawing import split_of
from muarl.domains.generated import SPLITS
from muarl.domains.telecom import faults, generator
from muarl.domains.telecom.customers import SIZES, make_carrier
from muarl.domains.telecom.domain import Telecom
from muarl.domains.telecom.faults import FAULTS, PROBLEMS, Place, breaking, device_print, mended, mending
from muarl.domains.telecom.generated import TINY_TOOLS, generated_telecom
from muarl.domains.telecom.generator import KINDS, PERSONAS, SECOND, make_task
from muarl.domains.telecom.records import telecom_database
from muarl.domains.telecom.wishes import WRITES
from muarl.rewards.checks import asserted
from support.telecom import CARRIER, PLACE, agenda_task, made

ALL_SIZES = ("tiny", "small", "medium", "official")
KIND_OF = generated_telecom("official").kind_of


def names(task):
    return [a.name for a in task.actions]


def writes(task):
    return [a for a in task.actions if KIND_OF(a.name) == "write"]


def solved(task, world):
    return all(asserted(task, world))


def check_task(task, split, size):
    """Everything that must hold of any generated task, recomputed from its parts."""
    agenda, basis = task.agenda, set(task.reward_basis)
    assert task.domain == "telecom" and not task.benchmark and task.scenario
    who, requests = agenda["identity"], agenda["requests"]
    assert 1 <= len(requests) <= 2 and agenda["persona"] in PERSONAS
    assert split_of(*who["name"].split(" ")) == split == task.tags["split"]
    assert agenda["wrong_phone"] is None or agenda["wrong_phone"] != who["phone"]
    world = generated_telecom(size).world(task)
    untouched = world.digest()
    wanted = writes(task)
    assert ("ENV_ASSERTION" in basis) == (requests[0]["kind"] in PROBLEMS) == bool(task.env_assertions)
    assert ("DB" in basis) == ("ENV_ASSERTION" not in basis)
    transfers = "transfer_to_human_agents" in names(task)
    assert transfers == ("ACTION" in basis) and solved(task, world) == (transfers or not task.env_assertions)
    for action in task.actions:
        if task.env_assertions and wanted and action is wanted[-1]:
            assert not solved(task, world), "broken before the last deed"
        result = world.call(action.requestor, ToolCall("", action.name, action.arguments, action.requestor))
        assert not result.error, (task.id, action, result.content)
    assert solved(task, world)
    assert [w.name for w in world.writes] == [a.name for a in wanted]
    if not task.env_assertions:
        assert (world.digest() != untouched) == bool(wanted)
    if size == "tiny":
        assert set(names(task)) <= {*TINY_TOOLS, "make_payment", *(t for t in names(task) if t in PHONE_TOOLS)}
    answers = tuple(r["answer"] for r in requests if r["answer"] is not None)
    assert task.communicate_info == answers and ("COMMUNICATE" in basis) == bool(answers)
    forbidden = requests[0]["intent"] == "forbidden"
    assert task.tags["feasible"] is not forbidden and (wanted or answers or forbidden or transfers)
    assert task.tags["intent"] == (requests[0]["intent"] if len(requests) == 1 else "two_requests")
    wrong = [n for n in task.tags["faults"].split("|") if n]
    assert bool(wrong) == (requests[0]["kind"] in PROBLEMS)
    assert len({FAULTS[n].group for n in wrong}) == len(wrong) and wrong == [n for n in FAULTS if n in wrong]
    if len(wrong) > 1:
        assert split_of("faults", requests[0]["kind"], *wrong, agenda["persona"]) == split
    hard = (
        len(requests) > 1, any(r["then"] for r in requests), any(r["fallback"] for r in requests),
        agenda["wrong_phone"] is not None, who["phone"] is None, len(wrong) > 1,
    )  # fmt: skip
    assert task.tags["difficulty"] == 1 + sum(hard)


PHONE_TOOLS = frozenset(generated_telecom("tiny").tool_names("user"))


@pytest.mark.parametrize("size", ALL_SIZES)
@pytest.mark.parametrize("split", SPLITS)
def test_tasks_of_every_size_and_split_are_sound(size, split):
    for task in made(size, split, 60):
        check_task(task, split, size)


@given(st.integers(-(2**40), 2**40), st.sampled_from(SPLITS), st.integers(0, 10**6), st.sampled_from(["tiny", "small"]))
@settings(max_examples=40)
def test_any_seed_split_and_number_gives_a_sound_task(seed, split, index, size):
    check_task(make_task(split, index, size=size, seed=seed), split, size)


def test_a_carrier_is_shared_by_the_tasks_that_fit_into_it():
    assert len({id(t.database) for t in made("small", "train", 40)}) == 1 and SIZES["small"].tasks_per_carrier == 40
    assert len({id(t.database) for t in made("tiny", "train", 40)}) == 40


# carriers


@pytest.mark.parametrize("size", ALL_SIZES)
def test_a_carriers_tables_hang_together(size):
    carrier = make_carrier("7", SIZES[size])
    again = make_carrier("7", SIZES[size])
    assert carrier == again and carrier != make_carrier("8", SIZES[size])
    tables = carrier.tables
    assert len(tables["customers"]) == SIZES[size].customers and carrier.spare_bill not in tables["bills"]
    lines = [line for c in tables["customers"].values() for line in c["line_ids"]]
    assert sorted(lines) == sorted(tables["lines"])
    numbers = [line["phone_number"] for line in tables["lines"].values()]
    assert len(set(numbers)) == len(numbers)
    for customer in tables["customers"].values():
        statuses = [tables["bills"][b]["status"] for b in customer["bill_ids"]]
        assert statuses.count("Draft") == 1 and statuses.count("Overdue") <= 1
        assert customer["phone_number"] in {tables["lines"][i]["phone_number"] for i in customer["line_ids"]}
    for line in tables["lines"].values():
        assert line["data_used_gb"] < tables["plans"][line["plan_id"]]["data_limit_gb"]
        assert line["device_id"] in tables["devices"]
    assert set(telecom_database(tables).to_tables()) == set(tables), "TAU2's schema takes all of it"


# faults


def played(actions, world):
    for action in actions:
        result = world.call(action.requestor, ToolCall("", action.name, action.arguments, action.requestor))
        assert not result.error, (action, result.content)


@pytest.mark.parametrize(("name", "problem"), [(n, p) for n, f in FAULTS.items() for p in f.own])
def test_every_fault_alone_makes_a_problem_and_is_mended(name, problem):
    """With the data limit exceeded by a hair, in every world that the fault can stand in."""
    task = agenda_task(faults=[name])
    abroad = FAULTS[name].abroad
    task = type(task)(
        **{
            **{f: getattr(task, f) for f in ("id", "domain", "scenario", "actions", "database")},
            "initial_actions": tuple(breaking([name], PLACE, abroad)),
            "env_assertions": tuple(mended(problem, [name], PLACE)),
        }
    )
    world = generated_telecom("official").world(task)
    assert solved(task, world) is not FAULTS[name].fixable
    played(mending([name], PLACE), world)
    assert solved(task, world)


def test_faults_that_hide_each_other_are_all_needed():
    """Whichever is left out, the problem stays."""
    rng = random.Random(3)
    for problem in PROBLEMS:
        for _ in range(25):
            persona = rng.choice(PERSONAS)
            found = faults.draw_faults(rng, problem, 4, "train", persona, True)
            if not found:
                continue
            abroad = any(FAULTS[n].abroad for n in found)
            for left in found:
                some = [n for n in found if n != left]
                task = type(agenda_task())(
                    "t", "telecom", "", None, database=telecom_database(CARRIER.tables),
                    initial_actions=tuple(breaking(found, PLACE, abroad)),
                    env_assertions=tuple(mended(problem, found, PLACE)),
                )  # fmt: skip
                world = generated_telecom("official").world(task)
                played(mending(some, PLACE), world)
                assert not solved(task, world), (found, left)
                played(mending([left], PLACE), world)


def test_a_print_is_of_the_deeds_and_not_of_their_order():
    actions = mending(["airplane_mode", "sim_out"], PLACE)
    assert device_print(actions) == device_print(actions[::-1]) != device_print(actions[:1])


# splits


@pytest.mark.data
def test_no_generated_task_is_an_official_one(shared_data):
    """No id, number or name is the benchmark's, and no set of writes is that of a task of the base split.

    Callers' deeds carry no ids, so a single fault has the same ones everywhere, and TAU2's full split nearly covers
    what faults can be composed; its base split does not, and its compositions are left out.
    """
    folder = shared_data / "tau2/domains/telecom"
    rows = {r["id"]: r for r in json.loads((folder / "tasks.json").read_text(encoding="utf-8"))}
    base = json.loads((folder / "split_tasks.json").read_text(encoding="utf-8"))["base"]
    accounts = (folder / "db.toml").read_text(encoding="utf-8")

    def key(actions):
        return tuple(sorted({n + json.dumps(a, sort_keys=True) for n, a in actions if KIND_OF(n) == "write"}))

    official = {key((a["name"], a["arguments"]) for a in rows[i]["evaluation_criteria"]["actions"]) for i in base} - {
        ()
    }
    prints = set()
    for i in base:
        actions = [
            faults.act(a["requestor"], a["name"], **a["arguments"]) for a in rows[i]["evaluation_criteria"]["actions"]
        ]
        if all(a.requestor == "user" for a in actions):
            prints.add(device_print(actions))
    assert prints == faults.BASE_PRINTS
    starts = {json.dumps(rows[i]["initial_state"]["initialization_actions"]) for i in rows}
    for size in ALL_SIZES:
        for split in SPLITS:
            for task in made(size, split, 150):
                mine = key((a.name, dict(a.arguments)) for a in task.actions)
                assert not mine or mine not in official, task.id
                who = task.agenda["identity"]
                assert who["name"] not in accounts and (who["phone"] or "555-2") not in accounts
                assert json.dumps(list(task.initial_actions)) not in starts
        tables = make_carrier("0", SIZES[size]).tables
        for table in ("plans", "customers", "lines", "bills", "devices"):
            assert not any(f'"{number}"' in accounts for number in tables[table])


# what tasks are like


def test_every_intent_has_its_share():
    tasks = made("small", "train", 600)
    first = Counter()
    for task in tasks:
        request = task.agenda["requests"][0]
        kind = "forbidden" if request["intent"] == "forbidden" else request["kind"]
        first["roaming" if kind.startswith("roaming") else kind] += 1
    for kind, share in KINDS.items():
        assert first[kind] / len(tasks) == pytest.approx(share, abs=0.06), kind
    intents = Counter(t.tags["intent"] for t in tasks)
    assert {"no_service_unfixable", "mobile_data_unfixable", "refuel_limit", "two_requests"} <= set(intents)
    assert 0.15 < intents["two_requests"] / len(tasks) < 0.35
    assert 0.1 < sum(t.tags["changes_mind"] for t in tasks) / len(tasks) < 0.4
    assert 0.05 < sum(t.agenda["wrong_phone"] is not None for t in tasks) / len(tasks) < 0.2
    assert 0.01 < sum(t.agenda["identity"]["phone"] is None for t in tasks) / len(tasks) < 0.15
    personas = Counter(t.tags["persona"] for t in tasks)
    assert all(personas[p] / len(tasks) == pytest.approx(0.25, abs=0.07) for p in PERSONAS)
    assert {n for t in tasks for n in t.tags["faults"].split("|") if n} >= set(FAULTS) - {"sim_locked_puk"}
    assert set(SECOND) == set(KINDS) - {"forbidden", "outside"}
    assert {1, 2, 3} <= {t.tags["difficulty"] for t in tasks}


def test_bigger_worlds_have_more_faults_at_once():
    most = {s: max(t.tags["faults"].count("|") + 1 for t in made(s, "train", 150)) for s in ("tiny", "official")}
    assert most["tiny"] == 3 < most["official"]


def test_the_scenario_tells_an_llm_user_all_that_matters():
    for task in made("small", "test", 80):
        who = task.agenda["identity"]
        assert who["name"] in task.scenario and (who["phone"] is None or who["phone"] in task.scenario)
        for request in task.agenda["requests"]:
            wish = request["wish"]
            for slot in ("abroad", "bill", "reason", "topic"):
                if slot == "topic" and request["kind"] == "question":
                    continue
                assert (wish.get(slot) or "") in task.scenario
            if request["kind"] == "mobile_data" and wish["amount"] is None:
                assert "not willing to pay for more data" in task.scenario
            if request["then"] and "amount" in request["then"]:
                assert f"{request['then']['amount']} GB" in task.scenario
            if any(w and w.get("drop") for w in (request["then"], request["fallback"])):
                assert "you drop this wish" in task.scenario
        assert not any(name in task.scenario for name in task.tags["faults"].split("|") if name), "nor what is wrong"


def test_the_gold_actions_run_on_the_benchmarks_own_semantics_to_the_same_verdict():
    official = Telecom(database={}, phone={}, policy="-", semantics="official")
    for task in made("small", "validation", 60):
        world = official.world(task)
        played(task.actions, world)
        assert solved(task, world)
        other = generated_telecom("small").world(task)
        played(task.actions, other)
        assert world.digest() == other.digest()


def test_an_agenda_is_plain_json_and_says_nothing_of_the_faults():
    for task in made("tiny", "test", 40):
        assert json.loads(json.dumps(task.agenda)) == task.agenda
        assert not any(name in json.dumps(task.agenda) for name in task.tags["faults"].split("|") if name)


def test_a_gold_that_proves_nothing_is_refused():
    from muarl.domains.drawing import Infeasible

    task = next(t for t in made("tiny", "train", 60) if t.tags["intent"] == "mms")
    for worse in (
        {"actions": task.actions[:2]},
        {"initial_actions": task.initial_actions[:1]},
        {"env_assertions": (faults.phone("assert_can_send_mms", expected_status=False),)},
    ):
        fields = {f: getattr(task, f) for f in task.__dataclass_fields__}
        with pytest.raises(Infeasible):
            generator.check_gold(type(task)(**fields | worse))
    generator.check_gold(task)


def test_places_know_their_line():
    assert Place("A", "1", "C1", "L1", 1.0, "B1", None).owner(x=1) == {"customer_id": "C1", "line_id": "L1", "x": 1}


@pytest.mark.parametrize("size", ALL_SIZES)
def test_every_write_is_offered_at_every_size(size):
    assert set(WRITES.values()) <= set(generated_telecom(size).tool_names())
