"""What published figures alone tell of their noise: pass^1 and pass^2 of a number of tasks, without any conversation.

With c of m trials of a task solved, (c/m)^2 = c/m^2 + C(c,2)/C(m,2) * (m-1)/m. So the variance of the tasks' shares of
successes, as they were measured, follows exactly from the two figures:

    S = pass^1 / m + pass^2 (m - 1) / m - (pass^1)^2

The variance of the mean over n tasks like these is S/(n-1); on these very tasks, where trials alone are noise, it is
(pass^1 - pass^2)/(n m). Two agents' outcomes on a task tend to agree, which figures do not show: a difference of
independent means is therefore uncertain by more than a paired one, and a rank that holds here holds there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist

from muarl.accounts.intervals import Z95, Interval
from muarl.basics.errors import ConfigError
from muarl_tools.compare.power import MOST


@dataclass(frozen=True)
class PublishedScore:
    """One agent's figures. ConfigError if they contradict each other."""

    name: str

    tasks: int
    """At least 2."""

    trials: int
    """Of each task."""

    first: float
    """pass^1, a share."""

    second: float | None = None
    """pass^2, a share; None with a single trial."""

    def __post_init__(self) -> None:
        if self.tasks < 2 or self.trials < 1:
            raise ConfigError(f"{self.name}: there must be 2 tasks at least, and 1 trial of each")
        if (self.second is None) != (self.trials == 1):
            raise ConfigError(f"{self.name}: pass^2 goes with several trials of a task, and they with it")
        if not 0 <= self.first <= 1 or not 0 <= (self.second or 0.0) <= self.first + 1e-9:
            raise ConfigError(f"{self.name}: pass^1 must be a share, and pass^2 no more than it")
        if self.spread < -1e-9:
            raise ConfigError(f"{self.name}: no {self.tasks} tasks have pass^1 {self.first} and pass^2 {self.second}")

    @property
    def spread(self) -> float:
        """The variance of the tasks' shares of successes, as measured (S above)."""
        m, second = self.trials, self.second or 0.0
        return self.first / m + second * (m - 1) / m - self.first**2

    @property
    def variance(self) -> float:
        """Of the score, were other tasks like these drawn."""
        return max(0.0, self.spread) / (self.tasks - 1)

    @property
    def variance_same_tasks(self) -> float | None:
        """Of the score, were these very tasks played again; None with a single trial, which does not tell it."""
        if self.second is None:
            return None
        return max(0.0, self.first - self.second) / (self.tasks * self.trials)

    @property
    def interval(self) -> Interval:
        """95%, over tasks like these."""
        reach = Z95 * sqrt(self.variance)
        return max(0.0, self.first - reach), min(1.0, self.first + reach)


@dataclass(frozen=True)
class PublishedGap:
    """How far one published score is ahead of another of the same benchmark."""

    difference: float
    """A share, negative if it is behind."""

    p: float | None
    """Two-sided p-value of no difference on tasks like these, as of independent means; None where nothing varies."""

    p_same_tasks: float | None
    """The same on these very tasks; None where it is not known."""

    tasks: int | None
    """Tasks at which such a difference would be seen with a chance of 80% (at p < 0.05, with the trials that both have,
    other tasks for each agent); None for no difference, or more than anybody plays."""


def gap(one: PublishedScore, other: PublishedScore, *, power: float = 0.8, alpha: float = 0.05) -> PublishedGap:
    """The difference of two scores, and whether chance explains it."""
    difference = one.first - other.first
    mine, theirs = one.variance_same_tasks, other.variance_same_tasks
    same = None if mine is None or theirs is None else _p(difference, mine + theirs)
    normal = NormalDist()
    reach = (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) ** 2
    wanted = None
    if difference:
        wanted = ceil(reach * (max(0.0, one.spread) + max(0.0, other.spread)) / difference**2) + 1
    return PublishedGap(
        difference,
        _p(difference, one.variance + other.variance),
        same,
        None if wanted is None or wanted > MOST else wanted,
    )


def _p(difference: float, variance: float) -> float | None:
    return None if variance <= 0 else 2 * NormalDist().cdf(-abs(difference) / sqrt(variance))
