"""Intervals of a difference between paired results: over tasks like these (bootstrap), or on these very tasks."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, fmean, variance

import numpy as np

from muarl.accounts.statistics import RESAMPLES, Interval
from muarl_tools.compare.significance import t_quantile


def expanded_levels(n: int, level: float = 0.95) -> tuple[float, float]:
    """The percentiles of a bootstrap distribution of a mean of n values that make an interval of this level.

    The bootstrap's spread is too small by sqrt((n-1)/n), and its tails are normal where those of a small sample are
    Student's; both are undone by taking percentiles further out (Hesterberg 2015, "expanded percentile interval").
    """
    z = t_quantile((1 + level) / 2, n - 1) * sqrt(n / (n - 1))
    tail = NormalDist().cdf(-z)
    return 100 * tail, 100 * (1 - tail)


def paired_bootstrap(
    differences: Sequence[float], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The interval of the mean of per-task differences in [-1, 1], drawing whole tasks with replacement.

    Trials of a task stay together, so that they count as one. Where all differences are the same, resampling shows no
    uncertainty: then the share of tasks that may differ, as none of n did, is bounded exactly.
    """
    data = np.asarray(differences, dtype=np.float64)
    if data.size == 0:
        return -1.0, 1.0
    if np.ptp(data) <= 1e-12 or data.size < 2:
        centre = float(data[0])
        reach = (1 - (1 - level) ** (1 / data.size)) * (1 + abs(centre))
        return max(-1.0, centre - reach), min(1.0, centre + reach)
    drawn = np.random.default_rng(seed).integers(0, data.size, size=(resamples, data.size))
    low, high = np.percentile(data[drawn].mean(axis=1), expanded_levels(data.size, level))
    return max(-1.0, float(low)), min(1.0, float(high))


def same_tasks_interval(
    first: Sequence[Sequence[bool]], second: Sequence[Sequence[bool]], *, level: float = 0.95
) -> Interval | None:
    """The interval of the difference on these very tasks, from the trials' variance alone; None where a task has fewer
    than two trials on a side, which tells nothing of it."""
    if any(len(t) < 2 for t in (*first, *second)) or not first:
        return None
    gap = fmean(map(fmean, first)) - fmean(map(fmean, second))
    error = sqrt(sum(variance(map(float, t)) / len(t) for t in (*first, *second))) / len(first)
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    if reach == 0:  # no trial differs from another of its task
        reach = 1 - (1 - level) ** (1 / sum(map(len, (*first, *second))))
    return max(-1.0, gap - reach), min(1.0, gap + reach)
