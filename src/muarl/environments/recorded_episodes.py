"""The domain and the task of a recorded episode, made again: a run's files name both, and hold neither.

Made tasks come from the seed in their id, a benchmark's and a task file's from installed files. What a run's
configuration names is only taken where ``registry.find`` allows it: a run folder imports no code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

from muarl.accounts.metrics import DOMAIN
from muarl.basics.errors import ConfigError, MuarlError
from muarl.domains.base import Domain, Semantics
from muarl.domains.generated import SeededId, parse_id
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import approved, by_domain, canonical, find, is_reference, names
from muarl.environments.retrieval import as_recorded
from muarl.rewards.state_changes import CannotReplay, ReplayOutcome, run_again
from muarl.types.episode import Episode


def replay_recorded(
    episode: Episode, config: Mapping[str, Any], *, measured: bool = False, known: Mapping[str, Any] | None = None
) -> ReplayOutcome:
    """The episode run again, given its run's configuration. ``measured``: it was played by a benchmark's own protocol.
    ``known``: its task as the run's tasks.jsonl has it. CannotReplay says why not."""
    if "played" in episode.tags:
        raise CannotReplay("A model played the tools, so there was no database.")
    domain, task = world_of(episode, config, measured)
    if known is not None and known.get("scenario") != task.scenario:
        raise CannotReplay("This muarl makes another task of that name than the one that made the run.")
    return run_again(domain, task, episode)


def world_of(episode: Episode, config: Mapping[str, Any], measured: bool) -> tuple[Domain, Task]:
    """The domain and the task that an episode was played in. ``measured``: by a benchmark's own protocol. CannotReplay
    says why they cannot be made again."""
    named, refused = _named(config)
    named = list(dict.fromkeys([*of_person(episode), *named]))
    if (domain_name := episode.tags.get(DOMAIN)) is not None:  # of several domains; its task is called NAME:ID
        named = [e for e in named if e.name == domain_name]
        episode = replace(episode, task_id=episode.task_id.removeprefix(f"{domain_name}:"))
    fixed = [e for e in named if e.is_benchmark or not e.endless]
    for environment in fixed:
        domain, tasks = _fixed(environment, "official" if measured else "fixed")
        if episode.task_id in tasks:
            return as_recorded(domain, config), tasks[episode.task_id]
    if fixed and len(fixed) == len(named):
        listed = " and ".join(e.name for e in fixed)
        raise CannotReplay(f"{listed} has no task {episode.task_id!r} here, or its data are not installed.")
    seeded = parse_id(episode.task_id, episode.domain)
    if seeded is None:
        raise CannotReplay(
            refused or "Its task is not one that can be made again from its name, which would end in -SPLIT-SEED-INDEX."
        )
    reason = refused or f"There is no environment {seeded.domain!r} here."
    for environment in dict.fromkeys([*(e for e in named if e not in fixed), *_of_id(seeded)]):
        try:
            _check(environment, episode)
            domain, task = _made_again(environment, seeded, episode.task_id)
            return as_recorded(domain, config), task
        except CannotReplay as problem:
            reason = str(problem)
    raise CannotReplay(reason)


def _named(config: Mapping[str, Any]) -> tuple[list[Environment], str]:
    """The environments that a run's configuration names, and why the last one that is refused is."""
    environments, refused = [], ""
    for name in _names_in(config):
        if name not in names() and not is_reference(name):
            continue
        try:
            if is_reference(name) and canonical(name) not in approved():
                refused = f"Its environment is not loaded: give --domain {name}"
            else:
                environments.append(find(name))
        except ConfigError as problem:
            refused = str(problem)
    return environments, refused


def _names_in(config: Mapping[str, Any]) -> list[str]:
    section = config.get("domain")
    parts = section if isinstance(section, list) else [section]
    return [str(part["name"]) for part in parts if isinstance(part, Mapping) and part.get("name")]


def usable(config: Mapping[str, Any]) -> list[Environment]:
    """The environments that a run's configuration names, as far as they may be imported here."""
    return _named(config)[0]


def unavailable(config: Mapping[str, Any]) -> bool:
    """Whether it names an environment that is not to be had here."""
    return len(_named(config)[0]) < len(_names_in(config))


def of_person(episode: Episode) -> list[Environment]:
    """The environments that the person has named whose tasks are of the episode's domain: a run may name the place
    where their code was before."""
    environments = []
    for reference in approved():
        try:
            environment = find(reference)
        except ConfigError as problem:
            raise CannotReplay(str(problem)) from None
        if environment.task_domain == episode.domain:
            environments.append(environment)
    return environments


def _of_id(seeded: SeededId) -> list[Environment]:
    """What comes with muarl or is installed, and makes tasks of such ids."""
    return [e for e in by_domain().get(seeded.domain, ()) if not e.is_benchmark and e.endless]


def _check(environment: Environment, episode: Episode) -> None:
    if episode.tags.get("redteam") is not None:
        raise CannotReplay(
            "It is a red-team task, whose world (with what its user may have planted) is not made again."
        )
    if environment.on_server:
        raise CannotReplay("Its tools run on servers of their own, which are not started to look at an episode.")


def _made_again(environment: Environment, seeded: SeededId, task_id: str) -> tuple[Domain, Task]:
    try:
        domain, task = _seeded(environment, seeded)
    except Exception as problem:
        raise CannotReplay(f"Its task cannot be made again: {type(problem).__name__}: {problem}"[:500]) from None
    if task.id != task_id:
        raise CannotReplay(f"This muarl makes another task of that name ({task.id}).")
    return domain, task


@lru_cache(maxsize=128)
def _seeded(environment: Environment, seeded_id: SeededId) -> tuple[Domain, Task]:
    size = seeded_id.size or None
    made = environment.iter_tasks(seeded_id.split, size=size, seed=seeded_id.seed, start=seeded_id.index)
    return environment.make_domain(size), next(islice(made, 1))


@lru_cache(maxsize=4)
def _fixed(environment: Environment, semantics: Semantics) -> tuple[Domain, dict[str, Task]]:
    """The domain and all tasks by id, where there are so many and no more. CannotReplay where they are not at hand."""
    try:
        benchmark = environment.protocol
        domain = environment.make_domain() if benchmark is None else benchmark.domain(semantics)
    except Exception as problem:
        raise CannotReplay(f"The benchmark’s data are not at hand: {problem}"[:500]) from None
    tasks: dict[str, Task] = {}
    for split in dict.fromkeys([*environment.splits, "base", "test", "train"]):
        try:
            tasks |= {task.id: task for task in environment.fixed_tasks(split)}
        except (MuarlError, KeyError, ValueError):  # a split that it does not have
            continue
    return domain, tasks
