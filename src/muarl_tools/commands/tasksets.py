"""Sets of tasks by name: an environment's, a benchmark's split, or a file of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import ConfigError, DataError
from muarl.cli.environment_approval import approved

if TYPE_CHECKING:
    from muarl.domains.tasks import Task
    from muarl_worlds.contamination import TaskSet

EVERYTHING = {"telecom": "full"}
"""The split that holds all of a domain's official tasks, where it is not the default one."""


def task_set(name: str, *, count: int = 2000, size: str | None = None, seed: int = 0) -> TaskSet:
    """Tasks by name, as a person has written it: an environment's (``NAME[:SPLIT]``, ``FILE.py:NAME[:SPLIT]``,
    ``package.module:NAME[:SPLIT]``), or a JSON-lines file. A reference to code is approved.

    Of an environment that is no benchmark ``count`` tasks are made, in its largest world or that of ``size``.

    ConfigError for a name that is none of these; DataError if a benchmark is not installed, or a file malformed.
    """
    from muarl.environments.registry import find, is_reference, names
    from muarl_worlds.contamination import TaskSet

    domain, split = _parts(name)
    if domain in names() or is_reference(domain):
        environment = find(approved(domain) or domain)
        if environment.is_benchmark:
            source = environment.official()
            chosen = split or EVERYTHING.get(source.own_name, source.splits[0])
            return TaskSet(f"{domain}:{chosen}", source.tasks(chosen), source.domain("official").kind_of)
        if size is not None:
            environment.check_size(size, "--size")
        size, split = size or (environment.sizes[-1] if environment.sizes else None), split or "train"
        if split not in environment.splits:
            raise ConfigError(f"{name!r}: {environment.name} has the splits {', '.join(environment.splits)}")
        found = environment.make_tasks(split, count, size=size, seed=seed)
        label = f"{environment.name}:{split} ({len(found)} tasks)"
        return TaskSet(label, found, environment.make_domain(size).kind_of)
    if Path(name).is_file():
        return _from_file(Path(name))
    raise ConfigError(
        f"{name!r} is no set of tasks: name an environment (`muarl domains` lists them), with :SPLIT if you like, or a "
        "file of tasks"
    )


def _parts(name: str) -> tuple[str, str]:
    """The environment and the split in ``NAME[:SPLIT]``; a reference's own name may have a colon, too."""
    from muarl.environments.registry import is_reference, names

    head, _, tail = name.rpartition(":")
    if head in names() or is_reference(head):
        return head, tail
    return name, ""


def benchmarks_of(training: TaskSet) -> list[TaskSet]:
    """The official tasks of the training tasks' domain in every installed benchmark. ConfigError if there are none."""
    from muarl.environments.registry import find, names
    from muarl_worlds import data

    domains, installed = {_plain(task.domain) for task in training.tasks}, data.installed()
    benchmarks = [found.official() for found in map(find, names()) if found.is_benchmark]
    sets = [task_set(b.name) for b in benchmarks if b.family in installed and b.own_name in domains]
    sets = [s for s in sets if s.name != training.name]
    if not sets:
        raise ConfigError(
            f"no installed benchmark has the domain {', '.join(sorted(domains))}: name one with --benchmark"
        )
    return sets


def _plain(domain: str) -> str:
    """A domain's name without that of the set of tasks that its own tasks are of."""
    from muarl_worlds import data

    for name in data.TASK_SETS:
        domain = domain.removeprefix(f"{name}-")
    return domain


def _from_file(path: Path) -> TaskSet:
    """Tasks as ``muarl generate --out`` writes them: JSON lines with id, domain, actions."""
    from muarl.records.rows import json_lines
    from muarl_worlds.contamination import TaskSet

    tasks = [_task(row.value, row.place) for row in json_lines(path)]
    domains = sorted({t.domain for t in tasks})
    if len(domains) != 1:
        raise DataError(f"{path}: its tasks must be of one domain, not {', '.join(domains) or 'none'}")
    return TaskSet(path.name, tasks, _kinds(domains[0], path))


def _task(row: Mapping[str, Any], place: str) -> Task:
    from muarl.domains.tasks import Action, Task
    from muarl.records.rows import field, items

    actions = [
        Action(field(a, "name", str, "a string", p), field(a, "arguments", dict, "an object", p))
        for a, p in items(row, "actions", place)
    ]
    task_id = field(row, "id", str, "a string", place)
    initial = row.get("initial_actions", [])
    if not isinstance(initial, list) or not all(isinstance(a, dict) for a in initial):
        raise DataError(f"{place}: initial_actions must be a list of objects")
    domain = field(row, "domain", str, "a string", place)
    return Task(task_id, domain, "", tuple(actions), initial_actions=tuple(initial))


def _kinds(domain: str, path: Path) -> Any:
    from muarl.environments.registry import environment_of

    environment = environment_of(domain)
    if environment is None:
        raise DataError(f"{path}: nothing is known of the tools of {domain!r}")
    return environment.make_domain().kind_of
