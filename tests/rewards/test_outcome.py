"""Scores from the state of the world, and from recorded conversations."""

from __future__ import annotations

import gc
import json
from dataclasses import replace

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.base import Domain
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.rewards import gold, outcome
from muarl.rewards.judge import make_judge
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import StopReason


class Counter(Domain):
    database = {"numbers": {"n": {"value": 0}}}

    @tool(writes=True)
    def add(self, amount: int) -> int:
        """Add."""
        self.db.numbers["n"]["value"] += amount
        if amount > 100:
            raise ValueError("too much")
        return self.db.numbers["n"]["value"]

    @tool
    def read(self) -> int:
        """Read."""
        return self.db.numbers["n"]["value"]

    def assert_value(self, value: int) -> bool:
        return self.db.numbers.peek("n")["value"] == value


DOMAIN = Counter(semantics="official")
TASK = Task("1", "counter", "", (Action("add", {"amount": 2}), Action("add", {"amount": 101}), Action("read", {})))
STOP = StopReason.USER_STOP


def add(amount: int, name: str = "add", call_id: str = "c") -> ToolCall:
    return ToolCall(call_id, name, {"amount": amount})


async def verdict(task, *amounts, messages=(), stop=STOP, judge=None):
    world = DOMAIN.world(task)
    for amount in amounts:
        world.call("assistant", add(amount))
    return await outcome.score(task, world, messages, stop, judge=judge and make_judge(judge))


async def test_the_database_must_end_as_the_gold_actions_leave_it():
    assert (await verdict(TASK, 2, 101)).breakdown == {"DB": 1.0}
    assert (await verdict(TASK, 101, 1, 1)).reward == 1.0
    assert (await verdict(TASK, 2)).reward == 0.0
    fixed = Counter()  # there the failing gold action leaves nothing behind, if it may fail at all
    fixed.allow_failing_gold = True
    world = fixed.world(TASK)
    world.call("assistant", add(2))
    assert (await outcome.score(TASK, world, (), STOP)).reward == 1.0
    assert (await outcome.do_nothing(fixed, TASK)).reward == 0.0
    assert (await outcome.do_nothing(fixed, replace(TASK, actions=()))).reward == 1.0


@pytest.mark.parametrize(
    "stop", ["max_steps", "too_many_errors", "timeout", StopReason.MAX_TURNS, StopReason.TOOL_ERRORS]
)
async def test_an_episode_that_nobody_ended_is_worth_nothing(stop):
    found = await verdict(TASK, 2, 101, stop=stop)
    assert (found.reward, dict(found.breakdown)) == (0.0, {}) and str(stop) in (found.note or "")


@pytest.mark.parametrize("stop", ["user_stop", "agent_stop", StopReason.TRANSFER])
async def test_ends_that_a_participant_chose_are_scored(stop):
    assert (await verdict(TASK, 103, stop=stop)).reward == 1.0


async def test_every_part_of_the_basis_must_hold():
    task = replace(
        TASK,
        reward_basis=("DB", "COMMUNICATE", "ACTION", "NL_ASSERTION", "ENV_ASSERTION"),
        communicate_info=("1234",),
        nl_assertions=("is polite",),
        env_assertions=({"env_type": "assistant", "func_name": "assert_value", "arguments": {"value": 103}},),
    )
    said = [
        Message("assistant", "It is 1,234.", (add(2), add(101), ToolCall("", "read"))),
        Message("user", "thanks"),
    ]
    found = await verdict(task, 2, 101, messages=said, judge="pass")
    assert found.reward == 1.0 and list(found.breakdown) == list(task.reward_basis)
    assert (await verdict(task, 2, 101, messages=said, judge="fail")).breakdown["NL_ASSERTION"] == 0.0
    assert (await verdict(task, 3, messages=said, judge="pass")).breakdown["ENV_ASSERTION"] == 0.0
    by_user = [Message("user", "1234")]
    assert (await verdict(task, 2, 101, messages=by_user, judge="pass")).breakdown["COMMUNICATE"] == 0.0
    with pytest.raises(ConfigError, match="name a judge"):
        await verdict(task, 2, 101, messages=said)
    free = replace(task, nl_assertions=(), reward_basis=("NL_ASSERTION",))
    assert (await verdict(free, judge="fail")).reward == 1.0


@pytest.mark.parametrize(
    ("compare", "arguments", "match"),
    [
        (None, {"amount": 2}, True),
        (None, {}, True),  # only the call's own arguments are compared
        (None, {"amount": 3}, False),
        (None, {"amount": 2, "more": 1}, False),
        ((), {"amount": 3}, True),
        (("amount",), {"amount": 2, "more": 1}, True),
        (("amount",), {}, False),
    ],
)
def test_calls_are_compared_as_tau2_compares_them(compare, arguments, match):
    action = Action("add", {"amount": 2}, compare_args=compare)
    assert outcome.matches(action, ToolCall("", "add", arguments)) is match
    assert not outcome.matches(action, ToolCall("", "read", arguments))


def test_the_gold_state_is_computed_once_and_forgotten_with_its_task():
    domain, runs = Counter(semantics="official"), []
    domain.prepare = runs.append  # type: ignore[method-assign]
    task = replace(TASK)
    assert outcome.gold_digest(domain, task) == outcome.gold_digest(domain, task)
    assert len(runs) == 1
    other = replace(TASK, actions=())
    assert outcome.gold_digest(domain, other) != outcome.gold_digest(domain, task)
    del task, other
    runs.clear()
    gc.collect()
    assert gold._known[domain] == {}


def recorded(*pairs):
    messages = []
    for call, content in pairs:
        messages += [Message("assistant", None, (call,)), Message("tool", content, tool_call_id=call.id)]
    return messages


def replayed(messages, **options):
    world = DOMAIN.world()
    outcome.replay(world, messages, **options)
    return json.loads(json.dumps(world.toolkit().db.numbers.peek("n")))["value"]


def test_recorded_conversations_are_replayed_to_their_state():
    told = recorded(
        (add(2), "2"), (add(5, "read"), "wrong"), (add(7, "made_up"), "wrong"), (add(101), "Error: too much")
    )
    assert replayed(told) == 103
    assert replayed(recorded((add(2), " 2"))) == 2  # compared as JSON where both are


@pytest.mark.parametrize(
    ("messages", "part"),
    [
        (recorded((add(2), "3")), "now answers '2'"),
        (recorded((add(2), None)), "no content"),
        ([Message("tool", "2", tool_call_id="c")], "without a preceding call"),
        ([Message("assistant", None, (add(2),))], "no tool message follows"),
        ([Message("assistant", None, (add(2),)), Message("user", "x")], "no tool message follows"),
        ([Message("user", None, (add(2),)), Message("tool", "2", tool_call_id="d")], "result of call 'd'"),
    ],
)
def test_conversations_that_cannot_be_replayed_are_refused(messages, part):
    with pytest.raises(outcome.ReplayError, match=part):
        replayed(messages)


def test_differing_results_may_be_let_pass():
    assert replayed(recorded((add(2), "3")), strict=False) == 2
