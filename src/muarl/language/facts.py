"""Facts that a text states, such as ids, e-mail addresses, zip codes and names, and whether another text has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StatedFact:
    """One stated fact."""

    kind: str
    """One of KINDS, or "name" or "birth_date"."""
    value: str
    """As it was written."""


class FactPattern(Protocol):
    """What finds the facts of one kind: of a compiled expression as much as is used here."""

    def finditer(self, text: str, /) -> Iterator[re.Match[str]]: ...

    def search(self, text: str, /) -> re.Match[str] | None: ...

    def sub(self, replacement: str, text: str, /) -> str: ...


class _Emails:
    r"""Finds what ``[\w.+-]+@[\w-]+(?:\.[\w-]+)+`` finds, in time proportional to the text.

    That expression is tried from every character of a long word, and reads the rest of it each time. This one takes the
    whole word at once, be there an address or not.
    """

    _WORD = re.compile(r"[\w.+-]++(?:@[\w-]+(?:\.[\w-]+)+)?")

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        if "@" in text:
            yield from (match for match in self._WORD.finditer(text) if "@" in match[0])

    def search(self, text: str) -> re.Match[str] | None:
        return next(self.finditer(text), None)

    def sub(self, replacement: str, text: str) -> str:
        if "@" not in text:
            return text
        return self._WORD.sub(lambda match: replacement if "@" in match[0] else match[0], text)


KINDS: tuple[tuple[str, FactPattern], ...] = (
    ("email", _Emails()),
    ("order_id", re.compile(r"#?\bW\d{6,8}\b", re.IGNORECASE)),
    ("payment_id", re.compile(r"\b(?:credit_card|gift_card|paypal|certificate)_\d+\b", re.IGNORECASE)),
    ("user_id", re.compile(r"\b[a-z]+_[a-z]+_\d{3,5}\b", re.IGNORECASE)),
    ("flight_number", re.compile(r"\bHAT\d{3}\b")),
    ("reservation_id", re.compile(r"\b(?!HAT\d{3}\b)(?=[A-Z0-9]*[A-Z])(?=[A-Z0-9]*\d)[A-Z0-9]{6}\b")),
    ("phone_number", re.compile(r"(?<![\d-])(?:\+?1[-. ])?\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}\b")),
    ("item_id", re.compile(r"(?<!\d)\d{10}(?!\d)")),
    ("account_id", re.compile(r"\b[CLBD]\d{4}\b")),
    ("card_ending", re.compile(r"\bending (?:in|with)[: ]+(\d{4})\b", re.IGNORECASE)),
    ("zip", re.compile(r"(?<![\d#$.,-])\d{5}(?![\d-])")),
)
"""What can be told by its form alone (a zip code also by what is spoken of)."""

_ZIP_TALK = re.compile(r"\b(zip|postal|post) ?(code)?\b|\b[A-Z]{2},? \d{5}\b", re.IGNORECASE)
_NAME = re.compile(
    r"\b(?:[Mm]y (?:full )?name is|[Mm]y name's|[Tt]he name is|[Nn]ame:)\s+(?P<a>[A-Z][\w'’-]+(?: [A-Z][\w'’.-]+){0,2})"
    r"|\b(?:I'm|I am|[Tt]his is)\s+(?P<b>[A-Z][a-z'’-]+ [A-Z][a-z'’-]+)\b(?! (?:card|Air|Lines?|flight|order)\b)"
)
_FIRST_AND_LAST = re.compile(r"\b(?:[Ff]irst|[Ll]ast) [Nn]ame(?: is|:| -)\s+(?P<c>[A-Z][\w’-]+)")
_BIRTH = re.compile(r"\b(birth|born|dob)\b", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<{}>jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*"
_DATES = (
    re.compile(r"\b(?P<y>(?:19|20)\d\d)-(?P<m>\d\d?)-(?P<d>\d\d?)\b"),
    re.compile(r"\b(?P<m>\d\d?)/(?P<d>\d\d?)/(?P<y>(?:19|20)\d\d)\b"),
    re.compile(rf"\b{_MONTH.format('m')} (?P<d>\d\d?)(?:st|nd|rd|th)?,? (?P<y>(?:19|20)\d\d)\b", re.IGNORECASE),
    re.compile(rf"\b(?P<d>\d\d?)(?:st|nd|rd|th)?(?: of)? {_MONTH.format('m')},? (?P<y>(?:19|20)\d\d)\b", re.IGNORECASE),
)


def words(text: str) -> list[str]:
    """The words of a text in small letters, without punctuation."""
    return re.findall(r"[a-z0-9]+(?:['’][a-z]+)?", text.lower())


def stated(text: str, asked: str = "") -> Iterator[StatedFact]:
    """The facts in a person's message; ``asked``: what it answers, which may say that a number is a zip code."""
    rest = text
    for kind, pattern in KINDS:
        if kind == "zip" and not (_ZIP_TALK.search(text) or _ZIP_TALK.search(asked)):
            continue
        for match in pattern.finditer(rest):
            yield StatedFact(kind, match.group(match.lastindex or 0))
        rest = pattern.sub(" ", rest)
    for pattern in (_NAME, _FIRST_AND_LAST):
        for match in pattern.finditer(text):
            yield StatedFact("name", next(v for v in match.groups() if v))
    if _BIRTH.search(text) or _BIRTH.search(asked):
        for _, written in dates(text):
            yield StatedFact("birth_date", written)


def has_source(fact: StatedFact, text: str) -> bool:
    """Whether a text holds the fact, in whatever spelling."""
    if fact.kind == "name":
        parts = _parts(text)
        return all(part in parts for part in re.findall(r"[a-z]+", _plain_name(fact.value)))
    if fact.kind == "birth_date":
        return bool({d for d, _ in dates(fact.value)} & _days(text))
    return _squeeze(fact.value) in _squeeze(text)


def has_kind(kind: str, text: str) -> bool:
    """Whether a text holds any fact of that kind."""
    if kind == "name":
        return bool(re.search(r"\b(?:You are|You're|Your name is|name is)\s+[A-Z][a-z]+ [A-Z]", text))
    if kind == "birth_date":
        return bool(_BIRTH.search(text)) and any(True for _ in dates(text))
    pattern = dict(KINDS)[kind]
    return bool(pattern.search(text)) and (kind != "zip" or bool(_ZIP_TALK.search(text)))


def dates(text: str) -> Iterator[tuple[tuple[int, int, int], str]]:
    """The full dates in a text: (year, month, day) and how it was written."""
    for pattern in _DATES:
        for match in pattern.finditer(text):
            month = match["m"].lower()
            number = int(month) if month.isdigit() else _MONTHS.index(month[:3]) + 1
            yield (int(match["y"]), number, int(match["d"])), match.group()


def _plain_name(name: str) -> str:
    return re.sub(r"['’]s$", "", name).lower()


# A text is asked about once for each of a message's facts.


@lru_cache(maxsize=8)
def _parts(text: str) -> frozenset[str]:
    """The parts of names that a text may hold."""
    return frozenset(re.findall(r"[a-z]+", text.lower()))


@lru_cache(maxsize=8)
def _days(text: str) -> frozenset[tuple[int, int, int]]:
    """The full dates in a text."""
    return frozenset(day for day, _ in dates(text))


@lru_cache(maxsize=64)
def _squeeze(text: str) -> str:
    """Letters and digits only, in small letters: "#W123" and "w 123" are the same."""
    return re.sub(r"[^a-z0-9@]", "", text.lower())
