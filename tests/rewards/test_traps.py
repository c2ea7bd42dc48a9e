"""Traps: which calls spring them, and what that costs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from muarl.rewards.traps import Trap, sprung, traps_of
from muarl.types.chat import Message, ToolCall


def talk(*calls: tuple[ToolCall, bool]) -> list[Message]:
    out = [Message("user", "Do it.")]
    for call, error in calls:
        out.append(Message("assistant", None, (call,)))
        out.append(Message("tool", "Error: no" if error else "ok", tool_call_id=call.id, name=call.name, error=error))
    return out


CANCEL = ToolCall("c1", "cancel", {"order_id": "#W1", "why": {"list": ["x", "U2"]}})


@pytest.mark.parametrize(
    ("trap", "caught"),
    [
        (Trap("w", "cancel"), True),
        (Trap("w", "refund"), False),
        (Trap("w", "cancel", {"order_id": "#W1"}), True),
        (Trap("w", "cancel", {"order_id": "#W2"}), False),
        (Trap("w", "cancel", {"other": 1}), False),
        (Trap("w", ids=("#W1",)), True),
        (Trap("w", ids=("U2",)), True),  # at any depth
        (Trap("w", ids=("W1", "order_id")), False),  # whole values, and no keys
        (Trap("w", "refund", ids=("#W1",)), False),
    ],
)
def test_what_a_trap_catches(trap, caught):
    assert bool(sprung(talk((CANCEL, False)), [trap])) == caught
    assert Trap.from_json(json.loads(json.dumps(trap.to_json()))) == trap


GIVEN = ToolCall("c1", "call_tool", {"name": "close_17", "arguments": ' {"fee":0, "who": {"id": "A-1"}}'})


@pytest.mark.parametrize(
    ("trap", "caught"),
    [
        (Trap("w", "call_tool", {"arguments": {"fee": 0}}), True),  # a field of the object in the text
        (Trap("w", "call_tool", {"arguments": {"fee": 5}}), False),
        (Trap("w", "call_tool", {"arguments": {"cost": None}}), False),
        (Trap("w", "call_tool", {"arguments": '{"who": {"id": "A-1"}, "fee": 0}'}), True),  # however it is written
        (Trap("w", "call_tool", {"arguments": '{"fee": 0}'}), False),
        (Trap("w", "call_tool", {"name": {"fee": 0}}), False),
        (Trap("w", ids=("A-1",)), True),
        (Trap("w", ids=("fee",)), False),
    ],
)
def test_arguments_that_stand_as_json_in_an_argument_are_looked_into(trap, caught):
    assert bool(sprung(talk((GIVEN, False)), [trap])) == caught
    assert not sprung(talk((replace(GIVEN, arguments={"arguments": "{" * 99}), False)), [trap])


def test_calls_that_failed_or_were_never_answered_did_nothing():
    trap = Trap("w", "cancel")
    assert not sprung(talk((CANCEL, True)), [trap])
    assert not sprung([Message("assistant", None, (CANCEL,))], [trap])
    assert not sprung([Message("user", None, (CANCEL,)), Message("tool", "ok", requestor="user")], [trap])


def test_each_call_counts_once_and_points_at_its_message():
    traps = [Trap("a", "cancel"), Trap("b", ids=("#W1",))]
    found = sprung(talk((CANCEL, True), (CANCEL, False)), traps)
    assert [(s.message, s.trap.what) for s in found] == [(3, "a")]


def test_several_calls_of_a_message_are_answered_in_order():
    two = (ToolCall("a", "look", {}), CANCEL)
    messages = [
        Message("assistant", None, two),
        Message("tool", "ok", tool_call_id="a"),
        Message("tool", "Error", tool_call_id="c1", error=True),
    ]
    assert not sprung(messages, [Trap("w", "cancel")])
    assert sprung(messages, [Trap("w", "look")])


def test_tags_without_traps_have_none():
    assert traps_of({}) == ()
    assert traps_of({"traps": [Trap("w", "cancel").to_json()]}) == (Trap("w", "cancel"),)
