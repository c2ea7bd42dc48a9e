"""What follows from a declaration for reading each other's words."""

from __future__ import annotations

import pytest

from support.kit import LIBRARY, service


def test_a_stretch_of_text_counts_for_one_kind_only():
    food = service("food-delivery")
    slots = [food.slots[name] for name in ("quantity", "amount", "order", "dish")]
    found = food.mentions("Order F-12345 for $20, two Green Curry", [food.kind(slot) for slot in slots])
    assert [[m.value for m in found[food.kind(slot)]] for slot in slots] == [[2], [20], ["F-12345"], ["Green Curry"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I want to extend a loan.", ["extend"]),
        ("I want to report a problem with a book.", ["report"]),
        ("Could I know the fee of loan LN-100?", ["ask_fee"]),
        ("I'd like to hear what it has cost so far.", ["ask_fee"]),
        ("Hello there.", []),
    ],
)
def test_intents_are_known_by_the_words_of_their_clauses(text, expected):
    assert LIBRARY.intents_in(text) == expected


@pytest.mark.parametrize(
    ("question", "slot"),
    [
        ("Which loan is it?", "loan"),
        ("Could you give me the number of the loan?", "loan"),
        ("How many days?", "days"),
        ("By how many days would you like to keep it?", "days"),
        ("Why is that: lost or damaged?", "why"),
    ],
)
def test_questions_are_known_by_a_slots_name_and_its_own_wordings(question, slot):
    assert [name for name, asked in LIBRARY.asked.items() if asked.search(question)] == [slot]


def test_questions_for_facts_are_known_by_their_names():
    assert [n for n, asked in LIBRARY.asked_identity.items() if asked.search("What is your phone number?")] == ["phone"]
    assert all(asked.search("May I have your name and phone number?") for asked in LIBRARY.asked_identity.values())
