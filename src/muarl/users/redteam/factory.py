"""Makes the user of a red-team task from its agenda: the domain's user, and the behaviour of its kind around it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial

from muarl.domains.agenda import agenda_of
from muarl.domains.base import Task
from muarl.users.agenda_service import ServiceAgendaUser, ServiceUsers, parts_of
from muarl.users.agenda_user import AgendaUser
from muarl.users.base import User
from muarl.users.behaviours.altered import Angry, OffTopic, Silent
from muarl.users.behaviours.foreign import Foreign, Speech
from muarl.users.redteam.agenda_users import stubborn

AgendaUserMaker = type[AgendaUser] | partial[AgendaUser] | ServiceUsers
"""A class of agenda users, perhaps with arguments beyond task, seed and persona."""


def red_team_user(task: Task, make: AgendaUserMaker, *, seed: int, persona: str | None = None) -> User:
    """The user of a red-team task. ``make``: the environment's agenda users; ``persona``: another one than the task's.
    Deterministic in (task, seed, what it hears)."""
    play = agenda_of(task)["redteam"]
    parts = parts_of(make, task)
    assert parts is not None
    user_class, given = parts
    own = stubborn(user_class)(task, seed=seed, persona=persona, **given)
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
