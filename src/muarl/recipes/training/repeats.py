"""Tasks that are played again in later steps, because their rollouts did not all succeed (``rl.practice.repeat``).

Where tasks are drawn anew for every step, most groups of a policy that does well are all correct and teach nothing. A
task that some rollouts failed is likely to have differing rewards again (prioritized level replay: Jiang, Grefenstette,
Rocktäschel 2021, arXiv 2010.03934). So a step takes a share of its tasks from those that were played before: first
those whose share of successes came closest to a half when they were played last, then those that always failed. A task
that all rollouts solve is not played again, nor one that has been played ``rl.practice.max_repeats`` more times.

A checkpoint says where each of these tasks was drawn, and a resumed run draws them once more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from muarl.basics.errors import DataError
from muarl.domains.tasks import Task
from muarl.environments.places import Places

REPEATS = "repeats"
"""Where a checkpoint has them."""
REMEMBERED = 1000
"""Tasks that are remembered at most; the oldest are forgotten first."""


class DrawPosition(NamedTuple):
    """Where a task was drawn: the one with number ``offset`` among the ``size`` training tasks from ``start``."""

    size: int
    start: int
    offset: int


@dataclass(frozen=True, slots=True)
class UnsolvedTask:
    """A task that some rollouts failed."""

    task: Task
    position: DrawPosition
    success: float
    """The share of successes when it was played last."""
    times: int
    """How often it has been played."""


class Repeats:
    """Which tasks are played again. ``most``: how often one is, at most. ``tasks``: by id, those remembered."""

    def __init__(self, most: int, tasks: Mapping[str, UnsolvedTask] | None = None) -> None:
        self._most = most
        self._tasks = dict(tasks or {})

    def choose(self, count: int, drawn: Collection[str] = ()) -> list[UnsolvedTask]:
        """At most ``count`` of the remembered tasks, the most useful first. ``drawn``: ids of tasks that are among the
        new ones anyway, as in a fixed set."""
        able = (one for name, one in self._tasks.items() if name not in drawn)
        return sorted(able, key=lambda t: (t.success == 0, abs(t.success - 0.5), t.task.id))[:count]

    def note(self, played: Mapping[str, tuple[Task, DrawPosition]], successes: Mapping[str, float]) -> None:
        """A step's tasks by id, and the share of successes of each that has scored episodes."""
        for name, (task, position) in played.items():
            before = self._tasks.pop(name, None)
            if name not in successes:  # infrastructure failed: it is as if it had not been played
                if before is not None:
                    self._tasks[name] = before
                continue
            times = 1 if before is None else before.times + 1
            if successes[name] < 1 and times <= self._most:
                self._tasks[name] = UnsolvedTask(task, position, successes[name], times)
        for name in [*self._tasks][: max(0, len(self._tasks) - REMEMBERED)]:
            del self._tasks[name]

    def state(self) -> list[list[Any]]:
        """As JSON values."""
        return [[*t.position, t.success, t.times] for t in self._tasks.values()]

    @classmethod
    def from_state(cls, most: int, state: Any, places: Places, seed: int) -> Repeats:
        """The inverse of ``state``. ``seed``: of the training tasks. DataError for anything else."""
        positions: dict[DrawPosition, tuple[float, int]] = {}
        try:
            for count, start, offset, success, times in state:
                positions[DrawPosition(int(count), int(start), int(offset))] = float(success), int(times)
        except (TypeError, ValueError) as problem:
            raise DataError(f"the checkpoint's {REPEATS!r} does not say which tasks to play again: {problem}") from None
        drawn: dict[tuple[int, int], Sequence[Task]] = {}
        unsolved: dict[str, UnsolvedTask] = {}
        for position, (success, times) in positions.items():
            draw = (position.size, position.start)
            if draw not in drawn:
                drawn[draw] = places.draw("train", position.size, seed, position.start)
            if not 0 <= position.offset < len(drawn[draw]):
                raise DataError(
                    f"the checkpoint's {REPEATS!r} names a task that is not drawn any more: are the training tasks the "
                    "ones that the run began with?"
                )
            task = drawn[draw][position.offset]
            unsolved[task.id] = UnsolvedTask(task, position, success, times)
        return cls(most, unsolved)
