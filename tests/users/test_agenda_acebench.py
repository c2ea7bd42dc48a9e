"""The callers of phones and travel desks: what is their own. What they do as all callers do: test_caller.py."""

from __future__ import annotations

import pytest

from muarl.users.agenda import PATIENCE
from support import acebench as ace
from support.acebench import Talk, agrees, request
from support.callers import ended

PROPOSE_SEND = 'I will send Omar the message "Dinner is at seven". Shall I go ahead?'
PROPOSE_ORDER = "I will order 2 x fried rice at 20.0 yuan from Golden Wok. Shall I go ahead?"
PROPOSE_MOVE = "I will change res_40 to 2024-07-23 LN1021. Shall I go ahead?"
PROPOSE_CANCEL = "I will cancel res_43. Shall I go ahead?"
PROPOSE_BOOK = (
    "I will book Oslo to Rome on 2024-07-21 LN1021 in Economy Class at 700 yuan, with 2 bags, pay with bank. "
    "Shall I go ahead?"
)

# what it tells


@pytest.mark.parametrize(
    ("persona", "kind", "told", "kept"),
    [
        ("terse", "send", ["Omar", "Dinner is at seven"], ["Nora", "oldest"]),
        ("confused", "send", ["Omar"], ["Dinner is at seven", "Nora", "oldest"]),
        ("impatient", "send", ["Omar", "Dinner is at seven", "Nora"], ["oldest"]),
        ("terse", "order", ["fried rice", "Golden Wok"], ["2", "tulip182"]),
        ("chatty", "order", ["2 x fried rice", "Golden Wok"], ["tulip182", "Nora"]),
        ("confused", "order", ["fried rice"], ["Golden Wok", "2", "tulip182"]),
        ("impatient", "order", ["2 x fried rice", "tulip182", "Nora"], []),
        ("terse", "book", ["Oslo", "Rome", "2024-07-21", "Economy Class"], ["bank", "bags", "user25"]),
        ("confused", "book", ["Oslo", "Rome"], ["2024-07-21", "bank", "bags", "user25"]),
        ("impatient", "book", ["2024-07-21", "with 2 bags", "bank", "user25", "tulip182"], []),
    ],
)
def test_a_persona_decides_what_is_told_at_once(persona, kind, told, kept):
    for seed in range(5):
        opening = Talk(request(kind), persona=persona, seed=seed).opening
        assert all(t in opening for t in told), opening
        assert not any(k in opening for k in kept), opening


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_it_answers_what_it_is_asked(persona):
    asked = {
        ("send", "Who should get it?"): ["Omar"],
        ("send", "What should the message say?"): ['"Dinner is at seven"'],
        ("send", "May I have your name?"): ["Nora"],
        ("send", "Memory is full, which message would you like to delete?"): ["the oldest message"],
        ("delete", "Which message is it?"): ["the message from Petra"],
        ("remind", "What is the title?"): ['"Dentist"'],
        ("remind", "At what time?"): ["2024-06-14 08:30"],
        ("remind", "What should the reminder say?"): ['"Bring cash"'],
        ("order", "Which merchant is it?"): ["Golden Wok"],
        ("order", "Which dish would you like?"): ["fried rice"],
        ("order", "How many would you like?"): ["2"],
        ("order", "May I have your name and password?"): ["Nora", "tulip182"],
        ("move", "Which reservation is it?"): ["res_40"],
        ("move", "Which date would you like?"): ["2024-07-23"],
        ("cabin", "Which cabin would you like?"): ["Business Class"],
        ("cabin", "Cash or bank?"): ["cash"],
        ("bags", "How many bags do you have?"): ["2 bags"],
        ("cancel", "What is the reason?"): ["I am ill"],
        ("cancel", "May I have your user id and password?"): ["user25", "tulip182"],
        ("book", "From where do you fly?"): ["Oslo"],
        ("book", "Where do you fly to?"): ["Rome"],
        ("book", "Which cabin, how many bags, and how would you like to pay: cash or bank?"): [
            "Economy",
            "2 b",
            "bank",
        ],
    }
    for (kind, question), answer in asked.items():
        said = Talk(request(kind), persona=persona).hear(question)
        assert all(a in said for a in answer), (question, said)


def test_a_password_alone_is_told_alone():
    said = Talk(request("order")).hear("What is your password?")
    assert "tulip182" in said and "Nora" not in said
    assert "tulip182" not in Talk(request("send")).hear("May I have your name?")


@pytest.mark.parametrize(("kind", "question"), [("order", "name and password"), ("book", "user id and password")])
def test_a_wrong_password_is_given_once_and_then_the_right_one(kind, question):
    for persona in ("terse", "impatient"):
        talk = Talk(request(kind), persona=persona, wrong_password="tulip999")
        told = talk.opening if persona == "impatient" else talk.hear(f"May I have your {question}?")
        assert "tulip999" in told and "tulip182" not in told
        second = talk.hear("The password is not right. Please check your password.")
        assert "tulip182" in second and "tulip999" not in second


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_what_it_does_not_know_is_never_said(persona):
    wish = {**ace.MOVE, "described": "Rome"}
    talk = Talk(request("move", wish, unknown=["reservation_id"]), persona=persona)
    assert "my trip to Rome" in talk.opening
    assert "my trip to Rome" in talk.hear("Which reservation is it?")
    talk.hear("Which date would you like?")
    assert agrees(talk.hear(PROPOSE_MOVE))
    assert not any("res_40" in m.content for m in talk.messages if m.role == "user")
    talk = Talk(request("order", ace.ASKED_FOR, unknown=["merchant", "product", "quantity"]), persona=persona)
    for question in ("Which merchant is it?", "Which dish would you like?", "How many would you like?"):
        assert "message from Petra" in talk.hear(question)
    assert agrees(talk.hear(PROPOSE_ORDER))
    assert not any("fried rice" in m.content for m in talk.messages if m.role == "user")


# proposals and news


@pytest.mark.parametrize(
    ("kind", "change", "words", "proposal"),
    [
        ("send", {"to": "Zelda"}, "it is for Zelda", PROPOSE_SEND),
        ("send", {"text": "Happy birthday"}, 'should say "Happy birthday"', PROPOSE_SEND),
        ("order", {"quantity": 3}, "3 of it", PROPOSE_ORDER),
        ("order", {"product": "nachos"}, "nachos", PROPOSE_ORDER),
        ("move", {"date": "2024-07-29"}, "2024-07-29", PROPOSE_MOVE),
        ("cancel", {"reservation_id": "res_77"}, "cancel reservation res_77", PROPOSE_CANCEL),
        ("book", {"bags": 1}, "1 bag", PROPOSE_BOOK),
        ("book", {"cabin": "Business Class"}, "Business Class", PROPOSE_BOOK),
        ("delete", {"which": "the latest message", "number": 6}, "the latest message", "I will delete message 4. Ok? "
         "Shall I go ahead?"),
    ],
)  # fmt: skip
def test_it_changes_its_mind_on_hearing_the_proposal(kind, change, words, proposal):
    for seed in range(4):
        talk = Talk(request(kind, then={**ace.WISHES[kind], **change}), seed=seed)
        said = talk.hear(proposal)
        assert words.lower() in said.lower() and not agrees(said)
        assert talk.hear(proposal).startswith("No, "), "the old proposal is now a wrong one"


@pytest.mark.parametrize(
    ("kind", "change", "news", "answer"),
    [
        ("move", {"date": "2024-07-24"}, "I am sorry, 2024-07-23 is not available. Which other date would you like?",
         "2024-07-24"),
        ("move", {"date": "2024-07-24"}, "Unfortunately there are no flights on July 23. What other day would work?",
         "2024-07-24"),
        ("order", {"product": "nachos"}, "I am sorry, fried rice is not available. There is nachos. Which dish would "
         "you like?", "nachos"),
        ("order", {"product": "nachos"}, "Insufficient balance. Would you like to change the order?", "nachos"),
        ("book", {"payment": "cash"}, "Insufficient balance. Which other payment would you like?", "cash"),
        ("send", {"to": "Petra"}, "I am sorry, I cannot find Omar. Who should get it?", "Petra"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_replaced_by_the_fallback(kind, change, news, answer):
    talk = Talk(request(kind, fallback={**ace.WISHES[kind], **change}))
    assert answer in talk.hear(news)


def test_bad_news_may_come_after_the_yes():
    """Too little money is found out only when the order is placed."""
    talk = Talk(request("order", fallback={**ace.ORDER, "product": "nachos"}), request("send"))
    assert agrees(talk.hear(PROPOSE_ORDER))
    assert "nachos" in talk.hear("Insufficient balance. Which other dish would you like?")
    assert agrees(talk.hear(PROPOSE_ORDER.replace("fried rice", "nachos")))
    assert agrees(talk.hear(PROPOSE_SEND))
    assert "the oldest message" in talk.hear("Memory is full, which message would you like to delete?")
    assert ended(talk.hear("Done. Anything else?"))


def test_news_about_one_wish_is_not_taken_for_news_about_another():
    talk = Talk(request("book"), request("move", fallback={**ace.MOVE, "date": "2024-07-24"}))
    assert agrees(talk.hear(PROPOSE_BOOK))
    assert "2024-07-24" in talk.hear("I am sorry, 2024-07-23 is not available. Which other date would you like?")


def test_tasks_that_it_does_not_know_by_heart_are_agreed_to_one_by_one():
    talk = Talk(request("todo", unknown=["quantity", "product", "merchant", "to", "text"]))
    assert agrees(talk.hear(PROPOSE_ORDER))
    assert agrees(talk.hear('I will send Omar the message "I paid 40.0 yuan". Shall I go ahead?'))
    assert ended(talk.hear("Done. Anything else?"))


def test_bad_news_without_a_fallback_ends_the_wish():
    talk = Talk(request("cabin"), request("move"), upfront=False)
    assert "res_40" in talk.hear("Business Class is not available. Which other cabin would you like?")


# endings


def test_long_hostile_texts_are_answered_in_no_time():
    for text in ("no " * 50_000 + "flights", "2 " * 50_000, '"' * 100_001, "which " * 30_000 + "?", "1:" * 50_000):
        assert Talk(request("order")).hear(text)
        assert Talk(request("book")).hear(text)
