"""The simulated colleague: what they decide, what they ask for, and what stands in the world then."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.base import World
from muarl.domains.kit.colleague import APPROVALS, covers
from muarl.domains.tasks import Task
from muarl.domains.tooling import tool
from muarl.kit import ApprovalDomain, ApprovalRequest, Colleague
from muarl.types.chat import ToolCall

ORDERS = {f"O-{number}": {"order_id": f"O-{number}", "budget": number} for number in range(200)}


def shop(colleague: Colleague, **tables: Any) -> World:
    """A fresh world with this colleague."""

    class Shop(ApprovalDomain):
        name = "shop"
        policy = "Pay orders."

        @tool(writes=True)
        def pay(self, order_id: str) -> str:
            """Pay an order."""
            return "paid"

        @tool
        def get_order(self, order_id: str) -> str:
            """An order."""
            return order_id

    Shop.colleague = colleague
    return Shop(database={"orders": ORDERS, APPROVALS: {}} | tables).world(Task("t", "shop", "", ()))


def ask(world: World, record: str = "O-7", action: str = "pay", amount: Any = 120, reason: str = "Why not.") -> Any:
    """What the colleague answers; a text for an error."""
    given = {"action": action, "record_id": record, "amount": amount, "reason": reason}
    given = {name: value for name, value in given.items() if value is not None}
    result = world.call("assistant", ToolCall("x", "request_approval", given))
    return result.content if result.error else json.loads(result.content)


def test_a_decision_follows_from_action_and_record_and_is_noted_without_the_reason() -> None:
    lead = Colleague("the lead", declines=0.4, because=("no budget", "too late"))
    one, other = shop(lead), shop(lead)
    first = [ask(one, f"O-{n}") for n in range(200)]
    assert first == [ask(other, f"O-{n}", amount=5, reason="Another.") for n in reversed(range(200))][::-1]
    declined = [answer for answer in first if answer["decision"] == "declined"]
    assert 50 < len(declined) < 110 and {answer["because"] for answer in declined} == {"no budget", "too late"}
    noted = one.toolkit("assistant").db[APPROVALS]["pay O-7"]
    assert dict(noted) == {"action": "pay", "record_id": "O-7", "amount": 120.0, "because": "", **first[7]}


def test_how_the_amount_is_written_and_what_the_reason_says_leave_the_same_state() -> None:
    lead = Colleague("the lead", declines=0.0)
    one, other, third = shop(lead), shop(lead), shop(lead)
    ask(one, amount=120)
    ask(other, amount=120.0, reason="In other words.")
    ask(third, amount=121)
    assert one.digest() == other.digest() != third.digest()


def test_what_is_missing_is_asked_for_and_leaves_no_trace() -> None:
    world = shop(Colleague("the lead", declines=0.0))
    before = world.digest()
    assert ask(world, amount=None, reason=" ") == {"decision": "open", "missing": ["amount", "reason"]}
    assert ask(world, reason="") == {"decision": "open", "missing": ["reason"]}
    assert world.digest() == before
    assert ask(world) == {"decision": "approved"} and world.digest() != before
    free, other = (shop(Colleague("x", declines=0.0, no_amount=("pay",))) for _ in range(2))
    assert ask(free, amount=None) == ask(other, amount=0) == {"decision": "approved"}
    assert free.digest() == other.digest(), "an amount where there is none says nothing"


def test_an_author_may_decide_and_sees_the_world() -> None:
    def objects(request: ApprovalRequest) -> str | None:
        return None if request.tables.orders[request.record_id].budget > 100 else "the budget is too small."

    world = shop(Colleague("the lead", objects=objects))
    assert ask(world, "O-150") == {"decision": "approved"}
    assert ask(world, "O-7") == {"decision": "declined", "because": "the budget is too small"}


def test_nobody_is_asked_about_what_there_is_not() -> None:
    world = shop(Colleague("the lead", declines=0.0))
    assert "action must be one of pay, not 'get_order'" in ask(world, action="get_order")
    assert "not 'request_approval'" in ask(world, action="request_approval")
    assert "no record 'O-999'" in ask(world, "O-999")
    assert not list(world.toolkit("assistant").db[APPROVALS])


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: Colleague(" "), "name"),
        (lambda: Colleague("the lead", declines=1.5), "declines must be a share"),
        (lambda: Colleague("the lead", because=()), "because: give a reason"),
        (lambda: Colleague("the lead", needs=("budget",)), "'budget' is neither"),  # type: ignore[arg-type]
    ],
)
def test_a_mistake_is_named(declare: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        declare()


@pytest.mark.parametrize(
    ("approval", "wanted"),
    [
        ({}, True),
        ({"amount": 300}, True),
        ({"amount": 199}, False),
        ({"amount": None}, False),
        ({"decision": "declined"}, False),
        ({"decision": "open"}, False),
        ({"record_id": "O-8"}, False),
        ({"action": "ship"}, False),
    ],
)
def test_what_a_yes_covers(approval: dict[str, Any], wanted: bool) -> None:
    needed = {"action": "pay", "record_id": "O-7", "amount": 200}
    assert covers({**needed, "decision": "approved", **approval}, needed) is wanted
