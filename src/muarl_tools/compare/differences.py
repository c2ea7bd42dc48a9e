"""Two runs' outcomes at the same tasks: how much one is ahead, and whether chance explains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

from muarl.accounts.statistics import Interval
from muarl.basics.errors import ConfigError
from muarl_tools.compare.intervals import paired_bootstrap, same_tasks_interval
from muarl_tools.compare.significance import holm, mcnemar, sign_flip, stratified

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
