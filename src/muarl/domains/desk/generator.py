"""Tasks from seeds for a described scenario: who calls, what they want, how they change their mind, the gold actions.

Train, validation and test differ by the callers' full names: ``split_of`` sends each to exactly one split.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from muarl.domains.base import Action, Database, Domain, Task
from muarl.domains.desk import oracle
from muarl.domains.desk.people import Maker
from muarl.domains.desk.scenario import scenario_text
from muarl.domains.desk.spec import Script
from muarl.domains.desk.wishes import Source, draw_request, split
from muarl.domains.drawing import DRAWS, Infeasible, Request, replay_gold, split_of
from muarl.domains.generated import SPLITS

PERSONAS = ("terse", "chatty", "confused", "impatient")
VARIANTS: Mapping[str, float] = {"done": 0.68, "unavailable": 0.15, "refuse": 0.08, "transfer": 0.03, "outside": 0.05,
                                 "impostor": 0.01}  # fmt: skip
"""Share of each variant of the first request. Doing nothing is right for ``refuse`` and ``impostor`` only; so is
transferring at once, since the others want the caller identified first."""
MORE_REQUESTS = (0.30, 0.15)
"""How often there is a second request, and then a third."""
WRONG_DETAILS = 0.12
REMINDS = 0.3


@dataclass(frozen=True, slots=True)
class DeskSize:
    """How large a world is: people in it, and how many tasks share one."""

    name: str
    people: int
    tasks_per_world: int
    tiny: bool = False


SIZES = {
    size.name: size for size in (DeskSize("tiny", 2, 1, True), DeskSize("small", 12, 30), DeskSize("medium", 60, 200))
}

MakeTables = Callable[[Maker], dict[str, dict[str, Any]]]


@dataclass(frozen=True)
class TaskMaker:
    """Makes a scenario's tasks. ``domain``: an instance of it with all tools; ``make_tables``: its worlds."""

    script: Script
    domain: Domain
    make_tables: MakeTables

    def intents(self, size: str) -> tuple[str, ...]:
        """The intents of a size: those that its tools can serve."""
        tiny = self.script.spec.tiny_tools if SIZES[size].tiny else ()
        return self.script.intents_with(tiny or self.domain.tool_names())

    def iter_tasks(self, split: str, *, size: str, seed: int = 0, start: int = 0) -> Iterator[Task]:
        """Tasks of one split without end, from index ``start`` on. ValueError for an unknown split or size."""
        if split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
        if size not in SIZES:
            raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
        return (self.task(split, index, size=size, seed=seed) for index in itertools.count(start))

    def task(self, split: str, index: int, *, size: str, seed: int = 0) -> Task:
        """Task number ``index`` of a split. Its gold actions have been replayed: every call succeeded."""
        name = self.script.name
        rng = random.Random(f"{name} task {size} {split} {seed} {index}")
        intents = self.intents(size)
        variants = {v: w for v, w in VARIANTS.items() if v in ("outside", "impostor") or _fit(self.script, intents, v)}
        task_id = f"{name}-{size}-{split}-{seed}-{index}"
        for attempt in range(300 * DRAWS):
            if attempt % 300 == 0:  # worlds may have no place for a variant, and a run must not end for that
                variant = rng.choices(list(variants), list(variants.values()))[0]
                many = 1 + sum(itertools.takewhile(bool, (int(rng.random() < share) for share in MORE_REQUESTS)))
                if variant in ("refuse", "transfer", "outside", "impostor"):
                    many = 1
            tables, database = self.world(split, seed, index, attempt, SIZES[size])
            try:
                return self._draw(rng, task_id, intents, variant, many, tables, database, split, seed)
            except Infeasible:
                continue
        raise RuntimeError(f"no world could host {name} task {split} {index} of size {size}: variant {variant}")

    def world(self, split: str, seed: int, index: int, attempt: int, size: DeskSize) -> tuple[Any, Database]:
        """The made world that a task lives in, as tables and as a database."""
        if size.tasks_per_world == 1:
            return self._made(f"{split} {seed} {index} {attempt}", split, size)
        another = attempt // 50  # a world in which nobody fits is left for another one
        return _shared(self, f"{split} {seed} {index // size.tasks_per_world} {another}", split, size)

    def _made(self, seed: str, split: str, size: DeskSize) -> tuple[Any, Database]:
        rng = random.Random(f"{self.script.name} world {size.name} {seed}")
        maker = Maker(rng, size.people, size.tiny, lambda first, last: split_of(first, last) == split)
        tables = self.make_tables(maker)
        return tables, Database(tables)

    def _draw(
        self,
        rng: random.Random,
        task_id: str,
        intents: Sequence[str],
        variant: str,
        many: int,
        tables: Mapping[str, Mapping[str, Any]],
        database: Database,
        part: str,
        seed: int,
    ) -> Task:
        spec = self.script.spec
        people = tables[spec.identify.table]
        caller = people[rng.choice(list(people))]
        facts = {n: caller[f.field] for n, f in spec.identify.fields.items()}
        bare = Task(task_id, self.script.name, "", (), database=database)
        shown = oracle.call(self.domain.world(bare), spec.identify.tool, facts)
        if shown is None or shown[spec.identify.id] != caller[spec.identify.id]:
            raise Infeasible  # somebody else answers to the same facts
        source = Source(self.script, rng, self.domain, tables, bare, caller, shown)
        identify = Action(spec.identify.tool, facts)
        requests, actions, transferred = _requests(source, intents, variant, many)
        wrong = {}
        if variant == "impostor" or rng.random() < WRONG_DETAILS:
            wrong = _wrong_facts(spec.identify.fields, rng, caller, people)
        gold: tuple[Action, ...] = (identify, *actions)
        if variant == "impostor":
            requests[0].final, requests[0].answer, requests[0].intent, gold = None, None, "impostor", ()
            facts, wrong = {**facts, **wrong}, {}
        if transferred:
            gold = (identify, Action("transfer_to_human_agents", {"summary": transferred}, compare_args=()))
        if len(requests) > 1 and all(r.final is None and r.answer is None for r in requests):
            raise Infeasible
        task = _assemble(
            self.script,
            bare,
            str(caller["name"]),
            requests,
            gold,
            facts,
            wrong,
            rng,
            variant,
            part,
            seed,
            bool(transferred),
        )
        replay_gold(task, self.domain, [n for n in self.domain.tool_names() if self.domain.kind_of(n) == "write"])
        return task


@lru_cache(maxsize=32)
def _shared(maker: TaskMaker, seed: str, split: str, size: DeskSize) -> tuple[Any, Database]:
    return maker._made(seed, split, size)


def _requests(
    source: Source, intents: Sequence[str], variant: str, many: int
) -> tuple[list[Request], list[Action], str]:
    """The requests, the gold actions that serve them, and why the caller is handed over, if that is right."""
    if variant == "outside":
        topic = source.rng.choice(source.script.spec.outside)
        request = Request("outside", {"topic": topic}, intent="outside")
        return [request], [], f"The customer wants to talk about {topic}."
    requests: list[Request] = []
    actions: list[Action] = []
    transferred = ""
    for number in range(many):
        wanted = variant if number == 0 and variant != "impostor" else "done"
        taken = [r.kind for r in requests]
        fit = {n: source.script.spec.intents[n].share for n in _fit(source.script, intents, wanted) if n not in taken}
        kind = source.rng.choices(list(fit), list(fit.values()))[0]
        source.before = actions
        request, outcome = draw_request(source, kind, wanted, alone=many == 1)
        if _overlap(request, requests):
            raise Infeasible
        requests.append(request)
        actions = [*actions, *outcome.actions]
        transferred = outcome.summary
    for request in requests:
        for before in ([], actions):  # an answer must be right whatever is done first
            source.before = before
            if request.answer is not None and source.outcome(request.kind, request.wish).told != (request.answer,):
                raise Infeasible
    return requests, actions, transferred


def _fit(script: Script, intents: Sequence[str], wanted: str) -> list[str]:
    """Those intents whose procedure can end as wanted."""
    steps = {name: script.spec.intents[name].steps for name in intents}
    return [n for n in intents if wanted == "done" or any(getattr(s, wanted) is not None for s in steps[n])]


def _overlap(request: Request, others: Sequence[Request]) -> bool:
    """Whether a request is about a record that another one is about: then their order would matter."""
    slots, _ = split(request.wish)
    return any(v == o.wish.get(k) for o in others for k, v in slots.items() if isinstance(v, str) and "-" in v)


def _wrong_facts(
    fields: Mapping[str, Any], rng: random.Random, caller: Any, people: Mapping[str, Any]
) -> dict[str, Any]:
    """One fact that is somebody else's, which nobody of the caller's name has."""
    name = rng.choice([n for n, f in fields.items() if f.wrong])
    others = {p[fields[name].field] for p in people.values()} - {caller[fields[name].field]}
    if not others:
        raise Infeasible
    return {name: rng.choice(sorted(others))}


def _assemble(
    script: Script,
    bare: Task,
    caller: str,
    requests: list[Request],
    gold: tuple[Action, ...],
    facts: Mapping[str, Any],
    wrong: Mapping[str, Any],
    rng: random.Random,
    variant: str,
    part: str,
    seed: int,
    transferred: bool,
) -> Task:
    persona = rng.choice(PERSONAS)
    agenda = {
        "persona": persona,
        "caller": caller,
        "identity": dict(facts),
        "wrong": dict(wrong),
        "impostor": variant == "impostor",
        "requests": [r.to_agenda() for r in requests],
        "upfront": rng.random() < 0.5,
        "reminds": rng.random() < REMINDS,
    }
    answers = tuple(r.answer for r in requests if r.answer is not None)
    changed = any(r.then is not None for r in requests)
    marks = [changed, any(r.fallback for r in requests), any(r.unknown for r in requests), bool(wrong)]
    return Task(
        id=bare.id,
        domain=script.name,
        scenario=scenario_text(script, agenda),
        actions=gold,
        reward_basis=("DB", "ACTION") if transferred else ("DB", "COMMUNICATE") if answers else ("DB",),
        communicate_info=answers,
        database=bare.database,
        agenda=agenda,
        tags={
            "intent": requests[0].intent if len(requests) == 1 else f"{('two', 'three')[len(requests) - 2]}_requests",
            "persona": persona,
            "difficulty": len(requests) + sum(marks),
            "split": part,
            "seed": seed,
            "changes_mind": changed,
            "feasible": variant not in ("refuse", "impostor"),
        },
    )
