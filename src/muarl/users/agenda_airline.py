"""A caller of an airline that plays an agenda: goals, facts and patience, and no language model.

It reveals details piecemeal, changes its mind when it hears a proposal, confirms or refuses what is proposed, reminds
the agent of what was forgotten, and gives up. It reads the agent's words only (phrases.hear), never the world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from muarl.domains.airline import phrases
from muarl.domains.base import Task
from muarl.users.caller import Caller, Phrases, Request

SLOTS = (
    "reservation_id", "origin", "destination", "flight", "date", "cabin", "who", "passenger", "passengers", "bags",
    "insurance", "reason", "payment",
)  # fmt: skip
"""What an agent may ask for, in the order in which it is answered."""

REVEALS: Mapping[str, Sequence[str]] = {
    "terse": ("reservation_id", "flight", "date", "cabin", "bags", "who", "passenger", "origin", "destination"),
    "chatty": (*SLOTS, "described"),
    "confused": ("described", "cabin", "origin", "destination"),
    "impatient": (*SLOTS, "described", "identity"),
}
"""What each persona tells at once; the rest is told when asked."""


class AgendaUser(Caller):
    """Plays ``task.agenda`` (domains/airline/generator.py)."""

    words: ClassVar[Phrases] = phrases
    reveals = REVEALS
    template_first = "later"
    counts_done = True

    def __init__(self, task: Task, *, seed: int, persona: str | None = None) -> None:
        super().__init__(task, seed=seed, persona=persona, label="airline agenda")
        self._wrong_id = self._agenda["wrong_id"]

    # what is told

    def _say(self, request: Mapping[str, Any], slots: Sequence[str]) -> str:
        return phrases.say_wish(self._rng, request["kind"], request["wish"], slots)

    def _identity(self) -> str:
        user_id, self._wrong_id = self._wrong_id or self._agenda["identity"]["user_id"], None
        return phrases.say_identity(self._rng, user_id)

    # what is heard

    def _answer(self, text: str) -> str:
        acts = phrases.hear(text)
        if "transferred" in acts:
            return "###TRANSFER###"
        request = self._request_meant(text)
        if request is None:
            return self._follow(text)
        if request["answer"] is not None and request["answer"] in text.replace(",", ""):
            return self._settle(request, text)
        proposal = "confirm" in acts and "question" in acts and request["kind"] != "outside"
        asked = self._asked_for(request, acts)
        if "unavailable" in acts and request["kind"] != "outside":
            return self._unavailable(request, text, proposed="confirm" in acts)
        if asked and not (proposal and not self._conflicts(request, text)):
            return self._tell(request, asked)
        if proposal:
            return self._confirm(request, text)
        if "refuse" in acts:
            return self._settle(request, text)
        return self._hear_done(request, text) if "done" in acts else self._restate(request)

    def _asked_for(self, request: Mapping[str, Any], acts: set[str]) -> list[str]:
        """What a message asks for: who the caller is, and slots of the request."""
        asked = ["identity"] if "ask_identity" in acts and ("question" in acts or "done" not in acts) else []
        return asked + [s for s in SLOTS if s in request["wish"] and f"ask_{s}" in acts]

    def _tell(self, request: Mapping[str, Any], asked: Sequence[str]) -> str:
        said = []
        for slot in asked:
            if slot == "identity":
                what = "identity" if self._wrong_id is None else "wrong identity"
            else:
                what = f"{slot} of {request['wish']}"
            tired = self._tired(what)
            if tired:
                return tired
            if slot == "identity":
                said.append(self._identity())
            else:
                told = "described" if slot in request["unknown"] else slot
                said.append(phrases.say_slot(self._rng, told, request["wish"]))
        return " ".join(said)

    def _request_meant(self, text: str) -> Request | None:
        """The request an agent's message is about: by the reservation and verb it names, else the first open one."""
        kinds = phrases.spoken_kinds(text)
        told = [r for r in self._open if r["told"]]
        for request in (*told, *self._confirmed):
            named = request["wish"].get("reservation_id")
            if named is not None and named in text and (not kinds or request["kind"] in kinds):
                return request
        return told[0] if told else None

    # proposals and news

    def _conflicts(self, request: Request, text: str) -> bool:
        return phrases.conflicts(text, request["kind"], request["wish"])

    def _say_change(self, request: Request, old: Mapping[str, Any]) -> str:
        return phrases.say_change(self._rng, request["kind"], old, request["wish"])

    def _say_instead(self, request: Request, old: Mapping[str, Any]) -> str:
        changed = "date" if request["wish"].get("date") != old.get("date") else "cabin"
        return phrases.say_slot(self._rng, changed, request["wish"])
