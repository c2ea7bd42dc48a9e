"""The factory of rule-based users that play an agenda (users/agenda_user.py)."""

from __future__ import annotations

from collections.abc import Callable

from muarl.basics.errors import ConfigError, attributed
from muarl.basics.seeds import derive_seed
from muarl.domains.tasks import Task
from muarl.users.agenda_user import PATIENCE
from muarl.users.base import User
from muarl.users.strata.panel import Strata
from muarl.users.traits.levels import TraitRanges, Traits


class AgendaUserFactory:
    """Makes rule-based users. ``make``: an environment's (``Environment.rule_based_user``).

    ``seed`` sets this simulator apart from others (training and evaluation use different ones). ``persona``: play every
    task as this persona instead of its own. ``traits``: levels that every user's own are drawn from (users/traits), but
    for red-team users, who are difficult in their own ways; None: no traits. ``strata``: what every user's persona is
    drawn from (users/strata), likewise.
    """

    def __init__(
        self,
        make: Callable[..., User],
        *,
        seed: int = 0,
        persona: str | None = None,
        traits: TraitRanges | None = None,
        strata: Strata | None = None,
    ) -> None:
        if persona is not None and persona not in PATIENCE:
            raise ConfigError(f"persona must be one of {', '.join(PATIENCE)}, not {persona!r}")
        self._make = make
        self._seed, self._persona = seed, persona
        self._traits, self._strata = traits or None, strata or None
        options = "" if persona is None else f", persona={persona}"
        options += "".join(f", {part}" for part in (self._traits, self._strata) if part)
        self.name = f"agenda(seed={seed}{options})"

    def __call__(self, task: Task, *, seed: int) -> User:
        own = derive_seed(self._seed, "agenda", seed)
        if task.agenda is not None and "redteam" in task.agenda:
            from muarl.users.redteam.agenda_users import red_team_user

            return red_team_user(task, self._make, seed=own, persona=self._persona)  # type: ignore[arg-type]
        if self._have_traits(task):
            from muarl.users.traits.factory import user_with_traits

            levels = Traits() if self._traits is None else self._traits.draw(own)
            if self._strata is None:
                return user_with_traits(task, self._make, levels, seed=own, persona=self._persona)
            drawn = self._strata.draw(own)
            persona = drawn.persona or self._persona
            return user_with_traits(
                task, self._make, drawn.on(levels), seed=own, persona=persona, strata=drawn.tags(), decided=drawn.traits
            )
        with attributed(f"environment {task.domain}: its rule_based_user", self._make):
            return self._make(task, seed=own, persona=self._persona)

    def _have_traits(self, task: Task) -> bool:
        if self._strata is not None or self._traits is None or not self._traits.where_possible:
            return self._strata is not None or self._traits is not None
        from muarl.users.traits.factory import can_have_traits

        return can_have_traits(task, self._make)
