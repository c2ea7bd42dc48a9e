"""The caller of a shop: what it tells and when, what it agrees to. What it does as all callers do: test_caller.py."""

from __future__ import annotations

import pytest

from muarl.users.agenda import PATIENCE
from support.callers import ended
from support.generated import request
from support.talk import ADDRESS, ASK, CANCEL, MOVE, PAY, RETURN, SWAP, Talk, agrees, cancel

# what it tells


@pytest.mark.parametrize(
    ("persona", "told", "kept"),
    [
        ("terse", ["#W3333333", "the mug", "a blue one"], ["credit card", "Berg"]),
        ("chatty", ["#W3333333", "the mug", "a blue one", "credit card"], ["Berg"]),
        ("confused", ["the mug"], ["#W3333333", "blue", "credit card", "Berg"]),
        ("impatient", ["#W3333333", "the mug", "a blue one", "credit card", "Mia", "Berg", "12345"], []),
    ],
)
def test_a_persona_decides_what_is_told_at_once(persona, told, kept):
    for seed in range(5):
        opening = Talk(request("exchange", SWAP), persona=persona, seed=seed).opening
        assert all(t in opening for t in told) and "exchange" in opening
        assert not any(k in opening for k in kept)


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_it_answers_what_it_is_asked(persona):
    asked = {
        ("exchange", "Which order is it?"): ["#W3333333"],
        ("exchange", "Which item is it?"): ["the mug"],
        ("exchange", "Which option would you like?"): ["a blue one"],
        ("exchange", "Which payment method should I use?"): ["credit card"],
        ("return", "Which items would you like to return?"): ["the mug and the lamp"],
        ("cancel", "Is it no longer needed or ordered by mistake?"): ["no longer needed"],
        ("modify_address", "What is the new address?"): ["12 Elm Street", "Suite 1", "Boston", "MA", "54321"],
        ("modify_payment", "Which payment method should I use?"): ["gift card"],
        ("question", "Which item is it?"): ["the rug"],
        ("cancel", "May I have your name and zip code?"): ["Mia", "Berg", "12345"],
    }
    wishes = {
        "exchange": SWAP, "return": RETURN, "cancel": CANCEL, "modify_address": MOVE, "modify_payment": PAY,
        "question": ASK,
    }  # fmt: skip
    for (kind, question), answer in asked.items():
        said = Talk(request(kind, wishes[kind]), persona=persona).hear(question)
        assert all(a in said for a in answer), (question, said)


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_a_forgotten_order_is_described_and_its_number_never_said(persona):
    wish = {**SWAP, "described": "Mug"}
    talk = Talk(request("exchange", wish, unknown=["order_id"]), persona=persona)
    assert ("the order with the mug in it" in talk.opening) == (persona != "terse")
    assert "the order with the mug in it" in talk.hear("Which order is it?")
    talk.hear("Hmm.")
    talk.hear("Which option would you like?")
    assert agrees(talk.hear("I will exchange in order #W3333333 mug 1 for blue 2. Shall I go ahead?"))
    assert not any("#W" in m.content for m in talk.messages if m.role == "user")


# proposals

PROPOSALS = [
    ("cancel", CANCEL, "I will cancel order #W1111111 (no longer needed). Shall I go ahead?"),
    ("return", RETURN, "I will return from order #W2222222 mug 1 and lamp 2 refund to paypal_3. Shall I go ahead?"),
    ("exchange", SWAP, "I will exchange in order #W3333333 mug 1 for blue 2 pay with credit_card_3. Shall I go ahead?"),
    (
        "modify_items",
        SWAP,
        "I will change in order #W3333333 mug 1 to blue 2 pay with credit_card_3. Shall I go ahead?",
    ),
    ("modify_payment", PAY, "I will change the payment of order #W5555555 to gift_card_2. Shall I go ahead?"),
    (
        "modify_address",
        MOVE,
        "I will send order #W4444444 to 12 Elm Street, Suite 1, Boston, MA 54321. Shall I go ahead?",
    ),
    # The same things in the words of a language model.
    ("cancel", CANCEL, "To confirm: cancel order #W1111111, since it is no longer needed. Is that correct? (yes/no)"),
    ("return", RETURN, "I can return the Mug and the Lamp, refunding your PayPal. Do you want me to proceed?"),
    ("exchange", SWAP, "Would you like me to swap the mug for the blue one and charge your credit card?"),
    ("modify_address", MOVE, "I'll update the shipping address to 12 Elm Street, Suite 1, Boston. Is this correct?"),
]


@pytest.mark.parametrize(("kind", "wish", "proposal"), PROPOSALS)
def test_a_right_proposal_is_confirmed(kind, wish, proposal):
    for seed in range(4):
        talk = Talk(request(kind, wish), seed=seed)
        assert agrees(talk.hear(proposal))
        assert ended(talk.hear("Done. Anything else?"))


@pytest.mark.parametrize(
    ("kind", "wish", "proposal"),
    [
        ("cancel", CANCEL, "I will cancel order #W9999999 (no longer needed). Shall I go ahead?"),
        ("cancel", CANCEL, "I will cancel order #W1111111 (ordered by mistake). Shall I go ahead?"),
        ("cancel", CANCEL, "I will return order #W1111111. Shall I go ahead?"),
        ("return", RETURN, "I will return from order #W2222222 mug 1 refund to paypal_3. Shall I go ahead?"),
        ("return", RETURN, "I will return mug 1 and lamp 2 and rug 4 refund to paypal_3. Shall I go ahead?"),
        ("return", RETURN, "I will return mug 1 and lamp 2 refund to credit_card_3. Shall I go ahead?"),
        ("return", RETURN, "I will cancel order #W2222222. Shall I go ahead?"),
        ("exchange", SWAP, "I will exchange in order #W3333333 mug 1 for green 2. Shall I go ahead?"),
        ("exchange", SWAP, "I will exchange in order #W3333333 lamp 1 for blue 2. Shall I go ahead?"),
        ("exchange", SWAP, "I will exchange mug 1 for blue 2 pay with paypal_3. Shall I go ahead?"),
        ("modify_payment", PAY, "I will change the payment of order #W5555555 to paypal_2. Shall I go ahead?"),
        ("modify_address", MOVE, "I will send order #W4444444 to 7 Canal Road, Suite 1, Boston. Shall I go ahead?"),
    ],
)
def test_a_wrong_proposal_is_refused_and_the_wish_told_again(kind, wish, proposal):
    talk = Talk(request(kind, wish))
    said = talk.hear(proposal)
    assert said.startswith("No, ") and not agrees(said) and wish["order_id"] in said
    assert agrees(talk.hear(next(p for k, _, p in PROPOSALS if k == kind))), "and the right one is still welcome"


@pytest.mark.parametrize(
    ("kind", "wish", "then", "word", "proposal"),
    [
        ("cancel", CANCEL, {**CANCEL, "reason": "ordered by mistake"}, "ordered by mistake", 0),
        ("return", RETURN, {**RETURN, "items": ["Lamp"]}, "the lamp", 1),
        ("exchange", SWAP, {**SWAP, "to": ["green"]}, "a green one", 2),
        ("modify_items", SWAP, {**SWAP, "to": ["1.7 litres"]}, "the same in 1.7 litres", 3),
        ("modify_address", MOVE, {**MOVE, "address": {**ADDRESS, "address1": "7 Canal Road"}}, "7 Canal Road", 5),
    ],
)
def test_it_changes_its_mind_on_hearing_the_proposal(kind, wish, then, word, proposal):
    for seed in range(4):
        talk = Talk(request(kind, wish, then=then), seed=seed)
        said = talk.hear(PROPOSALS[proposal][2])
        assert word in said.replace("It ", "it ") and not agrees(said)
        again = talk.hear(PROPOSALS[proposal][2])
        assert again.startswith("No, ") and word in again, "the old proposal is now a wrong one"


# bad news

SOLD_OUT = "blue is not available. Available are green and red ones. Which one would you like?"


def test_what_is_not_available_is_replaced_by_the_fallback():
    talk = Talk(request("exchange", SWAP, fallback={**SWAP, "to": ["green"]}))
    assert "a green one" in talk.hear(SOLD_OUT)
    assert agrees(talk.hear("I will exchange in order #W3333333 mug 1 for green 2. Shall I go ahead?"))


def test_a_fallback_that_is_proposed_with_the_bad_news_is_taken():
    talk = Talk(request("exchange", SWAP, fallback={**SWAP, "to": ["green"]}))
    assert agrees(talk.hear("The blue one is sold out. Shall I exchange the mug for the green one instead?"))


def test_a_fallback_can_be_to_leave_it():
    talk = Talk(request("exchange", SWAP, fallback={"drop": True}), cancel())
    assert "leave it as it is" in talk.hear(SOLD_OUT)
    assert agrees(talk.hear(PROPOSALS[0][2]))


def test_without_a_fallback_bad_news_is_accepted_in_the_end():
    talk = Talk(request("exchange", SWAP))
    assert ended(talk.hear("I am sorry, blue is not available."))


def test_an_answer_settles_a_question():
    talk = Talk(request("question", ASK, answer="12.50"))
    assert ended(talk.hear("The rug is $12.50. Anything else?"))


# two requests


def test_the_second_of_two_requests_may_be_served_first():
    talk = Talk(cancel(), request("return", RETURN))
    assert agrees(talk.hear(PROPOSALS[1][2]))
    assert agrees(talk.hear(PROPOSALS[0][2]))
    assert ended(talk.hear("Done. Anything else?"))


# endings


def test_a_first_question_costs_no_patience_but_the_same_again_does():
    talk = Talk(request("exchange", SWAP), persona="impatient")
    for question in ("Which order is it?", "Which item is it?", "Which option would you like?", "Name and zip code?"):
        assert not ended(talk.hear(question))
    said = [talk.hear("Which order is it?") for _ in range(PATIENCE["impatient"] + 1)]
    assert [ended(s) for s in said] == [False] * PATIENCE["impatient"] + [True]
