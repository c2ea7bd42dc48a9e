"""Tasks from seeds for a service: who calls, what they want, how they change their mind, the gold actions.

Train, validation and test differ by the users' full names: ``split_of`` sends each to exactly one split.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.agenda import Agenda
from muarl.domains.database import Database
from muarl.domains.generated import DRAWS, SPLITS, Infeasible, SeededId, UserRequest, replay_gold, split_of
from muarl.domains.kit import gold
from muarl.domains.kit.colleague import REQUEST
from muarl.domains.kit.declaration import Fact
from muarl.domains.kit.exploring import Exploration, explored
from muarl.domains.kit.gold import RequestOutcome
from muarl.domains.kit.requests import RequestSource, draw_request, drops, possible, split, tagged
from muarl.domains.kit.scenario import scenario_text
from muarl.domains.kit.service import SIZES, Service
from muarl.domains.kit.templates import PRESSES
from muarl.domains.kit.worlds import Tables, Worlds, facts_of
from muarl.domains.overlay import sampled, some
from muarl.domains.tasks import Action, Task

PERSONAS = ("terse", "chatty", "confused", "impatient")
WRONG_DETAILS = 0.12
REMINDS = 0.3
BESIDES = 0.5
"""How many of those who drop their only request want something else: else doing nothing would earn much."""

SEVERAL = ("two_requests", "three_requests")
"""What the tag "intent" of a task with several requests is."""
ALONE = ("outside", "impostor")
"""Variants in which no intent is served; the tag "intent" is called as they are."""

PRESSING = 0.3
"""How many of those whose request needs a colleague's approval press the agent to do without."""


@dataclass(frozen=True, eq=False)
class TaskMaker:
    """Makes a service's tasks."""

    service: Service

    @cached_property
    def worlds(self) -> Worlds:
        """Where they take place."""
        return Worlds(self.service)

    @cached_property
    def explored(self) -> Mapping[str, Exploration]:
        """What its plans may come to. ConfigError if there is a plan that comes to nothing."""
        explorations = explored(self.worlds)
        for name, exploration in explorations.items():
            if not exploration.ends or (exploration.problems and not exploration.may_end("done")):
                why = (
                    "; ".join([*exploration.problems, *exploration.missing][:3])
                    or "its slots have no values in the worlds that were made"
                )
                raise ConfigError(f"{self.service.name}: intent {name}: no trial request came to an end: {why}")
        return explorations

    def intents(self, size: str) -> tuple[str, ...]:
        """The intents of a size: those that its tools can serve."""
        offered = set(self.worlds.tools(size))
        chosen = self.service.tiny_intents if self.service.size(size).tiny else ()
        return tuple(
            i.name for i in self.service.intents if self._needs(i.name) <= offered and (not chosen or i.name in chosen)
        )

    def tagged_intents(self, size: str) -> tuple[str, ...]:
        """What the tag "intent" of a size's tasks can be: an intent that can be served, what else it may come to, and
        what a conversation with several is called. The rarest need not be among a few thousand tasks."""
        intents = self.intents(size)
        names = [tagged(name, "done") for name in self._fit(intents, "done")]
        many = max(1, len(self.service.more_requests))  # who drops the only request may have another
        names += SEVERAL[: min(many, len(names) - 1)] if names else ()
        for variant in self._variants(intents):
            if variant in ALONE:
                names.append(variant)
            elif variant != "done":
                names += [tagged(name, variant) for name in self._fit(intents, variant)]
        return tuple(dict.fromkeys(names))

    def _needs(self, intent: str) -> set[str]:
        slots = self.service.intent(intent).slots
        return self.explored[intent].tools | {s.described.look for s in slots if s.described and s.described.look}

    def iter_tasks(self, split: str, *, size: str, seed: int = 0, start: int = 0) -> Iterator[Task]:
        """Tasks of one split without end, from index ``start`` on. ValueError for an unknown split or size."""
        if split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
        self.service.size(size)
        return (self.task(split, index, size=size, seed=seed) for index in itertools.count(start))

    def task(self, split: str, index: int, *, size: str, seed: int = 0) -> Task:
        """Task number ``index`` of a split. Its gold actions have been replayed: every call succeeded."""
        name = self.service.name
        rng = random.Random(f"{name} task {size} {split} {seed} {index}")
        intents = self.intents(size)
        variants = self._variants(intents)
        most = max(1, len(self._fit(intents, "done")))
        task_id = str(SeededId(name, size if self.service.tables is not None else "", split, seed, index))
        for attempt in range(300 * DRAWS):
            if attempt % 300 == 0:  # worlds may have no place for a variant, and a run must not end for that
                variant = rng.choices(list(variants), list(variants.values()))[0]
                shares = self.service.more_requests
                many = 1 + sum(itertools.takewhile(bool, (int(rng.random() < share) for share in shares)))
                if variant in ("refuse", "transfer", "outside", "impostor", "declined"):
                    many = 1
            world = self.worlds.world(split, seed, index, attempt, self.service.size(size))
            try:
                drawn = self._draw(rng, task_id, world, intents, variant, min(many, most), split)
                return self._task(drawn, task_id, rng, variant, split, seed)
            except Infeasible:
                continue
        raise ConfigError(
            f"{name}: no world of size {size} has a place for task {index} of the split {split} ({variant}): make "
            "worlds with more records, or draw slots from more of them"
        )

    def _variants(self, intents: Sequence[str]) -> dict[str, float]:
        """The variants of the first request that there can be, with their shares."""
        return {v: w for v, w in self.service.variants.items() if w and self._has(v, intents)}

    def _has(self, variant: str, intents: Sequence[str]) -> bool:
        if variant == "outside":
            return bool(self.service.topics) and self.service.transfer in self.worlds.domain.tool_names()
        if variant == "impostor":
            return bool(self._easily_wrong())
        return bool(self._fit(intents, variant))

    def _fit(self, intents: Sequence[str], ending: str) -> list[str]:
        """Those intents whose plan can end as wanted."""
        return [n for n in intents if self.explored[n].may_end(ending)]

    def _draw(
        self,
        rng: random.Random,
        task_id: str,
        world: tuple[Tables, Database | None],
        intents: Sequence[str],
        variant: str,
        many: int,
        split: str,
    ) -> _Drawn:
        """A user, what they want, and what is right."""
        rules = {name: self.explored[name].rules for name in intents}
        source = self.worlds.source(rng, task_id, world, split, rules)
        facts, identity = facts_of(self.service, source.user), self.service.identity
        requests, actions, transferred = self._requests(source, intents, variant, many)
        wrong: dict[str, Any] = {}
        if variant == "impostor" or rng.random() < WRONG_DETAILS:
            wrong = self._wrong_facts(source, facts, split) or self._wrong_slots(source, requests)
        first = () if identity is None or not identity.tool else (Action(identity.tool, identity.arguments(facts)),)
        gold: tuple[Action, ...] = (*first, *actions)
        if variant == "impostor":
            requests[0].final, requests[0].answer, requests[0].intent, gold = None, None, "impostor", ()
            facts, wrong = {**facts, **wrong}, {}
        if transferred:
            gold = (
                *first,
                Action(self.service.transfer, self.service.transfer_arguments(transferred), compare_args=()),
            )
        if len(requests) > 1 and all(r.final is None and r.answer is None for r in requests):
            raise Infeasible
        if self.service.tables is None and identity is None and split_of(_key(requests)) != split:
            raise Infeasible  # nothing but what is asked for tells the splits apart
        return _Drawn(source, requests, gold, facts, wrong, bool(transferred))

    def _requests(
        self, source: RequestSource, intents: Sequence[str], variant: str, many: int
    ) -> tuple[list[UserRequest], list[Action], str]:
        """The requests, the gold actions that serve them, and why the user is handed over, if that is right."""
        if variant == "outside":
            topic = source.rng.choice(self.service.topics)
            request = UserRequest("outside", {"topic": topic}, intent="outside")
            return [request], [], f"The {self.service.caller} wants to talk about {topic}."
        requests: list[UserRequest] = []
        actions: list[Action] = []
        transferred = ""
        broken_first = False
        while len(requests) < many:
            number = len(requests)
            ending = variant if number == 0 and variant != "impostor" else "done"
            taken = {r.kind for r in requests}
            taken |= {name for group in self.service.apart for name in group if group & taken}
            fit = {n: self.service.intent(n).share for n in self._fit(intents, ending) if n not in taken}
            if number:  # assertions speak of the trouble alone, so that what is beside it must be a question
                fit = {n: share for n, share in fit.items() if self.service.intent(n).trouble is None}
                fit = {n: s for n, s in fit.items() if not broken_first or "answer" in self.explored[n].ends}
            if not fit:
                raise Infeasible
            kind = source.rng.choices(list(fit), list(fit.values()))[0]
            source.before = actions
            request, outcome = draw_request(source, kind, ending, alone=many == 1)
            broken_first = broken_first or source.broken is not None
            self._note_approval(source.rng, request, outcome)
            if _overlap(self.service, request, requests):
                raise Infeasible
            requests.append(request)
            more = many == 1 and variant != "impostor" and drops(request) and len(self._fit(intents, "done")) > 1
            many += more and source.rng.random() < BESIDES
            actions = [*actions, *outcome.actions]
            transferred = outcome.summary
        for number, request in enumerate(requests):
            for before in ([], actions):  # an answer must be right whatever is done first
                source.before = before
                if request.answer is not None and source.outcome(request.kind, request.goal).answers != (
                    request.answer,
                ):
                    raise Infeasible
            source.before = []  # and what comes later must be possible by itself
            if number and request.final and source.outcome(request.kind, request.final).kind not in ("done", "answer"):
                raise Infeasible
        return requests, actions, transferred

    def _note_approval(self, rng: random.Random, request: UserRequest, outcome: RequestOutcome) -> None:
        """Tell the user of a request that a colleague is asked about it; some press the agent not to."""
        if self.service.authority is not None and any(action.name == REQUEST for action in outcome.actions):
            request.approval = True
            request.presses = [rng.choice(PRESSES)] if rng.random() < PRESSING else []

    def _easily_wrong(self) -> list[Fact]:
        """The facts that users may get wrong. One that identifies users alone can only be that of nobody, and only made
        worlds have other people than those who are in them."""
        alone = len(self.service.facts) == 1 and self.service.tables is None
        return [] if alone else [fact for fact in self.service.facts if fact.wrong]

    def _wrong_facts(self, source: RequestSource, facts: Mapping[str, Any], split: str) -> dict[str, Any]:
        """One fact that is somebody else's; with it the user is not found."""
        fits, identity = self._easily_wrong(), self.service.identity
        if not fits or identity is None:
            return {}
        fact, tables = source.rng.choice(fits), source.tables
        if len(facts) == 1:
            tables, _ = self.worlds.made(f"{source.task.id} {source.rng.random()}", split, SIZES["tiny"])
        rest = [other for other in self.service.facts if other is not fact]
        people = [person for _, person in some(tables[identity.table])]
        strangers = [person for person in people if not rest or any(f.of(person) != f.of(source.user) for f in rest)]
        others = {fact.of(person) for person in strangers} - {fact.of(source.user)}
        if not others:
            raise Infeasible
        wrong = {fact.name: source.rng.choice(sorted(others))}
        arguments = identity.arguments({**facts, **wrong})
        if gold.call(self.worlds.domain.world(source.task), identity.tool, arguments) is not None:
            raise Infeasible  # that is another user
        return wrong

    def _wrong_slots(self, source: RequestSource, requests: Sequence[UserRequest]) -> dict[str, Any]:
        """A slot of a request with what it would be for somebody else."""
        asked = {s.name for r in requests if r.kind != "outside" for s in self.service.intent(r.kind).slots if s.wrong}
        identity = self.service.identity
        if not asked or identity is None:
            return {}
        name = source.rng.choice(sorted(asked))
        slot, mine = self.service.slots[name], source.user[identity.key]
        others = [
            person for person in sampled(source.tables[identity.table], source.task.id) if person[identity.key] != mine
        ]
        values = {v for other in others for v, _ in possible(self.service, slot, source.tables, other, {})}
        values -= {r.goal.get(name) for r in requests}
        if not values:
            raise Infeasible
        return {name: source.rng.choice(sorted(values))}

    def _task(self, drawn: _Drawn, task_id: str, rng: random.Random, variant: str, split: str, seed: int) -> Task:
        requests, persona = drawn.requests, rng.choice(PERSONAS)
        agenda: Agenda = {
            "persona": persona,
            "user": full_name(drawn.source.user),
            "identity": dict(drawn.facts),
            "wrong": dict(drawn.wrong),
            "impostor": variant == "impostor",
            "requests": [r.to_agenda() for r in requests],
            "upfront": rng.random() < 0.5,
            "reminds": rng.random() < REMINDS,
        }
        answers = tuple(r.answer for r in requests if r.answer is not None)
        broken = None if variant == "impostor" else drawn.source.broken
        checks = () if broken is None else tuple(broken.checks(requests[0].final or requests[0].goal))
        basis: tuple[str, ...] = ("ENV_ASSERTION",) if checks else ("DB",)
        basis += ("ACTION",) if drawn.transferred else ("COMMUNICATE",) if answers else ()
        changed = any(r.then is not None for r in requests)
        marks = [changed, any(r.fallback for r in requests), any(r.unknown for r in requests), bool(drawn.wrong)]
        task = Task(
            id=task_id,
            domain=self.service.name,
            scenario=scenario_text(self.service, agenda),
            actions=drawn.gold,
            reward_basis=basis,
            communicate_info=answers,
            env_assertions=checks,
            initial_actions=drawn.source.task.initial_actions,
            database=drawn.source.task.database,
            agenda=agenda,
            tags={
                "intent": requests[0].intent if len(requests) == 1 else SEVERAL[len(requests) - 2],
                "persona": persona,
                "difficulty": len(requests) + sum(marks),
                "split": split,
                "seed": seed,
                "changes_mind": changed,
                "feasible": variant not in ("refuse", "impostor", "declined"),
                **({"faults": "|".join(broken.names)} if broken is not None else {}),
            },
        )
        domain = self.worlds.domain
        replay_gold(task, domain, [n for n in domain.tool_names() if domain.kind_of(n) == "write"])
        return task


@dataclass(frozen=True)
class _Drawn:
    """What a task is made of."""

    source: RequestSource
    requests: list[UserRequest]
    gold: tuple[Action, ...]
    facts: Mapping[str, Any]
    wrong: Mapping[str, Any]
    transferred: bool


def full_name(user: Mapping[str, Any]) -> str:
    """A user's name in one piece; empty for one without a name."""
    name = user.get("name", "")
    return " ".join(map(str, name.values())) if isinstance(name, Mapping) else str(name)


def _key(requests: Sequence[UserRequest]) -> str:
    return json.dumps([[r.kind, r.goal] for r in requests], sort_keys=True, default=str)


def _overlap(service: Service, request: UserRequest, others: Sequence[UserRequest]) -> bool:
    """Whether a request is about a record that another one is about: then their order would matter."""
    if service.identity is None:  # no record is anybody's own, and names are all that tells them apart
        subjects = _subjects(service, request)
        return any(subjects & _subjects(service, other) for other in others)
    slots, _ = split(request.goal)
    return any(v == o.goal.get(k) for o in others for k, v in slots.items() if isinstance(v, str) and "-" in v) or any(
        _own_records(service, request) & _own_records(service, other) for other in others
    )


def _own_records(service: Service, request: UserRequest) -> set[tuple[str, str]]:
    """The user's records that a request is, or may come to be, about."""
    own = [slot.name for slot in service.slots.values() if slot.draw is not None and slot.draw.own]
    goals = (request.goal, request.then or {}, request.fallback or {})
    return {(name, str(goal[name])) for goal in goals for name in own if name in goal}


def _subjects(service: Service, request: UserRequest) -> set[str]:
    """What the records are called that a request is, or may come to be, about."""
    drawn = [slot.name for slot in service.slots.values() if slot.draw is not None and slot.draw.field is not None]
    goals = (request.goal, request.then or {}, request.fallback or {})
    return {str(goal[name]) for goal in goals for name in drawn if name in goal}
