"""New tasks of the kinds that an agent failed at: failures by kind, how many tasks each kind gets, and those tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from muarl.accounts.metrics import DOMAIN, is_success, scored
from muarl.domains.tasks import Kind, Task, kind_of
from muarl.environments.environment import Environment
from muarl.environments.task_draws import PRACTISED, check_makes
from muarl.environments.task_files import FiledTask
from muarl.types.episode import Episode

LOOKED_AT = 50
"""Tasks that are looked at for each one that is wanted: a kind that is rarer gets fewer than it should."""


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
    everything = environment.iter_tasks(PRACTISED, size=size, seed=seed)
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
