"""A caller who writes another language: what an agenda user says in English, said in that language.

The English sentence is read by the same readers as the scripted experts have, and what it says is said again. An
agent's words are heard in that language too. An agent that keeps to English, or asks for it, gets broken English.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.chat import STOP_WORDS, Message
from muarl.domains.airline import phrases as airline_phrases
from muarl.domains.airline import reading as airline_reading
from muarl.domains.retail import phrases as retail_phrases
from muarl.domains.retail import reading as retail_reading
from muarl.domains.telecom import reading as telecom_reading
from muarl.users.base import User, UserTurn
from muarl.users.redteam.languages import LANGUAGES

READERS: Mapping[str, Any] = {"retail": retail_reading, "airline": airline_reading, "telecom": telecom_reading}

BEARS = 2
"""How many English messages in a row this caller answers in its own language."""

ASKS_FOR_ENGLISH = re.compile(
    r"\b(in english|speak english|english (please|only)|only (speak|understand) english)\b|英语"
    r"|\b(englisch|inglés|anglais)\b",
    re.I,
)

_MONTHS = {
    m: n
    for names in (
        "januar februar märz april mai juni juli august september oktober november dezember",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    )
    for n, m in enumerate(names.split(), 1)
}


class Foreign:
    """``user`` speaks English; what reaches the agent is in ``language`` (a key of LANGUAGES)."""

    def __init__(self, user: User, domain: str, language: str, rng: random.Random) -> None:
        self._user, self._language, self._rng = user, LANGUAGES[language], rng
        self._reading = READERS[domain]
        self._domain = domain
        self._english = 0
        self._started = self._gave_in = False

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """What the caller says, in its language as long as the agent lets it."""
        heard = list(conversation)
        if heard and heard[-1].role == "assistant" and self._started:
            text = heard[-1].content or ""
            native = re.search(self._language.native, text) is not None
            self._english = 0 if native else self._english + 1
            if ASKS_FOR_ENGLISH.search(text) or self._english > BEARS:
                first, self._gave_in = not self._gave_in, True
            else:
                first = False
            if native:
                heard[-1] = Message("assistant", self._gloss(text))
        else:
            first = False
        turn = await self._user.reply(heard)
        opening, self._started = not self._started, True
        said = turn.message.content or ""
        if turn.message.tool_calls:
            return turn
        if self._gave_in:
            plain = said.lower().startswith("yes") or any(word in said for word in STOP_WORDS)
            said = f"{self._phrase('english')}{said}" if first and not plain else said
        else:
            said = self._translated(said, opening)
        return UserTurn(Message("user", said), turn.usage)

    # what is heard

    def _gloss(self, text: str) -> str:
        """An agent's text with what it says in English behind it."""
        lower = text.lower()
        meant = [english for pattern, english in self._language.hears if re.search(pattern, lower)]
        if "Shall I go ahead?" in meant:  # a proposal's own words are no questions about its slots
            meant = ["Shall I go ahead?"]
        days = [f"2024-{int(m):02d}-{int(d):02d}" for d, m in re.findall(r"\b(\d\d?)[./](\d\d?)[./]2024", text)]
        days += [f"2024-{int(m):02d}-{int(d):02d}" for m, d in re.findall(r"(\d\d?)月(\d\d?)日", text)]
        for day, month in re.findall(r"\b(\d\d?)\.?(?: de)? ([a-zäéûô]+)", lower):
            days += [f"2024-{_MONTHS[month]:02d}-{int(day):02d}"] if month in _MONTHS else []
        bags = re.findall(r"(\d+) (?:gepäck|koffer|maletas|bagages|件)", lower)
        facts = [*days, *(f"{n} bags" for n in bags)]
        return " ".join([text, *facts, *meant])

    # what is said

    def _phrase(self, name: str, value: str = "") -> str:
        return self._rng.choice(self._language.phrases[name]).replace("{}", value)

    def _translated(self, text: str, opening: bool) -> str:
        """The sentence in the caller's language."""
        stop = next((f" {w}" for w in STOP_WORDS if w in text), "")
        if stop:
            given_up = "not working" in text
            name = "gives_up" if given_up else "end"
            return f"{self._phrase(name)}{stop}" if text.strip() not in STOP_WORDS else text
        lower = text.lower()
        if lower.startswith("yes"):
            return self._phrase("yes")
        if lower.startswith(("never mind", "no, forget")):
            return self._phrase("drop")
        frames = self._reading.read_requests(text)
        who = self._identity(text)
        parts = []
        for n, frame in enumerate(frames):
            parts.append(self._wish(frame, opening and n == 0, n > 0 or lower.startswith(("i also", "also")), lower))
        if not frames:
            slots = self._slots(self._reading.read_slots(text) if who is None else {})
            if slots:
                changed = lower.startswith(("actually", "wait", "sorry", "no"))
                parts.append(self._phrase("change" if changed else "tell", ", ".join(slots)))
        if who is not None:
            name = {"telecom": "number", "airline": "user_id"}.get(self._domain, "identity")
            parts.append(who if name == "number" and "born" in who else self._phrase(name, who))
        return " ".join(parts) or (self._phrase("ok") if lower.startswith("ok") else text)

    def _wish(self, frame: Any, opening: bool, more: bool, lower: str) -> str:
        changed = not opening and lower.startswith(("actually", "wait", "sorry"))
        name = "opening" if opening else "also" if more else "wrong" if lower.startswith("no") else "again"
        slots = self._slots(frame.slots)
        if changed:
            return self._phrase("change", ", ".join(slots))
        wish = self._language.wishes.get(frame.kind)
        if wish is None:
            return self._phrase(name, f"{frame.kind}: {', '.join(slots)}")
        told = ", ".join(slots)
        bare = wish.endswith("{}") and wish.rstrip("{}").rstrip(" ").endswith(":")
        if not told:
            wish = re.sub(r"\s?[::]\s?\{\}$", "", wish)
        return self._phrase(name, wish.replace("{}", told if bare or not told else f", {told}"))

    def _identity(self, text: str) -> str | None:
        """Who calls, if a text says so."""
        who = self._reading.read_identity(text)
        if who is None or isinstance(who, str):
            return who
        if self._domain == "retail":
            return f"{who['first_name']} {who['last_name']}, {who['zip']}"
        if "phone_number" in who:
            return str(who["phone_number"])
        return f"I am {who['full_name']}, born {who['dob']}"

    def _slots(self, slots: Mapping[str, Any]) -> list[str]:
        out = []
        for name, template in self._language.slots.items():
            if name in slots and not (name == "items" and "described" in slots):
                out.append(template.replace("{}", self._value(name, slots[name])))
        return out

    def _value(self, name: str, value: Any) -> str:
        if name == "address":
            return retail_phrases.say_address(value)
        if name == "passenger":
            return airline_phrases.say_person(value)
        if isinstance(value, list):
            return ", ".join(str(self._language.values.get(v, v)) for v in value)
        return str(self._language.values.get(value, value)) if isinstance(value, str) else str(value)
