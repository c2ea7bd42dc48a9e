"""Tests of a difference between paired results, exact where the numbers allow it.

``sign_flip``: under the hypothesis that two agents do equally well on every task, each task's difference could as well
have had the other sign. With one trial a task it is McNemar's exact test. ``stratified``: under the same hypothesis a
task's successes could have fallen on any of its trials (the exact form of the Cochran-Mantel-Haenszel test); it asks
about these very tasks. The correction for many pairs is ``muarl.accounts.strata.holm``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import comb, lcm, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

LARGEST = 100_000
"""Steps of the exact distribution at most; beyond, signs are drawn at random."""
DRAWS = 100_000
_CLOSE = 1e-9

Floats = NDArray[np.float64]


def mcnemar(only_first: int, only_second: int) -> float:
    """The two-sided p-value of McNemar's exact test: how many tasks only the first solved, and only the second."""
    n = only_first + only_second
    if n == 0:
        return 1.0
    tail = sum(comb(n, i) for i in range(min(only_first, only_second) + 1))
    return min(1.0, float(Fraction(2 * tail, 2**n)))


def sign_flip(differences: Sequence[Fraction], *, seed: int = 0) -> float:
    """The two-sided p-value of the sign-flip test of a sum of differences, one a task; see ``sign_flip_counts``."""
    scale = lcm(*(d.denominator for d in differences)) if differences else 1
    return sign_flip_counts([int(d * scale) for d in differences], seed=seed)


def sign_flip_counts(differences: Sequence[int], *, seed: int = 0) -> float:
    """The same of whole numbers, such as differences in successes where all tasks have as many trials.

    Exact by convolution up to ``LARGEST`` possible sums; else from ``DRAWS`` random signs, of which the observed ones
    count as one, so that it is never too small.
    """
    sizes = [d for d in differences if d]
    if not sizes:
        return 1.0
    observed, whole = abs(sum(sizes)), sum(map(abs, sizes))
    if whole <= LARGEST:
        return _tail(_sums([np.array([0.5, *[0.0] * (2 * abs(s) - 1), 0.5]) for s in sizes]), -whole, observed)
    random, values = np.random.default_rng(seed), np.array(sizes, dtype=np.float64)
    beyond = 0
    for _ in range(DRAWS // 1000):
        signs = 2.0 * random.integers(0, 2, size=(1000, len(sizes)), dtype=np.int8) - 1.0
        beyond += int((np.abs(signs @ values) >= observed * (1 - _CLOSE)).sum())
    return (beyond + 1) / (DRAWS + 1)


def stratified(counts: Sequence[tuple[int, int, int, int]]) -> float:
    """The two-sided p-value of the exact test within tasks, about the mean over tasks.

    ``counts``: of each task the first's successes and trials, and the second's. A task whose numbers of trials differ
    between tasks is weighted as in the mean over tasks, so the sums are exact for the estimate that is reported.
    """
    scale = lcm(*(t for _, n, _, m in counts for t in (n, m))) if counts else 1
    parts, low, observed = [], 0, 0
    for first, n, second, m in counts:
        total = first + second
        # The first's successes are hypergeometric; difference of shares = k/n - (total-k)/m.
        ks = range(max(0, total - m), min(n, total) + 1)
        step = scale // n + scale // m
        start = ks[0] * (scale // n) - (total - ks[0]) * (scale // m)
        weights = np.zeros(step * (len(ks) - 1) + 1)
        for i, k in enumerate(ks):
            weights[i * step] = comb(n, k) * comb(m, total - k) / comb(n + m, total)
        parts.append(weights)
        low += start
        observed += first * (scale // n) - second * (scale // m)
    if sum(len(p) for p in parts) > LARGEST:
        return _normal_stratified(counts)
    return _tail(_sums(parts), low, abs(observed)) if parts else 1.0


def _normal_stratified(counts: Sequence[tuple[int, int, int, int]]) -> float:
    """The same by the normal approximation, for more sums than can be counted."""
    gap, variance = 0.0, 0.0
    for first, n, second, m in counts:
        total, size = first + second, n + m
        gap += first / n - second / m
        spread = n * m * total * (size - total) / (size * size * max(size - 1, 1))
        variance += spread * (1 / n + 1 / m) ** 2
    return 1.0 if variance == 0 else 2 * NormalDist().cdf(-abs(gap) / sqrt(variance))


def _sums(parts: Sequence[Floats]) -> Floats:
    """The distribution of a sum of independent parts, each the weights of values one apart."""
    whole = np.ones(1)
    for part in parts:
        longer = np.zeros(len(whole) + len(part) - 1)
        for place in np.flatnonzero(part):
            longer[place : place + len(whole)] += part[place] * whole
        whole = longer
    return whole


def _tail(weights: Floats, low: int, observed: int) -> float:
    """The probability of values at least as far from 0 as ``observed``; the first weight is of the value ``low``."""
    values = np.arange(low, low + len(weights))
    return float(min(1.0, weights[np.abs(values) >= observed].sum()))


@cache
def t_quantile(p: float, freedom: int) -> float:
    """The quantile of Student's t distribution, for p in (0.5, 1)."""
    from mpmath import betainc  # type: ignore[import-untyped]

    if not 0.5 < p < 1 or freedom < 1:
        raise ValueError(f"no quantile of t for p={p} and {freedom} degrees of freedom")

    def beyond(t: float) -> float:
        x = freedom / (freedom + t * t)
        return float(betainc(freedom / 2, 0.5, 0, x, regularized=True)) / 2

    low, high = 0.0, 1.0
    while beyond(high) > 1 - p:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 1 - p else (low, middle)
    return (low + high) / 2
