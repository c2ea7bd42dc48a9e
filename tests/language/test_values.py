"""How values are said, and found again in what people say."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.language import values
from muarl.language.values import built_in, name_kind, normal, pattern_kind, word_kind

TODAY = "2026-03-14"
KINDS = {
    **built_in(TODAY, ("Mia", "Noor")),
    "order": pattern_kind("order", r"F-\d{5}"),
    "email": pattern_kind("email", r"[a-z0-9.]+@[a-z]+\.com"),
    "dish": name_kind("dish", ("Pad Thai", "Green Curry", "Curry")),
    "why": word_kind("why", {"lost": ("I lost it", "it is lost"), "not mine": ("it is not mine",)}),
}


def found(kind, text):
    return [m.value for m in KINDS[kind].find(text)]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("date", "on 2026-04-02, or April 3, or the 4th of May, or 5 June 2026", [
            "2026-04-02", "2026-04-03", "2026-05-04", "2026-06-05"]),
        ("date", "I was born on May 17, 1984", []),
        ("date", "may I come on the second?", []),
        ("birthdate", "born May 17, 1984 or 1990-01-02, come on April 3", ["1984-05-17", "1990-01-02"]),
        ("time", "at 14:30, 2 pm, 9:05 am or 12 pm", ["14:30", "14:00", "09:05", "12:00"]),
        ("time", "it is 30 past something", []),
        ("money", "$45, 20 dollars, $1,250.50 or 3.20", [45, 20, 1250.5, 3.2]),
        ("money", "order F-12345 for 3 people", []),
        ("euro", "€45, 20 euros, €1,250.50, 12,50 €, 1.250,50 EUR or 3.20, not $7.00", [
            45, 20, 1250.5, 12.5, 1250.5, 3.2]),
        ("pound", "£45, 20 pounds, 12.50 GBP, not €7", [45, 20, 12.5]),
        ("day_first", "on 14 March, 03/04/2026, 5.4.2026 or April 6, not 12/2 or 31/13/2026", [
            "2026-03-14", "2026-04-03", "2026-04-05", "2026-04-06"]),
        ("number", "€4 or £5", []),
        ("number", "two nights for 3, one of them, F-12345, $4 and 10:30", [2, 3]),
        ("person", "Mia Berg here", ["Mia Berg"]),
        ("person", "my name is Olga van Dam", []),
        ("person", "My name is Olga Dam.", ["Olga Dam"]),
        ("person", "It's Pad Thai Street", ["Pad Thai Street"]),
        ("order", "order f-12345 and XF-12345 and F-123456", ["F-12345"]),
        ("email", "Write to Mia.Berg7@Example.com.", ["mia.berg7@example.com"]),
        ("dish", "green curry, the Pad Thai; curryish", ["Green Curry", "Pad Thai"]),
        ("why", "Well, I LOST IT. Not mine", ["lost", "not mine"]),
    ],
)  # fmt: skip
def test_values_are_found_in_texts(kind, text, expected):
    assert found(kind, text) == expected


@given(st.integers(0, 10**6), st.dates(min_value=__import__("datetime").date(2025, 1, 1),
                                       max_value=__import__("datetime").date(2027, 12, 31)))  # fmt: skip
@settings(max_examples=120)
def test_dates_are_read_back_in_every_spelling(seed, day):
    text = values.say_date(day.isoformat(), random.Random(seed), year=day.year != 2026)
    assert found("date", f"We come on {text}, then.") == [day.isoformat()]
    if day.year == 2026:
        assert found("day_first", f"We come on {values.say_day_first(day.isoformat(), random.Random(seed))}.") == [
            day.isoformat()
        ]


@given(st.integers(0, 10**6), st.integers(1930, 2010), st.integers(1, 12), st.integers(1, 28))
@settings(max_examples=80)
def test_dates_of_birth_are_read_back(seed, year, month, day):
    value = f"{year}-{month:02d}-{day:02d}"
    assert found("birthdate", f"born {KINDS['birthdate'].say(value, random.Random(seed))}.") == [value]


@given(st.integers(0, 10**6), st.integers(0, 23), st.sampled_from(["00", "30", "05"]))
@settings(max_examples=80)
def test_times_are_read_back(seed, hour, minute):
    value = f"{hour:02d}:{minute}"
    assert found("time", f"at {KINDS['time'].say(value, random.Random(seed))} please") == [value]


@given(st.integers(0, 10**6), st.one_of(st.integers(1, 9999), st.integers(1, 999_999).map(lambda c: c / 100)))
@settings(max_examples=120)
def test_money_is_read_back(seed, amount):
    for kind in ("money", "euro", "pound"):
        text = KINDS[kind].say(amount, random.Random(seed))
        assert normal(found(kind, f"It is {text}.")[0]) == pytest.approx(float(amount))


@given(st.integers(0, 10**6), st.integers(2, 999))
@settings(max_examples=60)
def test_numbers_are_read_back(seed, number):
    assert found("number", f"for {KINDS['number'].say(number, random.Random(seed))} people") == [number]


@pytest.mark.parametrize(("left", "right"), [(2, "2"), (2.0, "2.00"), ("Pad Thai", " pad thai"), (None, None)])
def test_equal_values_are_equal(left, right):
    assert normal(left) == normal(right)
    assert normal(True) is True and normal("yes") != normal(True)
