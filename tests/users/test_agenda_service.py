"""The user of any service: what it tells and when, what it agrees to, how it ends; with any agent's words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl.language.consent import is_affirmative
from muarl.types.chat import GREETING, STOP_WORDS, Message
from muarl.users.agenda import AgendaUserFactory
from muarl.users.agenda_service import ServiceAgendaUser, tells
from muarl.users.agenda_user import PATIENCE
from support.callers import Conversation, ended
from support.kit import made, service

CANCEL = {"order": "F-10001", "reason": "changed plans"}
SWAP = {"order": "F-10002", "dish": "Pad Thai", "new_dish": "Green Curry"}
TOTAL = {"order": "F-10003"}
FORGOT = {"order": "F-10001", "described order": "Golden Wok", "reason": "changed plans"}
ASK_WHO = "May I have your full name and phone number?"
PROPOSE = "I will cancel order F-10001 (changed plans). Shall I go ahead?"

RETAIL_USER = find("retail-generated").needed_user()


def request(kind: str, goal: dict[str, Any], **more: Any) -> dict[str, Any]:
    plain = {"kind": kind, "intent": kind, "then": None, "fallback": None, "unknown": [], "answer": None}
    return {**plain, **more, "goal": goal}


class Talk(Conversation):
    """A conversation with a user of the food delivery service."""

    def __init__(self, *requests: dict[str, Any], seed: int = 0, **agenda: Any) -> None:
        plain = {
            "persona": "terse", "user": "Mia Berg", "identity": {"name": "Mia Berg", "phone": "415-555-0192"},
            "wrong": {}, "impostor": False, "upfront": True, "reminds": False,
        }  # fmt: skip
        task = Task("t", "food-delivery", "", None, agenda={**plain, "requests": list(requests), **agenda})
        super().__init__(ServiceAgendaUser(task, service=service("food-delivery"), seed=seed))


def cancel(**more: Any) -> dict[str, Any]:
    return request("cancel_order", CANCEL, **more)


# what it tells


def test_personas_tell_more_or_less_at_once():
    told = {p: [Talk(request("replace_item", SWAP), persona=p, seed=s).opening for s in range(12)] for p in PATIENCE}
    words = {p: sum(len(t.split()) for t in texts) for p, texts in told.items()}
    assert words["terse"] < words["chatty"] and words["confused"] < words["chatty"]
    assert all("Mia Berg" in t and "415-555-0192" in t and "Green Curry" in t for t in told["impatient"])
    assert not any("Mia" in t for p in ("terse", "chatty", "confused") for t in told[p])
    assert not any("Green Curry" in t for t in told["confused"])
    assert len(set(told["chatty"])) == 12, "no two are alike"


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_it_answers_what_it_is_asked(persona):
    for question, answer in {
        "Which order is it?": "F-10002",
        "Could you please provide the order number?": "F-10002",
        "Which dish is it about?": "Pad Thai",
        "What would you like instead?": "Green Curry",
        "And to whom am I speaking? Please give me your full name.": "Mia Berg",
        "For verification I need the phone number on the account.": "415-555-0192",
    }.items():
        assert answer in Talk(request("replace_item", SWAP), persona=persona).hear(question), question


def test_it_answers_several_questions_at_once():
    said = Talk(request("replace_item", SWAP)).hear("Which order is it, and which dish should be replaced?")
    assert "F-10002" in said and "Pad Thai" in said


def test_what_it_does_not_know_it_describes():
    talk = Talk(request("cancel_order", FORGOT, unknown=["order"]), persona="chatty")
    assert "F-10001" not in talk.opening
    said = talk.hear("What is the order number?")
    assert "Golden Wok" in said and "F-10001" not in said
    assert is_affirmative(talk.hear("I will cancel order F-10001 from Golden Wok (changed plans). Shall I go ahead?"))


def test_a_wrong_detail_is_corrected():
    talk = Talk(cancel(), wrong={"phone": "628-555-0000"})
    assert "628-555-0000" in talk.hear(ASK_WHO)
    assert "415-555-0192" in talk.hear("I could not find an account with this name and phone number.")


def test_an_impostor_has_nothing_else_to_offer():
    talk = Talk(cancel(), impostor=True)
    talk.hear(ASK_WHO)
    talk.hear("There is no account under that name and phone number. Would you check both?")
    assert ended(talk.hear("I am sorry, I cannot help you without having identified you."))


# what it agrees to


@pytest.mark.parametrize(
    "text",
    [
        PROPOSE,
        "To confirm: you want to cancel order F-10001 because of changed plans. Is that right?",
        "Would you like me to go ahead and cancel F-10001?",
        "I can cancel order F-10001 for you. Reply yes to proceed (yes/no).",
    ],
)
def test_it_agrees_to_its_request_in_anybodys_words(text):
    assert is_affirmative(Talk(cancel()).hear(text))


@pytest.mark.parametrize(
    "text",
    [
        "I will cancel order F-99999 (changed plans). Shall I go ahead?",
        "I will cancel order F-10001 (takes too long). Shall I go ahead?",
        "I will do it. Shall I go ahead?",
    ],
)
def test_it_corrects_what_is_not_its_request(text):
    said = Talk(cancel()).hear(text)
    assert not is_affirmative(said) and "F-10001" in said


def test_it_changes_its_mind_on_hearing_the_proposal():
    talk = Talk(cancel(then={**CANCEL, "reason": "ordered by mistake"}))
    said = talk.hear(PROPOSE)
    assert not is_affirmative(said)
    again = PROPOSE.replace("changed plans", "ordered by mistake")
    assert is_affirmative(talk.hear(again))


def test_it_drops_a_request():
    assert "leave it" in Talk(cancel(then={"drop": True}), request("ask_total", TOTAL)).hear(PROPOSE)
    assert ended(Talk(cancel(then={"drop": True})).hear(PROPOSE))


def test_it_takes_something_else_if_its_request_is_not_to_be_had():
    swap = request("replace_item", SWAP, fallback={**SWAP, "new_dish": "Papaya Salad"})
    talk = Talk(swap)
    said = talk.hear("I am sorry, Green Curry is sold out. You can have Papaya Salad or Tom Yum Soup.")
    assert "Papaya Salad" in said and not ended(said)
    assert is_affirmative(talk.hear("I'll replace Pad Thai in F-10002 with Papaya Salad. Shall I go ahead?"))
    assert "leave it" in Talk(request("replace_item", SWAP, fallback={"drop": True})).hear("It is not available.")


# how it goes on and ends


def test_it_accepts_a_refusal_and_ends():
    assert ended(Talk(cancel()).hear("I'm afraid that is not possible: order F-10001 is already on the way."))


def test_it_ends_when_all_is_done_and_hears_an_answer():
    talk = Talk(cancel())
    talk.hear(PROPOSE)
    assert ended(talk.hear("Order F-10001 has been cancelled. Anything else?"))
    asked = Talk(request("ask_total", TOTAL, answer="1240.50"))
    assert ended(asked.hear("The total of order F-10003 is $1,240.50."))


def test_an_answer_beside_a_proposal_is_not_lost():
    talk = Talk(request("ask_total", TOTAL, answer="12.50"), cancel())
    assert is_affirmative(talk.hear(f"The total of order F-10003 is $12.50. {PROPOSE}"))
    assert ended(talk.hear("Order F-10001 is cancelled. Anything else?"))


def test_later_requests_come_one_by_one_and_forgotten_ones_are_recalled():
    later = Talk(cancel(), request("ask_total", TOTAL, answer="9"), upfront=False)
    assert "F-10003" not in later.opening and "total" not in later.opening
    later.hear(PROPOSE)
    assert any(w in later.hear("Order F-10001 is cancelled. Anything else?") for w in ("total", "how much"))
    both = Talk(cancel(), request("ask_total", TOTAL, answer="9"), reminds=True)
    both.hear(PROPOSE)
    assert not ended(both.hear("Order F-10001 is cancelled. Anything else?"))
    silent = Talk(cancel(), request("ask_total", TOTAL, answer="9"))
    silent.hear(PROPOSE)
    assert ended(silent.hear("Order F-10001 is cancelled. Anything else?"))


def test_a_hand_over_ends_it():
    assert "###TRANSFER###" in Talk(cancel()).hear("I'm transferring you to a human agent, please hold on.")
    assert "###TRANSFER###" not in Talk(cancel()).hear(
        "The refund will be transferred to your card. Which order is it?"
    )
    outside = Talk(request("outside", {"topic": "a courier who was rude"}))
    assert "rude" in outside.opening
    assert "###TRANSFER###" in outside.hear("You are being transferred to a human agent.")


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_patience_ends(persona):
    talk = Talk(cancel(), persona=persona)
    for count in range(12):
        if ended(talk.hear("Hm, I see." if count % 2 else "Let me think about that.")):
            break
    assert PATIENCE[persona] <= count + 1 <= PATIENCE[persona] + 3


def test_reminders_do_not_go_on_for_ever():
    talk = Talk(cancel(), request("ask_total", TOTAL, answer="9"), reminds=True)
    talk.hear(PROPOSE)
    assert any(ended(talk.hear("Done. Anything else?")) for _ in range(10))


# the same for everybody


def test_it_is_deterministic_and_another_seed_is_another_user():
    task = made("hotel", count=3)[2]

    def user(seed: int) -> ServiceAgendaUser:
        return ServiceAgendaUser(task, service=service("hotel"), seed=seed)

    def opening(seed: int) -> str | None:
        return asyncio.run(user(seed).reply([Message("assistant", GREETING)])).message.content

    assert opening(1) == opening(1) and len({opening(s) for s in range(6)}) > 2


WORDS = st.lists(
    st.sampled_from(
        [
            "I will cancel", "order F-10001", "F-99999", "Shall I go ahead?", "Which order is it?", "not available",
            "I cannot do that", "Done.", "Anything else?", "your name", "Pad Thai", "Green Curry", "$5", "instead?",
            "reason", "transferred to a human", "Please confirm", "yes/no", "replace", "with", "?",
        ]
    ),
    max_size=7,
).map(" ".join)  # fmt: skip


@given(st.lists(st.one_of(WORDS, st.text(max_size=40)), min_size=1, max_size=30), st.sampled_from(sorted(PATIENCE)))
@settings(max_examples=50)
def test_no_agent_makes_it_stumble_or_talk_for_ever(texts, persona):
    talk = Talk(
        cancel(then={**CANCEL, "reason": "takes too long"}),
        request("replace_item", SWAP, fallback={**SWAP, "new_dish": "Papaya Salad"}),
        persona=persona,
        reminds=True,
    )
    for text in texts:
        if any(word in talk.hear(text) for word in STOP_WORDS):
            break


@pytest.mark.parametrize(
    ("text", "told"),
    [("It is 30 yuan.", True), ("$1,030.50 in all", False), ("at 08:30", False), ("Yes: 30.", True), ("130", False),
     ("30.00", False), ("$30, please", True)],
)  # fmt: skip
def test_an_answer_is_no_part_of_another_number(text, told):
    assert tells(text, "30") is told


# the factory


def test_a_persona_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match="persona must be one of terse, chatty, confused, impatient, not 'rude'"):
        AgendaUserFactory(RETAIL_USER, persona="rude")
    assert AgendaUserFactory(RETAIL_USER, seed=3, persona="terse").name == "agenda(seed=3, persona=terse)"


def test_it_needs_an_agenda():
    with pytest.raises(ConfigError, match="has no agenda"):
        AgendaUserFactory(RETAIL_USER)(Task("x", "retail", "", None), seed=0)
