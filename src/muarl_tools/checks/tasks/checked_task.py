"""A task's gold actions one by one, with the state before each and what came of it; and whose task it is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from muarl.audit.facts import persons_in
from muarl.basics.errors import InfrastructureError
from muarl.domains.auditing import Occasion, Record, Resource
from muarl.domains.base import Domain, World
from muarl.domains.checking import CheckFinding, Fix, Level
from muarl.domains.gold import why_failed
from muarl.domains.task_rules import field_of
from muarl.domains.tasks import Action, Task
from muarl.rewards.judge import FixedJudge
from muarl.types.chat import ToolCall
from muarl_tools.checks.gold_replay import call_of, fresh_world, replayed
from muarl_tools.checks.tasks.sources import TaskSource

WORD = r"(?<![\w-]){}(?![\w-])"


@dataclass(frozen=True, slots=True)
class GoldStep:
    """A gold action as it was replayed. ``kind``: of its tool, "unknown" where there is none. ``failed``: why it
    failed, None if it did not. ``changed``: whether it changed the world."""

    index: int
    action: Action
    kind: str
    result: str
    failed: str | None
    changed: bool

    def __str__(self) -> str:
        arguments = json.dumps(dict(self.action.arguments), ensure_ascii=False, default=str)
        cut = arguments if len(arguments) < 160 else arguments[:157] + "..."
        return f"actions[{self.index}] {self.action.name}({cut})"


@dataclass
class CheckedTask:
    """One task under a check, with what several rules ask for, made once."""

    source: TaskSource
    split: str
    task: Task

    @property
    def domain(self) -> Domain:
        """What it is played in."""
        return self.source.domain

    def found(self, rule: str, level: Level, evidence: str, remedy: str, *fixes: Fix) -> CheckFinding:
        """What a rule has found of it."""
        return CheckFinding(evidence, self.task.id, remedy, rule, level, self.split, fixes)

    def world(self) -> World:
        """A fresh world after the task's history."""
        return fresh_world(self.domain, self.task)

    def world_before(self, index: int) -> World:
        """A world in the state in which gold action ``index`` is made."""
        world = self.world()
        for number, action in enumerate((self.task.actions or ())[:index]):
            world.call(action.requestor, call_of(number, action))
        return world

    def reward(self, actions: Sequence[Action] = (), said: str | None = None, *, altered: bool = False) -> float:
        """The reward of a conversation in which these calls are made and the agent ends by saying this (None: all that
        must be said), where a judge of words agrees to everything. 0 where a score cannot be had (an assertion that
        fails in itself), and if it is ``altered`` where a call fails or the world ends in the gold state."""
        return asyncio.run(self._reward(actions, said, altered))

    async def _reward(self, actions: Sequence[Action], said: str | None, altered: bool) -> float:
        async with replayed(self.domain, self.task, actions) as done:
            if altered and (done.failed or done.world.digest() == self.ending):
                return 0.0
            try:
                return (await done.score(said, judge=FixedJudge(True))).reward
            except InfrastructureError:
                return 0.0

    @property
    def judged(self) -> bool:
        """Whether a judge of words has a say in the reward."""
        return bool(self.task.nl_assertions) and "NL_ASSERTION" in self.task.reward_basis

    ending: str = ""
    """The digest of the state after the gold actions, once they were replayed."""

    @cached_property
    def steps(self) -> tuple[GoldStep, ...]:
        """The gold actions, replayed in order; a failing one is passed over."""
        world, found = self.world(), []
        before = world.digest()
        for index, action in enumerate(self.task.actions or ()):
            kind = self._kind(action)
            result = world.call(action.requestor, call_of(index, action))
            after = world.digest() if kind == "write" else before
            found.append(GoldStep(index, action, kind, result.content, why_failed(result), after != before))
            before = after
        self.ending = before
        return tuple(found)

    def _kind(self, action: Action) -> str:
        if action.name not in self.domain.tool_names(action.requestor):
            return "unknown"
        return self.domain.kind_of(action.name)

    @property
    def writes(self) -> list[GoldStep]:
        """The agent's gold actions that are to change something."""
        return [s for s in self.steps if s.kind == "write" and s.action.requestor == "assistant"]

    @cached_property
    def start(self) -> World:
        """A fresh world, for looking only."""
        return self.world()

    @property
    def tables(self) -> Any:
        """The tables on the agent's side of it, a ``View``; none in worlds of another kind, such as BFCL's."""
        return getattr(self.start.toolkit("assistant"), "db", {})

    def record(self, table: str, key: str, world: World | None = None) -> Record | None:
        """A record of a world (the fresh one), None if there is none."""
        for side in ("assistant", "user"):
            kit = (world or self.start).toolkit(side)
            if kit is not None and table in kit.db and key in kit.db[table]:
                found: Record = kit.db[table].peek(key)
                return found
        return None

    def occasion(self, index: int, *, call: ToolCall | None = None) -> Occasion:
        """Gold action ``index`` (or another call in its place) as the policy sees it, if the user has said all of the
        scenario."""
        world = self.world_before(index)
        earlier = tuple(call_of(s.index, s.action) for s in self.steps[:index] if s.failed is None)
        made = call or call_of(index, (self.task.actions or ())[index])
        return Occasion(made, lambda t, k: self.record(t, k, world), self.person, self.task.scenario, earlier, world)

    # whose task it is

    @cached_property
    def person(self) -> str | None:
        """The id of the user whom the scenario is about, None if that cannot be told."""
        people = self.people
        named = [word for word in re.findall(r"[\w#-]+", self.task.scenario) if word in people]
        if named:
            return named[0]
        for step in self.steps:
            if step.action.name in self.source.audit.auth_tools and step.failed is None:
                asked = step.action.arguments.get(self.source.audit.person)
                who = (asked,) if isinstance(asked, str) else persons_in(step.result, self.source.audit.person)
                if len(who) == 1 and who[0] in people:
                    return who[0]
        given = self.task.tags.get("user_id")
        return self._described() or (given if isinstance(given, str) else self._owner())

    @property
    def people(self) -> Mapping[str, Record]:
        """The records of persons by their ids; none where the domain does not declare them."""
        declared = self.source.rules.people
        if declared is None or declared[0] not in self.tables:
            return {}
        found: Mapping[str, Record] = self.tables[declared[0]].reading()
        return found

    def _described(self) -> str | None:
        """The one person whose e-mail address, or name and zip code, stands in the scenario."""
        declared, text = self.source.rules.people, self.task.scenario
        if declared is None:
            return None
        low, found = text.lower(), []
        for key, record in self.people.items():
            value = {name: str(field_of(record, path) or "") for name, path in declared[1].items()}
            mail, zip_code = value.get("email", ""), value.get("zip", "")
            names = [value.get("first_name", ""), value.get("last_name", "")]
            if mail and mail.lower() in low:
                return key
            if all(names) and f"{names[0]} {names[1]}".lower() in low and (not zip_code or zip_code in text):
                found.append(key)
        return found[0] if len(found) == 1 else None

    def _owner(self) -> str | None:
        """The one person whose records the gold actions are about."""
        owners = {self.owner(r, key) for r in self.source.audit.resources for s in self.steps
                  if s.kind == "write" for key in r.named(s.action.arguments)}  # fmt: skip
        known = {o for o in owners if o is not None}
        return known.pop() if len(known) == 1 else None

    def owner(self, resource: Resource, key: str) -> str | None:
        """Whose a record is, None if unknown or if there is no such record."""
        record = self.record(resource.table, key)
        if record is not None and isinstance(record.get(resource.owner), str):
            return str(record[resource.owner])
        if resource.held is None or record is None:
            return None
        table, name = resource.held
        rows = self.tables[table].scan() if table in self.tables else ()
        return next((who for who, row in rows if key in (row.get(name) or ())), None)

    @cached_property
    def own_records(self) -> list[Record]:
        """The user's record and what belongs to it, as far as the domain declares."""
        if self.person is None:
            return []
        mine = self.people.get(self.person)
        found: list[Record] = [] if mine is None else [mine]
        for resource in self.source.audit.resources:
            if resource.table not in self.tables or (self.source.rules.people or ("",))[0] == resource.table:
                continue
            held: Any = ()
            if resource.held is not None:
                held = (self.record(resource.held[0], self.person) or {}).get(resource.held[1]) or ()
            keys = dict.fromkeys([*self._owned(resource).get(self.person, ()), *held])
            found += [row for key in keys if (row := self.record(resource.table, str(key))) is not None]
        return found

    def _owned(self, resource: Resource) -> Mapping[str, list[str]]:
        """The keys of a table's records by the person that they name as their owner; of the shared data kept."""
        shared = self.task.database is None and not self.task.initial_data
        kept = self.source.kept.get(resource.table) if shared else None
        if kept is None:
            kept = {}
            for key, row in self.tables[resource.table].scan():
                if isinstance(row.get(resource.owner), str):
                    kept.setdefault(str(row[resource.owner]), []).append(key)
            if shared:
                self.source.kept[resource.table] = kept
        return kept


def asked(question: Any, occasion: Any) -> Any:
    """An author's answer; None where a malformed record or argument keeps it from being given."""
    try:
        return question(occasion)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None


def leaves(value: Any) -> Iterator[Any]:
    """The values that stand at the ends of a value, keys of mappings included."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from leaves(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value
