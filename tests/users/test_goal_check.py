"""The check that a user model's words are true to its scenario: what it refuses, and what it must never refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.backends.users import goal_checks
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.play import play_tasks
from muarl.environments.registry import find
from muarl.types.chat import GREETING
from muarl.types.episode import Episode
from muarl.users.agenda_service import ServiceAgendaUser
from muarl.users.goal_check import GoalCheck
from muarl_worlds.tau.retail.intents import SERVICE

RETAIL = find("retail-generated")
STOP = "###STOP###"
SWAP = {"order_id": "#W4165503", "item": "pillow", "option": "cotton", "payment": "credit_card"}
CANCEL = {"order_id": "#W6924144", "reason": "ordered by mistake"}
PROPOSAL = (
    "cotton 4929825760: exchange pillow 9066128551 of order #W4165503, pay with credit card credit_card_1. Shall I go "
    "ahead?"
)


def request(kind: str, goal: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = {"kind": kind, "intent": kind, "goal": goal, "then": None, "fallback": None, "unknown": [], "answer": None}
    return given | more


def check(*requests: dict[str, Any], wrong: dict[str, str] | None = None, hears: str = "Hi!") -> GoalCheck:
    agenda = {
        "persona": "terse",
        "identity": {"name": {"first_name": "Jana", "last_name": "Mori"}, "zip": "74462"},
        "wrong": wrong or {},
        "impostor": False,
        "requests": list(requests),
        "upfront": True,
        "reminds": True,
    }
    scenario = f"Your name is Jana Mori. Your zip code is 74462. {wrong} " + str(requests)
    found = GoalCheck(Task("t", "retail-generated", scenario, (), agenda=agenda), SERVICE)
    found.hears(hears)
    return found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Please exchange the pillow from order #W4165503.", None),
        ("Hi, I'm in a hurry. I want to exchange an item. I am Jana Mori, 74462.", None),
        ("Please exchange the pillow from order #W4165504.", "4165504"),
        ("Please exchange the desk from order #W4165503.", "no part of one wish"),
        ("Please exchange the pillow from order #W6924144.", "no part of one wish"),
        ("Please return the pillow from order #W4165503.", "no part of one wish"),
        ("Please cancel order #W6924144, it is no longer needed.", "no part of one wish"),
        ("I am Jana Osman, 74462.", "no part of one wish"),
        (f"That is all. {STOP}", "ends before it has spoken of its wish"),
        ("", "says nothing"),
    ],
)
def test_what_is_said_belongs_to_one_wish_of_the_scenario(text: str, why: str | None) -> None:
    problem = check(request("exchange", SWAP), request("cancel", CANCEL)).problem(text)
    assert problem is None if why is None else problem is not None and why in problem


@pytest.mark.parametrize(
    ("then", "text", "why"),
    [
        (None, "Yes, please.", None),
        (None, "No, that is wrong. I want to exchange the pillow.", "does not agree"),
        (None, "Never mind, leave it as it is.", "does not agree"),
        (None, f"Yes. {STOP}", "ends with a wish open"),
        (SWAP | {"option": "silk"}, "Yes, please.", "agrees to what it no longer wants"),
        (SWAP | {"option": "silk"}, "Wait, I changed my mind. I want a silk one.", None),
        (SWAP | {"option": "silk"}, "Wait, I changed my mind. I want a cotton one.", "no part of one wish"),
        (SWAP | {"option": "silk"}, "Wait, I changed my mind.", "does not say what it wants instead"),
        ({"drop": True}, "Yes, go ahead.", "agrees to what it no longer wants"),
        ({"drop": True}, "Hm.", "does not drop"),
        ({"drop": True}, f"Never mind, leave it as it is. {STOP}", None),
    ],
)
def test_a_proposal_of_what_is_wanted(then: dict[str, Any] | None, text: str, why: str | None) -> None:
    talk = check(request("exchange", SWAP, then=then))
    talk.said("Please exchange the pillow from order #W4165503 for a cotton one, pay with credit card.")
    talk.hears(PROPOSAL)
    problem = talk.problem(text)
    assert problem is None if why is None else problem is not None and why in problem


def test_who_drops_one_wish_does_not_end_with_another_one_open() -> None:
    talk = check(request("exchange", SWAP, then={"drop": True}), request("cancel", CANCEL))
    talk.said("Please exchange the pillow from order #W4165503. I also want to cancel order #W6924144.")
    talk.hears(PROPOSAL)
    assert talk.problem(f"Never mind, leave it as it is. {STOP}") == "ends with a wish open"
    assert talk.problem("Never mind, leave it as it is.") is None


def test_after_a_change_of_mind_the_new_wish_counts() -> None:
    talk = check(request("exchange", SWAP, then=SWAP | {"option": "silk"}))
    talk.hears(PROPOSAL)
    talk.said("Sorry, no. I want a silk one.")
    talk.hears(PROPOSAL)
    assert talk.problem("Yes, please.") == "agrees to what it does not want"
    talk.hears(PROPOSAL.replace("cotton", "silk"))
    assert talk.problem("Yes, please.") is None


def test_bad_news_bring_up_what_is_wanted_instead() -> None:
    talk = check(request("exchange", SWAP, fallback=SWAP | {"option": "wool"}))
    talk.said("Please exchange the pillow from order #W4165503 for a cotton one.")
    talk.hears("cotton is sold out. Available: wool and silk. Which option would you like?")
    assert talk.problem("All right. Give me a wool one please.") is None
    assert talk.problem("All right. Give me a silk one please.") is not None
    assert talk.problem("I see.") == "does not say what it wants instead"


def test_a_question_is_answered_the_first_time() -> None:
    talk = check(request("exchange", SWAP))
    talk.said("I want to exchange an item.")
    talk.hears("Which order is it?")
    assert talk.problem("It is order #W4165503.") is None
    assert talk.problem("Yes, please.") == "leaves a question without an answer"
    assert talk.problem(f"That's all. {STOP}") is not None
    talk.hears("Which order is it?")
    assert talk.problem(f"Forget it, this leads nowhere. {STOP}") is None, "patience may end"


def test_a_mistake_about_oneself_is_made_once() -> None:
    talk = check(request("cancel", CANCEL), wrong={"zip": "40805"}, hears="May I have your name and zip code?")
    assert talk.problem("I am Jana Mori, 40805.") is None
    talk.said("I am Jana Mori, 40805.")
    talk.hears("I could not find you. Please check your name and zip code.")
    assert talk.problem("I am Jana Mori, 40805.") is not None
    assert talk.problem("I am Jana Mori, 74462.") is None


MISUNDERSTOOD = ("bank-generated", "insurance-generated")
"""Where agents with errors often take one request for another, so that users say the same again."""
FAITHFUL = [
    f"{name}-generated"
    for name in ("retail", "airline", "bank", "clinic", "expenses", "food-delivery", "hotel", "insurance")
]


@cache
def drawn(name: str) -> Sequence[Task]:
    return find(name).make_tasks("test", 72, size="tiny", seed=3)


@cache
def played(name: str, errors: float) -> Sequence[Episode]:
    """Conversations of rule-based users with an expert that has errors."""
    environment = find(name)
    profile = ErrorProfile(**dict.fromkeys(ErrorProfile.__dataclass_fields__, errors))
    agent = ExpertAgent(profile, make=environment.expert)
    return asyncio.run(play_tasks(environment, agent, drawn(name), size="tiny"))


def check_of(task: Task, name: str) -> GoalCheck:
    user = find(name).needed_user()(task, seed=0)
    assert isinstance(user, ServiceAgendaUser)
    return GoalCheck(task, user.service)


@pytest.mark.parametrize("errors", [0.0, 0.4])
@pytest.mark.parametrize("name", FAITHFUL)
def test_what_a_faithful_user_says_is_hardly_ever_refused(name: str, errors: float) -> None:
    known = {t.id: t for t in drawn(name)}
    refused, count = [], 0
    for episode in played(name, errors):
        talk = check_of(known[episode.task_id], name)
        for message in episode.messages:
            text = message.content or ""
            if message.role == "assistant" and text:
                talk.hears(text)
            elif message.role == "user":
                count += 1
                problem = talk.problem(text)
                refused += [] if problem is None else [(episode.task_id, text, problem)]
                talk.said(text)
    assert count > 100
    assert len(refused) <= count // (33 if errors and name in MISUNDERSTOOD else 100), refused


@pytest.mark.parametrize("name", FAITHFUL)
def test_what_the_user_of_another_task_says_is_refused(name: str) -> None:
    """Where it has a number, which is hardly ever one of this task's."""
    known = {t.id: t for t in drawn(name)}
    episodes = played(name, 0.0)
    accepted, count = [], 0
    for episode, other in zip(episodes, [*episodes[1:], episodes[0]], strict=True):
        talk = check_of(known[episode.task_id], name)
        talk.hears(GREETING)
        for message in other.messages:
            text = message.content or ""
            if message.role == "user" and any(letter.isdigit() for letter in text):
                count += 1
                accepted += [text] if talk.problem(text) is None else []
    assert count > 50
    assert len(accepted) <= count // 25, accepted


def service_check(name: str, identity: dict[str, str], wish: dict[str, Any], scenario: str, hears: str) -> GoalCheck:
    """The check of a user of an environment with one wish."""
    (task, *_) = drawn(name)
    user = find(name).needed_user()(task, seed=0)
    assert isinstance(user, ServiceAgendaUser) and task.agenda is not None
    agenda = {**task.agenda, "identity": identity, "wrong": {}, "impostor": False, "requests": [wish]}
    talk = GoalCheck(replace(task, agenda=agenda, scenario=scenario), user.service)
    talk.hears(hears)
    return talk


def test_who_one_is_may_be_spelt_in_any_way_but_must_be_true() -> None:
    """A date of birth is told in words, and its year looks like the last digits of a card."""
    talk = service_check(
        "bank-generated",
        {"name": "Vera Okoro", "date_of_birth": "1956-01-06", "passcode": "366111"},
        request("unlock_card", {"card": "CD-89273", "described card": "4562"}),
        "Your name is Vera Okoro. You were born on January 6, 1956. Your telephone passcode is 366111. ... 4562.",
        "May I have your full name, date of birth and telephone passcode?",
    )
    for born in ("1956-01-06", "January 6 1956", "6 January 1956", "the 6th of January 1956"):
        assert talk.problem(f"I'm Vera Okoro, born on {born}, passcode 366111.") is None
        assert talk.problem(f"Hi, I'm a bit lost. Please unlock my card ending in 4562. Vera Okoro, {born}.") is None
    for untrue in ("1956-06-01", "January 7 1956", "6 January 1965", "the 6th of July 1956"):
        assert talk.problem(f"I'm Vera Okoro, born on {untrue}, passcode 366111.") is not None
    assert "366112" in (talk.problem("I'm Vera Okoro, born on 1956-01-06, passcode 366112.") or "")
    assert talk.problem("Vera Khan, 1956-01-06, 366111.") is not None
    assert talk.problem("Please unlock my card ending in 1956.") is not None
    assert talk.problem("I want to replace my card ending in 4562, I lost it.") is not None


def test_a_day_and_a_time_may_be_spelt_in_any_way() -> None:
    talk = service_check(
        "clinic-generated",
        {"name": "Mia Quinn", "date_of_birth": "1945-01-24"},
        request("reschedule", {"visit": "V-90391", "date": "2026-04-02", "time": "14:30"}),
        "You want to move appointment V-90391 to April 2 at 14:30.",
        "Hi! How can I help you today?",
    )
    for said in ("2026-04-02 at 2:30 pm", "2 April at 14:30", "April 2 at 2:30 pm"):
        assert talk.problem(f"I want to move appointment V-90391 to {said}.") is None
    for said in ("2026-04-03 at 14:30", "2026-04-02 at 2:30 am", "2 April at 12:30", "February 4 at 14:30"):
        assert talk.problem(f"I want to move appointment V-90391 to {said}.") is not None


def test_what_is_asked_for_is_not_answered_with_another_ones_value() -> None:
    talk = service_check(
        "bank-generated",
        {"name": "Vera Okoro", "date_of_birth": "1956-01-06", "passcode": "366111"},
        request("move_money", {"source": "checking", "target": "joint", "amount": 400}),
        "You want to move $400 from your checking account to your joint account.",
        "Hi! How can I help you today?",
    )
    assert talk.problem("I want to move $400 from my checking account to my joint account.") is None
    assert talk.problem("I want to move $400 from my joint account to my checking account.") is not None
    talk.said("I want to move $400 between my accounts.")
    talk.hears("Which account should it come from?")
    assert talk.problem("The checking account.") is None
    assert talk.problem("The checking account. Into the joint account.") is None
    talk.said("The checking account.")
    talk.hears("To which account should it go?")
    assert talk.problem("The joint account.") is None
    assert "belongs to another" in (talk.problem("The checking account.") or "")


def test_what_a_tool_asks_for_after_a_yes_is_answered() -> None:
    talk = check(request("exchange", SWAP, fallback=SWAP | {"option": "wool"}))
    talk.said("Please exchange the pillow from order #W4165503 for a cotton one, pay with credit card.")
    talk.hears(PROPOSAL)
    talk.said("Yes, please.")
    talk.hears("I am sorry, cotton is not available. Available: wool and silk. Which option would you like?")
    assert talk.problem("All right. Give me a wool one please.") is None
    assert talk.problem("All right. Give me a silk one please.") is not None


def test_an_environment_has_checks_for_its_own_tasks() -> None:
    (task,) = RETAIL.make_tasks("test", 1)
    make = goal_checks(RETAIL.place())
    assert make is not None and isinstance(make(task), GoalCheck)
    assert make(replace(task, agenda=None)) is None
    assert make(replace(task, agenda={**(task.agenda or {}), "redteam": {}})) is None
