"""Makes the user of a red-team task from its agenda: the domain's caller, and the manners of its kind around it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial

from muarl.domains.airline import phrases as airline_phrases
from muarl.domains.base import Task
from muarl.domains.retail import phrases as retail_phrases
from muarl.domains.telecom import hearing
from muarl.users.base import User
from muarl.users.caller import Caller, agenda_of
from muarl.users.redteam.callers import stubborn
from muarl.users.redteam.foreign import Foreign
from muarl.users.redteam.manners import Angry, Hear, OffTopic, Silent

HEARS: Mapping[str, Hear] = {
    "retail": retail_phrases.hear, "airline": airline_phrases.hear, "telecom": hearing.hear,
}  # fmt: skip


def is_red_team(task: Task) -> bool:
    """Whether a task is for these users."""
    return task.agenda is not None and "redteam" in task.agenda


def red_team_user(task: Task, caller: type[Caller], *, seed: int, persona: str | None = None) -> User:
    """The user of a red-team task. ``caller``: the domain's class of agenda users; ``persona``: another one than the
    task's. Deterministic in (task, seed, what it hears)."""
    play = agenda_of(task)["redteam"]
    own: User = stubborn(caller)(task, seed=seed, persona=persona)
    rng = random.Random(f"red team {task.id} {seed}")
    hear = HEARS[task.domain]
    deeds: Callable[[str], bool] = _deeds if task.domain == "telecom" else _none
    around: Mapping[str, Callable[[User], User]] = {
        "angry": lambda user: Angry(user, hear, rng),
        "off_topic": lambda user: OffTopic(user, hear, rng, deeds=deeds),
        "silent": partial(_silent, hear=hear, rng=rng, deeds=deeds, leaves=bool(play.get("leaves"))),
        "language": lambda user: Foreign(user, task.domain, str(play["language"]), rng),
    }
    manner = around.get(play["kind"])
    return own if manner is None else manner(own)


def _silent(user: User, *, hear: Hear, rng: random.Random, deeds: Callable[[str], bool], leaves: bool) -> User:
    return Silent(user, hear, rng, deeds=deeds, leaves=leaves)


def _deeds(text: str) -> bool:
    """Whether a message asks for something to be done or looked at on a phone."""
    return bool(hearing.instructions(text))


def _none(text: str) -> bool:
    return False
