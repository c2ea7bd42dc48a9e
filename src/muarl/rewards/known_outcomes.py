"""What rollouts came to from each progress of the world, for credit by turn: outcomes are compared with those of others
at the same progress.

With R the reward of rollout i and p its progress (rewards/progress.py) before turn t,

    A(i, t) = R_i - m(p)      m(p) = (sum of R_j over the group's other rollouts that were at p, too  +  PRIOR x k(p))
                                     / (their number + PRIOR)

where k(p) is the mean outcome of earlier steps' rollouts at p, of tasks of the same kind, and the mean of the group's
other rollouts where nobody has been there. **The optimum stays**: m depends on what came before the turn and on other
rollouts, and not on what the agent does there, so that E[m grad log pi] = 0. Progress is never paid: who repeats a
write, or undoes and redoes one, gets R as anybody else. In a group that branches (learning/branches.py) m(p) is drawn
from other stems and their branches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PRIOR = 2.0
"""What is known from earlier steps counts as this many rollouts."""
HALF_LIFE = 10.0
"""Steps after which an outcome counts half in what is known."""


@dataclass(slots=True)
class KnownOutcomes:
    """Mean outcomes at each progress, of the steps so far; older ones count less and less."""

    sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The outcomes' weighted sum and their weight, by progress."""

    def mean(self, key: str) -> float | None:
        """The mean outcome at a progress, None where too little is known."""
        total, weight = self.sums.get(key, (0.0, 0.0))
        return total / weight if weight >= 1.0 else None

    def note(self, outcomes: Sequence[tuple[float, Sequence[str]]], half_life: float = HALF_LIFE) -> None:
        """A step's rewards, each with the progresses that its rollout was at. ``half_life``: in calls of this."""
        fade = 0.5 ** (1 / half_life)
        self.sums = {key: (total * fade, weight * fade) for key, (total, weight) in self.sums.items()}
        for reward, keys in outcomes:
            for key in dict.fromkeys(keys):
                total, weight = self.sums.get(key, (0.0, 0.0))
                self.sums[key] = total + reward, weight + 1.0

    def to_json(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {key: list(pair) for key, pair in self.sums.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KnownOutcomes:
        """The inverse."""
        return cls({str(key): (float(total), float(weight)) for key, (total, weight) in data.items()})


def state_means(
    rewards: Sequence[float], places: Sequence[Sequence[str]], trees: Sequence[str], outcomes: KnownOutcomes
) -> list[list[float | None]]:
    """m for every turn of one group's rollouts; None where there are no others. ``places``: of each rollout, its
    progress before each of the agent's turns. ``trees``: rollouts of the same one share beginnings, and say nothing of
    each other."""
    visited = [frozenset(own) for own in places]
    out: list[list[float | None]] = []
    for tree, own in zip(trees, places, strict=True):
        others = [j for j, other in enumerate(trees) if other != tree]
        overall = sum(rewards[j] for j in others) / max(1, len(others))
        means: list[float | None] = []
        for key in own:
            there = [rewards[j] for j in others if key in visited[j]]
            prior = outcomes.mean(key)
            base = (sum(there) + PRIOR * (overall if prior is None else prior)) / (len(there) + PRIOR)
            means.append(base if others else None)
        out.append(means)
    return out
