"""How a run draws its tasks: from an environment, with only some intents, with red-team tasks, made from an address."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from muarl.basics.errors import ConfigError, DataError
from muarl.config.sections import DomainConfig
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.place import Draw
from muarl.environments.task_addresses import TaskAddress
from muarl.environments.task_pool import TaskPool
from muarl.rewards.traps import SAFE

TRIES_PER_TASK = 1000
"""Generated tasks that may be looked at for each one with a wished intent. The rarest intent has a share of 1%."""
QUIET = 500
"""Generated tasks in a row without a new intent, after which there is taken to be no other."""

PRACTISED = "train"
"""What tasks that are made again are of: never of the splits that evaluations are held on."""

STATE = ("DB", "ENV_ASSERTION", SAFE)
"""Parts of a reward basis that look at the world, or at what must not have been done to it."""


def pool_of(environment: Environment, domain: DomainConfig, *, validating: bool = False) -> TaskPool:
    """The tasks of an environment whose tasks are fixed. ``validating``: see ``TaskPool``."""
    return TaskPool(environment.fixed_splits(), environment.name, intents=domain.intents, validating=validating)


def endless_draw(environment: Environment, domain: DomainConfig) -> Draw:
    """The draws of an environment that makes tasks without end, of the configured size and intents."""

    def draw(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        environment.check_split(split)
        return draw_made(environment, domain, split, count, seed, start)

    return draw


def draw_made(
    environment: Environment, domain: DomainConfig, split: str, count: int, seed: int, start: int
) -> Sequence[Task]:
    """Tasks that a function makes without end.

    Where only some intents are wanted, a draw looks for them in a stretch of its own, so that draws with another
    ``start`` have other tasks.
    """
    if not domain.intents:
        return environment.make_tasks(split, count, size=domain.size, seed=seed, start=start)
    stretch = environment.iter_tasks(split, size=domain.size, seed=seed, start=start * TRIES_PER_TASK)
    candidates = islice(stretch, count * TRIES_PER_TASK)
    matching = list(islice((t for t in candidates if t.tags.get("intent") in domain.intents), count))
    if len(matching) < count:
        raise ConfigError(f"domain.intents: {', '.join(domain.intents)} occurs too seldom at size {domain.size}")
    return matching


def by_database(draw: Draw) -> Draw:
    """The same draws, but that training tasks are rewarded by the state of the world alone: what they also demand of
    words or calls is left out, as MUA-RL does. ConfigError for a task that demands nothing else."""

    def drawn(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        tasks = draw(split, count, seed, start)
        return [_by_state(task) for task in tasks] if split == "train" else tasks

    return drawn


def _by_state(task: Task) -> Task:
    basis = tuple(name for name in task.reward_basis if name in STATE)
    if not basis:
        raise ConfigError(
            f"rl.reward_basis is database, and task {task.id} is rewarded by {', '.join(task.reward_basis)} alone: set "
            "rl.reward_basis=task"
        )
    return task if basis == task.reward_basis else replace(task, reward_basis=basis)


def with_red_team(environment: Environment, domain: DomainConfig, ordinary: Draw) -> Draw:
    """The same draws, but that a share of the training tasks gives way to red-team tasks. Which ones, and what kind
    each is of, follows from seed and index. ConfigError for an environment without such tasks."""
    from muarl.users.redteam.tasks import make_red_team_task

    source = environment.red_team_source("domain.red_team_share")

    def draw(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        tasks = list(ordinary(split, count, seed, start))
        for n in range(len(tasks) if split == "train" else 0):
            rng = random.Random(f"red-team share {seed} {start + n}")
            if rng.random() < domain.red_team_share:
                kind = rng.choice(source.support.kinds)
                tasks[n] = make_red_team_task(source, kind, start + n, split=split, size=domain.size, seed=seed)
        return tasks

    return draw


@lru_cache(maxsize=4)
def known_intents(environment: Environment, size: str, intents: tuple[str, ...] = ()) -> frozenset[str]:
    """The intents that an environment's training tasks of a size have: those that it declares, or else those of tasks
    that are made to see; no others are looked for once all of ``intents`` were seen."""
    if (declared := environment.declared_intents(size)) is not None:
        return frozenset(declared)
    seen, quiet = set[str](), 0
    for task in islice(environment.iter_tasks("train", size=size), TRIES_PER_TASK):
        quiet += 1
        if "intent" in task.tags and (name := str(task.tags["intent"])) not in seen:
            seen.add(name)
            quiet = 0
        if (environment.endless and quiet >= QUIET) or (intents and seen.issuperset(intents)):
            break
    return frozenset(seen)


def check_intents(environment: Environment, domain: DomainConfig) -> None:
    """ConfigError for an intent that no task of the environment has, with those that there are."""
    if not domain.intents:
        return
    intents = known_intents(environment, domain.size, domain.intents)
    for intent in domain.intents:
        if intent not in intents:
            raise ConfigError(f"domain.intents: there is no intent {intent!r}; known: {', '.join(sorted(intents))}")


def check_makes(environment: Environment) -> None:
    """ConfigError, with what to do instead, for an environment that makes no tasks."""
    if environment.is_benchmark:
        hint = f"; its kind of task is made by {environment.practice}" if environment.practice else ""
        raise ConfigError(f"{environment.name} is a benchmark, whose tasks are fixed: no new ones can be made{hint}")
    if not environment.endless:
        raise ConfigError(
            f"the tasks of {environment.name} are a fixed set, so no new ones can be made: give it a function that "
            "makes tasks (docs/domains.md), or train with rl.practice.adaptive=true, which plays more of what fails"
        )


def made_again(environment: Environment, size: str, address: TaskAddress) -> Task:
    """The task that a file has at an address, for a run in ``environment`` at ``size``. DataError if it is of another
    environment, size or split, or if the environment makes no tasks."""
    if address.environment != environment.name:
        raise DataError(f"its task is made by {address.environment}, and the run is in {environment.name}")
    if environment.sizes and (own := address.size or environment.sizes[0]) != size:
        raise DataError(f"its task is of size {own}, and domain.size is {size}")
    if address.split != PRACTISED:
        raise DataError(f"its task is of the split {address.split}, and only those of {PRACTISED} are trained on")
    try:
        check_makes(environment)
        made = environment.iter_tasks(PRACTISED, size=address.size, seed=address.seed, start=address.index)
    except ConfigError as problem:
        raise DataError(str(problem)) from None
    return next(made)
