"""One table for results of any kind: who tried which task, how often, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muarl.errors import DataError


@dataclass(frozen=True, slots=True)
class PlayedTask:
    """One scored attempt at a task.

    ``trial``: its number among the task's, from 0. ``seed``: of the agent (or of both sides, where they share one),
    None where the file does not tell. ``user_seed``: of the user, where it was set apart from the agent's.
    ``repeat``: the number among attempts of the same seeds. ``clean``: whether it was a success without any violation,
    None where the file has no audit of it.
    """

    task: str
    trial: int
    success: bool
    seed: int | None = None
    user_seed: int | None = None
    repeat: int = 0
    clean: bool | None = None

    @property
    def key(self) -> tuple[int | None, int | None, int]:
        """What an attempt of another run must share to be its partner."""
        return self.seed, self.user_seed, self.repeat


@dataclass(frozen=True, slots=True)
class Excluded:
    """An attempt that no score may count: ``why`` says what failed outside the agent."""

    task: str
    trial: int
    why: str
    seed: int | None = None
    user_seed: int | None = None
    repeat: int = 0

    @property
    def key(self) -> tuple[int | None, int | None, int]:
        """See ``PlayedTask.key``."""
        return self.seed, self.user_seed, self.repeat


@dataclass(frozen=True)
class Results:
    """One run's attempts, whatever program made them.

    ``kind``: of file, such as "run" or "tau2". ``fingerprints``: task id to a digest of what the file says of the task;
    only those of one kind compare. ``do_nothing``: success of doing nothing on the run's tasks, None where unknown.
    """

    name: str
    path: str
    kind: str
    attempts: tuple[PlayedTask, ...]
    excluded: tuple[Excluded, ...] = ()
    domain: str | None = None
    agent: str | None = None
    user: str | None = None
    judge: str | None = None
    do_nothing: float | None = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def by_task(self) -> dict[str, list[PlayedTask]]:
        """Task id to its scored attempts, tasks in the order of the file."""
        found: dict[str, list[PlayedTask]] = {}
        for attempt in self.attempts:
            found.setdefault(attempt.task, []).append(attempt)
        return found

    @property
    def tasks(self) -> set[str]:
        """The tasks with a scored attempt."""
        return {a.task for a in self.attempts}


def numbered(attempts: list[tuple[str, int | None]], place: str) -> list[int]:
    """Trial numbers of (task, number or None): as given, else counted by task. DataError where only some are given."""
    given = [number for _, number in attempts]
    if all(number is not None for number in given):
        return [int(number or 0) for number in given]
    if any(number is not None for number in given):
        raise DataError(f"{place}: some attempts have a trial number and some have none")
    counts: dict[str, int] = {}
    out = []
    for task, _ in attempts:
        out.append(counts.get(task, 0))
        counts[task] = out[-1] + 1
    return out
