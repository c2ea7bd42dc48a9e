"""The worlds that a service's tasks take place in: made from chance at three sizes, or the domain's own database."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.base import Domain, World
from muarl.domains.database import Database
from muarl.domains.generated import Infeasible, split_of
from muarl.domains.kit import gold
from muarl.domains.kit.colleague import APPROVALS
from muarl.domains.kit.mistakes import one_of_them
from muarl.domains.kit.moves import Rule
from muarl.domains.kit.people import Maker
from muarl.domains.kit.records import wrapped
from muarl.domains.kit.requests import RequestSource
from muarl.domains.kit.service import SIZES as SIZES
from muarl.domains.kit.service import Service, WorldSize
from muarl.domains.sources import policy_text
from muarl.domains.tasks import Task

Tables = Mapping[str, Mapping[str, Any]]


ANOTHER_WORLD = 50
"""After how many attempts a shared world in which nobody fits is left for another one."""


@dataclass(frozen=True)
class Worlds:
    """Where a service's tasks take place. Those of one service are equal: what is found out of them is shared."""

    service: Service

    @cached_property
    def domain(self) -> Domain:
        """The domain with all tools, with which right answers are found."""
        if self.service.rehearsal is not None:
            return self.service.rehearsal(database={}, policy="none")
        if self.service.tables is None:
            return self.service.domain()
        return self.service.domain(database={}, policy="none")

    def domain_of(self, size: str) -> Domain:
        """The domain as tasks of a size are played in it. ValueError for an unknown size."""
        service = self.service
        is_tiny = service.size(size).tiny
        options: dict[str, Any] = {} if service.tables is None else {"database": {}}
        policy: Path | str | None = service.policy_compact or None if is_tiny else None
        if service.authority is not None:
            own = policy_text(service.domain, policy or service.domain.policy)
            policy = f"{own.rstrip()}\n\n{service.authority.policy_text(service.caller)}\n"
        if not is_tiny:
            return service.domain(**options) if policy is None else service.domain(**options, policy=policy)
        tools = service.tiny_tools or None
        return service.domain(**options, policy=policy, tools=tools, render=service.written)

    def tools(self, size: str) -> Sequence[str]:
        """The tools of a size."""
        tiny = self.service.tiny_tools if self.service.size(size).tiny else ()
        return tiny or tuple(self.domain.tool_names())

    def world(self, split: str, seed: int, index: int, attempt: int, size: WorldSize) -> tuple[Tables, Database | None]:
        """The world that a task lives in, as tables and as a database; None for the domain's own."""
        if self.service.tables is None:
            tables = self.domain.base.tables
            if self.service.authority is not None and APPROVALS not in tables:
                raise ConfigError(
                    f"{self.service.name}: limits: the database has no table {APPROVALS!r}: add an empty one"
                )
            return tables, None
        if size.tasks_per_world == 1:
            return self.made(f"{split} {seed} {index} {attempt}", split, size)
        another = attempt // ANOTHER_WORLD
        return _shared(self, f"{split} {seed} {index // size.tasks_per_world} {another}", split, size)

    def made(self, seed: str, split: str, size: WorldSize) -> tuple[Tables, Database]:
        """A world from a seed. Its people's names belong to the split."""
        assert self.service.tables is not None
        rng = random.Random(f"{self.service.name} world {size.name} {seed}")
        maker = Maker(rng, size.people, size.tiny, lambda first, last: split_of(first, last) == split, split, size.name)
        tables = self.service.tables(maker)
        if not isinstance(tables, Mapping):
            raise ConfigError(f"{self.service.name}: tables must return a dict of tables, not {type(tables).__name__}")
        if self.service.authority is not None:
            tables = {**tables, APPROVALS: tables.get(APPROVALS, {})}
        for resource in self.service.resources:
            if resource.table not in tables:
                hint = one_of_them(resource.table, tables)
                raise ConfigError(f"{self.service.name}: resources: there is no table {resource.table!r}{hint}")
        return tables, Database(tables)

    def people(self, tables: Tables, split: str) -> Sequence[str]:
        """The keys of the users whom tasks of a split may be about: one that means nobody where users are not
        identified. In the domain's own database they are divided by their keys."""
        identity = self.service.identity
        if identity is None:
            return [""]
        if identity.table not in tables:
            hint = one_of_them(identity.table, tables)
            raise ConfigError(f"{self.service.name}: identity: there is no table {identity.table!r}{hint}")
        if self.service.tables is not None:
            return list(tables[identity.table])
        return self._own_people.get(split, ())

    @cached_property
    def _own_people(self) -> Mapping[str, Sequence[str]]:
        """The keys of the users in the domain's own database, by split."""
        keys: dict[str, list[str]] = defaultdict(list)
        for key in self.domain.base.tables[self.service.identity.table] if self.service.identity else ():
            keys[split_of(str(key))].append(key)
        return keys

    def source(
        self,
        rng: random.Random,
        task_id: str,
        world: tuple[Tables, Database | None],
        split: str,
        rules: Mapping[str, Sequence[Rule]],
    ) -> RequestSource:
        """What the requests of one user, drawn by chance, are drawn from. Infeasible if the tool does not know them."""
        people = self.people(world[0], split)
        if not people:
            raise Infeasible
        user = {} if self.service.identity is None else world[0][self.service.identity.table][rng.choice(people)]
        return self.source_of(user, rng, task_id, world, rules, split=split)

    def source_of(
        self,
        user: Mapping[str, Any],
        rng: random.Random,
        task_id: str,
        world: tuple[Tables, Database | None],
        rules: Mapping[str, Sequence[Rule]],
        *,
        split: str = "train",
    ) -> RequestSource:
        """What one user's requests are drawn from. Infeasible if the tool does not know them."""
        tables, database = world
        service, identity = self.service, self.service.identity
        device = service.device
        at_hand = tuple(device.given(wrapped(user))) if device is not None and device.given is not None else ()
        bare = Task(task_id, service.name, "", (), database=database, initial_actions=at_hand)
        user_facts: Mapping[str, Any] = facts_of(service, user)
        if identity is not None and identity.tool:
            facts = facts_of(service, user)
            arguments = identity.arguments(facts)
            answer, error = gold.attempt(self.domain.world(bare), identity.tool, arguments, service)
            identified = identity.found(service.seen(identity.tool, answer))
            if error:
                call_text = f"{identity.tool}({json.dumps(arguments, default=str)}) answers {error!r}"
                raise ConfigError(
                    f"{service.name}: identity: a user of the table {identity.table} is not found: {call_text}"
                )
            for what, record in ((f"the table {identity.table}", user), (identity.tool, identified)):
                if identity.key not in record:
                    raise ConfigError(f"{service.name}: identity: key: {what} shows no {identity.key!r}: {record}")
            if identified[identity.key] != user[identity.key]:
                raise Infeasible  # somebody else answers to the same facts
            user_facts = {**facts, **identified}
        return RequestSource(service, rng, self.domain, tables, bare, user, user_facts, rules, split=split)


def shown_user(service: Service, world: World, facts: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What an agent knows of the user who gives these facts; None if nobody is found by them."""
    if service.identity is None or not service.identity.tool:
        return facts
    identity = service.identity
    answer = service.seen(identity.tool, gold.call(world, identity.tool, identity.arguments(facts), service))
    return None if answer is None else {**facts, **identity.found(answer)}


def facts_of(service: Service, user: Mapping[str, Any]) -> dict[str, Any]:
    """The facts by which a user is identified, from the user's record."""
    facts = {}
    for fact in service.facts:
        try:
            facts[fact.name] = fact.of(user)
        except KeyError as problem:
            field = problem.args[0]
            explanation = f"users have no field {field!r}{one_of_them(field, user)}: name it with Fact(..., field=...)"
            raise ConfigError(f"{service.name}: fact {fact.name}: {explanation}") from None
    return facts


@lru_cache(maxsize=32)
def _shared(worlds: Worlds, seed: str, split: str, size: WorldSize) -> tuple[Tables, Database]:
    return worlds.made(seed, split, size)
