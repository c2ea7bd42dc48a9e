"""Agents that wander: what they say and call comes from the conversation, and follows from nothing else."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muarl.domains.tasks import Action, Task
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import Episode, StopReason, Turn
from muarl_tools.experiments.reproduce.wandering import Finder, Material, WanderingAgent, leaves, shape

TOOLS = [ToolSpec(name, "", {"type": "object", "properties": {}}) for name in ("get_order", "cancel_order", "pay")]


def task(name: str, *actions: Action) -> Task:
    return Task(name, "shop", "", actions)


def material() -> Material:
    tasks = [
        task(
            "a", Action("get_order", {"order_id": "#W11"}), Action("cancel_order", {"order_id": "#W22", "why": "late"})
        ),
        task("b", Action("pay", {"items": [{"id": "#W33", "count": 2}]}), Action("dial", {"n": "1"}, "user")),
    ]
    said = Episode("e", "a", "shop", [Turn(Message("assistant", "Shall I cancel #W11?"))], StopReason.USER_STOP)
    return Material.of(tasks, [said], ["#W11", "#W22", "#W44", "#W55", "late", "broken", "Ann", "Anna"])


def act(seed: int, *said: str) -> list[Message]:
    """What an agent does after each of these words of its user."""

    async def play() -> list[Message]:
        session = WanderingAgent(material()).open("", TOOLS, seed=seed, session="s")
        return [(await session.act([Message("user", text)])).message for text in said]

    return asyncio.run(play())


def test_values_are_found_the_longest_first_and_as_whole_words() -> None:
    assert Finder(["Ann", "Anna", "#W1", "late bird"]).find("Anna and Ann: #W1, late birds, a late bird, #W12") == [
        "Anna", "Ann", "#W1", "late bird",
    ]  # fmt: skip


@given(st.lists(st.text("ab1# -", min_size=1, max_size=4), max_size=6), st.text("ab1# -", max_size=30))
def test_what_is_found_stands_there_without_overlap(values: list[str], text: str) -> None:
    finder = Finder(values)
    spans = list(finder.spans(text))
    assert all(text[start:end] in {v.strip() for v in values} for start, end in spans)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
    assert finder.find(text) == [text[start:end] for start, end in spans]


@given(st.text(max_size=20))
def test_a_shape_keeps_length_and_case(text: str) -> None:
    found = shape(text)
    assert len(found) == len(text) and shape(found) == shape(shape(found))


def test_only_the_agents_calls_are_taken_over() -> None:
    assert set(material().calls) == {"get_order", "cancel_order", "pay"}
    assert list(leaves({"a": [{"b": 1}, {"b": None}], "c": "x"})) == [("b", 1), ("c", "x")]


def calls(messages: Sequence[Message]) -> list[Any]:
    return [call for m in messages for call in m.tool_calls]


def test_arguments_are_copied_from_what_was_said() -> None:
    made = [call for seed in range(60) for call in calls(act(seed, "It is order #W44.", "I said #W44!"))]
    ids = [value for call in made for name, value in leaves(call.arguments) if name in ("order_id", "id")]
    assert {call.name for call in made} == {"get_order", "cancel_order", "pay"}
    assert len(ids) > 30 and set(ids) == {"#W44"}


def test_without_an_id_there_is_hardly_ever_a_call() -> None:
    silent = [call for seed in range(60) for call in calls(act(seed, "Hello.", "Well?"))]
    talking = [call for seed in range(60) for call in calls(act(seed, "Hello #W55.", "Well?"))]
    assert len(silent) < len(talking) / 3


def test_sentences_speak_of_this_conversation() -> None:
    said = [m.content for seed in range(60) for m in act(seed, "It is order #W55.") if m.content]
    assert said and set(said) == {"Shall I cancel #W55?"}


def test_the_same_seed_does_the_same() -> None:
    assert act(3, "#W44", "late", "#W55") == act(3, "#W44", "late", "#W55")
    assert any(act(seed, "#W44", "late") != act(3, "#W44", "late") for seed in range(10))


def test_words_of_the_user_draw_half_of_the_calls() -> None:
    def share(text: str) -> float:
        made = calls([m for seed in range(150) for m in act(seed, text)])
        return sum(call.name == "cancel_order" for call in made) / len(made)

    assert share("Please cancel #W44.") > share("It is #W44.") + 0.15
