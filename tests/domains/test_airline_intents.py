"""The airline's requests: what its tasks are, what is said about them, and what the policy leads to."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import Any

import pytest

from muarl.domains.kit.expert import ServiceExpert
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.language.consent import is_affirmative
from muarl.types.chat import Message
from muarl.users.agenda_service import ServiceAgendaUser
from muarl_worlds.tau.airline.intents import SERVICE
from support import kit
from support.callers import Conversation

made = partial(kit.made, "airline")
NINA = {"first_name": "Nina", "last_name": "Costa", "dob": "1985-03-02"}
MINE = {
    "reservation_id": "K3M8T2", "user_id": "mia_berg_1007", "origin": "JFK", "destination": "SEA", "cabin": "economy",
    "flight_type": "one_way", "total_baggages": 1, "nonfree_baggages": 0, "insurance": "no", "status": None,
    "created_at": "2024-05-15T10:00:00", "passengers": [NINA], "payment_history": [],
    "flights": [
        {"flight_number": "HAT012", "origin": "JFK", "destination": "SEA", "date": "2024-05-18", "price": 123}
    ],
}  # fmt: skip
MIA = {
    "user_id": "mia_berg_1007", "membership": "gold", "reservations": ["K3M8T2"],
    "payment_methods": {
        "credit_card_7": {"source": "credit_card", "id": "credit_card_7"},
        "gift_card_8": {"source": "gift_card", "id": "gift_card_8", "amount": 60.0},
    },
}  # fmt: skip


def offer(number: str, price: int, seats: int) -> dict[str, Any]:
    cabins = ("basic_economy", "economy", "business")
    prices, left = dict.fromkeys(cabins, 400) | {"economy": price}, dict.fromkeys(cabins, 0) | {"economy": seats}
    return {"flight_number": number, "prices": prices, "available_seats": left}


class Call:
    """A conversation with the expert, who is shown what a test says."""

    def __init__(self, wish: str, booked: Any = MINE, user: Any = MIA) -> None:
        self.brain = ServiceExpert(SERVICE, seed=0, error_profile=ErrorProfile())
        self.brain.act([Message("user", f"I want to {wish}. My user id is mia_berg_1007.")])
        self.shown(user)
        self.step = self.shown(booked)

    def shown(self, result: Any) -> Message:
        content = result if isinstance(result, str) else json.dumps(result)
        return self.brain.act([Message("tool", content)])


# tasks


@pytest.mark.slow
def test_every_request_occurs_and_bookings_in_larger_worlds_only():
    kinds = {
        size: Counter(r["kind"] for t in made(size, "train", 400) for r in t.agenda["requests"])
        for size in ("tiny", "small")
    }
    assert set(kinds["tiny"]) == {*SERVICE.tiny_intents, "outside"}
    assert set(kinds["small"]) == {*(i.name for i in SERVICE.intents), "outside"}
    wrote = {a.name for t in made("small", "train", 400) for a in t.actions if a.name in kit.writes("airline")}
    assert wrote == kit.writes("airline")
    refused = {
        r["kind"] for t in made("small", "train", 400) for r in t.agenda["requests"] if r["intent"] == "forbidden"
    }
    assert {"cancel", "flights", "bags", "more_passengers", "insurance"} <= refused


def test_the_scenario_tells_an_llm_user_all_that_matters():
    for task in made("small", "test", 60):
        assert task.agenda["identity"]["user_id"] in task.scenario
        for request in task.agenda["requests"]:
            for goal in (g for g in (request["goal"], request["then"], request["fallback"]) if g and "drop" not in g):
                for slot in ("date", "origin", "destination", "flight", "who"):
                    assert str(goal.get(slot, "")) in task.scenario
                for person in (*goal.get("passengers", ()), *([goal["passenger"]] if "passenger" in goal else [])):
                    assert all(part in task.scenario for part in person.values())
                assert "bags" not in goal or f"{goal['bags']} bags" in task.scenario


# what is read


@pytest.mark.parametrize(
    ("slot", "text"),
    [
        ("reservation_id", "Which reservation would you like to change?"),
        ("reservation_id", "What's your reservation number?"),
        ("reservation_id", "Please share the confirmation code."),
        ("date", "What new date would you prefer?"),
        ("date", "When would you like to fly?"),
        ("cabin", "Which cabin class would you like?"),
        ("bags", "How many checked bags would you like in total?"),
        ("who", "Which of the passengers should be replaced?"),
        ("passenger", "What are the new passenger's name and date of birth?"),
        ("reason", "May I ask the reason for your cancellation?"),
        ("reason", "Why would you like to cancel?"),
        ("payment", "Which payment method would you like to use for the difference?"),
        ("payment", "How would you like to pay?"),
        ("insurance", "Would you like to add travel insurance for $30 per passenger?"),
        ("origin", "Where are you flying from?"),
        ("destination", "What is your destination?"),
    ],
)
def test_a_language_models_questions_are_heard(slot, text):
    assert SERVICE.asked[slot].search(text)


@pytest.mark.parametrize(
    ("slot", "text", "values"),
    [
        ("date", "from May 18 to May 21, 2024, born 1985-03-02", ["2024-05-18", "2024-05-21"]),
        ("date", "the 3rd of May", ["2024-05-03"]),
        ("bags", "3 bags with 1 paid", [3]),
        ("bags", "three checked bags in total", [3]),
        ("cabin", "from basic economy to economy", ["basic_economy", "economy"]),
        ("reservation_id", "Reservation K3M8T2, flight HAT012, PLEASE, 123456", ["K3M8T2"]),
        ("flight", "Reservation K3M8T2, flight HAT012", ["HAT012"]),
        ("origin", "Mia flies from MIA", ["MIA"]),
        ("payment", "your Gift Card gift_card_1", ["gift_card"]),
        ("passenger", "first name Nina, last name Costa, born 1985-03-02", [NINA]),
        ("passengers", "for first name Nina, last name Costa, born 1985-03-02 and me", [[NINA]]),
        ("who", "change passenger Nina Costa to Ivan Haas", ["Nina Costa"]),
    ],
)
def test_values_are_found_among_others(slot, text, values):
    assert [m.value for m in SERVICE.kind(SERVICE.slots[slot]).find(text)] == values


# proposals

GOALS = {
    "cancel": {"reservation_id": "K3M8T2", "reason": "health"},
    "flights": {"reservation_id": "P4Q1R9", "flight": "HAT001", "date": "2024-05-21", "payment": "gift_card"},
    "cabin": {"reservation_id": "B5C6D7", "cabin": "business", "payment": "credit_card"},
    "bags": {"reservation_id": "E1F2G3", "bags": 3, "payment": "credit_card"},
    "passenger": {"reservation_id": "H4J5K6", "who": "Ivan Haas", "passenger": NINA},
    "compensation": {"reservation_id": "L7M8N9"},
}


class Talk(Conversation):
    """A conversation with a user of one request."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        plain = {"kind": kind, "intent": kind, "then": None, "fallback": None, "unknown": [], "answer": None}
        agenda = {
            "persona": "terse", "identity": {"user_id": "mia_berg_1007"}, "wrong": {}, "upfront": True,
            "impostor": False, "reminds": False, "requests": [{**plain, "goal": GOALS[kind]}],
        }  # fmt: skip
        task = Task("made-up", "airline", "", None, agenda=agenda)
        super().__init__(ServiceAgendaUser(task, service=SERVICE, seed=seed))


@pytest.mark.parametrize(
    ("kind", "proposal"),
    [
        ("cancel", "I will cancel reservation K3M8T2. Shall I go ahead?"),
        ("cancel", "To confirm, I'll cancel your reservation K3M8T2 and refund you. Do you want me to proceed?"),
        ("flights", "I will change reservation P4Q1R9 to flight HAT033 on 2024-05-21 at $140. Shall I go ahead?"),
        ("flights", "I can rebook you on HAT033 on May 21 for $140, charged to your gift card. Should I proceed?"),
        ("cabin", "I will upgrade B5C6D7 to business class, paid with your credit card. Is that okay? (yes/no)"),
        ("bags", "I will update reservation E1F2G3 to 3 bags with 1 paid pay with credit card x. Shall I go ahead?"),
        ("bags", "You will have three checked bags in total, $50 on your credit card. Shall I proceed?"),
        ("compensation", "I can offer a $100 certificate for reservation L7M8N9. Would you like me to do so?"),
    ],
)
def test_a_right_proposal_is_confirmed(kind, proposal):
    assert all(reads_yes(Talk(kind, seed).hear(proposal)) for seed in range(3))


@pytest.mark.parametrize(
    ("kind", "proposal"),
    [
        ("cancel", "I will cancel reservation Z9Z9Z9. Shall I go ahead?"),
        ("cancel", "I will change reservation K3M8T2 to 2024-05-21. Shall I go ahead?"),
        ("cancel", "I will take care of it. Shall I go ahead?"),
        ("flights", "I will change reservation P4Q1R9 to flight HAT033 on 2024-05-22. Shall I go ahead?"),
        ("flights", "I will move P4Q1R9 to 2024-05-21, paid by credit card. Shall I go ahead?"),
        ("flights", "I will cancel reservation P4Q1R9. Shall I go ahead?"),
        ("cabin", "I will change reservation B5C6D7 to economy. Shall I go ahead?"),
        ("bags", "I will update reservation E1F2G3 to 2 bags. Shall I go ahead?"),
        ("passenger", "I will change the passenger of H4J5K6 to first name Nina, last name Haas, born 1985-03-02. OK?"),
        ("compensation", "I will cancel reservation L7M8N9. Shall I go ahead?"),
    ],
)
def test_a_wrong_proposal_is_refused(kind, proposal):
    assert not any(reads_yes(Talk(kind, seed).hear(proposal)) for seed in range(3))


def reads_yes(reply: str) -> bool:
    return is_affirmative(reply)


# the policy


@pytest.mark.parametrize(("status", "tool"), [("landed", "transfer_to_human_agents"), ("cancelled", None)])
def test_a_trip_that_has_begun_is_handed_over_and_one_that_the_airline_cancelled_is_not(status, tool):
    past = {**MINE, "created_at": "2024-04-01T10:00:00", "flights": [{**MINE["flights"][0], "date": "2024-05-08"}]}
    call = Call("cancel reservation K3M8T2, the airline cancelled the flight", past)
    assert call.step.tool_calls[0].name == "get_flight_status"
    step = call.shown(status)
    assert (step.tool_calls[0].name if step.tool_calls else None) == tool


def test_the_cheapest_flight_with_seats_for_all_is_taken_and_a_gift_card_must_have_enough():
    call = Call("move reservation K3M8T2 to 2024-05-21, pay with gift card", {**MINE, "passengers": [NINA, NINA]})
    assert call.step.tool_calls[0].arguments == {"origin": "JFK", "destination": "SEA", "date": "2024-05-21"}
    found = [offer("HAT001", 90, 0), offer("HAT002", 140, 3), offer("HAT003", 120, 1)]
    assert "flight HAT002 on 2024-05-21 in economy at $140 pay with gift card gift_card_8" in call.shown(found).content
    dear = Call("move reservation K3M8T2 to 2024-05-21, pay with gift card")
    assert "gift card is not available" in (said_ := dear.shown([offer("HAT002", 200, 9)]).content)
    assert "credit card" in said_
