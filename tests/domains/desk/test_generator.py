"""Tasks from seeds: the same for everybody, right by their gold actions, disjoint by split."""

from __future__ import annotations

import json

import pytest

from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.chat import ToolCall
from muarl.domains.desk.generator import PERSONAS, SIZES
from muarl.domains.desk.scenario import yours
from muarl.domains.desk.wishes import split
from muarl.domains.drawing import split_of
from muarl.domains.generated import generated
from muarl.rewards import outcome
from support.desk import SCENARIOS, made, mean, play, script

everywhere = pytest.mark.parametrize("name", SCENARIOS)


@everywhere
@pytest.mark.parametrize("size", ["tiny", "medium"])
def test_neither_idleness_nor_transfers_are_worth_much(name, size):
    tasks = made(name, size, count=100)
    for agent in (IdleAgent(), TransferAgent()):
        assert mean(play(name, agent, tasks, size)) < 0.15


@everywhere
def test_gold_actions_are_right_and_change_the_world_where_something_is_to_be_done(name):
    domain = generated(f"{name}-generated").domain("medium")
    for task in made(name, count=60):
        world = outcome.gold_world(domain, task)
        writes = [a for a in task.actions if domain.kind_of(a.name) == "write"]
        assert [w.name for w in world.writes] == [w.name for w in writes], task.id
        assert (world.digest() != domain.world(task).digest()) == bool(writes), task.id


@everywhere
def test_the_same_arguments_give_the_same_tasks_and_a_seed_gives_others(name):
    world = generated(f"{name}-generated")
    one = world.tasks("train", 5, size="small", seed=3)
    again = world.tasks("train", 3, size="small", seed=3, start=2)
    assert [(t.id, t.scenario, t.actions, t.agenda) for t in one[2:]] == [
        (t.id, t.scenario, t.actions, t.agenda) for t in again
    ]
    assert {t.scenario for t in one}.isdisjoint({t.scenario for t in world.tasks("train", 5, size="small", seed=4)})


@everywhere
def test_splits_are_disjoint_by_the_callers_names(name):
    names = {part: {t.agenda["caller"] for t in made(name, split=part, count=30)} for part in ("train", "test")}
    for part, callers in names.items():
        assert all(split_of(*caller.split(" ")) == part for caller in callers)


@everywhere
def test_wishes_are_as_varied_as_the_scenario(name):
    tasks = made(name, count=100)
    spec = script(name).spec
    kinds = {r["kind"] for t in tasks for r in t.agenda["requests"]}
    assert kinds >= set(spec.intents) - {"ask_total"} and len(spec.intents) >= 8
    intents = {t.tags["intent"] for t in tasks}
    assert {"two_requests", "three_requests", "forbidden", "outside"} <= intents
    assert any(i.endswith("_unavailable") for i in intents) and any(i.endswith("_handover") for i in intents)
    assert {t.tags["persona"] for t in tasks} == set(PERSONAS)
    requests = [r for t in tasks for r in t.agenda["requests"]]
    assert any(r["then"] for r in requests) and any(r["fallback"] for r in requests)
    assert any(r["unknown"] for r in requests) and any(r["answer"] for r in requests)
    assert any(t.agenda["wrong"] for t in tasks)
    assert any((r["then"] or r["fallback"] or {}).get("drop") for r in requests)


@everywhere
def test_tasks_can_be_written_to_a_file(name):
    for task in made(name, count=20):
        assert json.loads(json.dumps(task.agenda)) == task.agenda
        assert task.domain == name and not task.benchmark
        for request in task.agenda["requests"]:
            slots, described = split(request["wish"])
            assert set(described) <= set(slots) and "final" not in request


@everywhere
def test_scenarios_tell_an_llm_user_all_that_it_needs(name):
    made_script = script(name)
    for task in made(name, count=60):
        for field, spec in made_script.spec.identify.fields.items():
            assert made_script.kinds[spec.kind].say(task.agenda["identity"][field], None) in task.scenario
        for request in task.agenda["requests"]:
            for slot, value in split(request["wish"])[0].items():
                known = slot in made_script.spec.slots and f"described {slot}" not in request["wish"]
                told = made_script.say(slot, value) if known else ""
                assert told in task.scenario or yours(told) in task.scenario, task.scenario
        assert " I " not in task.scenario and " my " not in task.scenario.lower(), task.scenario


def test_a_world_too_small_says_so():
    desk = generated("hotel-generated")
    with pytest.raises(ValueError, match="split must be one of"):
        desk.tasks("dev", 1, size="tiny")
    with pytest.raises(ValueError, match="size must be one of"):
        desk.tasks("train", 1, size="official")
    assert tuple(SIZES) == desk.sizes


@everywhere
def test_answers_do_not_depend_on_what_is_done_first(name):
    """A caller with a question and another wish gets the same answer whichever is served first."""
    domain = generated(f"{name}-generated").domain("medium")
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
