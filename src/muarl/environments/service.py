"""The environment that a service makes: tasks, expert, rule-based user, audit, red team, words of the tiny size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.domains.base import Domain
from muarl.domains.imagined.domain import Fact, ImaginedDomain
from muarl.domains.imagined.scenario import scenario_of
from muarl.domains.kit import tiny_vocabulary
from muarl.domains.kit.audit import audit_rules
from muarl.domains.kit.checks import checks
from muarl.domains.kit.expert import ServiceExpert
from muarl.domains.kit.gold import call
from muarl.domains.kit.service import Service
from muarl.domains.kit.shown_records import observer_of
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.sources import policy_text
from muarl.domains.tasks import Task
from muarl.domains.world_from_log import Observer
from muarl.environments.environment import GENERATED_RULES, Environment
from muarl.users.agenda_device import DeviceAgendaUser
from muarl.users.agenda_service import ServiceAgendaUser

if TYPE_CHECKING:
    from muarl.users.redteam.support import RedTeamSupport


def environment(
    service: Service, *, name: str | None = None, about: str = "", world: Path | str | None = None, **more: Any
) -> Environment:
    """The environment of a service.

    ``name``: the domain's where None. ``about``: one line for lists. ``world``: a description of the world behind the
    tools (or a Path relative to the domain's module), with which a model can play them; ``more``: further fields of
    ``Environment``.
    """
    parts = _Parts(service, world)
    defaults: dict[str, Any] = {
        "name": name or service.name,
        "about": about or service.about,
        "domain": parts.domain,
        "tasks": parts.iter_tasks,
        "intents": parts.intents,
        "replayed": True,
        "sizes": tuple(size.name for size in service.sizes) if service.tables is not None else (),
        "rule_based_user": parts.user,
        "expert": parts.expert,
        "audit": audit_rules(parts.maker.worlds),
        "rules": replace(GENERATED_RULES, transfer_tools=(service.transfer,)),
        "caller": service.caller,
        "red_team": parts.red_team,
        "observer": parts.observer,
        "entities": parts.entities,
        "phrases": parts.phrases,
        "own_checks": lambda: checks(parts.maker),
        "imagined": None if world is None else parts.imagined,
    }
    return Environment(**{**defaults, **more})


@dataclass(frozen=True, eq=False)
class _Parts:
    """What an environment of a service consists of."""

    service: Service
    world: Path | str | None

    @cached_property
    def maker(self) -> TaskMaker:
        return TaskMaker(self.service)

    def domain(self, size: str) -> Domain:
        return self.maker.worlds.domain_of(size)

    def iter_tasks(self, split: str, *, size: str, seed: int = 0, start: int = 0) -> Iterator[Task]:
        return self.maker.iter_tasks(split, size=size, seed=seed, start=start)

    def intents(self, size: str) -> Sequence[str]:
        return self.maker.tagged_intents(size)

    @cached_property
    def user(self) -> partial[ServiceAgendaUser]:
        kind = ServiceAgendaUser if self.service.device is None else DeviceAgendaUser
        return partial(kind, service=self.service)

    def red_team(self) -> RedTeamSupport:
        from muarl.users.redteam.service import service_support

        return service_support(self.maker)

    def observer(self) -> Observer:
        return observer_of(self.maker)

    def expert(self, *, seed: int, error_profile: ErrorProfile) -> ServiceExpert:
        return ServiceExpert(self.service, seed=seed, error_profile=error_profile)

    def entities(self) -> Sequence[str]:
        return tiny_vocabulary.entities(self.maker)

    def phrases(self) -> Sequence[str]:
        return tiny_vocabulary.phrases(self.maker)

    def imagined(self, size: str, teacher: Any) -> ImaginedDomain:
        """The same domain with tools that a teacher plays; its ledger starts with what each task is about."""
        domain = self.domain(size)
        return ImaginedDomain(
            scenario_of(domain, policy_text(self.service.domain, self.world or ""), self.service.transfer),
            teacher,
            facts=self.facts,
            render=domain.render,
        )

    def facts(self, task: Task) -> list[Fact]:
        """What the made world says of a task's user: the look-ups among its gold actions, before anything changes."""
        if task.database is None:
            return []
        domain = self.maker.worlds.domain
        world = domain.world(task)
        facts = []
        for action in task.actions or ():
            if domain.kind_of(action.name) == "read":
                result = call(world, action.name, action.arguments)
                if result is not None:
                    facts.append((action.name, action.arguments, result))
        return facts
