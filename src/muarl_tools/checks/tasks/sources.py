"""Where the tasks come from that are checked: an environment's, a benchmark's, or those of a file.

Three kinds of files are read: a list of TAU2's tasks (``tasks.json``), a list of TAU1's (as ``muarl data`` installs
them), and the JSON lines that ``muarl tasks`` writes. They are told apart by what stands in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import parse_json
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain
from muarl.domains.task_rules import NO_TASK_RULES, TaskRules
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import environment_of, find, load_task
from muarl.environments.task_files import read_tasks
from muarl.records.rows import json_lines
from muarl_worlds.tau import tau1_benchmark as tau1
from muarl_worlds.tau.tau2_benchmark.tasks import task_from_json

Layout = Literal["tau2", "tau1", "muarl"]
FAMILIES = ("tau1", "tau2")
"""Benchmarks whose tasks are worth their final state."""


@dataclass(frozen=True)
class TaskSource:
    """Tasks by split, with the domain that they are played in. ``label``: what to call them. ``audit``, ``rules``: what
    the domain declares for audits, and for checks of tasks. ``rows``: the tasks as their file has them, by id, and
    ``layout``, the kind of file; none where they are made by an environment. ``environment``: the one that they are
    played in, with its users and experts."""

    label: str
    domain: Domain
    splits: Mapping[str, Sequence[Task]]
    audit: AuditRules
    rules: TaskRules = NO_TASK_RULES
    rows: Mapping[str, Mapping[str, Any]] | None = None
    layout: Layout | None = None
    environment: Environment | None = None
    kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What checks have found out of the domain's own data, to be looked up again."""

    @property
    def tasks(self) -> list[tuple[str, Task]]:
        """(split, task) of all."""
        return [(split, task) for split, tasks in self.splits.items() for task in tasks]


def open_source(
    source: str,
    *,
    domain: str | None = None,
    split: str | None = None,
    count: int | None = None,
    size: str | None = None,
    seed: int = 0,
) -> TaskSource:
    """The tasks of an environment's name (``tau2-retail``, ``retail-generated``, a reference that was approved) or of
    a file. ``domain``: the environment that a file's tasks are played in. ``split``: one only. ``count``: so many of
    each split at most; generators make 200 where it is not said.

    ConfigError for a source that there is not or that cannot be checked; DataError for what is wrong within a file.
    """
    path = Path(source)
    if path.is_file() and ":" not in path.name:
        return _of_file(path, domain, split, count, size)
    if domain is not None:
        raise ConfigError(f"--domain goes with a file of tasks, and {source} is no file that is there")
    environment = find(source, "SOURCE")
    _refuse(environment)
    names = environment.splits if split is None else (split,)
    for name in names:
        environment.check_split(name, "--split")
    if environment.is_benchmark:
        return _of_benchmark(environment, _apart(names) if split is None else names, count)
    if not environment.endless:
        there = {name: list(environment.fixed_tasks(name))[:count] for name in names}
        return _source(environment.name, environment, environment.make_domain(size), there)
    many = 200 if count is None else count
    made = {name: environment.make_tasks(name, many, size=size, seed=seed) for name in names}
    shown = f"{environment.name}{f', size {size}' if size else ''}, seed {seed}"
    return _source(shown, environment, environment.make_domain(size), made)


def _refuse(environment: Environment) -> None:
    if environment.on_server:
        raise ConfigError(f"{environment.name} keeps its worlds on a server: its tasks cannot be checked yet")
    if environment.protocol is not None and environment.protocol.family not in FAMILIES:
        raise ConfigError(
            f"{environment.name}: its score is another than the state of the world; checked are the tasks of TAU2, "
            "TAU1, of made environments and of files that `muarl tasks` writes"
        )


def _source(
    label: str,
    environment: Environment,
    played: Domain,
    splits: Mapping[str, Sequence[Task]],
    rows: Mapping[str, Mapping[str, Any]] | None = None,
    layout: Layout | None = None,
) -> TaskSource:
    """A source with what environment and domain declare; TAU's tasks are played by no expert."""
    audit, rules = environment.audit_rules(played), type(played).task_rules or NO_TASK_RULES
    return TaskSource(label, played, splits, audit, rules, rows, layout, None if layout in FAMILIES else environment)


def _apart(names: Sequence[str]) -> Sequence[str]:
    """The splits of a benchmark that have no task in common: TAU2's train and test rather than base, which is both."""
    if "base" not in names:
        return names
    return ("train", "test") if {"train", "test"} <= set(names) else names[:1]


def _of_benchmark(environment: Environment, names: Sequence[str], count: int | None) -> TaskSource:
    protocol = environment.official()
    splits = {name: list(environment.fixed_tasks(name))[:count] for name in names}
    if protocol.family == "tau1":
        rows = {t.id: _tau1_row(t) for tasks in splits.values() for t in tasks}
    else:
        rows = {str(row["id"]): row for row in protocol.module.task_rows(protocol.own_name)}
    layout: Layout = "tau1" if protocol.family == "tau1" else "tau2"
    return _source(environment.name, environment, protocol.domain("official"), splits, rows, layout)


def _tau1_row(task: Task) -> dict[str, Any]:
    return {
        "user_id": task.tags["user_id"],
        "instruction": task.scenario,
        "actions": [{"name": a.name, "kwargs": dict(a.arguments)} for a in task.actions or ()],
        "outputs": list(task.communicate_info),
    }


def _of_file(path: Path, domain: str | None, split: str | None, count: int | None, size: str | None) -> TaskSource:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError(f"{path}: {problem}") from None
    listed = text.lstrip()[:1] == "["
    found = _of_list(path, text, domain, count) if listed else _of_lines(path, domain, count, size)
    if split is None:
        return found
    if split not in found.splits:
        raise ConfigError(f"--split: {path} has no tasks for the split {split!r}; it has {', '.join(found.splits)}")
    return replace(found, splits={split: found.splits[split]})


def _of_list(path: Path, text: str, domain: str | None, count: int | None) -> TaskSource:
    """TAU2's or TAU1's tasks."""
    try:
        rows = parse_json(text)
    except ValueError as problem:
        raise DataError(f"{path}: not JSON: {problem}") from None
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise DataError(f"{path}: a list of tasks as objects is needed")
    layout: Layout = "tau2" if "user_scenario" in rows[0] else "tau1"
    if layout == "tau1" and "instruction" not in rows[0]:
        raise DataError(f"{path}: its first task has neither user_scenario (TAU2) nor instruction (TAU1)")
    if domain is None:
        raise ConfigError(
            f"{path} has tasks of {layout}: say which domain they are of, such as --domain {layout}-retail"
        )
    environment = find(domain, "--domain")
    if not environment.is_benchmark or environment.official().family != layout:
        raise ConfigError(f"--domain {domain}: {path} has tasks of {layout}, so it must be one of {layout}'s domains")
    protocol = environment.official()
    name = protocol.own_name
    if layout == "tau1":
        tasks = [tau1.task_from_json(row, name, f"{path.stem}/{n}") for n, row in enumerate(rows)]
    else:
        tasks = [task_from_json(row, name, split="file") for row in rows]
    by_id = dict(zip((t.id for t in tasks), rows, strict=True))
    if len(by_id) < len(tasks):
        twice = next(name for name, times in Counter(t.id for t in tasks).items() if times > 1)
        raise DataError(f"{path}: the id {twice!r} is used twice")
    label = f"{path.name} ({environment.name})"
    return _source(label, environment, protocol.domain("official"), {"file": tasks[:count]}, by_id, layout)


def _of_lines(path: Path, domain: str | None, count: int | None, size: str | None) -> TaskSource:
    """Tasks that ``muarl tasks`` has written, confirmed or not."""
    filed = read_tasks(path)
    if not filed:
        raise DataError(f"{path} holds no task")
    name = filed[0].task.domain
    environment = environment_of(name) if domain is None else find(domain, "--domain")
    if environment is None:
        raise ConfigError(f"{path} has tasks of {name!r}, which no environment has: give --domain NAME")
    _refuse(environment)
    played = environment.make_domain(size or (environment.sizes[-1] if environment.sizes else None))
    other = next((f for f in filed if f.task.domain != environment.task_domain), None)
    if other is not None:
        raise DataError(f"{other.place}: a task of {other.task.domain!r}, and {environment.name} has others")
    splits: dict[str, list[Task]] = {"train": [], "test": []}
    for one in filed:
        task = load_task(one.made) if one.made else one.task
        splits[str(one.task.tags["split"])].append(task)
    rows = {row.value["id"]: row.value for row in json_lines(path)}
    kept = {split: tasks[:count] for split, tasks in splits.items() if tasks}
    return _source(f"{path.name} ({environment.name})", environment, played, kept, rows, "muarl")
