"""Checks of tasks as they are written: the same from the same seed, apart by split, plain data, a scenario to play."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muarl.basics.errors import InfrastructureError
from muarl.domains.checking import CheckReport, NotChecked, Problem, for_each, of_task, place_of
from muarl.domains.generated import parse_id
from muarl.domains.tasks import Task
from muarl.users.guidelines import load_guidelines
from muarl_tools.checks.environment.other_process import TaskRequest, fingerprint
from muarl_tools.checks.environment.samples import CheckContext

SHORT = 12
"""Characters that a scenario has at least."""
AGAIN = 12
"""Tasks that are made a second time."""
PLACEHOLDER = re.compile(r"\{[a-z_]+\}|\bNone\b|<[\w.]+ object at ")
"""What a template leaves behind that was not filled in."""


def tasks(context: CheckContext) -> CheckReport:
    """The same arguments give the same tasks wherever one starts; ids are unique and say how to make the task again."""
    found: list[Problem] = []
    made = {split: context.tasks(split) for split in context.splits}
    for split, whole in made.items():
        if not whole:
            found.append(Problem(f"the split {split} has no tasks"))
    if context.environment.endless:
        found += for_each(_of_id(context, split, number, t) for split in made for number, t in enumerate(made[split]))
        found += _again(context)
    if (declared := context.environment.declared_intents(context.size)) is not None:
        found += for_each(_of_intent(declared, task) for whole in made.values() for task in whole)
    return CheckReport(f"{sum(map(len, made.values()))} tasks in {', '.join(made)}", tuple(found))


def _again(context: CheckContext) -> Iterator[Problem]:
    environment, split, start = context.environment, context.split, 4
    place = place_of(environment.tasks)
    options: dict[str, Any] = {"size": context.size, "seed": context.seed}
    first = list(context.tasks(count=AGAIN))
    later = environment.make_tasks(split, AGAIN - start, start=start, **options)
    for task, again in zip(first[start:], later, strict=False):
        if fingerprint(task) != fingerprint(again):
            remedy = "Draw everything from a random.Random of split, index and seed, and nothing from anywhere else"
            yield Problem(f"the same split, number and seed gave two different tasks{place}", of_task(task), remedy)
            return
    if not _named(environment.tasks) & {"seed"}:
        return
    other = environment.make_tasks(split, AGAIN, size=context.size, seed=context.seed + 1)
    if len(first) > 1 and {t.scenario for t in first} == {t.scenario for t in other}:
        yield Problem(f"another seed gave the same tasks{place}", "", "Let the seed enter the random numbers")


def _named(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters) if callable(function) else set()


def _of_id(context: CheckContext, split: str, number: int, task: Task) -> Problem | None:
    found = parse_id(task.id, task.domain)
    seeded = "seed" in _named(context.environment.tasks)
    if (
        found is not None
        and (found.split, found.index) == (split, number)
        and (not seeded or found.seed == context.seed)
        and found.size in ("", context.size)
    ):
        return None
    what = f"its id does not say how to make it again (split {split}, seed {context.seed}, number {number})"
    remedy = "Let ids end in -SPLIT-SEED-INDEX: the viewer and the audit make the task of an episode by it"
    return Problem(what, of_task(task), remedy)


def _of_intent(declared: Sequence[str], task: Task) -> Problem | None:
    intent = task.tags.get("intent")
    if intent is None or intent in declared:
        return None
    what = f"its intent is not among those of Environment.intents: {', '.join(declared)}"
    return Problem(what, of_task(task), "Add it")


def another_process(context: CheckContext) -> CheckReport:
    """Another process, with other hashes, makes the same tasks."""
    if not context.environment.endless:
        raise NotChecked("its tasks are fixed")
    if context.reference is None:
        raise NotChecked("it has no name under which another process could find it")
    here = context.tasks(count=AGAIN)
    wanted = TaskRequest(context.reference, context.size, context.split, len(here), context.seed)
    try:
        (elsewhere,) = context.elsewhere([wanted])
    except InfrastructureError as failure:
        return CheckReport("", (Problem(str(failure)),))
    for task, other in zip(here, elsewhere, strict=True):
        if fingerprint(task) != other:
            what = f"another process makes another task of it{place_of(context.environment.tasks)}"
            remedy = "Do not draw from sets, from hash() or from the clock: sort a set before you choose from it"
            return CheckReport("", (Problem(what, of_task(task), remedy),))
    return CheckReport(f"{len(here)} tasks")


def splits(context: CheckContext) -> CheckReport:
    """No task of one split is one of another: neither its scenario nor its writes, on the same data."""
    if context.environment.is_benchmark:
        raise NotChecked("a benchmark's splits are its own")
    if len(context.splits) < 2:
        raise NotChecked(f"it has the split {context.splits[0]} alone")
    known: dict[str, dict[Any, tuple[str, Task]]] = {"scenario": {}, "writes": {}}
    found: dict[tuple[str, str, str], Problem] = {}
    for split in context.splits:
        for task in context.tasks(split):
            keys = _data(context, task, task.scenario), _deeds(context, task)
            for (what, seen), key in zip(known.items(), keys, strict=True):
                if key is None:
                    continue
                where, other = seen.setdefault(key, (split, task))
                if where != split:
                    remedy = "Decide by what a task is about (such as the caller's name) which split it belongs to"
                    same = f"the same {what} on the same data as task {other.id} of the split {where}"
                    problem = Problem(same, of_task(task), remedy)
                    found.setdefault((what, where, split), problem)
    return CheckReport(f"{', '.join(context.splits)} against each other", tuple(found.values()))


def _data(context: CheckContext, task: Task, *what: Any) -> str:
    """Something about a task with the data that it is about."""
    digest = context.domain.base.digest() if task.database is None else task.database.digest()
    return json.dumps([digest, task.initial_data, task.initial_actions, *what], sort_keys=True, default=str)


def _deeds(context: CheckContext, task: Task) -> str | None:
    """The writes of a task and the data that they are made on; None where there are none."""
    writes = [a for a in task.actions or () if a.name in context.writing and a.requestor == "assistant"]
    return _data(context, task, [[a.name, a.arguments] for a in writes]) if writes else None


def data(context: CheckContext) -> CheckReport:
    """What a task holds is plain JSON, so that files, runs and other processes have it as it was."""
    looked = [task for split in context.splits for task in context.tasks(split, 50)]
    return CheckReport(f"{len(looked)} tasks", for_each(map(_not_plain, looked)))


def _not_plain(task: Task) -> Problem | None:
    parts = {
        "agenda": task.agenda,
        "tags": task.tags,
        "initial_data": task.initial_data,
        "actions": [dict(action.arguments) for action in task.actions or ()],
    }
    for name, value in parts.items():
        try:
            same = json.loads(json.dumps(value, default=dict)) == _listed(value)
        except (TypeError, ValueError) as problem:
            return Problem(f"{name} is no plain JSON: {problem}", of_task(task), "Use text, numbers, lists and dicts")
        if not same:
            return Problem(f"{name} is not the same once it was JSON", of_task(task), "Let the keys of dicts be text")
    return None


def _listed(value: Any) -> Any:
    """A value with lists for tuples, which JSON has no other form for."""
    if isinstance(value, Mapping):
        return {key: _listed(inner) for key, inner in value.items()}
    return [_listed(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def scenarios(context: CheckContext) -> CheckReport:
    """Every task tells a language model what to want, and nothing that the user does not know."""
    guidelines = load_guidelines("muarl", tools=bool(context.domain.tool_names("user")))
    looked = [task for split in context.splits for task in context.tasks(split)]
    found = [problem for task in looked for problem in _of_scenario(context, task)]
    longest = max((len(guidelines.system_prompt(task.scenario).split()) for task in looked), default=0)
    return CheckReport(f"{len(looked)} tasks, prompts of up to {longest} words", tuple(found))


def _of_scenario(context: CheckContext, task: Task) -> Iterator[Problem]:
    if len(task.scenario.strip()) < SHORT:
        yield Problem(f"its scenario {task.scenario!r} says nothing", of_task(task), "Say what the user wants")
        return
    if context.environment.is_benchmark:
        return
    left = PLACEHOLDER.search(task.scenario)
    if left is not None:
        yield Problem(f"its scenario says {left.group()!r}", of_task(task), "Fill in the template")
    for slot, value in _unknown(task):
        if value in task.scenario:
            what = f"its scenario tells {value!r}, though the user does not know the {slot}"
            yield Problem(what, of_task(task), "Leave it out of the scenario, or out of the agenda's unknown slots")


def _unknown(task: Task) -> Iterator[tuple[str, str]]:
    """What the user of an agenda does not know, as (slot, value)."""
    requests: Sequence[Any] = (task.agenda or {}).get("requests", ())
    for request in requests if isinstance(requests, (list, tuple)) and len(requests) == 1 else ():
        goal = request.get("goal") if isinstance(request, Mapping) else None
        unknown = request.get("unknown") if isinstance(request, Mapping) else None
        for slot in unknown if isinstance(unknown, (list, tuple)) else ():
            value = goal.get(slot) if isinstance(goal, Mapping) else None
            if isinstance(value, str) and value:
                yield slot, value
