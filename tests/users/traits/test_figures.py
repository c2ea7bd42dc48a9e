"""What of a trait shows in conversations, whoever had them, and the level that it stands for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.recipes.user_fit import GRID, _level
from muarl.types.chat import Message
from muarl.users.traits.figures import FIGURES, look_at, measure
from muarl.users.traits.foreign import speaks
from muarl.users.traits.levels import TRAITS


def talk(*lines: str) -> list[Message]:
    """Lines that agent and user say in turns."""
    return [Message("user" if n % 2 else "assistant", line) for n, line in enumerate(lines)]


PLAIN = talk(
    "Hi! How can I help you?",
    "I want to cancel order #W1234567, my zip code is 12345.",
    "Why do you want to cancel it?",
    "It is no longer needed.",
    "Shall I go ahead?",
    "Yes, please.",
    "Done. Anything else?",
    "No, that is all. ###STOP###",
)


def test_every_trait_has_a_figure():
    assert tuple(FIGURES) == TRAITS


def test_an_easy_conversation_shows_nothing():
    found = measure([PLAIN])
    assert found.figures == {**dict.fromkeys(TRAITS, 0.0), "withholding": 1.0}
    assert found.messages == 4 and found.words == pytest.approx((11 + 5 + 2 + 4) / 4)


@pytest.mark.parametrize(
    ("trait", "line"),
    [
        ("impatience", "Can you hurry up? I have no time."),
        ("impatience", "This is a waste of my time."),
        ("impatience", "Forget it, this leads nowhere. ###STOP###"),
        ("wandering", "By the way, do you open on Sundays?"),
        ("wandering", "Actually, I would rather have the blue one."),
        ("wandering", "I have changed my mind, leave it for now."),
        ("mistakes", "Sorry, I gave you the wrong number."),
        ("mistakes", "Oops, I meant the other order."),
        ("mistakes", "My mistake."),
        ("foreign_language", "Das ist nicht meine Bestellung."),
        ("foreign_language", "Quiero cancelar el pedido, por favor."),
        ("foreign_language", "我想取消订单。"),
    ],
)
def test_what_people_write_counts_for_the_trait_that_it_shows(trait, line):
    found = measure([[*PLAIN[:4], Message("assistant", "One moment."), Message("user", line)]])
    others = {name: share for name, share in found.figures.items() if name not in (trait, "withholding")}
    assert found.figures[trait] == pytest.approx(1 / 3) and not any(others.values())


def test_asking_back_and_telling_late_are_withholding():
    late = talk("Hi!", "I want to cancel an order.", "Which order is it?", "What do you need that for?", "Which order?",
                "#W1234567.")  # fmt: skip
    assert measure([late]).figures["withholding"] == pytest.approx(0 - 2 * 0.5)
    assert not measure([late]).figures["wandering"]


def test_calls_and_empty_messages_are_nobody_s_words():
    assert look_at([Message("assistant", "Hi!"), Message("user", " ###STOP###")]) is None
    with pytest.raises(ValueError, match="no user says anything"):
        measure([[Message("assistant", "Hi!")]])


def test_intervals_hold_the_figure():
    conversations = [PLAIN, talk("Hi!", "Hurry up, please!", "Yes?", "Come on."), PLAIN, PLAIN]
    found = measure(conversations, resamples=200, seed=1)
    for name, (low, high) in found.intervals.items():
        assert low <= found.figures[name] <= high
    assert found.intervals == measure(conversations, resamples=200, seed=1).intervals


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Guten Tag, ich möchte etwas zurückgeben.", "de"),
        ("¿Puedo cambiar la fecha?", "es"),
        ("Je voudrais annuler.", "fr"),
        ("是的。", "zh"),
        ("I want to cancel my order.", None),
        ("#W1234567", None),
    ],
)
def test_the_language_of_a_message(text, code):
    assert speaks(text) == code


@given(
    st.lists(st.floats(0.001, 1), min_size=4, max_size=4), st.floats(0, 1), st.sampled_from(["mistakes", "withholding"])
)
@settings(max_examples=100)
def test_a_level_is_found_again_from_its_figure(steps, level, name):
    heights = [sum(steps[:n]) for n in range(5)]
    place = level * 4
    below = min(int(place), 3)
    figure = heights[below] + (place - below) * steps[below]
    sign = -1 if name == "withholding" else 1
    found = _level(name, [sign * h for h in heights], sign * figure)
    assert found == pytest.approx(level, abs=2e-3)
    assert _level(name, [sign * h for h in heights], sign * (heights[-1] + 1)) == GRID[-1]
    assert _level(name, [sign * h for h in heights], sign * (heights[0] - 1)) == GRID[0]


def test_a_figure_that_tells_nothing_is_level_0():
    assert _level("mistakes", [0.1] * 5, 0.1) == 0.0
