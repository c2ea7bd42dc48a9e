"""What an end leaves open: proposals, offers and questions for facts, answered in many words or not at all."""

from __future__ import annotations

import pytest

from muarl.domains.tasks import Task
from muarl.types.chat import GREETING, Message, ToolCall
from muarl.user_errors.endings import ended_early

TASK = Task("t", "shop", "You want to return your lamp.", ())
ASKED_AND_LEFT = "asks for something and ends before it can be done"
UNANSWERED = "leaves the agent's request for consent without an answer"
PROPOSAL = "I found your lamp. Would you like to proceed with the return?"
OFFER = "I cannot refund it to another card. Would you like me to look at your other orders?"
FACT = "To proceed with the return, please confirm the order ID."


@pytest.mark.parametrize(
    ("asked", "answer", "expected"),
    [
        (PROPOSAL, "Yes, please.", ASKED_AND_LEFT),
        (PROPOSAL, "Sure, sounds good, bye.", ASKED_AND_LEFT),
        (PROPOSAL, "Great, thanks!", ASKED_AND_LEFT),
        (PROPOSAL, "Thank you, you have been a great help.", UNANSWERED),
        (PROPOSAL, "", UNANSWERED),
        (PROPOSAL, "No, I'd rather keep it.", None),
        (PROPOSAL, "Yes, but not today, I will call back later.", None),
        ("Please let me know if you would like to proceed with this return.", "Ok.", ASKED_AND_LEFT),
        ("Please let me know if you would like to proceed with this return.", "", UNANSWERED),
        ("It cannot be refunded. Would you like to cancel it all the same?", "Yes, please.", ASKED_AND_LEFT),
        (OFFER, "Yes, please.", ASKED_AND_LEFT),
        (OFFER, "Thank you, that is all.", None),
        (OFFER, "", None),
        (f"{OFFER} Please confirm if that is right.", "", UNANSWERED),
        (FACT, "", UNANSWERED),
        (FACT, "Yes, please.", ASKED_AND_LEFT),
        ("Your return is done. Is there anything else?", "Great, thanks!", None),
        ("Would you like me to help with anything else?", "Great, thanks!", None),
    ],
)
def test_what_is_left_open(asked, answer, expected):
    talk = [
        Message("assistant", GREETING),
        Message("user", "I want to return my lamp."),
        Message("assistant", None, (ToolCall("c", "get_order", {}),)),
        Message("tool", "{}", tool_call_id="c", name="get_order"),
        Message("assistant", asked),
        Message("user", f"{answer} ###STOP###".strip()),
    ]
    assert ended_early(TASK, talk, has_tools=False) == expected
