"""New tasks of the kinds that an agent failed at: failures by kind, how many tasks each kind gets, and those tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from muarl.accounts.metrics import DOMAIN, is_success, scored
from muarl.basics.errors import ConfigError, DataError
from muarl.domains.base import Task
from muarl.domains.task_kinds import Kind, kind_of
from muarl.environments.environment import Environment
from muarl.environments.task_addresses import TaskAddress
from muarl.environments.task_files import FiledTask
from muarl.types.episode import Episode

LOOKED_AT = 50
"""Tasks that are looked at for each one that is wanted: a kind that is rarer gets fewer than it should."""
SPLIT = "train"
"""What the tasks are of: never of the splits that evaluations are held on."""


@dataclass(frozen=True, slots=True)
class Record:
    """How a kind of task went: ``episodes`` that were scored, and of these the ``failed`` ones."""

    episodes: int
    failed: int


def record_by_kind(episodes: Iterable[Episode]) -> dict[Kind, Record]:
    """How each kind of task went. Episodes that infrastructure ended, red-team tasks, and those that do not say of
    which kind they are, are left out. A kind says no domain here: the episodes are of one."""
    played: Counter[Kind] = Counter()
    failed: Counter[Kind] = Counter()
    for episode in scored(e for e in episodes if e.tags.get("redteam") is None):
        kind = kind_of({name: value for name, value in episode.tags.items() if name != DOMAIN})
        if kind is not None:
            played[kind] += 1
            failed[kind] += not is_success(episode.reward)
    return {kind: Record(count, failed[kind]) for kind, count in sorted(played.items())}


def quotas(record: Mapping[Kind, Record], count: int, floor: float) -> dict[Kind, int]:
    """How many of ``count`` tasks each kind that failed gets: of the part ``floor`` each the same, of the rest in
    proportion to its failures. They sum to ``count``."""
    failed = {kind: found.failed for kind, found in record.items() if found.failed}
    whole = sum(failed.values())
    exact = {kind: count * (floor / len(failed) + (1 - floor) * n / whole) for kind, n in failed.items()}
    out = {kind: int(share) for kind, share in exact.items()}
    left = count - sum(out.values())
    for kind in sorted(exact, key=lambda kind: (out[kind] - exact[kind], kind))[:left]:
        out[kind] += 1
    return out


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


def make_tasks(
    environment: Environment,
    wanted: Mapping[Kind, int],
    *,
    size: str | None,
    seed: int,
    known: Collection[str] = (),
) -> list[Task]:
    """New training tasks, as many of each kind as are ``wanted``, or fewer where too few turn up; in the order of
    their numbers. ``known``: ids that are left out. ConfigError where the environment makes none."""
    check_makes(environment)
    left = dict(wanted)
    found: list[Task] = []
    everything = environment.iter_tasks(SPLIT, size=size, seed=seed)
    for task in islice(everything, LOOKED_AT * sum(wanted.values())):
        kind = kind_of(task.tags)
        if kind is not None and left.get(kind, 0) > 0 and task.id not in known:
            left[kind] -= 1
            found.append(task)
        if not any(left.values()):
            break
    return found


def filed(task: Task, source: str) -> FiledTask:
    """A made task as a task file holds it: with its address, by which it is made again. Nobody needs to confirm its
    goal, which its generator knows. ``source``: where the failures were seen."""
    return FiledTask(task, confirmed=True, source=source, made=str(task.origin.address))


def made_again(environment: Environment, size: str, address: TaskAddress) -> Task:
    """The task that a file has at an address, for a run in ``environment`` at ``size``. DataError if it is of another
    environment, size or split, or if the environment makes no tasks."""
    if address.environment != environment.name:
        raise DataError(f"its task is made by {address.environment}, and the run is in {environment.name}")
    if environment.sizes and (own := address.size or environment.sizes[0]) != size:
        raise DataError(f"its task is of size {own}, and domain.size is {size}")
    if address.split != SPLIT:
        raise DataError(f"its task is of the split {address.split}, and only those of {SPLIT} are trained on")
    try:
        check_makes(environment)
        made = environment.iter_tasks(SPLIT, size=address.size, seed=address.seed, start=address.index)
    except ConfigError as problem:
        raise DataError(str(problem)) from None
    return next(made)
