"""What all callers with an agenda do alike, whatever they call about (users/caller.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.domains.base import Task
from muarl.errors import ConfigError
from muarl.users import agenda, agenda_acebench, agenda_airline, agenda_telecom
from muarl.users.agenda import PATIENCE, AgendaUserFactory
from muarl.users.caller import Caller
from support import acebench, airline, generated, talk, telecom
from support.callers import Conversation, ended, patience_with

Request = dict[str, Any]
MOVE = "I will change reservation P4Q1R9 to flight HAT033 on 2024-05-21 in economy at $140. Shall I go ahead?"


@dataclass(frozen=True)
class Case:
    """One domain's callers. ``first`` and ``second``: two requests, given what is not plain about them, with proposals
    that fit them; ``about``: what names the second one. ``wrong``: the fact that may be wrong at first, its field in
    the agenda, a wrong value and the right one, and what an agent asks and says to that. ``later``: requests whose
    wishes may change, and what must not be said before. ``questions``: those of an agent that gets nowhere.
    """

    module: Any
    talk: Callable[..., Conversation]
    task: Callable[..., Task]
    made: Callable[..., Sequence[Task]]
    first: Callable[..., Request]
    second: Callable[..., Request]
    proposals: tuple[str, str]
    about: str
    refusal: str
    wrong: tuple[str, str, str, str, str]
    later: tuple[Request, ...]
    secrets: tuple[str, ...]
    questions: tuple[str, ...]
    asked: tuple[str, ...]
    loops: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def phrases(self) -> Any:
        return self.module.phrases

    @property
    def caller(self) -> type[Caller]:
        found: type[Caller] = self.module.AgendaUser
        return found


def _with(request: Callable[..., Request], kind: str, *wish: Mapping[str, Any]) -> Callable[..., Request]:
    return lambda **more: request(kind, *wish, **more)


CASES = {
    "retail": Case(
        module=agenda, talk=talk.Talk, task=generated.agenda_task, made=generated.made,
        first=talk.cancel, second=_with(generated.request, "return", talk.RETURN),
        proposals=(
            "I will cancel order #W1111111 (no longer needed). Shall I go ahead?",
            "I will return from order #W2222222 mug 1 and lamp 2 refund to paypal_3. Shall I go ahead?",
        ),
        about="#W2222222", refusal="I cannot do that, order #W1111111 is delivered.",
        wrong=("wrong_zip", "99999", "12345", "May I have your name and zip code?",
               "I could not find you. Please check your name and zip code."),
        later=(
            generated.request("exchange", talk.SWAP, then={**talk.SWAP, "to": ["green"]}),
            generated.request("exchange", talk.SWAP, fallback={**talk.SWAP, "to": ["green"]}),
            generated.request("cancel", talk.CANCEL, then={**talk.CANCEL, "reason": "ordered by mistake"}),
            generated.request("modify_address", talk.MOVE,
                              then={**talk.MOVE, "address": {**talk.ADDRESS, "address1": "7 Canal Road"}}),
        ),
        secrets=("green", "mistake", "Canal"),
        questions=(
            "Hello?", "May I have your name and zip code?", "Which order is it?", "Which item is it?",
            "Which option would you like?", "Which payment method do you want to use?", "What is the reason?",
            "What is the new address?", "I am looking into it.",
        ),
        asked=("May I have your name and zip code?", "Which option would you like?", "I am not sure."),
        loops=(
            "I will cancel order #W9999999. Shall I go ahead?", "Which order is it?", "May I have your zip code?",
            "blue is not available. Which one would you like?", "Which item?", "Is there anything more?",
            "What is the new address?",
        ),
        words=(
            "order", "#W1111111", "mug", "option", "name", "zip", "address", "paypal", "return", "blue",
        ),
    ),
    "airline": Case(
        module=agenda_airline, talk=airline.Talk, task=airline.agenda_task, made=airline.made,
        first=_with(airline.request, "cancel"), second=_with(airline.request, "flights"),
        proposals=("I will cancel reservation K3M8T2. Shall I go ahead?", MOVE),
        about="P4Q1R9", refusal="I cannot cancel this reservation.",
        wrong=("wrong_id", "mia_berg_1999", "mia_berg_1007", "May I have your user id?",
               "I could not find you. Please check your user id."),
        later=(
            airline.request("flights", then={**airline.MOVE, "date": "2024-05-29"}),
            airline.request("flights", fallback={**airline.MOVE, "date": "2024-05-29"}),
            airline.request("cabin", then={**airline.CABIN, "cabin": "economy"}),
            airline.request("cancel", then={**airline.CANCEL, "reservation_id": "Z9Z9Z9"}),
        ),
        secrets=("05-29", "economy", "Z9Z9Z9"),
        questions=(
            "Hello?", "May I have your user id?", "Which reservation is it?", "Which date would you like?",
            "Which cabin would you like?", "Which payment method should I use?", "What is the reason?", "Let me look.",
        ),
        asked=("May I have your user id?", "Which date would you like?", "I am not sure."),
        loops=(
            "I will cancel reservation Z9Z9Z9. Shall I go ahead?", "Which reservation is it?",
            "May I have your user id?", "2024-05-21 is not available. Which other date would you like?",
            "What is the reason?", "Is there anything more?", "Which flight is it?",
        ),
        words=(
            "reservation", "K3M8T2", "HAT012", "date", "2024-05-21", "cabin", "business", "user id", "bags", "3",
            "gift card", "passenger", "insurance", "from",
        ),
    ),
    "acebench": Case(
        module=agenda_acebench, talk=acebench.Talk, task=acebench.agenda_task, made=acebench.made,
        first=_with(acebench.request, "cancel"), second=_with(acebench.request, "move"),
        proposals=("I will cancel res_43. Shall I go ahead?", "I will change res_40 to 2024-07-23 LN1021. Shall I go "
                   "ahead?"),
        about="res_40", refusal="I cannot cancel this reservation.",
        wrong=("wrong_password", "tulip999", "tulip182", "May I have your user id and password?",
               "The password is not right. Please check your password."),
        later=(
            acebench.request("send", then={**acebench.SEND, "to": "Zelda"}),
            acebench.request("order", fallback={**acebench.ORDER, "product": "nachos"}),
            acebench.request("move", then={**acebench.MOVE, "date": "2024-07-29"}),
            acebench.request("cancel", then={**acebench.CANCEL, "reservation_id": "res_77"}),
        ),
        secrets=("Zelda", "nachos", "07-29", "res_77"),
        questions=(
            "Hello?", "May I have your name?", "Which reservation is it?", "Which date would you like?",
            "Let me look.", "Who should get it?", "Which dish would you like?", "What is the reason?",
        ),
        asked=("May I have your user id and password?", "Which date would you like?", "I am not sure."),
        loops=(
            "I will cancel res_99. Shall I go ahead?", "Which reservation is it?", "May I have your name and password?",
            "2024-07-23 is not available. Which other date would you like?", "What is the reason?",
            "Memory is full, which message would you like to delete?",
            "Insufficient balance. Which other dish would you like?",
        ),
        words=(
            "reservation", "res_40", "message", "send", "delete", "date", "2024-07-21", "cabin", "Business Class",
            "user id", "password", "name", "2 bags", "order", "fried rice", "Golden Wok", "reminder", '"Dentist"',
            "insufficient", "memory is full", "cash", "title",
        ),
    ),
    "telecom": Case(
        module=agenda_telecom, talk=telecom.Talk, task=telecom.agenda_task, made=telecom.made,
        first=_with(telecom.request, "suspend"), second=_with(telecom.request, "pay"),
        proposals=(
            f"I will suspend line {telecom.PLACE.line} for lost phone. Shall I go ahead?",
            "I will send a payment request for overdue bill B1 of $20.00. Shall I go ahead?",
        ),
        about="overdue bill", refusal="I cannot do that.",
        wrong=("wrong_phone", "555-999-9999", telecom.IDENTITY["phone"], "May I have your phone number?",
               "I could not find you. Please check your phone number."),
        later=(
            telecom.request("refuel", then={"amount": 1.5}),
            telecom.request("refuel", fallback={"amount": 1.5}),
            telecom.request("mobile_data", then={**telecom.TROUBLE, "amount": 1.5}),
        ),
        secrets=("1.5",),
        questions=(
            "Hello?", "May I have your phone number?", "Are you abroad?", "How much data would you like to add?",
            "What is the reason?", "Let me look.",
        ),
        asked=("May I have your phone number?", "How much data would you like to add?"),
        loops=(), words=(),
    ),
}  # fmt: skip
PLAIN_LOOPS = ("OK.", "", "Done.", "How can I help you?", "Let me check.", "Why?")
PLAIN_WORDS = (
    "cancel", "yes", "confirm", "?", "not available", "done", "cannot", "which", "pay with", "anything else", ".",
    "###STOP###", "Shall I go ahead?", "what", "reason", "why", "transferred",
)  # fmt: skip

everywhere = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
without_phones = pytest.mark.parametrize("name", [n for n in CASES if n != "telecom"])
"""Callers that only talk. What one does who uses a phone between its sentences: test_agenda_telecom.py."""


def agrees(case: Case, text: str) -> bool:
    return text in case.phrases.YES


# what it tells


@everywhere
@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_a_later_wish_is_a_secret_until_its_time(case, persona):
    """Neither the changed wish nor the fallback is told before the proposal, or the bad news."""
    for request in case.later:
        talk = case.talk(request, persona=persona)
        for question in case.questions:
            said = talk.hear(question)
            assert not any(w in said for w in case.secrets), (question, said)
            if talk.over:
                break


@everywhere
@pytest.mark.parametrize("persona", ["terse", "impatient"])
def test_a_wrong_fact_is_given_once_and_then_the_right_one(case, persona):
    field, wrong, right, ask, again = case.wrong
    talk = case.talk(case.first(), persona=persona, **{field: wrong})
    told = talk.opening if persona == "impatient" else talk.hear(ask)
    assert wrong in told and right not in told
    second = talk.hear(again)
    assert right in second and wrong not in second


# proposals and news


@everywhere
def test_a_wish_can_be_dropped_on_hearing_the_proposal(case):
    talk = case.talk(case.first(then={"drop": True}))
    assert "leave it as it is" in (said := talk.hear(case.proposals[0])) and ended(said)
    talk = case.talk(case.first(then={"drop": True}), case.second())
    said = talk.hear(case.proposals[0])
    assert "leave it as it is" in said and not ended(said)
    assert agrees(case, talk.hear(case.proposals[1]))


@everywhere
def test_a_refusal_is_accepted_and_the_next_wish_told(case):
    assert ended(case.talk(case.first()).hear(f"{case.refusal} Anything else?"))
    talk = case.talk(case.first(), case.second(), upfront=False)
    assert case.about not in talk.opening and case.about in talk.hear(f"{case.refusal} Anything else?")
    talk = case.talk(case.first(), case.second(), reminds=True)
    assert case.about in talk.opening and case.about in talk.hear(case.refusal)


# two requests


@everywhere
def test_a_second_request_comes_at_once_or_later(case):
    assert case.about in case.talk(case.first(), case.second()).opening
    later = case.talk(case.first(), case.second(), upfront=False)
    assert case.about not in later.opening
    assert agrees(case, later.hear(case.proposals[0]))
    assert case.about in later.hear("Done. Anything else?")
    assert agrees(case, later.hear(case.proposals[1]))
    assert ended(later.hear("Done. Anything else?"))


@everywhere
@pytest.mark.parametrize("reminds", [True, False])
def test_an_agent_that_forgets_is_reminded_or_not(case, reminds):
    talk = case.talk(case.first(), case.second(), reminds=reminds)
    assert agrees(case, talk.hear(case.proposals[0]))
    said = talk.hear("Done. Anything else?")
    assert (case.about in said) is reminds and ended(said) is not reminds


@everywhere
def test_who_does_not_remind_waits_for_what_was_told(case):
    talk = case.talk(case.first(), case.second())
    assert agrees(case, talk.hear(case.proposals[0]))
    assert talk.hear("Done.") == "OK."
    assert agrees(case, talk.hear(case.proposals[1]))


# endings


@everywhere
def test_a_transfer_ends_it(case):
    assert case.talk(case.first()).hear("YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.") == (
        "###TRANSFER###"
    )


@everywhere
@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_it_gives_up_when_its_patience_is_spent(case, persona):
    talk = case.talk(case.first(), persona=persona)
    for _ in range(PATIENCE[persona]):
        assert not ended(talk.hear("Hmm, let me see."))
    assert talk.hear("Hmm, let me see.") == case.phrases.GIVES_UP


@pytest.mark.parametrize(
    ("name", "loop"), [(n, text) for n, case in CASES.items() if case.loops for text in (*case.loops, *PLAIN_LOOPS)]
)
def test_an_agent_in_a_loop_is_left_in_bounded_time(name, loop):
    case = CASES[name]
    for task in (*case.made("tiny", "test", 60)[:20], *case.made("small", "test", 60)[:20]):
        patience_with(case.caller(task, seed=0), [loop], 16)


@without_phones
@given(data=st.data(), index=st.integers(0, 59), seed=st.integers(0, 5))
@settings(max_examples=100)
def test_no_text_makes_it_stumble_and_it_always_ends(name, data, index, seed):
    case = CASES[name]
    words = st.lists(st.sampled_from((*PLAIN_WORDS, *case.words)), max_size=10).map(" ".join)
    texts = data.draw(st.lists(st.one_of(st.text(max_size=60), words), min_size=1, max_size=45))
    patience_with(case.caller(case.made("small", "train", 60)[index], seed=seed), texts, 80)


@everywhere
@pytest.mark.parametrize("content", [None, ""])
def test_a_message_without_text_is_borne(case, content):
    assert Conversation(case.caller(case.task(case.first()), seed=0)).hear(content)


# who it is


@everywhere
def test_the_same_seeds_give_the_same_words_and_others_give_others(case):
    def words(seed: int, factory_seed: int = 0, persona: str | None = None) -> list[str]:
        make = AgendaUserFactory(seed=factory_seed, persona=persona)
        said = []
        for task in case.made("tiny", "test", 60)[:20]:
            user = make(task, seed=seed)
            assert type(user) is case.caller, "every domain's task is played by its own caller"
            talk = Conversation(user)
            said += [talk.opening, *(talk.hear(text) for text in case.asked)]
        return said

    assert words(1) == words(1)
    assert words(1) != words(2)
    assert words(1) != words(1, factory_seed=9)
    assert words(1) != words(1, persona="chatty")


@everywhere
def test_it_needs_an_agenda(case):
    with pytest.raises(ConfigError, match="has no agenda"):
        case.caller(Task("x", case.task().domain, "", None), seed=0)
    assert set(case.caller.reveals) == set(PATIENCE)


def test_a_persona_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match="persona must be one of terse, chatty, confused, impatient, not 'rude'"):
        AgendaUserFactory(persona="rude")
    assert AgendaUserFactory(seed=3, persona="terse").name == "agenda(seed=3, persona=terse)"
