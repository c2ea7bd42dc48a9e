"""Tools that a model plays, against a local server: what is asked, what is refused, what it costs, what is kept."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.basics.errors import DataError, InfrastructureError
from muarl.domains.imagined.domain import ImaginedCall, ImaginedDomain, ReplayedTeacher, goal_met
from muarl.domains.imagined.scenario import read_scenario
from muarl.environments.environment import GENERATED_RULES
from muarl.environments.registry import find
from muarl.rollouts.conversation import run_episode
from muarl.types.chat import ToolCall
from muarl.types.episode import StopReason
from support.environments import users_of
from support.fake_openai import CUT, FakeOpenAI, nonsense, status, text
from support.imagined import PerfectTeacher, Saying, endpoint, folder, reason_in, result
from support.kit import SERVICES, made

BOX = {"box_id": "B1", "owner_id": "O1", "shelf": "top", "weight": 2}


def imagined(tmp_path, *texts, **options):
    teacher = Saying(*texts)
    return ImaginedDomain(read_scenario(folder(tmp_path)), teacher, **options).world(), teacher


async def call(world, tool, /, **arguments):
    (answer,) = [r async for r in world.answers("assistant", [ToolCall("c", tool, arguments)])]
    return answer


async def test_an_answer_becomes_the_observation(tmp_path):
    world, teacher = imagined(tmp_path, result(**BOX))
    answer = await call(world, "get_box", box_id="B1")
    assert json.loads(answer.content) == BOX and not answer.error
    system, asked = (m["content"] for m in teacher.heard[0])
    assert "A storehouse" in system and "# The caller" not in system
    assert '"name": "get_box"' in asked and "Records:\n(none)" in asked and '"x-record": "box_id"' in asked
    assert world.usage.prompt_tokens == 10 and world.calls[0].answers == (result(**BOX),)


async def test_repeated_reads_cost_nothing_and_the_ledger_goes_along(tmp_path):
    moved = {**BOX, "shelf": "low"}
    world, teacher = imagined(tmp_path, result(**BOX), result(**moved), result(**moved))
    for _ in range(3):
        await call(world, "get_box", box_id="B1")
    assert len(teacher.heard) == 1 and [len(c.answers) for c in world.calls] == [1, 0, 0]
    before = world.digest()
    await call(world, "move_box", box_id="B1", shelf="low")
    assert world.digest() != before == await ImaginedDomain(world.domain.scenario, teacher).world().state_digest()
    assert [c.name for c in world.writes] == ["move_box"]
    assert json.loads((await call(world, "get_box", box_id="B1")).content) == moved
    assert (
        '"shelf": "low"' in teacher.heard[-1][-1]["content"]
        and "changed by move_box" in teacher.heard[-1][-1]["content"]
    )


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("", "not JSON"),
        ("Sure! Here is the box.", "not JSON"),
        ("[" * 5000, "not JSON"),
        ('{"result": NaN}', "NaN is no JSON number"),
        ('{"box": 1}', 'either "result" or "error"'),
        ('{"result": {}, "error": "x"}', 'either "result" or "error"'),
        ('{"error": ""}', '"error" must be a text'),
        ('{"error": {"code": 4}}', '"error" must be a text'),
        ("x" * 20_001, "longer than 20000 characters"),
        (result(box_id="B1", shelf="top"), "'weight' is a required property"),
        (result(**{**BOX, "weight": "heavy"}), "weight: 'heavy' is not of type 'number'"),
        (result(**{**BOX, "weight": -1}), "less than the minimum"),
        (result(**{**BOX, "colour": "red"}), "'colour' was unexpected"),
        (result(**{**BOX, "box_id": "box one"}), "does not match"),
        (result(**{**BOX, "box_id": "B2"}), "contradicts what is known"),
    ],
)
async def test_what_cannot_be_used_is_asked_for_again_with_the_reason(tmp_path, bad, reason):
    world, teacher = imagined(tmp_path, bad, result(**BOX))
    answer = await call(world, "get_box", box_id="B1")
    assert json.loads(answer.content) == BOX
    assert reason in reason_in(teacher.heard[1]) and len(teacher.heard) == 2
    assert teacher.heard[1][-2]["role"] == "assistant" and reason in world.calls[0].rejected[0]


async def test_fences_around_the_json_are_no_matter(tmp_path):
    world, teacher = imagined(tmp_path, f"```json\n{result(**BOX)}\n```")
    assert not (await call(world, "get_box", box_id="B1")).error and len(teacher.heard) == 1


async def test_contradictions_are_refused_and_after_some_tries_the_world_breaks(tmp_path):
    world, teacher = imagined(tmp_path, result(**BOX), result(boxes=[{**BOX, "weight": 9}]), tries=3)
    await call(world, "get_box", box_id="B1")
    with pytest.raises(
        InfrastructureError, match=r"list_boxes gave no usable answer in 3 tries; .*weight was 2"
    ) as caught:
        await call(world, "list_boxes", owner_id="O1")
    assert caught.value.boundary == "world" and caught.value.retryable and len(teacher.heard) == 4


async def test_failures_that_the_software_has_are_observations(tmp_path):
    world, teacher = imagined(tmp_path, '{"error": "no such\\nbox"}', '{"error": "gone"}', result(**BOX))
    answer = await call(world, "get_box", box_id="B7")
    assert (answer.content, answer.error) == ("Error: no such box", True)
    assert (await call(world, "move_box", box_id="B7", shelf="low")).error and world.writes == []
    await call(world, "get_box", box_id="B1")
    teacher.texts = ['{"error": "not found"}', result(boxes=[BOX])]
    assert not (await call(world, "list_boxes", owner_id="O1")).error


async def test_what_is_wrong_with_a_call_never_reaches_the_model(tmp_path):
    world, teacher = imagined(tmp_path, result(**BOX))
    assert "there is no tool 'burn_box'" in (await call(world, "burn_box")).content
    assert "missing argument 'box_id'" in (await call(world, "get_box")).content
    assert "must be a string" in (await call(world, "get_box", box_id=3)).content
    broken = ToolCall("c", "get_box", invalid="not JSON", raw="{")
    assert [r.error async for r in world.answers("assistant", [broken])] == [True]
    assert [r.error async for r in world.answers("user", [ToolCall("c", "get_box", {"box_id": "B1"})])] == [True]
    assert (await call(world, "transfer_to_human_agents", summary="x")).content == "Transfer successful"
    assert teacher.heard == []
    with pytest.raises(InfrastructureError, match="must be waited for"):
        world.call("assistant", ToolCall("c", "get_box", {"box_id": "B1"}))


async def test_prompts_hold_the_users_situation_and_the_known_facts():
    task = made("hotel", count=1)[0]
    teacher = Saying('{"error": "no"}')
    world = find("hotel-generated").imagined("medium", teacher).world(task)
    assert world.ledger.records and world.task is task
    caller = task.actions[0].arguments
    shown = await call(world, "identify_guest", **caller)
    assert not shown.error and teacher.heard == [], "it is known who calls"
    with pytest.raises(InfrastructureError, match="exists, so that reading it cannot fail"):
        await call(world, "list_bookings", guest_id=json.loads(shown.content)["guest_id"])
    assert task.scenario in teacher.heard[0][0]["content"]


async def episode(name, task, server, **options):
    domain = find(f"{name}-generated").imagined("medium", endpoint(server, **options))
    world = domain.world(task)
    agent = ExpertAgent(make=find(f"{name}-generated").expert)
    user = users_of(task.domain, seed=1)(task, seed=3)
    played = await run_episode(task, world, agent, user, seed=5, rules=GENERATED_RULES)
    await domain.endpoint.aclose()
    return played, world


@pytest.mark.parametrize("name", SERVICES)
async def test_a_model_that_plays_the_made_world_is_never_refused(name):
    """Whole conversations: the ledger has nothing against a world that is consistent."""
    for task in made(name, count=8):
        with FakeOpenAI(PerfectTeacher(name, task)) as server:
            played, world = await episode(name, task, server)
        assert played.stop.chosen, played.error
        assert not any(c.rejected for c in world.calls) and goal_met(task, world)
        assert world.domain.endpoint.usage.requests == sum(len(c.answers) for c in world.calls)


FAULTS = {
    0: text("I am sorry, I cannot do that."),
    2: status(429, {"Retry-After": "0"}),
    4: text('{"result": {"nonsense": true}}'),
    6: status(500),
    8: CUT,
    10: nonsense(),
}


@pytest.mark.parametrize("name", ["food-delivery", "clinic"])
async def test_faults_of_server_and_model_are_got_over(name):
    for task in made(name, count=8)[3:]:
        with FakeOpenAI(PerfectTeacher(name, task, FAULTS)) as server:
            played, world = await episode(name, task, server, attempts=4)
        assert played.stop.chosen and goal_met(task, world), played.error


@pytest.mark.parametrize(
    ("fault", "words", "retryable"),
    [
        (text("never JSON"), "no usable answer in 4 tries", True),
        (status(500, message="boom"), "boom", True),
        (status(401), "", False),
        (status(429), "", True),
    ],
)
async def test_what_lasts_ends_the_episode_as_the_worlds_failure(fault, words, retryable):
    task = next(t for t in made("bank", count=20) if t.tags["intent"] == "send_payment")
    with FakeOpenAI(fault) as server:
        played, _ = await episode("bank", task, server)
    assert played.stop is StopReason.INFRASTRUCTURE and words in played.error
    assert played.tags["boundary"] == "world" and played.tags["retryable"] is retryable


async def test_a_conversation_can_be_had_again_without_the_model():
    task = made("insurance", count=12)[7]
    with FakeOpenAI(PerfectTeacher("insurance", task, {1: text("what?")})) as server:
        played, world = await episode("insurance", task, server)
    kept = [ImaginedCall.from_json(json.loads(json.dumps(c.to_json()))) for c in world.calls]
    assert kept == world.calls
    domain = find("insurance-generated").imagined("medium", ReplayedTeacher(kept))
    again = domain.world(task)
    agent = ExpertAgent(make=find("insurance-generated").expert)
    replayed = await run_episode(
        task, again, agent, users_of(task.domain, seed=1)(task, seed=3), seed=5, rules=GENERATED_RULES
    )
    assert [m.to_json() for m in replayed.messages] == [m.to_json() for m in played.messages]
    assert again.calls == world.calls and again.digest() == world.digest()


async def test_a_recording_that_does_not_fit_says_so(tmp_path):
    recorded = ImaginedCall("get_box", {"box_id": "B1"}, "...", answers=(result(**BOX),))
    scenario = read_scenario(folder(tmp_path))
    with pytest.raises(DataError, match="called with other arguments"):
        await call(ImaginedDomain(scenario, ReplayedTeacher([recorded])).world(), "get_box", box_id="B2")
    with pytest.raises(DataError, match="no further answers"):
        await call(ImaginedDomain(scenario, ReplayedTeacher([])).world(), "get_box", box_id="B2")
    with pytest.raises(DataError, match="lacks or spoils"):
        ImaginedCall.from_json({"name": "x"})
    with pytest.raises(ValueError, match="tries must be at least 1"):
        ImaginedDomain(scenario, ReplayedTeacher([]), tries=0)


async def test_goals_are_compared_by_what_was_written(tmp_path):
    task = next(t for t in made("bank", count=100) if t.tags["intent"] == "move_money")
    gold = [a for a in task.actions if a.name == "move_money"]
    with FakeOpenAI(PerfectTeacher("bank", task)) as server:
        world = find("bank-generated").imagined("medium", endpoint(server)).world(task)
        assert goal_met(task, world) is False, "nothing was written yet"
        await call(world, "move_money", **gold[0].arguments)
        assert goal_met(task, world) is True
        smaller = {**gold[0].arguments, "amount": 1}
        assert not (await call(world, "move_money", **smaller)).error
        assert goal_met(task, world) is False, "more was written than was wanted"
        await world.domain.endpoint.aclose()
    assert goal_met(replace(task, actions=None), world) is None


async def test_a_task_without_a_made_world_starts_from_nothing():
    task = replace(made("clinic", count=1)[0], database=None, actions=None)
    assert find("clinic-generated").imagined("medium", Saying("")).world(task).ledger.records == {}
