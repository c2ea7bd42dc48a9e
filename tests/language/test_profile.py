"""How one side writes, and how far two sides are apart."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.language.profile import compare, divergence, style

WORDS = (
    "order",
    "lamp",
    "please",
    "cancel",
    "refund",
    "number",
    "yes",
    "no",
    "thanks",
    "hello",
    "blue",
    "card",
    "bill",
)


def people(seed: int, count: int, *, longer: int = 0) -> list[list[str]]:
    rng = random.Random(seed)
    return [
        [" ".join(rng.choices(WORDS, k=rng.randint(3, 9) + longer)) for _ in range(rng.randint(2, 6))]
        for _ in range(count)
    ]


def test_figures_are_shares_and_means() -> None:
    found = style([["Um, I am not sure?", "please help"], ["It is #W1."]])
    assert found["questions"] == pytest.approx(1 / 3)
    assert found["hesitation"] == pytest.approx(1 / 3)
    assert found["politeness"] == pytest.approx(1 / 3)
    assert found["small_letter"] == pytest.approx(1 / 3)
    assert found["words"] == pytest.approx((5 + 2 + 3) / 3)
    assert found["messages"] == 1.5


def test_the_same_people_are_as_near_as_halves_of_them() -> None:
    found = compare(people(1, 80), people(2, 80))
    assert not found["features"]["words"]["differs"]
    assert found["vocabulary"] == pytest.approx(found["people"]["vocabulary"], abs=0.02)
    assert found["length"] == pytest.approx(found["people"]["length"], abs=0.06)


def test_longer_messages_and_other_words_are_seen() -> None:
    found = compare(people(1, 60, longer=12), [[f"x{t}" for t in c] for c in people(2, 60)])
    assert found["features"]["words"]["differs"]
    assert found["features"]["words"]["interval"][0] > 8
    assert found["length"] > 0.9


def test_too_little_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two"):
        compare([["hi"]], [["hi"]])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1), st.lists(st.sampled_from(WORDS), min_size=1))
def test_divergence_is_symmetric_and_between_zero_and_one(one: list[str], other: list[str]) -> None:
    assert divergence(one, one) == pytest.approx(0.0, abs=1e-12)
    assert divergence(one, other) == pytest.approx(divergence(other, one))
    assert 0.0 <= divergence(one, other) <= 1.0
    assert divergence(one, ["elsewhere"]) == pytest.approx(1.0)
