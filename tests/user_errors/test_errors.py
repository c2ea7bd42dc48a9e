"""Errors of simulated users: what the rules find in labelled conversations, and what they leave alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import InfrastructureError
from muarl.domains.tasks import Task
from muarl.language import facts
from muarl.language.scenarios import requests
from muarl.types.chat import GREETING, STOP_WORDS, Message, ToolCall
from muarl.user_errors.errors import RULES, find_user_errors, longest_run
from muarl.user_errors.judge import UserJudge, read_findings, user_judge_prompt
from user_errors.user_conversations import BAD, CASES, GOOD, LONG, PHONE, RETAIL, TELECOM, Case


def found(case: Case) -> set[str]:
    return {e.rule for e in find_user_errors(case.task, case.messages, user_tools=case.tools)}


def talk(*said: str, scenario: str = RETAIL, **more: Any) -> tuple[Task, list[Message]]:
    """Agent and user in turn after the greeting, the user first."""
    sides = ("user", "assistant")
    messages = [Message(sides[i % 2], text) for i, text in enumerate(said)]  # type: ignore[arg-type]
    task = Task(id="t", domain="retail", scenario=scenario, actions=(), **more)
    return task, [Message("assistant", GREETING), *messages]


def rules(*said: str, **more: Any) -> list[str]:
    return [e.rule for e in find_user_errors(*talk(*said, **more))]


# ── the labelled conversations ───────────────────────────────────────────────────────────────────────────────────────


def test_the_labelled_set_is_large_balanced_and_covers_every_rule() -> None:
    assert len(CASES) >= 40
    assert 0.4 <= len(GOOD) / len(CASES) <= 0.6
    assert len({c.name for c in CASES}) == len(CASES)
    assert {rule for c in BAD for rule in c.wrong} == RULES.keys() - {"judge"}
    assert not any(c.wrong for c in GOOD)


def test_precision_and_recall_on_the_labelled_set() -> None:
    hits = sum(len(found(c) & c.wrong) for c in CASES)
    false = {c.name: found(c) - c.wrong for c in CASES if found(c) - c.wrong}
    missed = {c.name: c.wrong - found(c) for c in CASES if c.wrong - found(c)}
    precision = hits / (hits + sum(map(len, false.values())))
    recall = hits / (hits + sum(map(len, missed.values())))
    assert precision >= 0.97, false
    assert recall >= 0.9, missed
    flagged = [c for c in CASES if found(c)]
    assert sum(bool(c.wrong) for c in flagged) / len(flagged) >= 0.97


@pytest.mark.parametrize("case", GOOD, ids=lambda c: c.name)
def test_users_who_did_well_are_left_alone(case: Case) -> None:
    assert not find_user_errors(case.task, case.messages, user_tools=case.tools)


# ── single rules ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_finding_names_the_message_and_what_was_found() -> None:
    (error,) = find_user_errors(*talk("Hello.", "Your zip code?", "It's 99999.", "No such zip, sorry.", "Bye."))
    assert (error.rule, error.turn, error.detail) == ("contradicts", 3, "zip '99999'")
    assert error.to_json() == {"rule": "contradicts", "turn": 3, "detail": "zip '99999'"}


def test_what_the_agent_said_or_a_tool_showed_is_known_from_then_on() -> None:
    assert rules("Hi.", "Is it #W1112223?", "Yes, #W1112223.") == []
    assert rules("It is #W1112223.", "Thanks. #W1112223, then.") == ["contradicts"]
    task, messages = talk("No service.", "What does it show?", scenario=TELECOM)
    shown = [
        Message("user", None, (ToolCall("c", "check_status_bar", requestor="user"),)),
        Message("tool", "Line of 555-999-0000", tool_call_id="c", name="check_status_bar", requestor="user"),
        Message("user", "It shows 555-999-0000."),
    ]
    assert not find_user_errors(task, [*messages, *shown], user_tools=PHONE)
    assert find_user_errors(task, [*messages, shown[-1]], user_tools=PHONE)


def test_what_the_agenda_holds_is_known() -> None:
    said = ("Hi.", "Your zip code?", "12345.")
    assert rules(*said) == ["contradicts"]
    assert rules(*said, agenda={"identity": {"zip": "12345"}}) == []


def test_what_an_agenda_gives_to_be_said_is_no_leak() -> None:
    offer = 'There are more functions: {"name": "delete_message"}. What about now?'
    assert rules("Hi.", "I have no such function.", offer) == ["leaks"]
    assert rules("Hi.", "I have no such function.", offer, agenda={"turns": [["Hi."], [offer]]}) == []


def test_a_list_that_repeats_its_few_words_is_no_quotation() -> None:
    people = " and ".join(f"first name {name} last name Berg born 1980-01-01" for name in ("Ann", "Bo", "Cy"))
    wish = f"book a flight from PHX to DEN in economy for {people}"
    assert rules("Hi.", "How can I help?", f"I want to {wish}.", scenario=f"You want to {wish}.") == []
    other = "a story of one green house by that old river where many small birds sing every bright summer morning again"
    assert rules("Hi.", "How can I help?", f"I want {other}.", scenario=f"You want {other}.") == ["leaks"]


def test_what_was_said_before_the_episode_is_not_this_users() -> None:
    history = (Message("user", "As an AI language model I want a task."), Message("assistant", "Here it is."))
    task = Task(id="t", domain="mock", scenario="Change it.", actions=(), history=history)
    assert not find_user_errors(task, [*history, Message("user", "Change it, please.")])
    assert find_user_errors(task, [*history, Message("user", "As an AI language model I want it changed.")])


def test_a_user_without_tools_may_speak_of_its_phone() -> None:
    said = ("No service.", "Please restart the phone.", "I restarted it, still nothing.")
    assert rules(*said, scenario=TELECOM) == []
    assert [e.rule for e in find_user_errors(*talk(*said, scenario=TELECOM), user_tools=PHONE)] == ["pretends"]


@pytest.mark.parametrize(
    ("said", "asked", "kinds"),
    [
        ("My zip is 12345", "", {"zip"}),
        ("12345", "May I have your zip code?", {"zip"}),
        ("I paid 12345 dollars", "", set()),
        ("order #W1234567", "", {"order_id"}),
        ("ann_lee_1234", "", {"user_id"}),
        ("gift_card_1234567", "", {"payment_id"}),
        ("reach me at a.b@c.org", "", {"email"}),
        ("call 555-123-4567", "", {"phone_number"}),
        ("reservation ZFA04Y on HAT123", "", {"reservation_id", "flight_number"}),
        ("born 1990-01-31", "", {"birth_date"}),
        ("31 January 1990", "Your date of birth?", {"birth_date"}),
        ("on January 31, 1990", "When do you fly?", set()),
        ("my name is Ann Lee", "", {"name"}),
        ("I'm Very Happy", "", {"name"}),
        ("I'm happy with it", "", set()),
    ],
)
def test_facts_that_a_message_states(said: str, asked: str, kinds: set[str]) -> None:
    assert {f.kind for f in facts.stated(said, asked)} == kinds


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("order_id", "W1234567", "order #W1234567"),
        ("phone_number", "(555) 123-4567", "call 555-123-4567"),
        ("name", "Ann Lee", "your user id is ann_lee_1234"),
        ("birth_date", "January 31, 1990", "DOB 1990-01-31"),
        ("birth_date", "31st of January 1990", "born 01/31/1990"),
        ("email", "A@B.org", "a@b.org"),
    ],
)
def test_facts_are_the_same_in_another_spelling(kind: str, value: str, text: str) -> None:
    assert facts.has_source(facts.StatedFact(kind, value), text)
    assert not facts.has_source(facts.StatedFact(kind, value), "nothing of the kind")


def test_requests_are_what_is_wanted_without_a_condition() -> None:
    scenario = "You want to return the velvet armchair. If refused, you want a parrot. You don't want vouchers."
    assert requests(scenario) == [["return", "velvet", "armchair"]]
    assert requests("Known info:\n\tYou want nothing said of this section.") == []


def test_the_longest_run_of_words() -> None:
    assert longest_run(["a", "b", "c", "d"], ["x", "b", "c", "y", "b", "c", "d"]) == ["b", "c", "d"]
    assert longest_run([], ["a"]) == []


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_the_longest_run_is_one_of_both_and_none_is_longer(said: list[str], told: list[str]) -> None:
    def runs(words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(words[i:j]) for i in range(len(words)) for j in range(i, len(words) + 1)}

    run = tuple(longest_run(said, told))
    common = runs(said) & runs(told)
    assert run in common or not common
    assert len(run) == max((len(r) for r in common), default=0)


TEXT = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    [*STOP_WORDS, "Yes.", "{", "My name is A B"]
)


@settings(max_examples=150)
@given(st.lists(TEXT, max_size=8), st.sampled_from([RETAIL, LONG, ""]))
def test_no_conversation_breaks_the_rules_and_findings_point_at_the_user(said: list[str], scenario: str) -> None:
    task, messages = talk(*said, scenario=scenario)
    for error in find_user_errors(task, messages, user_tools=PHONE):
        assert error.rule in RULES
        assert messages[error.turn].role == "user"
        assert error.detail


# ── the judge ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Answers:
    """A model that gives these answers in turn."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), []

    async def complete(self, messages: Any) -> str:
        self.asked.append(messages)
        return self.answers.pop(0)


def test_the_judge_sees_scenario_and_conversation_and_its_findings_are_read() -> None:
    task, messages = talk("I want a parrot.", "We have none.", "Fine. ###STOP###")
    row = {"turn": 1, "rule": "contradicts", "detail": "It came for a lamp."}
    model = Answers("```json\n" + json.dumps({"errors": [row]}) + "\n```")
    (error,) = asyncio.run(UserJudge(model)(task, messages))
    assert (error.rule, error.turn, error.detail) == ("judge", 1, "contradicts: It came for a lamp.")
    asked = model.asked[0][1]["content"]
    assert task.scenario in asked
    assert "[1] customer: I want a parrot." in asked


def test_the_judge_sees_what_the_user_did_and_not_what_the_agent_did() -> None:
    case = next(c for c in GOOD if c.tools and any(m.role == "tool" for m in c.messages))
    asked = user_judge_prompt(case.task, case.messages)[1]["content"]
    assert "uses its phone: check_status_bar" in asked
    other = next(c for c in GOOD if not c.tools and any(m.role == "tool" for m in c.messages))
    assert "exchange_delivered_order_items" not in user_judge_prompt(other.task, other.messages)[1]["content"]


def test_a_judge_that_answers_nonsense_is_asked_again_and_then_given_up() -> None:
    task, messages = talk("Hi.", "Hello.", "Bye. ###STOP###")
    model = Answers("no idea", '{"errors": [{"turn": 99}]}', '{"errors": []}')
    assert asyncio.run(UserJudge(model)(task, messages)) == ()
    assert len(model.asked) == 3
    with pytest.raises(InfrastructureError, match="judge of users"):
        asyncio.run(UserJudge(Answers("a", "b", "c"))(task, messages))


@pytest.mark.parametrize(
    "answer",
    ["", "[]", "{}", '{"errors": 1}', '{"errors": [1]}', '{"errors": [{"turn": 0}]}', '{"errors": [{"turn": true}]}'],
)
def test_malformed_answers_of_the_judge_are_refused(answer: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_findings(answer, talk("Hi.")[1])
