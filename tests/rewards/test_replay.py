"""Recorded conversations run again: what is re-run, what is compared, and what cannot be replayed."""

from __future__ import annotations

import pytest

from muarl.domains.base import Domain
from muarl.domains.tooling import tool
from muarl.rewards.replay import ReplayError, replay
from muarl.types.chat import Message, ToolCall


class Bell(Domain):
    name = "bell"

    @tool(writes=True)
    def ring(self) -> str:
        """Ring."""
        return "ding"


class Till(Domain):
    database = {"till": {"sum": {"value": 0}}}
    user_toolkit = Bell

    @tool(writes=True)
    def put(self, amount: float) -> float:
        """Put money in."""
        record = self.db.till["sum"]
        record["value"] += amount
        if amount < 0:
            raise ValueError("https://errors.pydantic.dev/2.99/v/bad")
        return record["value"]

    @tool
    def look(self) -> float:
        """Look."""
        return self.db.till.peek("sum")["value"]

    def sync(self, world):
        record = world.toolkit().db.till["sum"]
        record["synced"] = record.get("synced", 0) + 1


def exchange(content, name="put", requestor="assistant", role=None, **arguments):
    call = ToolCall("c", name, arguments, requestor)
    side = role or requestor
    return [Message(side, None, (call,)), Message("tool", content, tool_call_id="c", requestor=requestor)]


def total(world):
    return world.toolkit().db.till.peek("sum")


@pytest.fixture
def world():
    return Till(semantics="official").world()


def test_only_writes_run_again_and_the_sides_are_brought_in_step_at_the_end(world):
    talk = [Message("system", "s"), *exchange("wrong", "look"), *exchange("wrong", "made_up"), *exchange("2", amount=2)]
    assert replay(world, talk) == ()
    assert total(world) == {"value": 2, "synced": 2}  # after the call, and at the end
    assert replay(world, []) == () and total(world)["synced"] == 3


def test_a_failed_write_runs_again_too_whatever_the_pydantic_version_was(world):
    replay(world, exchange("Error: https://errors.pydantic.dev/2.10/v/bad", amount=-5))
    assert total(world) == {"value": -5, "synced": 1}


def test_results_are_compared_as_json(world):
    replay(world, exchange(" 2.0", amount=2))
    with pytest.raises(ReplayError, match=r"put now answers '4', but the recorded answer is '4 EUR'"):
        replay(world, exchange("4 EUR", amount=2))
    for content in ("1" * 5000, "[" * 100_000):  # what no parser takes is compared as text
        with pytest.raises(ReplayError, match="now answers"):
            replay(world, exchange(content, amount=1))


def test_leniently_differences_are_told_and_passed_over(world):
    told = replay(world, [*exchange("9", amount=2), *exchange("4", amount=2), *exchange("x", amount=1)], strict=False)
    assert len(told) == 2 and "recorded answer is '9'" in told[0]
    assert total(world)["value"] == 5


def test_both_sides_calls_run_again_each_as_its_own(world):
    replay(world, exchange("ding", "ring", "user"))
    replay(world, exchange("Error: Tool 'ring' not found.", "ring", "assistant"))
    with pytest.raises(ReplayError, match="now answers"):
        replay(world, exchange("ding", "ring", "assistant"))


def test_an_agent_that_worked_alone_had_the_users_tools(world):
    replay(world, exchange("ding", "ring", "assistant"), solo=True)
    with pytest.raises(ReplayError, match="a user speaks"):
        replay(world, [Message("user", "hello")], solo=True)
