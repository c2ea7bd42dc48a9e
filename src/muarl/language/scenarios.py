"""What the scenario of a simulated user says: its requests, who it is, and how it is to bring them up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muarl.language import facts

_SECTIONS = re.compile(r"^\s*(known info|unknown info|persona|domain):", re.IGNORECASE)
_OTHERS = re.compile(r"^\s*(reason for call|task instructions|instructions):", re.IGNORECASE)
_WISH = re.compile(
    r"\b(you|you'?d|also|and) (also |then |still |would |really |just )*(want|like|wish|ask|request)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(if|unless|when|whenever|in case|otherwise|only|until|once|after|before|should the|even though|except)\b"
    r"|\b(not|never|n't|no longer|avoid|refuse|hate)\b|n't\b",
    re.IGNORECASE,
)
_EVERYDAY = """
    about after agent also another anything asks assistant because been before being call calling case change could
    customer does done each either else ever every exact find first from getting give given goal have having help here
    information instead issue item items just know last like made make making many more most much must need needs next
    number only option order orders other over payment phone please possible prefer problem provide really reason
    receive request right same service should since some something soon still sure take tell than thank that their them
    then there these they thing things this those through time today together total under until upon user very
    want wanted wants ways well were what when where whether which while will wish with without would wrong your yours
    yourself fixed working work flight flights reservation account details contact contacting regarding
"""
_COMMON = frozenset(_EVERYDAY.split())

_TELLS_ALL = re.compile(
    r"\b(?:in a hurry|impatient|everything (?:at once|in one)|all (?:at once|in one message|your details))",
    re.IGNORECASE,
)
_ONE_BY_ONE = re.compile(r"\bonly after the one before\b|\bone (?:wish|request|thing) at a time\b", re.IGNORECASE)
_DOES_NOT_KNOW = re.compile(r"\b(?:do not|don['’]t) (?:have|know|remember|recall)\b", re.IGNORECASE)
_KNOWN = re.compile(
    r"^[ \t]*known info:(?P<text>(?:.*)(?:\n(?![ \t]*[a-z]+[a-z ]*:[ \t]*$).*)*)", re.IGNORECASE | re.MULTILINE
)
"""What TAU2's scenarios say of a user, up to the next heading."""
_YOU_ARE = re.compile(r"\b(?:[Yy]ou are|[Yy]our name is)\s+([A-Z][\w'’-]+ [A-Z][\w'’-]+)")
IDENTITY = frozenset({"name", "email", "user_id", "zip", "phone_number", "birth_date", "account_id"})
"""Kinds of facts (``facts``) that say who somebody is."""


def requests(scenario: str, *, conditions: bool = False) -> list[list[str]]:
    """The telling words of each sentence of a scenario that says what the user wants. ``conditions`` False: without any
    condition; True: also with one, but not beginning with it."""
    lines, skipping = [], False
    for line in scenario.splitlines():
        if _SECTIONS.match(line):
            skipping = True
        elif _OTHERS.match(line):
            skipping = False
        if not skipping:
            lines.append(line)
    wishes = []
    for sentence in re.split(r"(?<=[.!?;])\s+|\n+", "\n".join(lines)):
        bound = _CONDITION.match(sentence.strip()) if conditions else _CONDITION.search(sentence)
        if _WISH.search(sentence) and not bound:
            telling = [w for w in facts.words(sentence) if len(w) >= 4 and w not in _COMMON and not w.isdigit()]
            wishes.append(list(dict.fromkeys(telling)))
    return wishes


def identity_in(scenario: str) -> frozenset[str]:
    """The words of a scenario that say who the user is: its known info, else its names and the like."""
    known_info = "\n".join(m["text"] for m in _KNOWN.finditer(scenario))
    if known_info:
        return frozenset(w for text in _telling(known_info) for w in facts.words(text))
    said = [f.value for f in facts.stated(scenario, "zip code") if f.kind in IDENTITY]
    return frozenset(w for text in (*said, *_YOU_ARE.findall(scenario)) for w in facts.words(text))


def _telling(text: str) -> Iterator[str]:
    """Words with a digit, and words in capitals within a sentence."""
    for sentence in re.split(r"(?<=[.!?:;])\s+|\n+", text):
        for number, word in enumerate(re.findall(r"#?[\w'’.@-]*\w", sentence)):
            if re.search(r"\d", word) or (number and word[:1].isupper() and word not in ("I", "OK")):
                yield word


def tells_all_at_once(scenario: str) -> bool:
    """Whether the user is to tell everything in one message, or in a hurry."""
    return bool(_TELLS_ALL.search(scenario))


def brings_up_one_by_one(scenario: str) -> bool:
    """Whether the user is to bring up its requests one after the other."""
    return bool(_ONE_BY_ONE.search(scenario))


def knows_not_all(scenario: str) -> bool:
    """Whether there is something that the user does not have or know."""
    return bool(_DOES_NOT_KNOW.search(scenario))
