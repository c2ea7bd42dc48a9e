"""The caller of an airline: what it tells and when, what it agrees to. What all callers do alike: test_caller.py."""

from __future__ import annotations

import pytest

from muarl.users.agenda import PATIENCE
from support.airline import BAGS, BOOK, CABIN, CANCEL, MOVE, PERSON, Talk, agrees, request
from support.callers import ended

PROPOSE_MOVE = "I will change reservation P4Q1R9 to flight HAT033 on 2024-05-21 in economy at $140. Shall I go ahead?"
PROPOSE_CANCEL = "I will cancel reservation K3M8T2. Shall I go ahead?"

# what it tells


@pytest.mark.parametrize(
    ("persona", "told", "kept"),
    [
        ("terse", ["P4Q1R9", "2024-05-21"], ["gift card", "mia_berg"]),
        ("chatty", ["P4Q1R9", "2024-05-21", "gift card"], ["mia_berg"]),
        ("confused", ["another day"], ["P4Q1R9", "2024-05-21", "gift card", "mia_berg"]),
        ("impatient", ["P4Q1R9", "2024-05-21", "gift card", "mia_berg_1007"], []),
    ],
)
def test_a_persona_decides_what_is_told_at_once(persona, told, kept):
    for seed in range(5):
        opening = Talk(request("flights"), persona=persona, seed=seed).opening
        assert all(t in opening for t in told)
        assert not any(k in opening for k in kept)


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_it_answers_what_it_is_asked(persona):
    asked = {
        ("flights", "Which reservation is it?"): ["P4Q1R9"],
        ("flights", "Which date would you like?"): ["2024-05-21"],
        ("flights", "Which payment method should I use?"): ["gift card"],
        ("cabin", "Which cabin would you like?"): ["business"],
        ("bags", "How many bags in total?"): ["3 bags"],
        ("passenger", "Who is the new passenger?"): ["Nina", "Costa", "1985-03-02"],
        ("cancel", "What is the reason?"): ["health"],
        ("cancel", "May I have your user id?"): ["mia_berg_1007"],
        ("cancel", "Please give me your user id and the reservation number?"): ["mia_berg_1007", "K3M8T2"],
        ("book", "From where do you fly?"): ["JFK"],
        ("book", "Where do you fly to?"): ["SEA"],
        ("book", "Who is flying? Please give me the names and dates of birth of all passengers."): ["Ivan", "Haas"],
        ("book", "Would you like insurance?"): ["Yes", "with insurance"],
    }
    for (kind, question), answer in asked.items():
        said = Talk(request(kind), persona=persona).hear(question)
        assert all(a in said for a in answer), (question, said)


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_a_forgotten_reservation_is_described_and_its_number_never_said(persona):
    wish = {**MOVE, "described": "SEA"}
    talk = Talk(request("flights", wish, unknown=["reservation_id"]), persona=persona)
    assert ("my trip to SEA" in talk.opening) == (persona != "terse")
    assert "my trip to SEA" in talk.hear("Which reservation is it?")
    talk.hear("Hmm.")
    talk.hear("Which date would you like?")
    assert agrees(talk.hear(PROPOSE_MOVE))
    assert not any("P4Q1R9" in m.content for m in talk.messages if m.role == "user")


# proposals and news


@pytest.mark.parametrize(
    ("kind", "wish", "change", "words", "proposal"),
    [
        ("cancel", CANCEL, {"reservation_id": "Z9Z9Z9"}, "cancel reservation Z9Z9Z9", PROPOSE_CANCEL),
        ("flights", MOVE, {"date": "2024-05-29"}, "2024-05-29", PROPOSE_MOVE),
        ("cabin", CABIN, {"cabin": "economy"}, "economy", "I will change B5C6D7 to business. Shall I go ahead?"),
        ("bags", BAGS, {"bags": 4}, "have 4 bags", "I will update E1F2G3 to 3 bags. Shall I go ahead?"),
        (
            "passenger",
            PERSON,
            {"passenger": {"first_name": "Otto", "last_name": "Lund", "dob": "1970-01-02"}},
            "first name Otto, last name Lund, born 1970-01-02",
            "I will change the passenger of H4J5K6 to Nina Costa. Shall I go ahead?",
        ),
    ],
)
def test_it_changes_its_mind_on_hearing_the_proposal(kind, wish, change, words, proposal):
    for seed in range(4):
        talk = Talk(request(kind, wish, then={**wish, **change}), seed=seed)
        said = talk.hear(proposal)
        assert words in said and not agrees(said)
        again = talk.hear(proposal)
        assert again.startswith("No, ") and words.split()[-1] in again, "the old proposal is now a wrong one"


def test_a_booking_may_change_in_several_ways():
    proposal = (
        "I will book flight HAT033 from JFK to SEA on 2024-05-22 in economy for first name Ivan, last name Haas, born "
        "1990-04-05, 2 bags with 1 paid, with insurance. Shall I go ahead?"
    )
    assert agrees(Talk(request("book")).hear(proposal))
    for change, words in (({"insurance": False}, "without insurance"), ({"bags": 3}, "have 3 bags")):
        assert words in Talk(request("book", then={**BOOK, **change})).hear(proposal)


@pytest.mark.parametrize(
    "news",
    [
        "I am sorry, 2024-05-21 is not available. Which other date would you like?",
        "Unfortunately there are no flights on May 21. What other day would work?",
        "I'm sorry, that flight is sold out in your cabin.",
    ],
)
def test_what_is_not_available_is_replaced_by_the_fallback(news):
    talk = Talk(request("flights", fallback={**MOVE, "date": "2024-05-24"}))
    assert "2024-05-24" in talk.hear(news)
    assert agrees(talk.hear(PROPOSE_MOVE.replace("05-21", "05-24")))


def test_news_about_one_wish_is_not_taken_for_news_about_another():
    talk = Talk(request("book"), request("flights", fallback={**MOVE, "date": "2024-05-24"}))
    for _ in range(2):
        talk.hear("I will book JFK to SEA on 2024-05-22 in economy for Ivan Haas, 2 bags. Shall I go ahead?")
    assert "2024-05-24" in talk.hear("I am sorry, 2024-05-21 is not available. Which other date would you like?")


def test_bad_news_without_a_fallback_ends_the_wish():
    talk = Talk(request("cabin"), request("flights"), upfront=False)
    said = talk.hear("business is not available. Which other cabin would you like?")
    assert "P4Q1R9" in said


def test_an_answer_is_recognised_by_its_figure():
    talk = Talk(request("question", answer="1234"))
    assert ended(talk.hear("The flight costs $1,234 for each passenger."))


def test_what_is_done_without_asking_is_believed_and_not_asked_for_without_end():
    talk = Talk(request("cancel"), request("flights"), reminds=True)
    assert agrees(talk.hear(PROPOSE_CANCEL))
    assert "P4Q1R9" in talk.hear("Done. Anything else?")
    assert ended(talk.hear("Done. Anything else?"))
