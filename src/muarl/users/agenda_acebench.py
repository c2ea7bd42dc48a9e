"""The owner of a phone, or a traveller, who plays an agenda: goals, facts and patience, and no language model.

It reveals details piecemeal, changes its mind when it hears a proposal, confirms or refuses what is proposed, reminds
the agent of what was forgotten, and gives up. It reads the agent's words only (phrases.hear), never the world. English.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.chat import Message
from muarl.domains.acebench import phrases
from muarl.domains.acebench.sayings import SLOTS, say_change, say_identity, say_slot, say_wish
from muarl.domains.base import Task
from muarl.errors import ConfigError
from muarl.users.agenda import PATIENCE
from muarl.users.base import UserTurn

_SAID_BY_ALL = ("described", "from", "title")
REVEALS: Mapping[str, Sequence[str]] = {
    "terse": (
        *_SAID_BY_ALL, "to", "text", "number", "product", "merchant", "reservation_id", "date", "cabin", "origin",
        "destination", "via",
    ),
    "chatty": (*_SAID_BY_ALL, *(s for s in SLOTS if s != "room")),
    "confused": (*_SAID_BY_ALL, "to", "product", "origin", "destination", "cabin"),
    "impatient": (*_SAID_BY_ALL, *(s for s in SLOTS if s != "room"), "identity"),
}  # fmt: skip
"""What each persona tells at once; the rest is told when asked."""

_WHO = {"ask_name": "name", "ask_user_id": "user_id", "ask_password": "password"}


class AgendaUser:
    """Plays ``task.agenda`` (domains/acebench/generator.py). Deterministic in (task, seed, what it hears)."""

    def __init__(self, task: Task, *, seed: int, persona: str | None = None) -> None:
        if task.agenda is None:
            raise ConfigError(
                f"task {task.id} has no agenda: an agenda user plays generated tasks only; use an LLM user"
            )
        self._agenda = task.agenda
        self._persona: str = persona or task.agenda["persona"]
        self._rng = random.Random(f"acebench agenda {task.id} {seed}")
        self._open: list[dict[str, Any]] = [dict(r, told=False) for r in task.agenda["requests"]]
        self._confirmed: list[dict[str, Any]] = []
        self._awaited = 0  # how many of them have not been reported done
        self._patience = PATIENCE[self._persona]
        self._wrong_password = task.agenda["wrong_password"]
        self._started = False
        self._asked: set[str] = set()

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Answer the last message of the conversation; the first reply is the opening, whatever the greeting says."""
        text = conversation[-1].content or "" if conversation else ""
        return UserTurn(Message("user", self._answer(text) if self._started else self._opening()))

    # what is told

    def _reveal(self, request: Mapping[str, Any]) -> list[str]:
        known = [s for s in REVEALS[self._persona] if s in request["wish"] and s not in request["unknown"]]
        return [s for s in known if s != "described" or "reservation_id" in request["unknown"]]

    def _clause(self, request: Mapping[str, Any], slots: Sequence[str]) -> str:
        return say_wish(self._rng, request["kind"], request["wish"], slots)

    def _full_clause(self, request: Mapping[str, Any]) -> str:
        return self._clause(request, [s for s in request["wish"] if s not in request["unknown"]])

    def _opening(self) -> str:
        self._started = True
        sentences = []
        for number, request in enumerate(self._open if self._agenda["upfront"] else self._open[:1]):
            template = phrases.OPENINGS[self._persona] if number == 0 else phrases.ALSO
            clause = self._clause(request, self._reveal(request))
            sentences.append(phrases.pick(self._rng, template).format(clause))
            request["told"] = True
        if "identity" in REVEALS[self._persona]:
            sentences.append(self._identity(self._agenda["tells"]))
        return " ".join(sentences)

    def _identity(self, asked: Sequence[str]) -> str:
        """Who the caller is; the first password may be a wrong one."""
        password = self._agenda["identity"]["password"]
        if self._wrong_password is not None and ("password" in asked or "user_id" in self._agenda["identity"]):
            password, self._wrong_password = self._wrong_password, None
        return say_identity(self._rng, self._agenda["identity"], asked, password)

    # what is heard

    def _answer(self, text: str) -> str:
        acts = phrases.hear(text)
        if "transferred" in acts:
            return "###TRANSFER###"
        request = self._request_meant(text)
        if request is None:
            return self._follow(text)
        if request["answer"] is not None and request["answer"].lower() in text.replace(",", "").lower():
            return self._settle(request, text)
        who = [slot for act, slot in _WHO.items() if act in acts and slot in self._agenda["identity"]]
        if who and ("question" in acts or not acts & {"done", "confirm"}):
            return self._tired(f"{who} {self._wrong_password is None}") or self._identity(who)
        outside = request["kind"] == "outside"
        if "unavailable" in acts and not outside:
            return self._unavailable(request, text, acts)
        proposal = "confirm" in acts and "question" in acts and not outside
        asked = [s for s in SLOTS if s in request["wish"] and f"ask_{s}" in acts]
        if "room" in asked:
            asked = ["room"]
        if asked and not (proposal and not phrases.conflicts(text, request["kind"], request["wish"])):
            return self._tell(request, asked)
        if proposal:
            return self._confirm(request, text)
        if "ask_flight" in acts and "question" in acts:
            return self._tired("flight") or "The cheapest one please."
        if "refuse" in acts:
            return self._settle(request, text)
        if "done" in acts:  # what was confirmed is done; else the agent takes this one as finished unconfirmed
            if not self._awaited:
                return self._settle(request, text)
            self._awaited -= 1
            return self._follow(text)
        return self._tired() or f"I want to {self._full_clause(request)}."

    def _tell(self, request: Mapping[str, Any], asked: Sequence[str]) -> str:
        said = []
        for slot in asked:
            tired = self._tired(f"{slot} of {request['wish']}")
            if tired:
                return tired
            said.append(say_slot(self._rng, slot, request["wish"], request["unknown"]))
        return " ".join(dict.fromkeys(said))

    def _request_meant(self, text: str) -> dict[str, Any] | None:
        """The request an agent's message is about: by the thing it names, else the first open one. One that is
        confirmed and not yet done may still need room in the inbox or another way to pay."""
        kinds = phrases.spoken_kinds(text)
        told = [r for r in self._open if r["told"]]
        for request in (*told, *self._confirmed):
            named = [request["wish"].get(s) for s in ("reservation_id", "to", "title", "merchant")]
            if request["kind"] in kinds and any(n is not None and n in text for n in named):
                return request
        acts = phrases.hear(text)
        for act, needs in (("ask_room", "room"), ("unavailable", "fallback")):
            fit = [r for r in (*self._confirmed[-1:], *told) if r["fallback" if needs == "fallback" else "wish"]]
            fit = [r for r in fit if needs == "fallback" or needs in r["wish"]]
            if act in acts and fit:
                return fit[0]
        return told[0] if told else None

    # proposals and news

    def _confirm(self, request: dict[str, Any], text: str) -> str:
        if phrases.conflicts(text, request["kind"], request["wish"]):
            return self._tired() or phrases.pick(self._rng, phrases.CORRECTIONS).format(self._full_clause(request))
        then, request["then"] = request["then"], None
        if then is None:
            if request["kind"] == "todo" and self._tired(text):  # it takes two proposals, each of them once
                return phrases.GIVES_UP
            if request["kind"] != "todo":
                self._close(request)
                self._awaited += 1
                self._confirmed.append(request)
            return phrases.pick(self._rng, phrases.YES)
        if then.get("drop"):
            self._close(request)
            return self._drop()
        old, request["wish"] = request["wish"], then
        return say_change(self._rng, request["kind"], old, then)

    def _unavailable(self, request: dict[str, Any], text: str, acts: set[str]) -> str:
        fallback, request["fallback"] = request["fallback"], None
        if fallback is None:
            return self._confirm(request, text) if "confirm" in acts else self._tired() or self._settle(request, text)
        if request in self._confirmed:  # what was agreed on cannot be had, so that nothing is done yet
            self._confirmed.remove(request)
            self._open.insert(0, request)
            self._awaited -= 1
        if fallback.get("drop"):
            self._close(request)
            return self._drop()
        changed = next(s for s in SLOTS if s in fallback and fallback[s] != request["wish"].get(s))
        request["wish"] = fallback
        if "confirm" in acts and not phrases.conflicts(text, request["kind"], fallback):
            return self._confirm(request, text)
        return say_slot(self._rng, changed, fallback, request["unknown"])

    def _close(self, request: dict[str, Any]) -> None:
        if request in self._open:
            self._open.remove(request)

    def _drop(self) -> str:
        said = phrases.pick(self._rng, phrases.DROPS)
        return said if self._open else f"{said} {phrases.pick(self._rng, phrases.ENDINGS)}"

    def _settle(self, request: dict[str, Any], text: str) -> str:
        """The agent takes this request as finished: done, refused or answered."""
        self._close(request)
        return self._follow(text)

    def _follow(self, text: str) -> str:
        """Bring up what is left, or end. A caller who does not remind expects the agent to know what was told."""
        if not self._open:
            return phrases.pick(self._rng, phrases.ENDINGS)
        request = self._open[0]
        if request["told"] and not self._agenda["reminds"]:
            return phrases.pick(self._rng, phrases.ENDINGS) if "else" in text.lower() else "OK."
        template = phrases.STILL if request["told"] else phrases.ALSO
        request["told"] = True
        return phrases.pick(self._rng, template).format(self._clause(request, self._reveal(request)))

    def _tired(self, asked: str | None = None) -> str:
        """Lose patience and perhaps give up. What is asked (``asked``) for the first time costs nothing."""
        if asked is not None and asked not in self._asked:
            self._asked.add(asked)
            return ""
        self._patience -= 1
        return phrases.GIVES_UP if self._patience < 0 else ""
