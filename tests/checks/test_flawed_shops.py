"""examples/flawed_shops.py: each shop pays for what it should not, and `muarl tasks check` says so before training."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Action, Task
from muarl.environments import registry
from muarl.environments.environment import Environment
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.rewards.outcome import score
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import StopReason
from muarl_tools.checks.tasks.page import page_of
from muarl_tools.checks.tasks.report import TaskReport, check_source
from muarl_tools.checks.tasks.sources import TaskSource, open_source
from muarl_tools.commands.tasks_check import _print
from muarl_worlds.environments.retail import RETAIL

COUNT = 40
HASTY = ErrorProfile(skip_confirmation=1.0)


@pytest.fixture(scope="module")
def shops(repository: Path) -> dict[str, Environment]:
    file = repository / "examples" / "flawed_shops.py"
    flawed = {name: registry.load_reference(f"{file}:{name}") for name in ("DO_NOTHING", "LEAKY", "SLOPPY")}
    return {"HONEST": RETAIL, **flawed}


@pytest.fixture(scope="module")
def reports(shops: dict[str, Environment], repository: Path) -> dict[str, TaskReport]:
    found = {}
    for name in shops:
        known = f"{repository / 'examples' / 'flawed_shops.py'}:{name}"
        reference = "retail-generated" if name == "HONEST" else registry.approve(known)
        found[name] = check_source(open_source(reference, split="train", count=COUNT))
    return found


@lru_cache(maxsize=4)
def tasks_of(shop: Environment) -> list[Task]:
    return shop.make_tasks("train", COUNT)


def earned(shop: Environment, agent: Agent) -> int:
    """How many tasks an agent earns with the shop's own users."""
    place = shop.place()
    played = asyncio.run(play_in(Places([place]), agent, place.users(), tasks_of(shop), 1, seed=0))
    return sum(e.reward == 1 for e in played.episodes)


def expert(shop: Environment, errors: ErrorProfile = ErrorProfile()) -> ExpertAgent:
    return ExpertAgent(errors, make=shop.expert)


def reward(shop: Environment, task: Task, actions: Sequence[Action]) -> float:
    """The reward of these calls, all of which succeed."""
    world = shop.make_domain().world(task)
    messages = []
    for action in actions:
        call = ToolCall("c", action.name, dict(action.arguments))
        assert not world.call("assistant", call).error, action
        messages.append(Message("assistant", None, (call,)))
    return asyncio.run(score(task, world, messages, StopReason.USER_STOP)).reward


def test_doing_nothing_and_handing_over_pay_in_one_shop_alone(shops: dict[str, Environment]) -> None:
    for agent in (IdleAgent(), TransferAgent()):
        won = {name: earned(shop, agent) for name, shop in shops.items()}
        assert won["DO_NOTHING"] > COUNT / 2
        assert won["HONEST"] == won["LEAKY"] == won["SLOPPY"] < COUNT / 5, won


def test_serving_by_the_policy_pays_but_where_the_gold_actions_hand_over(shops: dict[str, Environment]) -> None:
    won = {name: earned(shop, expert(shop)) for name, shop in shops.items()}
    assert won["HONEST"] == won["LEAKY"] == won["SLOPPY"] == COUNT and won["DO_NOTHING"] < 0.6 * COUNT, won


def test_not_asking_costs_nothing_with_leaky_users(shops: dict[str, Environment]) -> None:
    won = {name: earned(shop, expert(shop, HASTY)) for name, shop in shops.items()}
    assert won["LEAKY"] == COUNT and won["HONEST"] < 0.85 * COUNT < won["SLOPPY"], won


def test_only_what_is_flawed_differs_between_shops(shops: dict[str, Environment]) -> None:
    honest = tasks_of(RETAIL)
    for name, fields in (
        ("DO_NOTHING", {"actions"}),
        ("LEAKY", {"agenda", "scenario", "tags"}),
        ("SLOPPY", {"reward_basis", "env_assertions"}),
    ):
        differing = set()
        for task, own in zip(honest, tasks_of(shops[name]), strict=True):
            differing |= {f for f in task.__dict__ if f not in ("origin", "database") and _of(task, f) != _of(own, f)}
        assert differing == fields, name


def _of(task: Task, name: str) -> Any:
    return getattr(task, name)


def test_the_sloppy_reward_takes_a_wrong_payment_and_the_right_one_does_not(shops: dict[str, Environment]) -> None:
    sloppy, tried = shops["SLOPPY"], 0
    for task in tasks_of(sloppy):
        actions = list(task.actions or ())
        swap = next((n for n, a in enumerate(actions) if a.name == "exchange_delivered_order_items"), None)
        if swap is None or len([a for a in actions if "payment_method_id" in a.arguments]) > 1:
            continue
        arguments = actions[swap].arguments
        order = sloppy.make_domain().world(task).toolkit("assistant").db["orders"].peek(arguments["order_id"])
        methods = sloppy.make_domain().world(task).toolkit("assistant").db["users"].peek(order["user_id"])
        other = next(m for m in methods["payment_methods"] if m != arguments["payment_method_id"])
        wrong = [*actions]
        wrong[swap] = replace(actions[swap], arguments={**arguments, "payment_method_id": other})
        right = replace(task, reward_basis=("DB",), env_assertions=())
        spoken = set(task.reward_basis) - {"ENV_ASSERTION"}
        if spoken:
            continue
        assert (reward(sloppy, task, actions), reward(sloppy, task, wrong)) == (1, 1)
        assert (reward(RETAIL, right, actions), reward(RETAIL, right, wrong)) == (1, 0)
        tried += 1
    assert tried >= 3


def test_the_sloppy_reward_still_asks_that_something_is_done(shops: dict[str, Environment]) -> None:
    for task, honest in zip(tasks_of(shops["SLOPPY"]), tasks_of(RETAIL), strict=True):
        assert task.id == honest.id and reward(shops["SLOPPY"], task, ()) == reward(RETAIL, honest, ())


@pytest.mark.parametrize(
    ("shop", "overall", "rules"),
    [
        ("HONEST", set(), set()),
        ("DO_NOTHING", {"idle-earns"}, {"expert-fails"}),
        ("LEAKY", {"asking-unpaid"}, set()),
        ("SLOPPY", None, {"wrong-write-earns", "extra-write-earns"}),
    ],
)
def test_tasks_check_warns_of_each_before_training(
    reports: dict[str, TaskReport], shop: str, overall: set[str] | None, rules: set[str]
) -> None:
    report = reports[shop]
    warned = {f.rule for f in report.of("error", "warning")} - {"undecided"}
    assert warned == rules
    assert overall is None or {f.rule for f in report.overall} == overall
    assert {name for name, *_ in report.experts()} == {"expert", "expert-unasked"}


def test_what_the_warnings_say(reports: dict[str, TaskReport]) -> None:
    (idle,) = reports["DO_NOTHING"].overall
    assert "do-nothing" in idle.what and "always-transfer" in idle.what and f"of {COUNT}" in idle.what
    failed = next(f for f in reports["DO_NOTHING"].findings if f.rule == "expert-fails")
    assert "gold actions write" in failed.what
    wrong = [f for f in reports["SLOPPY"].findings if f.rule == "wrong-write-earns"]
    assert len(wrong) > COUNT / 3 and "earns the reward 1" in wrong[0].what
    shown = reports["LEAKY"].to_json()
    assert [f["rule"] for f in shown["overall"]] == ["asking-unpaid"]
    assert shown["experts"][1] == {"agent": "expert-unasked", "solved": COUNT, "tasks": COUNT}


def test_the_last_line_and_the_page_name_what_is_found_of_all_tasks_together(
    reports: dict[str, TaskReport], capsys: pytest.CaptureFixture[str]
) -> None:
    for shop, told in (("LEAKY", True), ("HONEST", False)):
        _print(reports[shop], "error", None)
        last = capsys.readouterr().out.strip().splitlines()[-1]
        assert last.endswith("; of all tasks together: warning asking-unpaid.") is told, last
        assert ("all together: warning asking-unpaid" in page_of(reports[shop])) is told


def test_a_few_tasks_say_nothing_about_all(shops: dict[str, Environment]) -> None:
    leaky = shops["LEAKY"]
    few = TaskSource("few", leaky.make_domain(), {"train": tasks_of(leaky)[:8]}, leaky.audit_rules(), environment=leaky)
    assert check_source(few).overall == []
