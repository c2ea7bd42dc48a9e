"""How much of a task was done: between 0 and 1, 1 where all of it was, and no part of the reward."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.domains.base import Domain
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.environments.registry import find
from muarl.rewards import outcome
from muarl.rewards.completion import is_counted, made
from muarl.types.chat import Message, ToolCall
from support import kit


class Shelf(Domain):
    database = {"pots": {name: {"colour": "white", "sold": False} for name in "abc"}}

    @tool
    def look(self, pot: str) -> dict:
        """Look."""
        return self.db.pots[pot]

    @tool(writes=True)
    def paint(self, pot: str, colour: str) -> str:
        """Paint."""
        if colour == "none":
            raise ValueError("no such colour")
        self.db.pots[pot]["colour"] = colour
        return "painted"

    @tool(writes=True)
    def sell(self, pot: str, price: float | None = None) -> str:
        """Sell."""
        self.db.pots[pot]["sold"] = True
        return "sold"

    def assert_white(self, pot: str) -> bool:
        return self.db.pots.peek(pot)["colour"] == "white"


TASK = Task(
    "1",
    "shelf",
    "",
    (Action("look", {"pot": "a"}), Action("paint", {"pot": "a", "colour": "red"}), Action("sell", {"pot": "b"})),
    ("DB", "COMMUNICATE"),
    communicate_info=("12.50", "monday"),
)


async def scored(*steps: tuple[str, dict] | str, task: Task = TASK, stop: str = "user_stop"):
    """The verdict on a conversation of these calls and statements, in this order."""
    world, messages = Shelf().world(task), []
    for step in steps:
        if isinstance(step, str):
            messages.append(Message("assistant", step))
            continue
        call = ToolCall("x", *step)
        result = world.call("assistant", call)
        messages += [Message("assistant", None, (call,)), Message("tool", result.content, error=result.error)]
    return await outcome.score(task, world, messages, stop)


RED, SOLD = ("paint", {"pot": "a", "colour": "red"}), ("sell", {"pot": "b"})
TOLD = "It is 12.50, until Monday."


@pytest.mark.parametrize(
    ("steps", "share"),
    [
        ((), 0.0),
        ((("look", {"pot": "a"}),), 0.0),
        ((RED,), 0.25),
        ((RED, RED), 0.25),
        ((RED, "It is 12.50."), 0.5),
        ((RED, SOLD), 0.5),
        ((("sell", {"pot": "b", "price": None}), RED, TOLD), 1.0),
        ((("paint", {"pot": "a", "colour": "blue"}), TOLD), 0.5),
        ((("paint", {"pot": "c", "colour": "none"}), SOLD), 0.25),
        ((RED, SOLD, ("sell", {"pot": "c"}), TOLD), 1.0),
    ],
)
async def test_the_share_of_changes_and_statements(steps, share):
    verdict = await scored(*steps)
    assert verdict.audit["completion"] == share
    assert verdict.reward == float(steps[-1:] == (TOLD,) and len(steps) == 3 and share == 1.0)


async def test_another_way_to_the_same_database_is_the_whole_of_its_changes():
    """Two coats where one would do: no call is the second gold action, and the state is right."""
    twice = replace(TASK, actions=(RED_ACTION, RED_ACTION), communicate_info=("12.50",))
    assert (await scored(RED, task=twice)).audit["completion"] == pytest.approx(2 / 3)
    assert (await scored(RED, "12.50", task=twice)).audit["completion"] == 1.0


RED_ACTION = Action("paint", {"pot": "a", "colour": "red"})


async def test_an_episode_that_a_limit_cut_has_done_nothing():
    assert (await scored(RED, stop="max_steps")).audit["completion"] == 0.0


async def test_where_nothing_is_to_be_done_there_is_no_share():
    nothing = replace(TASK, actions=TASK.actions[:1], reward_basis=("DB",), communicate_info=())
    assert "completion" not in (await scored(task=nothing)).audit
    assert "completion" not in (await scored(task=nothing, stop="max_steps")).audit


async def test_assertions_that_hold_from_the_start_are_nothing_to_do():
    def claim(pot: str, wanted: bool) -> dict:
        arguments = {"pot": pot}
        return {"env_type": "assistant", "func_name": "assert_white", "arguments": arguments, "assert_value": wanted}

    task = replace(
        TASK,
        actions=(RED_ACTION,),
        reward_basis=("ENV_ASSERTION",),
        communicate_info=(),
        env_assertions=(claim("a", False), claim("b", True)),
    )
    assert (await scored(task=task)).audit["completion"] == 0.0
    found = await scored(("paint", {"pot": "a", "colour": "blue"}), task=task)
    assert (found.reward, found.audit["completion"]) == (1.0, 1.0)
    broken = await scored(RED, ("paint", {"pot": "b", "colour": "blue"}), task=task)
    assert (broken.reward, broken.audit["completion"]) == (0.0, 1.0)


async def test_a_hand_over_counts_where_it_is_right():
    task = replace(
        TASK, actions=(Action("transfer_to_human_agents", {"summary": "x"}, compare_args=()),), reward_basis=("ACTION",)
    )
    kind = {"transfer_to_human_agents": "generic"}.__getitem__
    assert is_counted(replace(task, communicate_info=()), kind)
    assert not is_counted(replace(task, reward_basis=("DB",), communicate_info=()), kind)
    call = ToolCall("t", "transfer_to_human_agents", {"summary": "other words"})
    said = [Message("assistant", None, (call,)), Message("tool", "ok", tool_call_id="t")]
    assert made(task.actions, said) == (True,)
    assert made(task.actions, said[:1]) == (False,)


def episodes(name: str, agent, size: str, count: int):
    source = find(f"{name}-generated")
    tasks = kit.made(source, size, "test", count)
    return source, list(zip(tasks, kit.play(source, agent(source), tasks, size), strict=True))


SLOPPY = ErrorProfile(try_forbidden=0.3, skip_confirmation=0.5, forget_second=0.7, transfer_if_unavailable=0.5)


@pytest.mark.parametrize("name", ["retail", "hotel", pytest.param("airline", marks=pytest.mark.slow),
                                  pytest.param("telecom", marks=pytest.mark.slow),
                                  pytest.param("acebench", marks=pytest.mark.slow)])  # fmt: skip
def test_whatever_agents_do_it_lies_between_nothing_and_all(name):
    def sloppy(source):
        return ExpertAgent(SLOPPY, make=source.needed_expert())

    kinds = (lambda _: IdleAgent(), lambda _: TransferAgent(), lambda s: ExpertAgent(make=s.needed_expert()), sloppy)
    for agent in kinds:
        source, played = episodes(name, agent, "small", 12)
        domain = source.make_domain("small")
        for task, episode in played:
            share = episode.verdict.audit.get("completion")
            assert (share is not None) == is_counted(task, domain.kind_of) or task.env_assertions, task.id
            assert share is None or 0.0 <= share <= 1.0
            if episode.verdict.reward == 1.0:
                assert share in (None, 1.0), task.id
            writes = any(domain.kind_of(a.name) == "write" for a in task.actions)
            if isinstance(agent(source), IdleAgent) and writes:
                assert share == 0.0, task.id


def test_half_of_two_requests_is_about_half():
    def forgets(source):
        return ExpertAgent(ErrorProfile(forget_second=1.0), make=source.needed_expert())

    _, played = episodes("retail", forgets, "small", 60)
    shares = [e.verdict.audit.get("completion") for t, e in played if len(t.agenda["requests"]) == 2]
    assert 0.5 in shares
