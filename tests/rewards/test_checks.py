"""The single criteria of a task: which are met, and what share of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.base import Domain
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.rewards import outcome
from muarl.rewards.checks import Checks, asserted, said
from muarl.types.chat import Message, ToolCall


class Lamp(Domain):
    database = {"lamps": {"a": {"on": False}}}

    @tool(writes=True)
    def switch(self) -> bool:
        """Switch."""
        lamp = self.db.lamps["a"]
        lamp["on"] = not lamp["on"]
        return lamp["on"]

    def assert_on(self, name: str) -> bool:
        if name not in self.db.lamps:
            raise ValueError(f"no lamp {name}")
        return self.db.lamps.peek(name)["on"]

    def brightness(self) -> int:
        return 3

    def sync(self, world):
        world.toolkit().db.lamps["a"].setdefault("synced", True)


def claim(function="assert_on", expected=True, **arguments):
    return {"env_type": "assistant", "func_name": function, "arguments": arguments, "assert_value": expected}


TASK = Task("1", "lamp", "", (Action("switch", {}),), ("ENV_ASSERTION",), env_assertions=(claim(name="a"),))


def test_the_share_of_criteria_that_are_met():
    assert Checks(env_assertions=(True, False), actions=(True,), communicate=(False,)).completion == 0.5
    assert Checks(db=False).completion is None
    assert Checks(db=True, env_assertions=(True,)).to_json() == {
        "db": True, "env_assertions": [True], "actions": [], "communicate": [], "completion": 1.0
    }  # fmt: skip
    assert [Checks(db=d).part("DB") for d in (True, False, None)] == [1.0, 0.0, 1.0]


async def test_a_task_with_assertions_reports_its_completion_beside_the_reward():
    domain = Lamp(semantics="official")
    task = replace(TASK, env_assertions=(claim(name="a"), claim(expected=False, name="a")))
    verdict = await outcome.score(task, domain.world(task), (), "user_stop")
    assert (verdict.reward, verdict.audit["completion"]) == (0.0, 1 / 3)  # the lamp is off, and nobody switched it
    verdict = await outcome.score(task, domain.world(task), (), "max_steps")
    assert (verdict.reward, verdict.audit["completion"]) == (0.0, 0.0)
    verdict = await outcome.score(replace(task, env_assertions=(), actions=()), domain.world(task), (), "user_stop")
    assert "completion" not in verdict.audit


@pytest.mark.parametrize(
    ("assertion", "part"),
    [
        (claim(), "missing 1 required"),
        (claim(name="b"), "no lamp b"),
        (claim("brightness"), "answered 3 instead of true or false"),
        (claim("flicker"), "has no function 'flicker'"),
        (claim("_tools"), "has no function '_tools'"),
        (claim("world"), "has no function 'world'"),
        ({"env_type": "user", "func_name": "x", "arguments": {}}, "the user's side has no function 'x'"),
    ],
)
def test_an_assertion_that_fails_breaks_an_official_evaluation_off_and_is_unmet_when_fixed(assertion, part):
    task = replace(TASK, env_assertions=(assertion,))
    with pytest.raises(InfrastructureError, match=part) as failure:
        asserted(task, Lamp(semantics="official").world())
    assert failure.value.boundary == "world" and "task 1" in str(failure.value)
    assert asserted(task, Lamp().world()) == (False,)


def test_assertions_bring_the_sides_in_step_and_all_of_them_run():
    world = Lamp(semantics="official").world()
    task = replace(TASK, env_assertions=(claim(name="a"), claim(expected=False, name="a")))
    assert asserted(task, world) == (False, True)
    assert world.toolkit().db.lamps.peek("a")["synced"]


def test_what_the_agent_said_counts_whatever_the_case_and_the_commas():
    talk = [
        Message("assistant", "It is 1,234 EUR."),
        Message("user", "Blue"),
        Message("assistant", " "),
        Message("tool", "x"),
    ]
    assert said(talk, ["1234 eur", "1,234", "blue", "x", ""]) == (True, False, False, False, True)


def test_the_databases_are_compared_where_that_is_asked():
    domain = Lamp(semantics="official")
    world = domain.world(TASK)
    task = replace(TASK, env_assertions=())
    assert outcome.check(task, world, ()).db is None
    assert outcome.check(task, world, (), everything=True).db is False
    assert outcome.check(replace(task, actions=None), world, (), everything=True).db is None


BASIS = ("DB", "NL_ASSERTION")


@pytest.mark.parametrize(
    ("evaluation", "own", "basis"),
    [
        ("all", BASIS, BASIS),
        ("deterministic", BASIS, ("DB", "COMMUNICATE")),
        ("deterministic", ("DB", "COMMUNICATE", "NL_ASSERTION"), ("DB", "COMMUNICATE")),
        ("deterministic", ("DB",), ("DB",)),
        ("env", BASIS, ("DB",)),
        ("env", ("ENV_ASSERTION", "ACTION"), ("ENV_ASSERTION",)),
        ("action", BASIS, ("ACTION",)),
        ("communicate", BASIS, ("COMMUNICATE",)),
        ("nl_assertions", BASIS, ("NL_ASSERTION",)),
        ("all_ignore_basis", BASIS, ("DB", "ACTION", "COMMUNICATE")),
        ("all_with_nl_assertions_ignore_basis", BASIS, ("DB", "ACTION", "COMMUNICATE", "NL_ASSERTION")),
        ("all_ignore_basis", (), ()),
    ],
)
def test_evaluations_change_the_basis(evaluation, own, basis):
    assert outcome.evaluated_as(replace(TASK, reward_basis=own), evaluation).reward_basis == basis
    with pytest.raises(ConfigError, match="evaluation: must be one of all, deterministic"):
        outcome.evaluated_as(TASK, "best")


async def test_without_gold_actions_and_assertions_the_state_counts_as_right():
    task = replace(TASK, actions=None, env_assertions=(), reward_basis=("DB", "ENV_ASSERTION", "COMMUNICATE"))
    world = Lamp(semantics="official").world(task)
    world.call("assistant", ToolCall("", "switch"))
    verdict = await outcome.score(task, world, (), "user_stop")
    assert (verdict.reward, verdict.breakdown) == (1.0, {"COMMUNICATE": 1.0})
