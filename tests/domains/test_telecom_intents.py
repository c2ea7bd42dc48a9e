"""The carrier's generated tasks: what is wrong, who gets through it, and what keeps the splits apart."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl.rewards import outcome
from muarl.rollouts.episode_runner import EpisodeRunner
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.users.agenda import AgendaUserFactory
from muarl_worlds.tau.telecom.faults import BASE_PRINTS, FAULTS, device_print
from muarl_worlds.tau.telecom.intents import SERVICE
from muarl_worlds.tau.telecom.official import official_agenda
from muarl_worlds.tau.telecom.steps import PHONE
from muarl_worlds.tau.telecom.troubles import HOME, NOTHING
from muarl_worlds.tau.telecom.view import view
from support import kit
from support.telecom import CARRIER

made, play = partial(kit.made, "telecom"), partial(kit.expert, "telecom", size="tiny")


def faults(task: Task) -> tuple[str, ...]:
    return tuple(task.tags.get("faults", "").split("|")) if task.tags.get("faults") else ()


def test_every_fault_occurs_and_some_cannot_be_mended():
    tasks = made("small", "train", 240)
    assert {name for task in tasks for name in faults(task)} == set(FAULTS)
    for task in tasks:
        if faults(task):
            hands_over = not all(FAULTS[name].fixable for name in faults(task))
            assert ("ACTION" in task.reward_basis) is hands_over and task.reward_basis[0] == "ENV_ASSERTION"
            assert task.tags["intent"].endswith("_handover") is hands_over or len(task.agenda["requests"]) > 1


def test_most_conversations_begin_with_the_phone_and_few_are_over_by_doing_nothing():
    tasks = made("tiny", "test", 120)
    assert 0.5 < sum(bool(faults(task)) or "handover" in task.tags["intent"] for task in tasks) / len(tasks) < 0.7
    assert sum(not task.tags["feasible"] for task in tasks) / len(tasks) <= 0.08


def test_beside_a_trouble_users_have_questions_only():
    tasks = [t for t in made("tiny", "train", 120) if faults(t) and len(t.agenda["requests"]) > 1]
    assert tasks and all(r["answer"] is not None for t in tasks for r in t.agenda["requests"][1:])


def test_a_view_says_what_a_small_model_cannot_work_out():
    usage = {"data_used_gb": 6.5, "data_limit_gb": 5.0, "data_refueling_gb": 1.5}
    assert view("get_data_usage", usage) == {"data_used_gb": "6.5", "data_left": False}
    assert view("get_data_usage", {**usage, "data_refueling_gb": 2.0})["data_left"] is True
    line = dict(next(iter(CARRIER.tables["lines"].values())))
    for end, contract in (("2025-02-24", "ended"), ("2025-02-25", "running"), (None, "running")):
        assert view("get_details_by_id", {**line, "contract_end_date": end})["contract"] == contract
    for sort in ("customers", "plans", "bills", "devices"):
        record = dict(next(iter(CARRIER.tables[sort].values())))
        shown = view("get_details_by_id", record)
        assert 2 <= len(shown) <= 3 and shown.items() <= record.items()
        assert view("get_details_by_id", {**record, "note": "call me"})["note"] == "call me"
    assert view("enable_roaming", "Roaming enabled successfully") == "Roaming enabled successfully"


def test_what_the_user_is_willing_to_do_fits_what_is_wrong():
    for task in made("small", "train", 240):
        goal, names = task.agenda["requests"][0]["goal"], faults(task)
        if "pays" in goal and names:
            assert (goal["pays"] == "no") is ("unpaid_bill" in names)
        if "place" in goal and names:
            assert (goal["amount"] == NOTHING) is ("no_refuel" in names)
            assert goal["place"] != HOME or not any(FAULTS[name].abroad for name in names)


def test_compositions_of_faults_belong_to_one_split():
    seen = {split: {faults(t) for t in made("small", split, 120) if len(faults(t)) > 1} for split in ("train", "test")}
    assert seen["train"] and seen["test"] and not seen["train"] & seen["test"]


def test_no_task_is_mended_to_the_letter_as_one_of_the_benchmarks():
    kinds = kit.env("telecom").make_domain()
    for task in made("small", "train", 120):
        writes = [a for a in task.actions if a.requestor == "user" or kinds.kind_of(a.name) == "write"]
        if faults(task) and writes and all(a.requestor == "user" for a in writes):
            assert device_print(writes) not in BASE_PRINTS


def test_the_phone_is_the_users_in_every_task():
    for task in made("small", "train", 40):
        first = task.initial_actions[0]
        assert first["func_name"] == "set_user_info"
        assert first["arguments"]["phone_number"] == task.agenda["identity"]["phone_number"] or task.agenda["impostor"]


def test_what_users_tell_of_the_phone_is_read_back():
    for name, words in PHONE.words.items():
        for value, said in words.items():
            assert PHONE.told(f"I think it says {said}.")[name] == value, said


def test_users_understand_every_step_that_plans_ask_for():
    asked = {
        m.content for e in play(made("small", "train", 60), size="small") for m in e.messages
        if m.role == "assistant" and (m.content or "").startswith("Please ")
    }  # fmt: skip
    assert len(asked) > 12 and all(PHONE.asked(text) for text in asked)


def test_questions_and_proposals_are_no_steps():
    for slot in SERVICE.slots.values():
        assert slot.name == "pays" or PHONE.asked(str(slot.ask)) == [], slot.name
    assert PHONE.asked("I will enable roaming for line L2345. Shall I go ahead?") == []


def test_giving_up_after_a_step_costs_the_reward():
    tasks = tuple(t for t in made("tiny", "train", 120) if len(faults(t)) > 1 and "ACTION" not in t.reward_basis)
    assert tasks and sum(e.reward == 1 for e in play(tasks, transfer_if_unavailable=1.0)) < len(tasks) / 2


SCENARIO = """Instructions:
	Domain: telecom
	Reason for call:
		You are unable to send MMS messages using your messaging app for the past few hours.
	Known info:
		You are Ann Doe with phone number 555-000-1111. You are currently abroad in France.
	Task instructions:
		You are willing to refuel 2.0 GB of data if necessary."""


def test_an_official_scenario_becomes_an_agenda():
    agenda: Any = official_agenda(Task("x", "telecom", SCENARIO, None, tags={"persona": "Hard"}))
    assert agenda["identity"] == {"phone_number": "555-000-1111"} and agenda["persona"] == "confused"
    (request,) = agenda["requests"]
    assert request["kind"] == "picture_messages" and request["goal"] == {"place": "France", "amount": "2.0"}
    assert official_agenda(Task("x", "telecom", "Cancel my order.", None)) is None
    with pytest.raises(ConfigError, match="has no agenda"):
        find("tau2-telecom").rule_based_user(Task("x", "telecom", "Cancel my order.", None), seed=0)


@pytest.mark.data
@pytest.mark.parametrize("name", ["tau2-telecom", "tau2-telecom-workflow"])
def test_with_its_user_the_expert_solves_every_official_base_task(install_data, name):
    install_data("tau2")
    environment = find(name)
    place, tasks = environment.place(), environment.official().tasks("base")
    runner = EpisodeRunner(
        make_world=place.domain.world,
        agent=ExpertAgent(make=environment.expert),
        make_user=AgendaUserFactory(environment.rule_based_user, seed=1),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        rules=place.rules,
        limits=place.limits,
    )
    played = asyncio.run(rollout(place.requests(tasks, 1, 300, ""), LocalExecutor(runner.play)))
    assert len(tasks) == 114
    assert [e.task_id for e in played.episodes if e.verdict is None or e.reward < 1] == []
