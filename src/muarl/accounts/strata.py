"""Whether success differs between kinds of users: a test over the values of each stratum, and one plain sentence.

``randomisation_p``: values are drawn by the user's seed, whatever the task, so that under the hypothesis that a value
makes no difference each drawing could as well have met any other one's outcome. The p-value is the share of 5,000
random exchanges whose chi-square statistic is at least the observed one. Attempts at one task by one persona, whose
seed they may share, are exchanged together. ``holm``: Holm 1979, which keeps the chance of any false finding among all
strata below alpha.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from muarl.types.episode import Episode

STRATA = "strata"
"""The episodes' tag with their user's value of each stratum (users/strata)."""
EXCHANGES = 5000
ALPHA = 0.05
"""The chance of any false warning among all strata."""
_ROWS = 500
"""Exchanges at once, which bounds memory."""


class Share(Protocol):
    """A share with its 95% interval and the number of episodes behind it."""

    @property
    def value(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float]: ...
    @property
    def n(self) -> int: ...


@dataclass(frozen=True, slots=True)
class StratumResult:
    """Success by the values of one stratum."""

    name: str
    values: Mapping[str, Share]
    p: float | None
    """The p value of the test over all values; None where only one value was met, or the outcomes are all the same."""
    adjusted: float | None
    """``p`` after Holm's correction for all strata of the evaluation; None as for ``p``."""

    @property
    def warning(self) -> str | None:
        """One sentence, where success differs: "success differs by patience: pressed 61% (52 to 69, n = 120), ..."."""
        if self.adjusted is None or self.adjusted > ALPHA:
            return None
        ordered = sorted(self.values.items(), key=lambda item: item[1].value)
        by_value = ", ".join(f"{name} {_points(share)}" for name, share in ordered)
        return f"success differs by {self.name}: {by_value}; p {p_text(self.adjusted)}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; the values' shares stand in ``by_tag``."""
        return {"p": self.p, "p_holm": self.adjusted, "warning": self.warning}


def p_text(p: float) -> str:
    """ "= 0.012"; "< 0.001" where it is smaller."""
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def _points(share: Share) -> str:
    low, high = share.interval
    return f"{share.value:.0%} ({100 * low:.0f} to {100 * high:.0f}, n = {share.n})"


def strata_of(episode: Episode) -> dict[str, str]:
    """An episode's value of each stratum; empty for users without strata, and where the tag is none of ours."""
    values = episode.tags.get(STRATA)
    return {str(k): v for k, v in values.items() if isinstance(v, str)} if isinstance(values, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One scored attempt at a task by a user with strata."""

    task: str
    success: bool
    strata: Mapping[str, str]


def tested(outcomes: Sequence[Outcome], shares: Mapping[str, Mapping[str, Share]]) -> dict[str, StratumResult]:
    """The result of each stratum. ``shares``: success by value by stratum."""
    raw: dict[str, float | None] = {}
    for name in shares:
        met = [o for o in outcomes if name in o.strata]
        together = [(o.task, *sorted(o.strata.items())) for o in met]
        raw[name] = randomisation_p([o.strata[name] for o in met], [o.success for o in met], together)
    p_values = {name: p for name, p in raw.items() if p is not None}
    adjusted = dict(zip(p_values, holm([*p_values.values()]), strict=True))
    return {name: StratumResult(name, shares[name], p, adjusted.get(name)) for name, p in raw.items()}


def randomisation_p(
    values: Sequence[str], outcomes: Sequence[bool], together: Sequence[Hashable], *, seed: int = 0
) -> float | None:
    """The p-value of the test over values; None where there is nothing to test. ``together``: what is exchanged as
    one, by any key. The observed one counts as an exchange, so that it is never too small."""
    import numpy as np  # pages that only show results do not need it

    right: dict[Hashable, int] = defaultdict(int)
    tried: dict[Hashable, int] = defaultdict(int)
    value_of: dict[Hashable, str] = {}
    for value, outcome, key in zip(values, outcomes, together, strict=True):
        right[key] += outcome
        tried[key] += 1
        value_of[key] = value
    successes, sizes = (np.array([counts[key] for key in value_of], dtype=np.float64) for counts in (right, tried))
    codes = np.unique([*value_of.values()], return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    successes, sizes = successes[order], sizes[order]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    whole = successes.sum() / max(1.0, sizes.sum())
    if len(starts) < 2 or whole in (0.0, 1.0):
        return None

    def statistic(met: Any) -> Any:
        """Pearson's chi-square of each row, an order in which outcomes meet the values, but for a constant factor."""
        n = np.add.reduceat(sizes[met], starts, axis=-1)
        return ((np.add.reduceat(successes[met], starts, axis=-1) - n * whole) ** 2 / n).sum(axis=-1)

    plain = np.arange(len(codes))
    observed = statistic(plain) * (1 - 1e-9)
    rng = np.random.default_rng(seed)
    beyond = sum(
        int((statistic(rng.permuted(np.tile(plain, (_ROWS, 1)), axis=1)) >= observed).sum())
        for _ in range(EXCHANGES // _ROWS)
    )
    return (beyond + 1) / (EXCHANGES + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the given order: reject those at most alpha."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    out, worst = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[i]))
        out[i] = worst
    return out
