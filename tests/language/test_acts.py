"""What agents' messages do: labelled by hand, and as our experts and other agents say it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.environments.registry import find
from muarl.language.acts import asks_for_answer, asks_for_yes, asks_to_go_ahead, hear
from muarl.language.consent import is_affirmative
from muarl.language.sentences import normal_text, sentences, without_open_questions
from support.environments import MADE
from support.replies import answered_with

ASKS_FOR_YES = (
    "Before I proceed, could you please confirm that you want order F-10001 cancelled (yes/no)?",
    "Would you like me to book that for you?",
    "Do you want me to go ahead?",
    "Should I change it to Friday?",
    "I will cancel order #W1 (no longer needed). Shall I go ahead?",
    "To be sure: I am going to add breakfast. Is that right?",
    "I will change it to a suite. Is that what you want? (yes/no)",
    "All right, I would book Dr. Tamm for you on March 19. May I go ahead?",
    "I can offer one with a paper shade only. Shall I exchange it for that one?",
    "For $40 on your card, shall I?",
    "I'd exchange item 4471093320 for 8802215547. Do you agree?",
    "Please confirm if you would like me to proceed.",
    "Please confirm if this is correct, and I'll proceed with the update.",
    "To cancel order #W1234567, please confirm with yes.",
    "Please let me know if you would like to proceed with this exchange.",
    "It cannot be refunded. Would you like to cancel it all the same?",
    "Your order will be cancelled. Is that ok?",
    "I would cancel the flight. Are you okay with that?",
    "Which one? Sorry, I see it now: shall I send the blue one?",
    'I will refund it to your card. Reply "yes" and I do it.',
    "May I modify the items?",
    "I’ll move it to Friday. OK?",
    "Would you like me to transfer you to a human agent?",
)
ASKS_FOR_SOMETHING_ELSE = (
    "Which payment method should I use?",
    "The card was refused. Which one shall I take instead?",
    "On which day would you like to come?",
    "To which account should it go?",
    "What would you like to know?",
    "How many would you like?",
    "How would you like to proceed?",
    "May I ask for the reason?",
    "May I have your name and zip code?",
    "May I help with another reservation?",
    "Could you please confirm your name and phone number?",
    "For your security, please confirm your email address first.",
    "To proceed with the return, please confirm the order ID.",
    "To proceed, I'll need to authenticate you. Could you provide your email address?",
    "Let me know how you'd like to proceed!",
    "I cannot do that, order #W3634856 is delivered. Anything else?",
    "Would you like to know anything else?",
    "Would you like to cancel a pending order or return a delivered order?",
    "I will proceed with the return. Let me look at the order first.",
    "Once you provide the details, I'll confirm the changes with you.",
    "Your order has been cancelled successfully.",
    "You are being transferred to a human agent. Please hold on.",
    "",
    None,
)


@pytest.mark.parametrize("text", ASKS_FOR_YES)
def test_it_asks_for_a_yes(text):
    assert asks_for_yes(text) and asks_for_answer(text) and "confirm" in hear(text)


@pytest.mark.parametrize("text", ASKS_FOR_SOMETHING_ELSE)
def test_it_asks_for_no_yes(text):
    assert not asks_for_yes(text) and not asks_to_go_ahead(text) and "confirm" not in hear(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Shall I go ahead?", True),
        ("Is that all right? Then please confirm.", True),
        ("Shall I do it?", True),
        ("Is that right? (yes/no)", True),
        ("Shall I cancel order #W1?", False),
        ("I cannot do that. Anything else?", False),
        ("To proceed, I need your e-mail address. What is it?", False),
    ],
)
def test_some_leave_open_what_for(text, expected):
    assert asks_to_go_ahead(text) is expected


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("I'm sorry, but I am unable to do that.", {"refuse"}),
        ("That is against our policy.", {"refuse"}),
        ("I can’t do that.", {"refuse"}),
        ("The suite isn't available on those nights.", {"unavailable"}),
        ("Unfortunately that slot is already taken.", {"unavailable"}),
        ("Your order has been cancelled successfully.", {"done"}),
        ("Is there anything else I can help you with today?", {"done", "else", "question"}),
        ("I'm transferring you to a human agent now.", {"transferred"}),
        ("I will transfer $200 to your savings account.", set()),
        ("The money has been transferred to your savings.", {"done"}),
        ("To get started, I need to verify your identity.", {"ask_identity"}),
        ("The suite is not available. Shall I book the double room?", {"unavailable", "confirm", "question"}),
        ("Which date is it?", {"question"}),
        ("", set()),
    ],
)
def test_other_acts(text, acts):
    assert hear(text) == acts


ALIKE = ("hotel", "clinic", "insurance", "insurer-knowledge", "utility-knowledge")
"""Served by the same expert as others: in the slow tests."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.removesuffix("-generated") in ALIKE else ())
        for name in MADE
        if name != "bfcl-generated"
    ],
)
def test_experts_ask_for_a_yes_before_they_write_and_only_then(name):
    environment = find(name)
    kind_of = environment.make_domain().kind_of
    asked = 0
    for episode in answered_with(environment, "Yes, please.", environment.make_tasks("validation", 8)):
        said = ""
        for message in episode.messages:
            if message.role == "assistant" and not message.tool_calls:
                said = message.content or ""
                closing = normal_text(said).endswith(("else?", "else i can do for you?", "else can i do for you?"))
                assert not (closing and asks_for_yes(said)), said
            elif message.role == "user" and said and not is_affirmative(message.content):
                said = ""
            elif any(kind_of(c.name) == "write" for c in message.tool_calls) and said:
                asked += 1
                assert asks_for_yes(said), said
    assert asked >= 3


@given(st.text(max_size=200))
def test_any_text_can_be_heard(text):
    assert ("confirm" in hear(text)) == asks_for_yes(text)
    assert asks_for_answer(text) or not asks_for_yes(text)
    assert asks_for_yes(text) or not asks_to_go_ahead(text)
    assert asks_for_yes(text) == asks_for_yes(f" {text.upper()} ") or text.lower() != text.upper().lower()


def test_texts_are_cut_into_sentences():
    assert normal_text("  It’s\n fine ") == "it's fine" and normal_text(None) == ""
    assert sentences("yes. no, wait!") == ["yes.", "no, wait!"] and sentences(" ") == []
    assert without_open_questions("i have it. on which day shall i come? is that right?").split() == [
        "i", "have", "it.", "is", "that", "right?",
    ]  # fmt: skip


def test_who_changes_the_acts_of_a_message_changes_no_other_answer():
    text = "Your order is not available. Shall I go ahead with another one?"
    first = hear(text)
    kept = set(first)
    first.clear()
    assert hear(text) == kept == {"unavailable", "confirm", "question"}
    assert asks_for_yes(text) and asks_for_yes(text)
