"""Shares and means with their 95% intervals: Wilson's, and those that draw whole tasks with replacement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import Any

import numpy as np

Z95 = 1.959963984540054
"""How many standard errors on either side of a normal mean hold 95%."""
RESAMPLES = 2000
"""Drawings of a bootstrap."""

Interval = tuple[float, float]
"""The lower and the upper end."""


def wilson(successes: float, n: int, z: float = Z95) -> Interval:
    """Wilson's score interval for a proportion of n independent trials; (0, 1) where n is 0."""
    if n <= 0:
        return 0.0, 1.0
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def cluster_bootstrap(values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """95% percentile interval of the mean of per-task values, drawing whole tasks with replacement; a fixed seed.

    Where all values are equal, resampling cannot show any uncertainty; for values in [0, 1] Wilson's interval with the
    tasks as trials is given then, which is honest about few tasks.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        return 0.0, 1.0
    if np.ptp(data) == 0.0:
        return wilson(float(data.sum()), data.size)
    drawn = np.random.default_rng(seed).integers(0, data.size, size=(resamples, data.size))
    low, high = np.percentile(data[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def mean_interval(values: Sequence[float], *, seed: int = 0) -> Interval:
    """The 95% interval of the mean of per-task values in [0, 1].

    Wilson's with the tasks as trials where every value is 0 or 1, else ``cluster_bootstrap``. One figure has one
    interval so, whichever name it goes by: success and pass^1 of one trial a task are the same mean.
    """
    if all(value in (0.0, 1.0) for value in values):
        return wilson(sum(values), len(values))
    return cluster_bootstrap(values, seed=seed)


@dataclass(frozen=True)
class Estimate:
    """A share with its 95% interval."""

    value: float
    interval: Interval
    n: int
    """Tasks (pass^k) or episodes that stand behind it."""

    def to_json(self) -> dict[str, Any]:
        """``{"value", "interval": [low, high], "n"}``."""
        return {"value": self.value, "interval": list(self.interval), "n": self.n}


def share_of(tasks: Iterable[Sequence[float]]) -> Estimate:
    """The share of attempts of which something holds, from whether it does of each attempt at each task, or how far
    (0 to 1). The interval: see ``success_rate``."""
    tried = [t for t in tasks if t]
    outcomes = [o for t in tried for o in t]
    if not outcomes:
        return Estimate(0.0, (0.0, 1.0), 0)
    value = fmean(outcomes)
    if len({len(t) for t in tried}) == 1:
        return Estimate(value, mean_interval([fmean(t) for t in tried]), len(outcomes))
    return Estimate(value, _ratio_bootstrap(tried), len(outcomes))


def _ratio_bootstrap(tasks: Sequence[Sequence[float]], seed: int = 0) -> Interval:
    """The interval of successes over attempts where tasks have different numbers of attempts."""
    right = np.array([sum(t) for t in tasks], dtype=np.float64)
    tried = np.array([len(t) for t in tasks], dtype=np.float64)
    if right.sum() in (0.0, tried.sum()):
        return wilson(len(tasks) if right.sum() else 0, len(tasks))
    drawn = np.random.default_rng(seed).integers(0, len(tasks), size=(RESAMPLES, len(tasks)))
    low, high = np.percentile(right[drawn].sum(axis=1) / tried[drawn].sum(axis=1), [2.5, 97.5])
    return float(low), float(high)
