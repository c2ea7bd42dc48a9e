"""A user who writes another language: what an agenda user says in English, said in that language.

The English sentence is read as the scripted experts read it (``Speech``), and what it says is said again. An agent's
words are heard in that language too. An agent that keeps to English, or asks for it, gets broken English.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from muarl.language.consent import is_affirmative
from muarl.types.chat import STOP_WORDS, Message
from muarl.users.base import User, UserTurn
from muarl.users.behaviours.languages import CONFIRM, LANGUAGES, Language

BEARS = 2
"""How many English messages in a row this user answers in its own language."""

ASKS_FOR_ENGLISH = re.compile(
    r"\b(in english|speak english|english (please|only)|only (speak|understand) english)\b|英语"
    r"|\b(englisch|inglés|anglais)\b",
    re.I,
)


class ReadRequest(Protocol):
    """A request as it is read: its kind, and its slots as far as they are told."""

    @property
    def kind(self) -> str: ...

    @property
    def slots(self) -> Mapping[str, Any]: ...


class Speech(Protocol):
    """What a domain's requests sound like: how a user's English is read, and how it is said in another language."""

    def stock(self, text: str) -> str | None:
        """The name in ``Language.phrases`` of what a text says that holds nothing else: yes, ok."""
        ...

    def requests(self, text: str) -> Sequence[ReadRequest]:
        """The requests that a user's English sentences make."""
        ...

    def details(self, text: str) -> Mapping[str, Any]:
        """The slots that a user's English sentences tell, where they make no request."""
        ...

    def who(self, text: str, language: Language) -> tuple[str, str] | None:
        """Who calls, if a text says so: a name in ``Language.phrases``, and what it takes. The name may be empty: then
        it is said as it is."""
        ...

    def goal(self, kind: str, language: Language) -> str | None:
        """A kind of request as a clause with braces for its slots; None if there is no word for it."""
        ...

    def say(self, slots: Mapping[str, Any], language: Language) -> list[str]:
        """Slots with their values."""
        ...

    def hears(self, language: Language) -> Sequence[tuple[str, str]]:
        """Patterns of agents' words, each with English that means the same."""
        ...

    def facts(self, text: str, language: Language) -> Sequence[str]:
        """Values in an agent's text that its English does not show, such as dates."""
        ...


class Foreign:
    """``user`` speaks English; what reaches the agent is in ``language`` (a key of LANGUAGES)."""

    def __init__(self, user: User, speech: Speech, language: str, rng: random.Random) -> None:
        self._user, self._speech, self._language, self._rng = user, speech, LANGUAGES[language], rng
        self._english = 0
        self._started = self._gave_in = False

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """What the user says, in its language as long as the agent lets it."""
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
            plain = is_affirmative(said) or any(word in said for word in STOP_WORDS)
            said = f"{self._phrase('english')}{said}" if first and not plain else said
        else:
            said = self._translated(said, opening)
        return UserTurn(Message("user", said), turn.usage)

    # what is heard

    def _gloss(self, text: str) -> str:
        """An agent's text with what it says in English behind it."""
        lower = text.lower()
        meant = [english for pattern, english in self._speech.hears(self._language) if re.search(pattern, lower)]
        if CONFIRM in meant:  # a proposal's own words are no questions about its slots
            meant = [CONFIRM]
        return " ".join([text, *self._speech.facts(text, self._language), *meant])

    # what is said

    def _phrase(self, name: str, value: str = "") -> str:
        return self._rng.choice(self._language.phrases[name]).replace("{}", value)

    def _translated(self, text: str, opening: bool) -> str:
        """The sentence in the user's language."""
        stop = next((f" {w}" for w in STOP_WORDS if w in text), "")
        if stop:
            given_up = "not working" in text
            name = "gives_up" if given_up else "end"
            return f"{self._phrase(name)}{stop}" if text.strip() not in STOP_WORDS else text
        lower = text.lower()
        stock = self._speech.stock(text)
        if stock is not None:
            return self._phrase(stock)
        frames = self._speech.requests(text)
        who = self._speech.who(text, self._language)
        parts = []
        for n, frame in enumerate(frames):
            parts.append(self._goal(frame, opening and n == 0, n > 0 or lower.startswith(("i also", "also")), lower))
        if not frames:
            slots = self._speech.say(self._speech.details(text) if who is None else {}, self._language)
            if slots:
                changed = lower.startswith(("actually", "wait", "sorry", "no,"))
                parts.append(self._phrase("change" if changed else "tell", ", ".join(slots)))
        if who is not None:
            name, details = who
            parts.append(self._phrase(name, details) if name else details)
        return " ".join(parts) or text

    def _goal(self, frame: ReadRequest, opening: bool, more: bool, lower: str) -> str:
        changed = not opening and lower.startswith(("actually", "wait", "sorry"))
        name = "opening" if opening else "also" if more else "wrong" if lower.startswith("no") else "again"
        slots = self._speech.say(frame.slots, self._language)
        if changed:
            return self._phrase("change", ", ".join(slots))
        goal = self._speech.goal(frame.kind, self._language)
        if goal is None:
            return self._phrase(name, f"{frame.kind}: {', '.join(slots)}")
        values = ", ".join(slots)
        bare = goal.endswith("{}") and goal.rstrip("{}").rstrip(" ").endswith(":")
        if not values:
            goal = re.sub(r"\s?[::]\s?\{\}$", "", goal)
        return self._phrase(name, goal.replace("{}", values if bare or not values else f", {values}"))
