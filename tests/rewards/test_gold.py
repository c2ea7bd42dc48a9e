"""Gold actions that fail are found before any work, named with their cause, and never make doing nothing right."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace
from typing import Any

import pytest

from muarl.basics.errors import DataError
from muarl.domains.authoring import AuthoringWarning
from muarl.domains.base import Domain, World
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.rewards import gold, outcome
from muarl.rewards.gold import check_tasks, gold_digest
from muarl.types.chat import Message, ToolCall, ToolResult
from muarl.types.episode import StopReason


class Till(Domain):
    """What a customer of a café may use."""

    name = "till"
    database = {"tills": {"t": {"open": False}}}

    @tool(writes=True)
    def pay(self, amount: int) -> str:
        """Pay."""
        self.db.tills["t"]["open"] = True
        return "paid"


class Cafe(Domain):
    database = {"tables": {"1": {"guests": 0}}}
    user_toolkit = Till

    @tool(writes=True)
    def seat(self, table: str, guests: int) -> dict[str, Any]:
        """Seat guests."""
        if guests > 4:
            raise ValueError("a table has four seats")
        self.db.tables[table]["guests"] = guests
        return self.db.tables[table]

    @tool(writes=True)
    def order(self, dish: str) -> Any:
        """Order a dish."""
        self.db.tables["1"]["dish"] = dish
        return {"soup": "Error: the soup is sold out", "cake": {"error": "no cake"}}.get(
            dish, {"error": None, "dish": dish}
        )


def task(*actions: Action, name: str = "seat-two") -> Task:
    return Task(name, "cafe", "Two people come.", actions)


RIGHT = Action("seat", {"table": "1", "guests": 2})
WRONG = {
    "unknown tool": (Action("seet", {"table": "1", "guests": 2}), "unknown tool: there is no tool 'seet'"),
    "name": (Action("seat", {"tabel": "1", "guests": 2}), "wrong argument: seat: missing argument 'table'"),
    "type": (Action("seat", {"table": "1", "guests": "2"}), "wrong argument: seat: argument 'guests' must be a whole"),
    "raises": (Action("seat", {"table": "1", "guests": 9}), "raises ValueError: a table has four seats"),
    "bug": (Action("seat", {"table": "7", "guests": 2}), "raises KeyError: '7'"),
    "text": (Action("order", {"dish": "soup"}), "returns an error: Error: the soup is sold out"),
    "object": (Action("order", {"dish": "cake"}), "returns an error: "),
    "side": (Action("seat", {"table": "1", "guests": 2}, "user"), "by the user: unknown tool"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_failing_gold_action_is_named_with_its_cause(wrong: str) -> None:
    action, cause = WRONG[wrong]
    with pytest.raises(DataError) as caught:
        check_tasks(Cafe(), [task(RIGHT, name="good"), task(RIGHT, action)])
    text = str(caught.value)
    assert f"task seat-two: actions[1], {action.name}(" in text and cause in text
    assert all(str(value) in text for value in action.arguments.values())
    assert "domain.allow_failing_gold=true" in text and "allow_failing_gold = True" in text


async def test_no_way_of_scoring_accepts_it_silently() -> None:
    wrong, domain = task(WRONG["raises"][0]), Cafe()
    world = domain.world(wrong)
    for failing in (
        lambda: outcome.score(wrong, world, (), StopReason.USER_STOP),
        lambda: outcome.do_nothing(domain, wrong),
        lambda: asyncio.to_thread(gold_digest, domain, wrong),
    ):
        with pytest.raises(DataError, match="a table has four seats"):
            await failing()


def test_good_tasks_pass_and_are_replayed_once() -> None:
    made: list[World] = []
    domain = Cafe()
    domain.prepare = made.append  # type: ignore[method-assign,assignment]
    good = [task(RIGHT), task(), task(Action("order", {"dish": "pie"})), replace(task(), actions=None)]
    good.append(task(RIGHT, Action("pay", {"amount": 3}, "user")))
    assert check_tasks(domain, good) == 0 and len(made) == 4
    assert check_tasks(domain, good) == 0
    assert gold_digest(domain, good[0]) != gold_digest(domain, good[1]) and len(made) == 4
    del good
    made.clear()
    gc.collect()
    assert gold._known[domain] == {}


async def test_they_pass_where_that_is_asked_for_with_a_warning_that_counts_them() -> None:
    tasks = [task(RIGHT), task(WRONG["raises"][0], name="first"), task(WRONG["name"][0])]
    domain = Cafe()
    domain.allow_failing_gold = True
    with pytest.warns(AuthoringWarning, match=r"2 of 3 tasks have a gold action that fails.*The first: task first"):
        assert check_tasks(domain, tasks) == 2
    assert (await outcome.do_nothing(domain, tasks[1])).reward == 1.0, "as was said"
    assert not Cafe().allow_failing_gold


@pytest.mark.parametrize("how", ["benchmark", "official"])
async def test_official_tasks_are_never_refused(how: str) -> None:
    wrong = replace(task(RIGHT, WRONG["raises"][0]), benchmark=how == "benchmark")
    domain = Cafe(semantics="official" if how == "official" else "fixed")
    assert check_tasks(domain, [wrong]) == 0
    world = domain.world(wrong)
    world.call("assistant", ToolCall("1", "seat", {"table": "1", "guests": 2}))
    assert (await outcome.score(wrong, world, (), StopReason.USER_STOP)).reward == 1.0


def test_a_history_that_does_not_fit_is_named() -> None:
    history: tuple[Message, ...] = (Message("assistant", None, (ToolCall("1", "seat", {"table": "1", "guests": 9}),)),)
    history += (Message("tool", "seated", tool_call_id="1"),)
    with pytest.raises(DataError, match="task seat-two: its history cannot be replayed: call 1: seat now answers"):
        check_tasks(Cafe(), [replace(task(RIGHT), history=history)])


class SlowWorld(World):
    async def state_digest(self) -> str:
        await asyncio.sleep(0)
        return self.digest()

    async def answers(self, requestor, calls):  # type: ignore[no-untyped-def]
        for call in calls:
            await asyncio.sleep(0)
            yield ToolResult("no such thing", True) if call.name == "order" else self.call(requestor, call)


class SlowCafe(Cafe):
    def world(self, task: Task | None = None) -> World:
        return SlowWorld(self, task)


def test_worlds_that_must_be_waited_for_are_checked_too() -> None:
    domain = SlowCafe()
    assert check_tasks(domain, [task(RIGHT)]) == 0
    with pytest.raises(DataError, match=r"order\(.*returns an error: no such thing"):
        check_tasks(domain, [task(RIGHT, Action("order", {"dish": "pie"}))])


async def test_and_from_within_an_event_loop() -> None:
    with pytest.raises(DataError, match="no such thing"):
        check_tasks(SlowCafe(), [task(Action("order", {"dish": "pie"}))])
    wrong, domain = task(Action("order", {"dish": "pie"})), SlowCafe()
    with pytest.raises(DataError, match="no such thing"):
        await gold.gold_state(domain.world(wrong), wrong)
