"""Tasks from seeds: the same for everybody, right by their gold actions, disjoint by split."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import pytest

from muarl.domains.generated import split_of
from muarl.domains.kit import requests
from muarl.domains.kit.requests import split
from muarl.domains.kit.scenario import yours
from muarl.domains.kit.tasks import PERSONAS
from muarl.kit import environment
from muarl.types.chat import ToolCall
from support.kit import SERVICES, env, library, made, service

everywhere = pytest.mark.parametrize("name", SERVICES)


@everywhere
def test_splits_are_disjoint_by_the_users_names(name):
    names = {part: {t.agenda["user"] for t in made(name, split=part, count=30)} for part in ("train", "test")}
    for part, callers in names.items():
        assert all(split_of(*user.split(" ")) == part for user in callers)


@everywhere
def test_requests_are_as_varied_as_the_service(name):
    tasks = made(name, count=100)
    offered = {intent.name for intent in service(name).intents}
    kinds = {r["kind"] for t in tasks for r in t.agenda["requests"]}
    assert kinds >= offered - {"ask_total"} and len(offered) >= 8
    intents = {t.tags["intent"] for t in tasks}
    assert intents <= set(env(name).declared_intents("medium") or ())
    assert {"two_requests", "three_requests", "forbidden", "outside"} <= intents
    assert any(i.endswith("_unavailable") for i in intents) and any(i.endswith("_handover") for i in intents)
    assert {t.tags["persona"] for t in tasks} == set(PERSONAS)
    requests = [r for t in tasks for r in t.agenda["requests"]]
    assert any(r["then"] for r in requests) and any(r["fallback"] for r in requests)
    assert any(r["unknown"] for r in requests) and any(r["answer"] for r in requests)
    assert any(t.agenda["wrong"] for t in tasks)
    assert any((r["then"] or r["fallback"] or {}).get("drop") for r in requests)


@pytest.mark.parametrize("name", ["hotel", "clinic"])
def test_requests_that_are_drawn_again_are_not_served_again_and_tasks_stay_the_same(name, monkeypatch):
    served = Counter()
    outcome = requests.RequestSource.outcome

    def counted(source, intent, goal):
        served[intent] += 1
        return outcome(source, intent, goal)

    def drawn():
        tasks = env(name).make_tasks("train", 20, size="medium")
        return [(t.id, t.agenda, t.actions, t.tags, t.scenario) for t in tasks]

    monkeypatch.setattr(requests.RequestSource, "outcome", counted)
    found, once = drawn(), served.total()
    served.clear()
    numbers = itertools.count()
    monkeypatch.setattr(requests, "repr", lambda goal: str(next(numbers)), raising=False)  # no request is known again
    assert drawn() == found and once < served.total()


def test_a_service_has_the_variants_that_it_gives_a_share():
    only = environment(library(variants={"done": 0.5, "refuse": 0.5}), name="some")
    variants = Counter(task.tags["intent"] == "forbidden" for task in made(only, "small", count=60))
    assert variants[True] > 15 and variants[False] > 15
    requests = [r for task in made(only, "small", count=60) for r in task.agenda["requests"]]
    assert not any(r["intent"].endswith(("_unavailable", "_handover")) or r["kind"] == "outside" for r in requests)


def test_a_service_has_as_many_requests_as_it_gives_shares():
    alone = environment(library(more_requests=()), name="some")
    assert all(len(task.agenda["requests"]) == 1 for task in made(alone, "small", count=40))
    two = environment(library(more_requests=(1.0,)), name="some")
    assert {len(task.agenda["requests"]) for task in made(two, "small", count=40)} == {1, 2}  # one if it is refused


@everywhere
def test_tasks_can_be_written_to_a_file(name):
    for task in made(name, count=20):
        assert json.loads(json.dumps(task.agenda)) == task.agenda
        assert task.domain == name and not task.benchmark
        for request in task.agenda["requests"]:
            slots, described = split(request["goal"])
            assert set(described) <= set(slots) and "final" not in request


@everywhere
def test_scenarios_tell_an_llm_user_all_that_it_needs(name):
    called = service(name)
    for task in made(name, count=60):
        for fact in called.facts:
            assert called.kind(fact).say(task.agenda["identity"][fact.name], None) in task.scenario
        for request in task.agenda["requests"]:
            for slot, value in split(request["goal"])[0].items():
                known = slot in called.slots and f"described {slot}" not in request["goal"]
                told = called.say(slot, value) if known else ""
                assert told in task.scenario or yours(told) in task.scenario, task.scenario
        assert " I " not in task.scenario and " my " not in task.scenario.lower(), task.scenario


@everywhere
def test_answers_do_not_depend_on_what_is_done_first(name):
    """A user with a question and another request gets the same answer whichever is served first."""
    domain = env(name).make_domain("medium")
    asked = 0
    for task in made(name, count=100):
        answers = [r["answer"] for r in task.agenda["requests"] if r["answer"]]
        if len(task.agenda["requests"]) > 1 and answers:
            asked += 1
            shown = "".join(
                domain.world(task).call("assistant", call).content
                for call in (ToolCall("x", a.name, a.arguments) for a in task.actions)
            )
            for answer in answers:
                assert answer.removesuffix("0").removesuffix(".0").removesuffix("0") in shown
    assert asked
