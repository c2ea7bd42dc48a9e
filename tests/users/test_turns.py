"""The user of fixed turns: one line at a time, whatever the agent says, and the tools that come with it."""

from __future__ import annotations

from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolSpec, is_stop
from muarl.users.base import HoldsSomething, UserFactory, UserTurn
from muarl.users.scripted import Line, TurnsUser, TurnsUserFactory

SHIP = ToolSpec("ship", "Ship an order.", {"type": "object", "properties": {}})
LINES: list[Line] = [("First.", ()), ("Second.", (SHIP,)), ("", ())]
TASK = Task(id="t", domain="d", scenario="", actions=(), agenda={"lines": ["One", "Two"]})


async def test_one_line_after_the_other_and_then_the_end() -> None:
    user = TurnsUser(LINES)
    heard = [[], [Message("assistant", "###STOP###")], [Message("assistant", None)], [], []]
    said = [await user.reply(conversation) for conversation in heard]
    assert said[:3] == [
        UserTurn(Message("user", "First.")),
        UserTurn(Message("user", "Second."), tools=(SHIP,)),
        UserTurn(Message("user", "")),
    ]
    assert [is_stop(turn.message) for turn in said] == [False, False, False, True, True]
    assert not said[-1].tools and not isinstance(user, HoldsSomething)


async def test_without_lines_there_is_nothing_to_say() -> None:
    assert is_stop((await TurnsUser([]).reply([])).message)


async def test_a_factory_finds_the_lines_in_the_task_and_begins_anew() -> None:
    factory: UserFactory = TurnsUserFactory(lambda task: [(line, ()) for line in (task.agenda or {})["lines"]])
    assert factory.name == "scripted turns"
    assert TurnsUserFactory(lambda task: [], name="fixed").name == "fixed"
    for seed in (0, 1):
        user = factory(TASK, seed=seed)
        assert [(await user.reply([])).message.content for _ in range(2)] == ["One", "Two"]
