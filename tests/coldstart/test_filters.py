"""Each filter objects to what it is for, and to nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muarl.coldstart.duplicates import NearDuplicates, shingles
from muarl.coldstart.filters import FILTERS, Candidate, FilterBounds, reason
from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import Episode, StopReason, Turn, Verdict

LOOK = ToolSpec(
    "look", "", {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
)
POLICY = " ".join(f"rule{n}" for n in range(100))
TASK = Task("t", "shop", "You want to know what became of order W1. Your name is Mia Li.", ())


def said(role: Any, text: str, *calls: ToolCall) -> Message:
    return Message(role, text or None, calls)


def look(order: Any = "W1", **more: Any) -> Message:
    return Message("assistant", None, (ToolCall("c", "look", {"order_id": order, **more}),))


def result(text: str = "shipped", *, error: bool = False) -> Message:
    return Message("tool", text, tool_call_id="c", name="look", error=error)


GOOD = (
    said("assistant", "Hello!"),
    said("user", "What became of order W1?"),
    look(),
    result(),
    said("assistant", "It has been shipped."),
    said("user", "Thanks. ###STOP###"),
)


def candidate(*messages: Message, stop: StopReason = StopReason.USER_STOP, **verdict: Any) -> Candidate:
    found = Verdict(**{"reward": 1.0, "breakdown": {"DB": 1.0}, **verdict})
    episode = Episode("e", "t", "shop", [Turn(m) for m in messages or GOOD], stop, verdict=found, system=POLICY)
    return Candidate(episode, TASK, (LOOK,))


def test_a_good_conversation_passes() -> None:
    assert reason(candidate(), FilterBounds()) is None


def with_second(*messages: Message) -> Candidate:
    return candidate(*GOOD[:2], *messages, *GOOD[2:])


@pytest.mark.parametrize(
    ("name", "found", "detail"),
    [
        ("finished", candidate(stop=StopReason.MAX_TURNS), "max_turns"),
        ("schema", with_second(look(order=7), result()), "7 is not of type 'string'"),
        ("schema", with_second(Message("assistant", None, (ToolCall("c", "burn", {}),)), result()), "no tool here"),
        (
            "schema",
            with_second(Message("assistant", None, (ToolCall("c", "", {}, invalid="broken", raw="{"),)), result()),
            "cannot be read",
        ),
        ("errors", with_second(*[m for n in range(3) for m in (look(f"W{n}"), result("no", error=True))]), "3 calls"),
        ("goal", candidate(reward=0.0, breakdown={"DB": 0.0, "COMMUNICATE": 1.0}), "not reached: DB"),
        ("policy", candidate(audit={"writes_without_consent": 1.0}), "consent"),
        ("policy", candidate(audit={"foreign_access": 2.0}), "another user"),
        ("user", with_second(said("user", "As an AI language model I cannot know that."), look(), result()), "leaks"),
        ("leak", with_second(said("assistant", "<tool_call>"), said("user", "What?")), "<tool_call>"),
        ("leak", with_second(said("assistant", POLICY[:600]), said("user", "I see.")), "recited"),
        ("repetition", with_second(*[m for _ in range(4) for m in (look("W1"), result())]), "the same 5 times"),
        ("length", with_second(result("word " * 7000)), "words"),
    ],
)  # fmt: skip
def test_each_filter_names_what_is_wrong(name: str, found: Candidate, detail: str) -> None:
    objection = reason(found, FilterBounds())
    assert objection is not None
    assert objection[0] == name, objection
    assert detail in objection[1], objection
    others = [f for n, f in FILTERS.items() if n not in (name, "finished")]
    assert all(f(candidate(), FilterBounds()) is None for f in others)


def test_what_is_too_short_or_too_long_is_a_matter_of_the_bounds() -> None:
    assert reason(candidate(), FilterBounds(min_turns=4)) == ("length", "3 messages of the agent")
    assert reason(candidate(), FilterBounds(max_turns=2)) == ("length", "3 messages of the agent")


def test_where_the_world_cannot_be_checked_the_goal_is_not_asked_for() -> None:
    failed = candidate(reward=0.0, breakdown={"unscored": 0.0})
    assert reason(replace(failed, checkable=False), FilterBounds()) is None


def episode(name: str, *texts: str) -> Episode:
    roles = ("user", "assistant")
    turns = [Turn(Message(roles[n % 2], t)) for n, t in enumerate(texts)]  # type: ignore[arg-type]
    return Episode(name, "t", "shop", turns, StopReason.USER_STOP)


TALK = (
    "Good morning, I would like to give back the blue umbrella that I bought last week, order W1234.",
    "Of course. The umbrella of order W1234 goes back and you get 12.50 dollars on your card. Shall I go ahead?",
    "Yes please, and thanks for the quick help, I was afraid that it would take much longer than this.",
)


def test_the_same_talk_about_another_order_is_a_duplicate() -> None:
    seen = NearDuplicates(0.9)
    seen.keep(episode("a", *TALK))
    assert seen.twin(episode("b", *(t.replace("W1234", "W9").replace("12.50", "7.99") for t in TALK))) == "a"
    assert seen.twin(episode("c", *reversed(TALK))) is None
    assert seen.twin(episode("d", "Can you tell me when you open on Sundays?", "At ten.", "Thanks.")) is None


def test_what_counts_as_the_same_is_a_matter_of_the_threshold() -> None:
    half = episode("b", TALK[0], TALK[1], "No, wait, I have thought better of it and keep the thing after all, sorry.")
    overlap = len(shingles(half) & shingles(episode("a", *TALK))) / len(shingles(half) | shingles(episode("a", *TALK)))
    for threshold, twin in ((overlap - 0.1, "a"), (overlap + 0.1, None)):
        seen = NearDuplicates(threshold)
        seen.keep(episode("a", *TALK))
        assert seen.twin(half) == twin
