"""Tasks of one's own in a file: JSON lines, one task each, with its world and whether a person has confirmed its goal.

``muarl tasks from-log`` writes such files out of logged conversations, and ``domain.tasks`` trains on them. Those that
``muarl tasks practise`` writes have made tasks, which are made again from their address where they are played.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError, DataError, MuarlError
from muarl.basics.files import write_text
from muarl.domains.authoring import AuthoringWarning
from muarl.domains.base import Domain
from muarl.domains.database import Database
from muarl.domains.tasks import Action, Task
from muarl.environments.task_addresses import TaskAddress
from muarl.environments.task_pool import TaskPool
from muarl.records.rows import field, items, json_lines
from muarl.rewards.gold import REMEDY, gold_failures

HELD_OUT = 5
"""One task in so many is kept for evaluation."""
_FIELDS = "id domain scenario lines actions database tags confirmed notes source made"
_KNOWN = frozenset(_FIELDS.split())


@dataclass(frozen=True, slots=True)
class FiledTask:
    """A task of a file."""

    task: Task
    confirmed: bool = False
    """A person has said that its goal is right."""
    notes: tuple[str, ...] = ()
    """What that person should look at."""
    source: str = ""
    """Where the conversation was logged."""
    place: str = ""
    """Where the task stands."""
    made: str = ""
    """The address of a task that an environment makes, "" for others; as read, such a task is only what people see of
    it."""


def split_of(task_id: str) -> str:
    """The split of a task: "test" for about one in five, else "train". It follows from the id, so that a file may
    grow without moving a task."""
    number = int(hashlib.sha256(task_id.encode()).hexdigest()[:8], 16)
    return "test" if number % HELD_OUT == 0 else "train"


def row_of(filed: FiledTask) -> dict[str, Any]:
    """A task as its line in a file."""
    task = filed.task
    made = bool(filed.made)
    return {
        "id": task.id,
        "domain": task.domain,
        "confirmed": filed.confirmed,
        "notes": list(filed.notes),
        "scenario": task.scenario,
        "actions": [_action_row(a) for a in task.actions or ()],
        "lines": list((task.agenda or {}).get("lines", ())),
        "tags": dict(task.tags),
        "source": filed.source,
        "database": None if task.database is None or made else task.database.to_tables(),
        **({"made": filed.made} if made else {}),
    }


def _action_row(action: Action) -> dict[str, Any]:
    row = {"name": action.name, "arguments": dict(action.arguments)}
    return row if action.requestor == "assistant" else {**row, "requestor": action.requestor}


def write_tasks(path: Path, tasks: Iterable[FiledTask]) -> None:
    """Write a file of tasks, whole or not at all."""
    write_text(path, "".join(json.dumps(row_of(t), ensure_ascii=False) + "\n" for t in tasks))


def read_tasks(path: Path) -> list[FiledTask]:
    """The tasks of a file. DataError names line and field of what is wrong, or of an id that stands twice."""
    tasks: list[FiledTask] = []
    where: dict[str, str] = {}
    for row in json_lines(path):
        filed = _filed(row.value, row.place)
        if filed.task.id in where:
            raise DataError(f"{row.place}: the id {filed.task.id!r} is used at {where[filed.task.id]}, too")
        where[filed.task.id] = row.place
        tasks.append(filed)
    return tasks


def _filed(row: Any, place: str) -> FiledTask:
    task_id = field(row, "id", str, "a string", place)
    unknown = sorted(set(row) - _KNOWN)
    if unknown:
        raise DataError(f"{place}: there is no field {unknown[0]!r}; known: {', '.join(sorted(_KNOWN))}")
    actions = tuple(_action(a, p) for a, p in items(row, "actions", place))
    lines = row.get("lines", [])
    if not isinstance(lines, list) or not all(isinstance(x, str) for x in lines):
        raise DataError(f"{place}: lines must be a list of strings")
    tags = field({"tags": {}, **row}, "tags", dict, "an object", place)
    notes = row.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(x, str) for x in notes):
        raise DataError(f"{place}: notes must be a list of strings")
    task = Task(
        id=task_id,
        domain=field(row, "domain", str, "a string", place),
        scenario=field(row, "scenario", str, "a string", place),
        actions=actions,
        database=_database(row.get("database"), place),
        agenda={"lines": tuple(lines)} if lines else None,
        tags={"intent": _intent(actions), "persona": "logged", **tags, "split": split_of(task_id)},
    )
    confirmed = field(row, "confirmed", bool, "true or false", place)
    made = field({"made": "", **row}, "made", str, "a string", place)
    return FiledTask(task, confirmed, tuple(notes), str(row.get("source", "")), place, made)


def _intent(actions: Sequence[Action]) -> str:
    return actions[0].name if actions else "nothing written"


def _action(value: Any, place: str) -> Action:
    name = field(value, "name", str, "a string", place)
    requestor = value.get("requestor", "assistant")
    if requestor not in ("assistant", "user"):
        raise DataError(f"{place}: requestor must be assistant or user, not {requestor!r}")
    return Action(name, field(value, "arguments", dict, "an object", place), requestor)


def _database(value: Any, place: str) -> Database | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(t, Mapping) for t in value.values()):
        raise DataError(f"{place}: database must be null, or tables of records by their keys")
    return Database(value)


class TaskFile:
    """The confirmed tasks of a file, as a run draws them. ``task_domain``: the domain that tasks name;
    ``domain``: what they run in. ``again`` makes the made tasks, by their address. ``validating``: see ``TaskPool``.

    DataError if a task is of another domain, if a made one cannot be made again as it was, or if a gold action fails;
    with ``domain.allow_failing_gold`` the last is warned of. ConfigError if none has been confirmed.
    """

    def __init__(
        self,
        path: Path,
        domain: Domain,
        task_domain: str,
        again: Callable[[TaskAddress], Task] | None = None,
        *,
        validating: bool = False,
    ) -> None:
        self.path = path
        every = read_tasks(path)
        if not every:
            raise ConfigError(f"domain.tasks: {path} holds no task; `muarl tasks from-log` writes such files")
        confirmed = [f for f in every if f.confirmed]
        if not confirmed:
            raise ConfigError(
                f"domain.tasks: none of the {len(every)} tasks of {path} is confirmed: look at them with `muarl tasks "
                f"show {path}`, fix their actions where the agent was wrong, then `muarl tasks confirm {path} ID`"
            )
        for filed in confirmed:
            if filed.task.domain != task_domain:
                raise DataError(f"{filed.place}: a task of {filed.task.domain!r}, and the run is of {task_domain!r}")
        confirmed = [_again(filed, again) if filed.made else filed for filed in confirmed]
        failing = [problem for filed in confirmed if (problem := problem_of(filed, domain)) is not None]
        if failing and not domain.allow_failing_gold:
            raise DataError(f"{failing[0].rstrip('.')}. {REMEDY}")
        if failing:
            text = f"{len(failing)} of {len(confirmed)} confirmed tasks have a gold action that fails: {failing[0]}"
            warnings.warn(text, AuthoringWarning, stacklevel=2)
        splits: dict[str, list[Task]] = {"train": [], "test": []}
        for filed in confirmed:
            splits[split_of(filed.task.id)].append(filed.task)
        remedy = f", or confirm more (one task in {HELD_OUT} is kept for evaluation, by its id)"
        self.pool = TaskPool(
            splits,
            f"domain.tasks: {path}",
            whole=False,
            called="confirmed tasks",
            remedy=remedy,
            validating=validating,
        )
        self.splits = self.pool.splits
        self.draw = self.pool.draw


def _again(filed: FiledTask, again: Callable[[TaskAddress], Task] | None) -> FiledTask:
    """The same, with the whole task in it. DataError, naming the place, if it cannot be made or is another one now."""
    if again is None:
        raise DataError(f"{filed.place}: made: nothing makes tasks here; such files are for domain.tasks")
    try:
        task = again(TaskAddress.parse(filed.made))
    except MuarlError as problem:
        raise DataError(f"{filed.place}: made: {problem}") from None
    was, now = (json.dumps(row_of(replace(filed, task=t)), sort_keys=True) for t in (filed.task, task))
    before, after = json.loads(was), json.loads(now)
    other = next((name for name in ("id", "scenario", "actions") if before[name] != after[name]), None)
    if other is not None:
        raise DataError(
            f"{filed.place}: {other} is not that of the task {filed.made}: it was changed in the file, or another "
            "version of muarl wrote it. Write the file anew with `muarl tasks practise`"
        )
    return replace(filed, task=replace(task, tags={**task.tags, "split": split_of(task.id)}))


def check(filed: FiledTask, domain: Domain) -> None:
    """DataError, naming the place, if the task's gold actions do not all succeed in its world."""
    problem = problem_of(filed, domain)
    if problem is not None:
        raise DataError(problem)


def problem_of(filed: FiledTask, domain: Domain) -> str | None:
    """The place of a task and its first gold action that fails, None if all succeed. DataError if its database is not
    one of the domain."""
    if filed.task.database is None and not filed.made and not domain.base.tables:
        raise DataError(f"{filed.place}: database is null, and {domain.name} has no default database")
    try:
        failures = gold_failures(domain, filed.task)
    except (KeyError, TypeError, ValueError, AttributeError) as bug:
        text = f"{filed.place}: its database is not one of {domain.name}: {type(bug).__name__}: {bug}"
        raise DataError(text) from None
    return f"{filed.place}: {failures[0]}" if failures else None


def confirm(tasks: Iterable[FiledTask], ids: frozenset[str]) -> list[FiledTask]:
    """The tasks, those named marked as confirmed."""
    return [replace(t, confirmed=True) if t.task.id in ids else t for t in tasks]
