"""Users that play an agenda (users/caller.py): the factory, which finds each domain's caller, and the caller of shops.

A caller reveals details piecemeal, changes its mind when it hears a proposal, confirms or refuses what is proposed,
reminds the agent of what was forgotten, and gives up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

from muarl.domains import scenarios
from muarl.domains.base import Task
from muarl.domains.generated import ON_SERVERS
from muarl.domains.retail import phrases
from muarl.errors import ConfigError
from muarl.seeds import derive_seed
from muarl.users.base import User
from muarl.users.caller import PATIENCE, Caller, Phrases, Request

REVEALS: Mapping[str, Sequence[str]] = {
    "terse": ("order_id", "items", "to"),
    "chatty": ("order_id", "items", "to", "reason", "payment", "address", "described"),
    "confused": ("items", "described"),
    "impatient": ("order_id", "items", "to", "reason", "payment", "address", "described", "identity"),
}
"""What each persona tells at once; the rest is told when asked."""

OTHER_CALLERS: Mapping[str, str] = {
    "acebench": "muarl.users.agenda_acebench",
    "airline": "muarl.users.agenda_airline",
    "bfcl": "muarl.users.agenda_bfcl",
    "telecom": "muarl.users.agenda_telecom",
    "telecom-workflow": "muarl.users.agenda_telecom",
    **dict.fromkeys(scenarios.FOLDERS, "muarl.users.agenda_desk"),
    **dict.fromkeys(ON_SERVERS, "muarl.users.agenda_mcp"),
}
"""Modules with an ``AgendaUser`` of their own, by the domain of their tasks."""


class AgendaUser(Caller):
    """A shop's caller: plays ``task.agenda`` (its fields: domains/retail/generator.py)."""

    words: ClassVar[Phrases] = phrases
    reveals = REVEALS

    def __init__(self, task: Task, *, seed: int, persona: str | None = None) -> None:
        super().__init__(task, seed=seed, persona=persona)
        self._wrong_zip = self._agenda["wrong_zip"]

    def _say(self, request: Mapping[str, Any], slots: Sequence[str]) -> str:
        return phrases.say_wish(self._rng, request["kind"], request["wish"], slots)

    def _identity(self) -> str:
        zip_code, self._wrong_zip = self._wrong_zip or self._agenda["identity"]["zip"], None
        return phrases.say_identity(self._rng, self._agenda["identity"], zip_code)

    def _answer(self, text: str) -> str:
        acts, kinds = phrases.hear(text), phrases.spoken_kinds(text)
        if "transferred" in acts:
            return "###TRANSFER###"
        request = self._request_meant(text)
        if request is None:
            return self._follow(text)
        wish = request["wish"]
        if request["answer"] is not None and request["answer"] in text:
            return self._settle(request, text)
        if "ask_identity" in acts and (("question" in acts and not kinds) or not acts & {"confirm", "done"}):
            return self._tired("identity" if self._wrong_zip is None else "wrong identity") or self._identity()
        if "unavailable" in acts and request["kind"] != "outside":
            return self._unavailable(request, text, proposed="confirm" in acts)
        for slot in ("order_id", "items", "to", "reason", "payment", "address"):
            if slot in wish and ("ask_order" if slot == "order_id" else f"ask_{slot}") in acts:
                told = "described" if slot == "order_id" and request["unknown"] else slot
                return self._tired(f"{slot} of {wish}") or phrases.say_slot(self._rng, told, wish)
        if "confirm" in acts and "question" in acts and "ask_payment" not in acts and request["kind"] != "outside":
            return self._confirm(request, text)
        if "refuse" in acts:
            return self._settle(request, text)
        return self._hear_done(request, text) if "done" in acts else self._restate(request)

    def _request_meant(self, text: str) -> Request | None:
        """The request an agent's message is about: by the order and the verb it names, else the first open one."""
        kinds = phrases.spoken_kinds(text)
        told = [r for r in self._open if r["told"]]
        for request in (*told, *self._confirmed):
            if request["wish"].get("order_id", "-") in text and (not kinds or request["kind"] in kinds):
                return request
        return told[0] if told else None

    def _conflicts(self, request: Request, text: str) -> bool:
        return phrases.conflicts(text, request["kind"], request["wish"])

    def _say_change(self, request: Request, old: Mapping[str, Any]) -> str:
        return phrases.say_change(self._rng, request["kind"], old, request["wish"])

    def _say_instead(self, request: Request, old: Mapping[str, Any]) -> str:
        return phrases.say_slot(self._rng, "to", request["wish"])


class AgendaUserFactory:
    """Makes agenda users. ``seed`` sets this simulator apart from others (training and evaluation use different ones).

    ``persona``: play every task as this persona instead of its own.
    """

    def __init__(self, *, seed: int = 0, persona: str | None = None) -> None:
        if persona is not None and persona not in PATIENCE:
            raise ConfigError(f"persona must be one of {', '.join(PATIENCE)}, not {persona!r}")
        self._seed, self._persona = seed, persona
        self.name = f"agenda(seed={seed}{'' if persona is None else f', persona={persona}'})"

    def __call__(self, task: Task, *, seed: int) -> User:
        make, own = _caller(task.domain), derive_seed(self._seed, "agenda", seed)
        if task.agenda is not None and "redteam" in task.agenda:
            from muarl.users.redteam.factory import red_team_user

            return red_team_user(task, make, seed=own, persona=self._persona)  # type: ignore[arg-type]
        user: User = make(task, seed=own, persona=self._persona)
        return user


def _caller(domain: str) -> Callable[..., User]:
    """The class that plays the callers of a domain's generated tasks; retail's plays all without one of their own."""
    if domain in OTHER_CALLERS:
        found: Callable[..., User] = import_module(OTHER_CALLERS[domain]).AgendaUser
        return found
    return AgendaUser
