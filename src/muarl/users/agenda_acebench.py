"""The owner of a phone, or a traveller, who plays an agenda: goals, facts and patience, and no language model.

It reveals details piecemeal, changes its mind when it hears a proposal, confirms or refuses what is proposed, reminds
the agent of what was forgotten, and gives up. It reads the agent's words only (phrases.hear), never the world. English.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from muarl.domains.acebench import phrases
from muarl.domains.acebench.sayings import SLOTS, say_change, say_identity, say_slot, say_wish
from muarl.domains.base import Task
from muarl.users.caller import Caller, Phrases, Request

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


class AgendaUser(Caller):
    """Plays ``task.agenda`` (domains/acebench/generator.py)."""

    words: ClassVar[Phrases] = phrases
    reveals = REVEALS
    template_first = "later"
    counts_done = True

    def __init__(self, task: Task, *, seed: int, persona: str | None = None) -> None:
        super().__init__(task, seed=seed, persona=persona, label="acebench agenda")
        self._wrong_password = self._agenda["wrong_password"]

    # what is told

    def _say(self, request: Mapping[str, Any], slots: Sequence[str]) -> str:
        return say_wish(self._rng, request["kind"], request["wish"], slots)

    def _identity(self, asked: Sequence[str] | None = None) -> str:
        """Who the caller is, as far as it is asked (None: all that it tells at once); the first password may be a
        wrong one."""
        asked = self._agenda["tells"] if asked is None else asked
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
            return self._unavailable(request, text, proposed="confirm" in acts)
        proposal = "confirm" in acts and "question" in acts and not outside
        asked = [s for s in SLOTS if s in request["wish"] and f"ask_{s}" in acts]
        if "room" in asked:
            asked = ["room"]
        if asked and not (proposal and not self._conflicts(request, text)):
            return self._tell(request, asked)
        if proposal:
            return self._confirm(request, text)
        if "ask_flight" in acts and "question" in acts:
            return self._tired("flight") or "The cheapest one please."
        if "refuse" in acts:
            return self._settle(request, text)
        return self._hear_done(request, text) if "done" in acts else self._restate(request)

    def _tell(self, request: Mapping[str, Any], asked: Sequence[str]) -> str:
        said = []
        for slot in asked:
            tired = self._tired(f"{slot} of {request['wish']}")
            if tired:
                return tired
            said.append(say_slot(self._rng, slot, request["wish"], request["unknown"]))
        return " ".join(dict.fromkeys(said))

    def _request_meant(self, text: str) -> Request | None:
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

    def _conflicts(self, request: Request, text: str) -> bool:
        return phrases.conflicts(text, request["kind"], request["wish"])

    def _agree(self, request: Request, text: str) -> str:
        if request["kind"] == "todo":  # it takes two proposals, each of them once
            return self._tired(text) or self._pick(phrases.YES)
        return super()._agree(request, text)

    def _say_change(self, request: Request, old: Mapping[str, Any]) -> str:
        return say_change(self._rng, request["kind"], old, request["wish"])

    def _unavailable(self, request: Request, text: str, *, proposed: bool) -> str:
        if request["fallback"] is not None and request in self._confirmed:
            self._confirmed.remove(request)  # what was agreed on cannot be had, so that nothing is done yet
            self._open.insert(0, request)
            self._awaited -= 1
        return super()._unavailable(request, text, proposed=proposed)

    def _say_instead(self, request: Request, old: Mapping[str, Any]) -> str:
        wish = request["wish"]
        changed = next(s for s in SLOTS if s in wish and wish[s] != old.get(s))
        return say_slot(self._rng, changed, wish, request["unknown"])
