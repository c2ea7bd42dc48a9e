"""The kinds of values that users and agents speak of: how each is said, and how it is found in a text.

A value has one canonical form (ids as they are, dates as ``2026-03-14``, times as ``14:30``, money as a number, words
of a closed list by their key) and many spoken ones.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_MONTH = "|".join(f"{m[:3]}(?:{m[3:]})?" if len(m) > 3 else m for m in MONTHS)
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"\b(\d{{4}})-(\d\d)-(\d\d)\b|\b({_MONTH})\.? {_DAY}(?:,? (\d{{4}}))?\b"
    rf"|\b{_DAY}(?: of)? ({_MONTH})(?:,? (\d{{4}}))?\b",
    re.IGNORECASE,
)
_DAY_FIRST = re.compile(r"(?<![\w/.])(\d{1,2})([/.])(\d{1,2})\2(\d{4})(?![\w/])")
_TIME = re.compile(
    r"\b([01]?\d|2[0-3]):([0-5]\d)(?:\s?([ap])\.?m\b\.?)?|\b(1[0-2]|[1-9])\s?([ap])\.?m\b\.?", re.IGNORECASE
)
_MONEY = re.compile(r"\$\s?(\d[\d,]*(?:\.\d\d?)?)|\b(\d[\d,]*(?:\.\d\d?)?) dollars\b|(?<![\w.$:-])(\d+\.\d\d)(?![\w.])")
_NUMBER = re.compile(rf"(?<![\w$€£.,:#-])(\d{{1,4}}|{'|'.join(NUMBER_WORDS[2:])})(?![\w:]|[.,-]\d)", re.IGNORECASE)
_PERSON = r"[A-Z][a-z'’-]+"
QUOTED = re.compile(r'["“]([^"“”]+)["”]')
_ADDRESS = re.compile(rf"(?<![\w$.,:#-])\d{{1,4}}[a-z]? {_PERSON}(?: {_PERSON})+")


@dataclass(frozen=True, slots=True)
class Mention:
    """A value that stands in a text."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class ValueKind:
    """One kind of value."""

    name: str
    say: Callable[[Any, random.Random | None], str]
    """``say(value, rng)``: a spoken form, the plainest where ``rng`` is None."""
    find: Callable[[str], list[Mention]]
    """``find(text)``: the mentions in a text."""
    rank: int
    """Which kinds are looked for first, so that an id's digits are no number."""
    choices: tuple[str, ...] = ()
    """All values, for closed lists."""
    own: bool = False
    """Agents have a wording of their own, the value itself."""
    wordings: Callable[[str], Sequence[str]] = lambda value: ()
    """``wordings(choice)``: how users say it."""
    form: str = ""
    """The regular expression of values that it tells."""


def normal(value: Any) -> Any:
    """A form in which equal values are equal: numbers by value, texts without regard to case."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return float(value)
    text = str(value).strip()
    try:
        return float(text)
    except ValueError:
        return text.casefold()


def pattern_kind(name: str, pattern: str, *, exact: bool = False) -> ValueKind:
    """Ids and other values that their form tells. ``pattern`` is a regular expression without groups, which is found in
    any case (``exact``: in its own) and read in the case that it is written in."""
    searched = re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", 0 if exact else re.IGNORECASE)
    written = re.compile(pattern)

    def find(text: str) -> list[Mention]:
        mentions = []
        for m in searched.finditer(text):
            forms = (m[0], m[0].upper(), m[0].lower())
            mentions.append(Mention(next((f for f in forms if written.fullmatch(f)), m[0]), m.start(), m.end()))
        return mentions

    return ValueKind(name, lambda value, rng: str(value), find, 0, form=pattern)


def word_kind(name: str, words: Mapping[str, Sequence[str]], *, rank: int = 5, own: bool = False) -> ValueKind:
    """Values of a closed list, each with the wordings it may have. Found in any of them, and by its own name."""
    said = {key: tuple(wordings) or (key,) for key, wordings in words.items()}
    spelt = [key for key, wordings in words.items() if wordings]
    by_wording = {w.casefold(): key for key, wordings in said.items() for w in (key, key.replace("_", " "), *wordings)}
    longest = sorted(by_wording, key=len, reverse=True)
    searched = re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(w) for w in longest)})(?!\w)", re.IGNORECASE)

    def say(value: Any, rng: random.Random | None) -> str:
        wordings = said.get(str(value), (str(value),))
        return wordings[0] if rng is None else rng.choice(wordings)

    def find(text: str) -> list[Mention]:
        return [Mention(by_wording[m[0].casefold()], m.start(), m.end()) for m in searched.finditer(text)]

    return ValueKind(name, say, find, rank, tuple(said), own, lambda value: said[value] if value in spelt else ())


def name_kind(name: str, names: Sequence[str]) -> ValueKind:
    """Names of a vocabulary: dishes, doctors, places."""
    return word_kind(name, dict.fromkeys(names, ()), rank=4)


def _number(text: str) -> float | int:
    value = float(text.replace(",", ""))
    return int(value) if value == int(value) else value


def _say_money(value: Any, rng: random.Random | None) -> str:
    amount = float(value)
    exact = f"{amount:,.2f}" if amount != int(amount) else f"{int(amount):,}"
    return f"{exact} dollars" if rng is not None and rng.random() < 0.3 else f"${exact}"


def _find_money(text: str) -> list[Mention]:
    return [Mention(_number(m[1] or m[2] or m[3]), m.start(), m.end()) for m in _MONEY.finditer(text)]


_SUM = r"\d{1,3}(?:\.\d{3})+(?:,\d\d)?|\d[\d,]*(?:\.\d\d?)?"
"""An amount as it is written here or on the continent: 1,250.50 or 1.250,50."""


def _sums(name: str, sign: str, words: str) -> ValueKind:
    """Money of another currency than the dollar. ``words``: a regular expression of its names."""
    searched = re.compile(
        rf"{sign}\s?({_SUM})|(?<![\w.,])({_SUM})\s?(?:{sign}|(?:{words})\b)|(?<![\w.,$€£:-])(\d+\.\d\d)(?![\w.])",
        re.IGNORECASE,
    )
    noun = f"{name}s"

    def say(value: Any, rng: random.Random | None) -> str:
        text = _say_money(value, None)[1:]
        return f"{text} {noun}" if rng is not None and rng.random() < 0.3 else f"{sign}{text}"

    def find(text: str) -> list[Mention]:
        mentions = []
        for m in searched.finditer(text):
            amount = m[1] or m[2] or m[3]
            if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d\d)?|\d+,\d\d", amount):
                amount = amount.replace(".", "").replace(",", ".")
            mentions.append(Mention(_number(amount), m.start(), m.end()))
        return mentions

    return ValueKind(name, say, find, 1)


def _say_number(value: Any, rng: random.Random | None) -> str:
    number = int(value)
    # "One" is too often a pronoun to be understood.
    spelt = rng is not None and 1 < number < len(NUMBER_WORDS) and rng.random() < 0.5
    return NUMBER_WORDS[number] if spelt else str(number)


def _find_numbers(text: str) -> list[Mention]:
    mentions = []
    for m in _NUMBER.finditer(text):
        word = m[1].lower()
        mentions.append(Mention(int(word) if word.isdigit() else NUMBER_WORDS.index(word), m.start(), m.end()))
    return mentions


def say_date(value: str, rng: random.Random | None = None, *, year: bool = False) -> str:
    """A date in words, such as "March 14"; other spellings by the ``rng``."""
    y, month, day = value.split("-")
    name, number = MONTHS[int(month) - 1], int(day)
    tail = f" {y}" if year else ""
    if rng is None:
        return f"{name} {number}{',' + tail if year else ''}"
    ending = "th" if 10 < number < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    forms = (value, f"{name} {number}{tail}", f"{number} {name}{tail}", f"the {number}{ending} of {name}{tail}")
    return rng.choice(forms)


def say_day_first(value: str, rng: random.Random | None = None) -> str:
    """A date in words with its day first, such as "14 March"; other spellings by the ``rng``, also 14/03/2026."""
    year, month, day = value.split("-")
    said = f"{int(day)} {MONTHS[int(month) - 1]}"
    return said if rng is None else rng.choice((value, said, f"{said} {year}", f"{day}/{month}/{year}"))


def find_days_first(text: str) -> list[Mention]:
    """Dates in numbers with their day first: 14/03/2026, 14.3.2026."""
    mentions = []
    for m in _DAY_FIRST.finditer(text):
        day, month = int(m[1]), int(m[3])
        if 1 <= day <= 31 and 1 <= month <= 12:
            mentions.append(Mention(f"{m[4]}-{month:02d}-{day:02d}", m.start(), m.end()))
    return mentions


def find_dates(text: str, this_year: str) -> list[Mention]:
    """All dates of a text; one without a year is this year's."""
    mentions = []
    for m in _DATE.finditer(text):
        if m[1]:
            value = m[0]
        else:
            month = next(n for n, name in enumerate(MONTHS, 1) if name[:3].lower() == (m[4] or m[8])[:3].lower())
            value = f"{m[6] or m[9] or this_year}-{month:02d}-{int(m[5] or m[7]):02d}"
        mentions.append(Mention(value, m.start(), m.end()))
    return mentions


def _say_time(value: Any, rng: random.Random | None) -> str:
    hour, minute = (int(part) for part in str(value).split(":"))
    if rng is None or rng.random() < 0.5:
        return str(value)
    half = f":{minute:02d}" if minute else ""
    return f"{(hour - 1) % 12 + 1}{half} {'am' if hour < 12 else 'pm'}"


def _find_times(text: str) -> list[Mention]:
    mentions = []
    for m in _TIME.finditer(text):
        hour, minute, half = int(m[1] or m[4]), int(m[2] or 0), (m[3] or m[5] or "").lower()
        if half and hour <= 12:
            hour = hour % 12 + (12 if half == "p" else 0)
        mentions.append(Mention(f"{hour:02d}:{minute:02d}", m.start(), m.end()))
    return mentions


def _find_quoted(text: str) -> list[Mention]:
    return [Mention(m[1], m.start(), m.end()) for m in QUOTED.finditer(text)]


def _find_addresses(text: str) -> list[Mention]:
    """House numbers with the name of the street behind them, in capitals."""
    return [Mention(m[0], m.start(), m.end()) for m in _ADDRESS.finditer(text)]


def unquoted(text: str) -> str:
    """A text without what stands between quotation marks, which are not the speaker's own words."""
    return QUOTED.sub('""', text)


def blanked(text: str) -> str:
    """A text with blanks for what stands between quotation marks."""
    return QUOTED.sub(lambda m: " " * len(m[0]), text)


def without(text: str, mentions: Iterable[Mention]) -> str:
    """A text with blanks for these mentions, so that all others stand where they stood."""
    letters = list(text)
    for mention in mentions:
        letters[mention.start : mention.end] = " " * (mention.end - mention.start)
    return "".join(letters)


_FULL_NAME = re.compile(rf"\s*({_PERSON}(?: {_PERSON}){{1,2}})(?=[,.;:!]|\s*$)")


def person_kind(first_names: Sequence[str]) -> ValueKind:
    """People's full names: a known first name and what follows it, or whatever stands behind "my name is"; where a text
    has neither, what it begins with, if that is written like a name."""
    firsts = "|".join(re.escape(n) for n in sorted(first_names, key=len, reverse=True))
    by_first_name = re.compile(rf"\b((?:{firsts})(?: {_PERSON}){{1,2}})")
    introduced = re.compile(rf"\b(?:[Nn]ame(?: is|'s|:)|[Ii]t's|[Tt]his is|I am|I'm) ({_PERSON}(?: {_PERSON}){{1,2}})")

    def find(text: str) -> list[Mention]:
        mentions = [Mention(m[1], m.start(1), m.end(1)) for m in by_first_name.finditer(text)]
        if not mentions:
            mentions = [Mention(m[1], m.start(1), m.end(1)) for m in introduced.finditer(text)]
        first = _FULL_NAME.match(text)
        return mentions or ([Mention(first[1], first.start(1), first.end(1))] if first else [])

    return ValueKind("person", lambda value, rng: str(value), find, 2)


def built_in(today: str, first_names: Sequence[str]) -> dict[str, ValueKind]:
    """The kinds that every scenario has. Dates of other years than ``today``'s and the next are dates of birth."""
    year = int(today[:4])

    def dates(text: str) -> list[Mention]:
        return [m for m in find_dates(text, today[:4]) if abs(int(m.value[:4]) - year) <= 1]

    def european_dates(text: str) -> list[Mention]:
        return sorted([*dates(text), *find_days_first(text)], key=lambda mention: mention.start)

    def births(text: str) -> list[Mention]:
        return [m for m in find_dates(text, today[:4]) if int(m.value[:4]) < year - 1]

    return {
        "date": ValueKind("date", lambda v, rng: say_date(v, rng), dates, 1),
        "day_first": ValueKind("day_first", lambda v, rng: say_day_first(v, rng), european_dates, 1),
        "birthdate": ValueKind("birthdate", lambda v, rng: say_date(v, rng, year=True), births, 1),
        "time": ValueKind("time", _say_time, _find_times, 1),
        "money": ValueKind("money", _say_money, _find_money, 1),
        "euro": _sums("euro", "€", "euros?|eur"),
        "pound": _sums("pound", "£", "pounds?|gbp"),
        "number": ValueKind("number", _say_number, _find_numbers, 6),
        "person": person_kind(first_names),
        # what stands in quotation marks is nothing else, whatever it sounds like
        "quoted": ValueKind("quoted", lambda v, rng: f'"{v}"', _find_quoted, -1),
        "address": ValueKind("address", lambda v, rng: str(v), _find_addresses, 2),
    }


def join(words: list[str], last: str = "and") -> str:
    """Words in a row: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else "none"
