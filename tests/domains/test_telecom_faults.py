"""Made carriers, and what can be wrong with phones and lines."""

from __future__ import annotations

import random

import pytest

from muarl.environments.registry import find
from muarl.rewards.checks import asserted
from muarl.types.chat import ToolCall
from muarl_worlds.tau.telecom.customers import SIZES, make_carrier
from muarl_worlds.tau.telecom.faults import (
    FAULTS,
    PROBLEMS,
    FaultContext,
    device_print,
    draw_faults,
    fixed_checks,
    fixing,
)
from muarl_worlds.tau.telecom.records import telecom_database
from support.telecom import PLACE, broken_task

ALL_SIZES = ("tiny", "small", "medium", "official")
TELECOM = find("telecom-generated")


def solved(task, world):
    return all(asserted(task, world))


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
    checks = tuple(fixed_checks(problem, [name], PLACE))
    task = broken_task([name], abroad=FAULTS[name].abroad, env_assertions=checks)
    world = TELECOM.make_domain("official").world(task)
    assert solved(task, world) is not FAULTS[name].fixable
    played(fixing([name], PLACE), world)
    assert solved(task, world)


def test_faults_that_hide_each_other_are_all_needed():
    """Whichever is left out, the problem stays."""
    rng = random.Random(3)
    for problem in PROBLEMS:
        for _ in range(25):
            found = draw_faults(rng, problem, 4, "train", "", True)
            if not found:
                continue
            abroad = any(FAULTS[n].abroad for n in found)
            for left in found:
                some = [n for n in found if n != left]
                task = broken_task(found, abroad=abroad, env_assertions=tuple(fixed_checks(problem, found, PLACE)))
                world = TELECOM.make_domain("official").world(task)
                played(fixing(some, PLACE), world)
                assert not solved(task, world), (found, left)
                played(fixing([left], PLACE), world)


def test_a_print_is_of_the_deeds_and_not_of_their_order():
    actions = fixing(["airplane_mode", "sim_out"], PLACE)
    assert device_print(actions) == device_print(actions[::-1]) != device_print(actions[:1])


def test_places_know_their_line():
    assert FaultContext("A", "1", "C1", "L1", 1.0, "B1", None).owner(x=1) == {
        "customer_id": "C1",
        "line_id": "L1",
        "x": 1,
    }
