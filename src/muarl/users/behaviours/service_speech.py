"""How requests to a declared service are read, and said in another language.

What is to be done is said in the user's language as far as ``words`` knows the verb, with the service's own clause
behind it, as people quote what stands on a website; values stay as the records have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.domains.kit import reading, templates
from muarl.domains.kit.declaration import Intent, several
from muarl.domains.kit.records import PLACE
from muarl.domains.kit.service import Service
from muarl.users.behaviours.languages import ACTS, NOUNS, VERBS, WHO, Language


@dataclass(frozen=True, slots=True)
class _Frame:
    kind: str
    slots: Mapping[str, Any]


class ServiceSpeech:
    """A user's words to a service, as its expert reads them (``foreign.Speech``). ``kinds``: the intents of the user's
    requests."""

    def __init__(self, service: Service, kinds: Iterable[str]) -> None:
        self._service = service
        intents = [service.intent(kind) for kind in kinds if kind != "outside"]
        self._slots = list(dict.fromkeys(slot.name for intent in intents for slot in intent.slots))

    def stock(self, text: str) -> str | None:
        """The name of the stock phrase that a text is."""
        return _STOCK.get(text)

    def requests(self, text: str) -> Sequence[_Frame]:
        """The intents that are spoken of, each with the slots that are told of it."""
        frames = []
        for intent, part in reading.parts(self._service, text):
            if intent:
                slots = [slot.name for slot in self._service.intent(intent).slots]
                frames.append(_Frame(intent, reading.read_slots(self._service, part, slots)))
        return frames

    def details(self, text: str) -> Mapping[str, Any]:
        """The slots of the user's own requests that are told."""
        return reading.read_slots(self._service, text, self._slots)

    def who(self, text: str, language: Language) -> tuple[str, str] | None:
        """All facts by which users are identified, or nothing."""
        identity = reading.identity_in(self._service, text)
        facts = self._service.facts
        if not facts or any(fact.name not in identity for fact in facts):
            return None
        return "identity", ", ".join(self._service.kind(fact).say(identity[fact.name], None) for fact in facts)

    def goal(self, kind: str, language: Language) -> str | None:
        """The verb of the intent, and its shortest clause in quotation marks."""
        clause = _shortest(self._service.intent(kind))
        words = clause.lower().split(" ")
        verbs = VERBS[language.name]
        verb = verbs.get(" ".join(words[:2])) or verbs.get(words[0])
        return f"{verb} („{clause}“): {{}}" if verb else f"„{clause}“: {{}}"

    def say(self, slots: Mapping[str, Any], language: Language) -> list[str]:
        """Values, behind what they are where there is a word for it."""
        out = []
        for slot in self._service.slots:
            if slot in slots:
                noun, said = _noun(slot, language), self._service.show(slot, slots[slot])
                out.append(f"{noun} {said}" if noun else said)
            elif f"described {slot}" in slots:
                out.append(str(slots[f"described {slot}"]))
        return out

    def hears(self, language: Language) -> Sequence[tuple[str, str]]:
        """What agents say in any domain, and questions for the user's slots by their nouns."""
        identity = self._service.identity
        who = WHO if identity is None else several(identity.ask)[0]
        pairs = [(pattern, who if says == WHO else says) for pattern, says in language.hears if says in ACTS]
        for slot in self._slots:
            noun = _noun(slot, language)
            if noun is not None:
                asked = several(self._service.slots[slot].ask)[0]
                pairs.append((rf"{re.escape(noun.lower())}[^.!。]*[?？]", asked))
        return pairs

    def facts(self, text: str, language: Language) -> Sequence[str]:
        """Days that are written in figures."""
        year = self._service.today[:4]
        days = [f"{y or year}-{int(m):02d}-{int(d):02d}" for d, m, y in _EUROPEAN.findall(text)]
        return days + [f"{year}-{int(m):02d}-{int(d):02d}" for m, d in _CHINESE.findall(text)]


_EUROPEAN = re.compile(r"\b(\d\d?)[./](\d\d?)[./](\d{4})?")
_CHINESE = re.compile(r"(\d\d?)月(\d\d?)日")


def _stock_phrases() -> dict[str, str]:
    names_by_phrase: dict[str, str] = {}
    for name, phrases in (
        ("ok", [*templates.WAITS, *templates.ACCEPTS]),
        ("drop", templates.DROPS),
        ("yes", [text for texts in templates.YES.values() for text in texts]),
    ):
        names_by_phrase |= dict.fromkeys(phrases, name)
    return names_by_phrase


_STOCK = _stock_phrases()


def _shortest(intent: Intent) -> str:
    """The clause that leaves out most slots; dots stand for others."""
    clause = min(intent.says, key=lambda clause: len(PLACE.findall(clause)))
    return PLACE.sub("…", clause)


def _noun(slot: str, language: Language) -> str | None:
    """What a slot's name says, the noun first."""
    nouns = NOUNS[language.name]
    words = [nouns[word] for word in reversed(slot.split("_")) if word in nouns]
    return " ".join(words) or None
