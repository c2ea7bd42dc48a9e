"""A user that plays an agenda: goals, facts and patience, and no language model.

It reveals details piecemeal, changes its mind when it hears a proposal, confirms or refuses what is proposed, reminds
the agent of what was forgotten, and gives up. It reads the agent's words only (phrases.hear), never the world.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from muarl.chat import Message
from muarl.domains import scenarios
from muarl.domains.base import Task
from muarl.domains.generated import ON_SERVERS
from muarl.domains.retail import phrases
from muarl.errors import ConfigError
from muarl.seeds import derive_seed
from muarl.users.base import User, UserTurn

REVEALS: Mapping[str, Sequence[str]] = {
    "terse": ("order_id", "items", "to"),
    "chatty": ("order_id", "items", "to", "reason", "payment", "address", "described"),
    "confused": ("items", "described"),
    "impatient": ("order_id", "items", "to", "reason", "payment", "address", "described", "identity"),
}
"""What each persona tells at once; the rest is told when asked."""

PATIENCE: Mapping[str, int] = {"terse": 4, "chatty": 5, "confused": 5, "impatient": 3}
"""How many useless turns each persona bears before it gives up."""


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


class AgendaUser:
    """Plays ``task.agenda`` (its fields: domains/retail/generator.py). Deterministic in (task, seed, what it hears)."""

    def __init__(self, task: Task, *, seed: int, persona: str | None = None) -> None:
        if task.agenda is None:
            raise ConfigError(
                f"task {task.id} has no agenda: an agenda user plays generated tasks only; use an LLM user"
            )
        self._agenda = task.agenda
        self._persona: str = persona or task.agenda["persona"]
        self._rng = random.Random(f"agenda {task.id} {seed}")
        self._open: list[dict[str, Any]] = [dict(r, told=False) for r in task.agenda["requests"]]
        self._confirmed: list[dict[str, Any]] = []
        self._patience = PATIENCE[self._persona]
        self._wrong_zip = task.agenda["wrong_zip"]
        self._started = False
        self._asked: set[str] = set()

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Answer the last message of the conversation; the first reply is the opening, whatever the greeting says."""
        text = conversation[-1].content or "" if conversation else ""
        return UserTurn(Message("user", self._answer(text) if self._started else self._opening()))

    def _reveal(self, request: Mapping[str, Any]) -> list[str]:
        return [
            s
            for s in REVEALS[self._persona]
            if s not in request["unknown"] and (s != "described" or request["unknown"])
        ]

    def _opening(self) -> str:
        self._started = True
        sentences = []
        for number, request in enumerate(self._open if self._agenda["upfront"] else self._open[:1]):
            clause = phrases.say_wish(self._rng, request["kind"], request["wish"], self._reveal(request))
            template = phrases.OPENINGS[self._persona] if number == 0 else phrases.ALSO
            sentences.append(phrases.pick(self._rng, template).format(clause))
            request["told"] = True
        if "identity" in REVEALS[self._persona]:
            sentences.append(self._identity())
        return " ".join(sentences)

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
            return self._unavailable(request, text, acts)
        for slot in ("order_id", "items", "to", "reason", "payment", "address"):
            if slot in wish and ("ask_order" if slot == "order_id" else f"ask_{slot}") in acts:
                told = "described" if slot == "order_id" and request["unknown"] else slot
                return self._tired(f"{slot} of {wish}") or phrases.say_slot(self._rng, told, wish)
        if "confirm" in acts and "question" in acts and "ask_payment" not in acts and request["kind"] != "outside":
            return self._confirm(request, text)
        if "refuse" in acts:
            return self._settle(request, text)
        if "done" in acts:  # what was confirmed is done; else the agent takes this one as finished unconfirmed
            return self._follow(text) if self._confirmed else self._settle(request, text)
        return self._tired() or f"I want to {self._full_clause(request)}."

    def _full_clause(self, request: Mapping[str, Any]) -> str:
        slots = [s for s in request["wish"] if s not in request["unknown"]]
        return phrases.say_wish(self._rng, request["kind"], request["wish"], slots)

    def _request_meant(self, text: str) -> dict[str, Any] | None:
        """The request an agent's message is about: by the order and the verb it names, else the first open one."""
        kinds = phrases.spoken_kinds(text)
        told = [r for r in self._open if r["told"]]
        for request in (*told, *self._confirmed):
            if request["wish"].get("order_id", "-") in text and (not kinds or request["kind"] in kinds):
                return request
        return told[0] if told else None

    def _confirm(self, request: dict[str, Any], text: str) -> str:
        if phrases.conflicts(text, request["kind"], request["wish"]):
            return self._tired() or phrases.pick(self._rng, phrases.CORRECTIONS).format(self._full_clause(request))
        then, request["then"] = request["then"], None
        if then is None:
            self._close(request)
            self._confirmed.append(request)
            return phrases.pick(self._rng, phrases.YES)
        if then.get("drop"):
            self._close(request)
            return self._drop()
        old, request["wish"] = request["wish"], then
        return phrases.say_change(self._rng, request["kind"], old, then)

    def _unavailable(self, request: dict[str, Any], text: str, acts: set[str]) -> str:
        fallback, request["fallback"] = request["fallback"], None
        if fallback is None:
            return self._confirm(request, text) if "confirm" in acts else self._tired() or self._settle(request, text)
        if fallback.get("drop"):
            self._close(request)
            return self._drop()
        request["wish"] = fallback
        if "confirm" in acts and not phrases.conflicts(text, request["kind"], fallback):
            return self._confirm(request, text)
        return phrases.say_slot(self._rng, "to", fallback)

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
        clause = phrases.say_wish(self._rng, request["kind"], request["wish"], self._reveal(request))
        return phrases.pick(self._rng, template).format(clause)

    def _tired(self, asked: str | None = None) -> str:
        """Lose patience and perhaps give up. What is asked (``asked``) for the first time costs nothing."""
        if asked is not None and asked not in self._asked:
            self._asked.add(asked)
            return ""
        self._patience -= 1
        return phrases.GIVES_UP if self._patience < 0 else ""


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
        make = _caller(task.domain)
        user: User = make(task, seed=derive_seed(self._seed, "agenda", seed), persona=self._persona)
        return user


def _caller(domain: str) -> Callable[..., User]:
    """The class that plays the callers of a domain's generated tasks; retail's plays all without one of their own."""
    if domain in OTHER_CALLERS:
        found: Callable[..., User] = import_module(OTHER_CALLERS[domain]).AgendaUser
        return found
    return AgendaUser
