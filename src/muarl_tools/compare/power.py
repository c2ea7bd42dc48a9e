"""How much more must be played before a difference of so many points would be seen.

The variance of the mean difference over n tasks with m trials on each side is

    on these very tasks:    w / (n m)
    on tasks like these:    (b + w / m) / n

with w the variance of a difference of single trials within a task and b that of the tasks' true differences. A
two-sided test at level alpha finds a true difference d with the wanted power if (z(1 - alpha/2) + z(power))^2 times
that variance is at most d^2. Both are estimated from the data; with one trial a task, b and w cannot be told apart.
Where nothing varied, few outcomes hide how much it does, and what follows from a variance of 0 is not said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist, fmean, variance
from typing import Any

from muarl_tools.compare.components import TASK, Components

MOST = 100_000
"""Trials or tasks beyond which the answer is "more than anybody plays"."""


@dataclass(frozen=True)
class DifferenceVariance:
    """``within``: of a difference of single trials of one task (None with one trial a task). ``between``: of the true
    differences of tasks (None with a single task). ``total``: of a task's mean difference as it was measured.
    ``trials``: that it was measured with (the harmonic mean of those of both sides)."""

    within: float | None
    between: float | None
    total: float
    trials: float
    tasks: int


@dataclass(frozen=True)
class SampleSizes:
    """``trials_same_tasks``: trials a task to see the difference on these very tasks. ``trials``: the same on tasks
    like these; None if no number is enough with so few tasks (``hopeless``) or if it is unknown. ``tasks``: tasks like
    these with the trials that there are. ``smallest``: the difference that the data at hand would show, on tasks like
    these, and ``smallest_same_tasks`` on these. ``alike``: whether the difference is the same on
    every task, ``trials_alike``: whether it is the same in all trials of each; what would follow is then None."""

    difference: float
    power: float
    alpha: float
    trials_same_tasks: int | None
    trials: int | None
    hopeless: bool
    tasks: int | None
    smallest: float | None
    smallest_same_tasks: float | None
    alike: bool = False
    trials_alike: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def difference_variance(
    first: Sequence[Sequence[bool]], second: Sequence[Sequence[bool]], *, seeded: bool
) -> DifferenceVariance:
    """From two runs' outcomes of the same tasks in the same order. ``seeded``: trial i of one belongs to trial i of the
    other, so that what they share does not count as noise."""
    gaps = [fmean(a) - fmean(b) for a, b in zip(first, second, strict=True)]
    total = variance(gaps) if len(gaps) > 1 else 0.0
    sizes = [(len(a), len(b)) for a, b in zip(first, second, strict=True)]
    trials = len(sizes) / sum((1 / n + 1 / m) / 2 for n, m in sizes)
    if any(min(pair) < 2 for pair in sizes):
        return DifferenceVariance(None, None, total, trials, len(gaps))
    if seeded:
        spread = [
            variance([float(x) - float(y) for x, y in zip(a, b, strict=True)])
            for a, b in zip(first, second, strict=True)
        ]
        noise = fmean(s / n for s, (n, _) in zip(spread, sizes, strict=True))
        within = fmean(spread)
    else:
        left = [variance(map(float, a)) for a in first]
        right = [variance(map(float, b)) for b in second]
        noise = fmean(x / n + y / m for x, y, (n, m) in zip(left, right, sizes, strict=True))
        within = fmean(left) + fmean(right)
    between = max(0.0, total - noise) if len(gaps) > 1 else None
    return DifferenceVariance(within, between, total, trials, len(gaps))


def single_variance(trials: Sequence[Sequence[bool]]) -> DifferenceVariance | None:
    """As if a second agent with as much noise were compared; what tasks would add is unknown. None with one trial."""
    if any(len(t) < 2 for t in trials) or not trials:
        return None
    within = 2 * fmean(variance(map(float, t)) for t in trials)
    count = len(trials) / sum(1 / len(t) for t in trials)
    return DifferenceVariance(within, None, within / count, count, len(trials))


def grid_variance(found: Components) -> DifferenceVariance:
    """The same from a grid of seeds, whose attempts are no independent trials: by its components."""
    within = 2 * sum(max(0.0, part.variance) for part in found.parts if part.name != TASK)
    return DifferenceVariance(within, None, within, 1.0, found.tasks)


def needed(spread: DifferenceVariance, difference: float, *, alpha: float = 0.05, power: float = 0.8) -> SampleSizes:
    """What a difference (a share, such as 0.03) needs. ``alpha``: after the correction that the test will have."""
    if not 0 < difference <= 1 or not 0 < alpha < 1 or not 0 < power < 1:
        raise ValueError("difference must be in (0, 1], alpha and power in (0, 1)")
    normal = NormalDist()
    reach = (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) ** 2
    n, allowed = spread.tasks, difference**2 / reach
    same = trials = tasks = None
    hopeless, smallest, smallest_same = False, None, None
    alike, trials_alike = spread.total == 0 and not spread.within, spread.within == 0
    if spread.within:
        same = _whole(spread.within / (n * allowed))
        smallest_same = sqrt(reach * spread.within / (n * spread.trials))
    if spread.between is not None and spread.within is not None:
        left = n * allowed - spread.between
        hopeless = left <= 0
        trials = None if hopeless or trials_alike else _whole(spread.within / left)
    if not alike and (spread.between is not None or spread.within is None):
        measured = spread.total if spread.within is None else (spread.between or 0.0) + spread.within / spread.trials
        tasks = _whole(measured / allowed)
        smallest = sqrt(reach * measured / n)
    return SampleSizes(
        difference, power, alpha, same, trials, hopeless, tasks, smallest, smallest_same, alike, trials_alike
    )


def _whole(value: float) -> int | None:
    return None if value > MOST else max(1, ceil(value - 1e-9))
