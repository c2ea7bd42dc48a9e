"""Agenda users who do not accept a refusal: the domains' own agenda users with four more behaviours; and the user of
any red-team task, from its agenda.

They insist on what is refused, say that they are somebody else, name whose a thing is, and waver. All of it stands in
the task's agenda; without any of it they are the ordinary users. Other behaviours are put around them
(``behaviours``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from muarl.domains.agenda import AgendaRequest, agenda_of
from muarl.domains.tasks import Task
from muarl.users.agenda_service import ServiceAgendaUser, ServiceUsers, parts_of
from muarl.users.agenda_user import AgendaUser
from muarl.users.base import User
from muarl.users.behaviours.altered import Angry, OffTopic, Silent
from muarl.users.behaviours.foreign import Foreign, Speech
from muarl.users.redteam.templates import RESIGNS

TAKES_BACK = ("Yes, go ahead. No, wait!", "Yes. Oh no, wait a moment!", "Yes, do it... no, stop!")
"""Said before a change of mind by one who had already agreed."""
LATER = ("On second thought, that was not right.", "Hm, now I regret that.", "Sorry, I have thought about it again.")


class Stubborn(AgendaUser):
    """What these users do that others do not; to be mixed into a domain's user (``stubborn``)."""

    def __init__(self, task: Task, *, seed: int, persona: str | None = None, **options: Any) -> None:
        """``options``: what the domain's user takes besides."""
        super().__init__(task, seed=seed, persona=persona, **options)
        self._play: Mapping[str, Any] = self._agenda["redteam"]
        self._identities = list(self._play.get("identities", ()))
        self._fulfilled: list[AgendaRequest] = []
        self._resigned = False
        for request in self._open:
            if "insists" in request:
                request["insists"] = list(request["insists"])
            if "thens" in request:
                request["thens"] = list(request["thens"])

    # who they are, and what they want

    def _identity(self) -> str:
        if not self._identities:
            return super()._identity()
        return str(self._identities.pop(0) if len(self._identities) > 1 else self._identities[0])

    def _clause(self, request: AgendaRequest) -> str:
        return self._with_whose(request, str(request["said"]) if "said" in request else super()._clause(request))

    def _whole(self, request: AgendaRequest) -> str:
        return self._with_whose(request, str(request["said"]) if "said" in request else super()._whole(request))

    def _with_whose(self, request: AgendaRequest, text: str) -> str:
        if "whose" not in request:
            return text
        sentence = text if text.endswith((".", "?")) else f"{text}."
        return f"{sentence} {request['whose']}"

    def _put(self, template: str, clause: str) -> str:
        if any(clause == r.get("said") and r.get("whole") for r in self._open):
            return clause
        for whose in (str(r["whose"]) for r in self._open if "whose" in r):
            if clause.endswith(whose):  # a sentence of its own, behind the one with the clause
                return f"{super()._put(template, clause[: -len(whose)].rstrip(' .'))} {whose}"
        return super()._put(template, clause).replace("..", ".")

    # insisting

    def _settle(self, request: AgendaRequest, text: str) -> str:
        answered = request["answer"] is not None and request["answer"] in text
        return super()._settle(request, text) if answered else self._insist(request) or super()._settle(request, text)

    def _restate(self, request: AgendaRequest) -> str:
        return self._insist(request) or super()._restate(request)

    def _remind(self, request: AgendaRequest) -> str:
        if not request.get("forbidden"):
            return super()._remind(request)
        line = self._insist(request)
        if line:
            return line
        self._close(request)
        return self._follow("")

    def _insist(self, request: AgendaRequest) -> str:
        """The next reason for what was refused, empty if there is none left, or nothing to insist on."""
        if not request.get("forbidden"):
            return ""
        self._resigned = True
        if not request["insists"]:
            return ""
        line: str = request["insists"].pop(0)
        return line.replace("{}", self._put(self._pick(self.restated), self._whole(request)))

    def _tired(self, asked: str | None = None) -> str:
        for request in [r for r in self._open if asked in self._asked and r.get("forbidden") and r["told"]]:
            if str(request["goal"]) in str(asked):  # a question about what was answered is as good as a refusal
                return self._remind(request)
        return super()._tired(asked)

    def _conflicts(self, request: AgendaRequest, text: str) -> bool:
        if request.get("names"):
            return not any(name in text for name in request["names"])
        return super()._conflicts(request, text)

    def _end(self) -> str:
        return self._choose(RESIGNS) if self._resigned else super()._end()

    # wavering

    def _confirm(self, request: AgendaRequest, text: str) -> str:
        half = False
        if request.get("thens") and request["then"] is None and not self._conflicts(request, text):
            then = dict(request["thens"].pop(0))
            half = bool(then.pop("half", False))
            request["then"] = then
        said = super()._confirm(request, text)
        return f"{self._choose(TAKES_BACK)} {said}" if half else said

    def _agree(self, request: AgendaRequest, text: str) -> str:
        said = super()._agree(request, text)
        if request.get("after"):
            self._fulfilled.append(request)
        return said

    def _follow(self, text: str) -> str:
        if not self._fulfilled:
            return super()._follow(text)
        done = self._fulfilled.pop()
        goal = done.get("after") or {}
        again: AgendaRequest = {**done, "goal": goal, "after": None, "then": None, "thens": [], "told": True}
        self._open.insert(0, again)
        return f"{self._choose(LATER)} {self._put(self._pick(self.restated), self._whole(again))}"


_MADE: dict[type[AgendaUser], type[AgendaUser]] = {}


def stubborn(user_class: type[AgendaUser]) -> type[AgendaUser]:
    """A domain's user with these behaviours."""
    if user_class not in _MADE:
        _MADE[user_class] = cast(type[AgendaUser], type(f"Stubborn{user_class.__name__}", (Stubborn, user_class), {}))
    return _MADE[user_class]


AgendaUserMaker = type[AgendaUser] | partial[AgendaUser] | ServiceUsers
"""A class of agenda users, perhaps with arguments beyond task, seed and persona."""


def red_team_user(task: Task, make: AgendaUserMaker, *, seed: int, persona: str | None = None) -> User:
    """The user of a red-team task. ``make``: the environment's agenda users; ``persona``: another one than the task's.
    Deterministic in (task, seed, what it hears)."""
    play = agenda_of(task)["redteam"]
    parts = parts_of(make, task)
    assert parts is not None
    user_class, arguments = parts
    own = stubborn(user_class)(task, seed=seed, persona=persona, **arguments)
    rng = random.Random(f"red team {task.id} {seed}")
    hear, deeds, leaves = own.hears, own.asks_for_deeds, bool(play.get("leaves"))
    around: Mapping[str, Callable[[], User]] = {
        "angry": lambda: Angry(own, hear, rng),
        "off_topic": lambda: OffTopic(own, hear, rng, deeds=deeds),
        "silent": lambda: Silent(own, hear, rng, deeds=deeds, leaves=leaves),
        "language": lambda: Foreign(own, _speech(task, own), str(play["language"]), rng),
    }
    behaviour = around.get(play["kind"])
    return own if behaviour is None else behaviour()


def _speech(task: Task, user: AgendaUser) -> Speech:
    """How requests of the user's domain are read, and said in another language."""
    from muarl.users.behaviours.service_speech import ServiceSpeech

    assert isinstance(user, ServiceAgendaUser), f"{task.domain}: the requests of its users are read by nobody"
    return ServiceSpeech(user.service, [request["kind"] for request in agenda_of(task)["requests"]])
