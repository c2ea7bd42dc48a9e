"""The environment of several services that are played in one domain, such as a phone and a travel desk."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from muarl.domains.base import Domain
from muarl.domains.checking import Check
from muarl.domains.generated import SeededId
from muarl.domains.kit import tiny_vocabulary
from muarl.domains.kit.audit import audit_rules
from muarl.domains.kit.checks import checks
from muarl.domains.kit.service import Service
from muarl.domains.kit.several import AnyServiceExpert, merged_rules
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.environment import GENERATED_RULES, Environment
from muarl.users.agenda_service import ServiceUsers

if TYPE_CHECKING:
    from muarl.users.redteam.support import RedTeamSupport


def shared_environment(
    services: Mapping[Service, float], *, name: str, domain: Callable[[str], Domain], about: str = "", **more: Any
) -> Environment:
    """The environment of several services.

    ``services``: each with its share of the tasks. ``domain``: by size the domain in which all their tasks are played;
    it offers a task the tools of its service only. Tasks say in their agenda which service they are of.
    """
    parts = _Parts(services, domain)
    callers = {service.caller for service in services}
    defaults: dict[str, Any] = {
        "domain": domain,
        "tasks": parts.iter_tasks,
        "replayed": True,
        "sizes": tuple(size.name for size in next(iter(services)).sizes),
        "rule_based_user": parts.users,
        "expert": parts.expert,
        "rules": replace(GENERATED_RULES, transfer_tools=tuple(dict.fromkeys(s.transfer for s in services))),
        "caller": callers.pop() if len(callers) == 1 else Environment.caller,
        "audit": merged_rules([audit_rules(maker.worlds) for maker in parts.makers.values()]),
        "red_team": parts.red_team,
        "entities": parts.entities,
        "phrases": parts.phrases,
        "own_checks": parts.checks,
    }
    return Environment(name=name, about=about, **{**defaults, **more})


@dataclass(frozen=True, eq=False)
class _Parts:
    """What an environment of several services consists of."""

    services: Mapping[Service, float]
    domain: Callable[[str], Domain]

    @cached_property
    def makers(self) -> Mapping[str, TaskMaker]:
        """What makes the tasks of each service, by its name."""
        return {service.name: TaskMaker(service) for service in self.services}

    def iter_tasks(self, split: str, *, size: str, seed: int = 0, start: int = 0) -> Iterator[Task]:
        for index in itertools.count(start):
            yield self._task(split, index, size=size, seed=seed)

    def _task(self, split: str, index: int, *, size: str, seed: int) -> Task:
        name = self.domain(size).name
        task_id = str(SeededId(name, size, split, seed, index))
        service = random.Random(task_id).choices(list(self.makers), list(self.services.values()))[0]
        task = self.makers[service].task(split, index, size=size, seed=seed)
        return replace(
            task,
            id=task_id,
            domain=name,
            agenda={**(task.agenda or {}), "service": service},
            tags={**task.tags, "service": service},
        )

    @cached_property
    def users(self) -> ServiceUsers:
        return ServiceUsers({service.name: service for service in self.services})

    def red_team(self) -> RedTeamSupport:
        from muarl.users.redteam.service import merged_support, service_support

        return merged_support({name: service_support(maker) for name, maker in self.makers.items()})

    def expert(self, *, seed: int, error_profile: ErrorProfile) -> AnyServiceExpert:
        return AnyServiceExpert(tuple(self.services), seed=seed, error_profile=error_profile)

    def checks(self) -> Sequence[Check]:
        return [check for maker in self.makers.values() for check in checks(maker)]

    def entities(self) -> Sequence[str]:
        return _each(tiny_vocabulary.entities(maker) for maker in self.makers.values())

    def phrases(self) -> Sequence[str]:
        return _each(tiny_vocabulary.phrases(maker) for maker in self.makers.values())


def _each(lists: Iterator[Sequence[str]]) -> list[str]:
    """All that stands in the lists, once."""
    return list(dict.fromkeys(itertools.chain.from_iterable(lists)))
