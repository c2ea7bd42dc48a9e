"""Makes the users with traits of a task: the service's own, and what they do beside it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.types.chat import Message
from muarl.users.agenda_service import ServiceAgendaUser, parts_of
from muarl.users.base import User
from muarl.users.behaviours.altered import WanderingUser
from muarl.users.behaviours.service_speech import ServiceSpeech
from muarl.users.traits.agenda import DifficultUser
from muarl.users.traits.foreign import PartlyForeign
from muarl.users.traits.levels import Traits, TraitUser
from muarl.users.traits.words import SAYS

OFTEN, MOST = 0.4, 3
"""How often one who wanders as much as can be asks about something else instead of answering, and how many times at
most in a conversation."""

_REMEDY = {True: "Set user.traits=easy", False: "Leave user.strata out"}

_MADE: dict[type[ServiceAgendaUser], type[DifficultUser]] = {}


def difficult(user_class: type[ServiceAgendaUser]) -> type[DifficultUser]:
    """A service's user with these traits."""
    if user_class not in _MADE:
        made = type(f"Difficult{user_class.__name__}", (DifficultUser, user_class), {})
        _MADE[user_class] = cast(type[DifficultUser], made)
    return _MADE[user_class]


class _Digressing(WanderingUser):
    """Asks about something else instead of answering, and comes back to it."""

    def __init__(self, user: DifficultUser, label: str, share: float) -> None:
        super().__init__(user, user.hears, random.Random(label), deeds=user.asks_for_deeds)
        self._label, self._share, self._turn = label, share, 0
        self._brings_news = user.brings_news

    def _wanders(self, asks: Message) -> bool:
        self._turn += 1
        text = asks.content or ""
        if self._row or self._all >= MOST or self._deeds(text) or self._brings_news(text):
            return False
        return random.Random(f"{self._label} {self._turn}").random() < OFTEN * self._share

    def _aside(self, text: str) -> str:
        return self._rng.choice(SAYS["aside"])

    def _alter(self, text: str, opening: bool) -> str:
        return text


def _service_user(task: Task, make: Callable[..., User]) -> tuple[type[ServiceAgendaUser], Mapping[str, Any]] | None:
    """The class of a service's users and what they are made with; None of other users."""
    made = parts_of(make, task)
    return (made[0], made[1]) if made is not None and issubclass(made[0], ServiceAgendaUser) else None


def can_have_traits(task: Task, make: Callable[..., User]) -> bool:
    """Whether an environment's rule-based users can have traits: those of a service can."""
    return _service_user(task, make) is not None


def user_with_traits(
    task: Task,
    make: Callable[..., User],
    traits: Traits,
    *,
    seed: int,
    persona: str | None = None,
    strata: Mapping[str, Any] | None = None,
    decided: Collection[str] = (),
) -> TraitUser:
    """The rule-based user of a task with these traits. ``make``: the environment's rule-based users. ``strata``,
    ``decided``: see ``TraitUser``. ConfigError if they are not those of a service, so that nothing is known of how they
    would show a trait."""
    made = _service_user(task, make)
    if made is None:
        raise ConfigError(
            f"user.{'traits' if strata is None else 'strata'}: the rule-based users of {task.domain} are no agenda "
            f"users of a service, and have no traits. {_REMEDY[strata is None]}, or let a model play the user "
            "(user.kind=llm)."
        )
    user_class, arguments = made
    core = difficult(user_class)(task, traits=traits, seed=seed, persona=persona, **arguments)
    label = f"traits {task.id} {seed}"
    user: User = core
    if traits.wandering:
        user = _Digressing(core, f"{label} asides", traits.wandering)
    if traits.foreign_language:
        speech = ServiceSpeech(core.service, core.kinds)
        user = PartlyForeign(user, speech, traits.language, f"{label} language", traits.foreign_language)
    return TraitUser(user, traits, core, strata=strata, decided=decided)
