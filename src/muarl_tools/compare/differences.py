"""Two runs' outcomes at the same tasks: how much one is ahead, and whether chance explains it; with intervals over
tasks like these (bootstrap), or on these very tasks. And which of several runs can be told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import sqrt
from statistics import NormalDist, fmean, variance
from typing import Any

import numpy as np

from muarl.accounts.intervals import RESAMPLES, Interval
from muarl.accounts.strata import holm
from muarl.basics.errors import ConfigError
from muarl_tools.compare.significance import mcnemar, sign_flip, stratified, t_quantile


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


MCNEMAR, SIGN_FLIP, STRATIFIED = "McNemar, exact", "sign flips of tasks", "exact within tasks"

Trials = Sequence[Sequence[bool]]
"""Of each task, whether each attempt at it was good."""


@dataclass(frozen=True, kw_only=True)
class PairedDifference:
    """How much the run ``first`` is ahead of the run ``second``, as a share, with the 95% interval of this pair alone.

    ``adjusted``: the p-value after Holm's correction for all pairs. ``better``: the index of the run that is, None if
    they cannot be told apart. ``first_ahead`` and ``second_ahead``: tasks, of ``tasks``, on which one has the larger
    share.
    """

    first: int
    second: int
    difference: float
    interval: Interval
    test: str
    p: float
    adjusted: float
    better: int | None
    first_ahead: int
    second_ahead: int
    tasks: int

    @property
    def worse(self) -> int | None:
        """The index of the run that is worse, None if they cannot be told apart."""
        return None if self.better is None else self.first + self.second - self.better

    @property
    def at_odds(self) -> bool:
        """Whether the interval leaves 0 out and the test, which decides, does not reject that it is 0."""
        low, high = self.interval
        return self.better is None and self.p == self.adjusted and not low <= 0 <= high

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Plain JSON, runs by name."""
        return {
            "difference": self.difference,
            "interval": list(self.interval),
            "test": self.test,
            "p": self.p,
            "p_holm": self.adjusted,
            "better": None if self.better is None else names[self.better],
            "tasks_first_ahead": self.first_ahead,
            "tasks_second_ahead": self.second_ahead,
        }


def difference_of(first: int, second: int, one: Trials, other: Trials, *, these_tasks: bool) -> PairedDifference:
    """The difference of two runs, not corrected for others and not yet decided. ``these_tasks``: ask about these very
    tasks. ConfigError if that is asked with a single trial a task."""
    gaps = [_share(a) - _share(b) for a, b in zip(one, other, strict=True)]
    if these_tasks:
        interval = same_tasks_interval(one, other)
        if interval is None:
            raise ConfigError(
                "--these-tasks: the noise of trials is known only where every task has at least two in each run; "
                "leave the option out, or evaluate with --trials 2 or more"
            )
        test, p = STRATIFIED, stratified([(sum(a), len(a), sum(b), len(b)) for a, b in zip(one, other, strict=True)])
    else:
        interval = paired_bootstrap([float(g) for g in gaps])
        if all(len(t) == 1 for t in (*one, *other)):
            test, p = MCNEMAR, mcnemar(sum(g > 0 for g in gaps), sum(g < 0 for g in gaps))
        else:
            test, p = SIGN_FLIP, sign_flip(gaps)
    return PairedDifference(
        first=first,
        second=second,
        difference=float(sum(gaps) / len(gaps)),
        interval=interval,
        test=test,
        p=p,
        adjusted=p,
        better=None,
        first_ahead=sum(g > 0 for g in gaps),
        second_ahead=sum(g < 0 for g in gaps),
        tasks=len(gaps),
    )


def decided(found: Sequence[PairedDifference], alpha: float) -> list[PairedDifference]:
    """The same with p-values corrected for all of them, and which run is better."""
    out = []
    for one, q in zip(found, holm([d.p for d in found]), strict=True):
        ahead = one.first if one.difference > 0 else one.second
        out.append(replace(one, adjusted=q, better=ahead if q <= alpha and one.difference else None))
    return out


def clean_differences(
    outcomes: Sequence[Mapping[str, Sequence[bool]]], order: Sequence[int], *, these_tasks: bool, alpha: float
) -> dict[tuple[int, int], PairedDifference]:
    """The differences in success without any violation, by pair (the run that comes first in ``order`` first), each on
    the tasks where both were checked; pairs that share none are left out. ``outcomes``: of each run, by task."""
    found = {}
    for first, second in combinations(order, 2):
        one, other = outcomes[first], outcomes[second]
        if shared := [task for task in one if task in other]:
            trials = [one[task] for task in shared], [other[task] for task in shared]
            found[first, second] = difference_of(first, second, *trials, these_tasks=these_tasks)
    return dict(zip(found, decided(list(found.values()), alpha), strict=True))


def _share(trials: Sequence[bool]) -> Fraction:
    return Fraction(sum(trials), len(trials))


def indistinct_groups(count: int, apart: Set[tuple[int, int]]) -> list[tuple[int, ...]]:
    """The largest sets of runs of which no two can be told apart, by the run of the lowest number in them.

    ``apart``: pairs (i, j), i < j, that can be. A run that can be told from all others is a set of its own. Runs may be
    in several sets: A beside B and B beside C does not make A the same as C.
    """
    near = {i: {j for j in range(count) if j != i and (min(i, j), max(i, j)) not in apart} for i in range(count)}

    def cliques(chosen: set[int], left: set[int], done: set[int]) -> Iterator[tuple[int, ...]]:
        if not left and not done:
            yield tuple(sorted(chosen))
            return
        pivot = max(left | done, key=lambda v: len(near[v] & left))
        for v in sorted(left - near[pivot]):
            yield from cliques(chosen | {v}, left & near[v], done & near[v])
            left = left - {v}
            done = done | {v}

    return sorted(cliques(set(), set(range(count)), set()))


def rank_range(run: int, better: Set[tuple[int, int]], count: int) -> tuple[int, int]:
    """The best and the worst place that a run may have. ``better``: pairs (winner, loser) that can be told apart."""
    beaten_by = sum((other, run) in better for other in range(count))
    beats = sum((run, other) in better for other in range(count))
    return 1 + beaten_by, count - beats
