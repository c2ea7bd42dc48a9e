"""Credit by turn from how far the world had come: outcomes are compared with those of others at the same progress.

With R the reward of rollout i and p its progress (rewards/progress.py) before turn t,

    A(i, t) = R_i - b(p)      b(p) = (sum of R_j over the group's other rollouts that were at p, too  +  PRIOR x m(p))
                                     / (their number + PRIOR)

where m(p) is the mean outcome of earlier steps' rollouts at p, of tasks of the same kind, and the mean of the group's
other rollouts where nobody has been there. **The optimum stays**: b depends on what came before the turn and on other
rollouts, and not on what the agent does there, so that E[b grad log pi] = 0. Progress is never paid: who repeats a
write, or undoes and redoes one, gets R as anybody else.

``potential_credit`` is potential-based shaping (Ng, Harada and Russell 1999) with the share of right changes as the
potential F: with the outcome at the end, what is to come from turn t on is R - F(t), F being 0 where an episode begins
and where it has ended. So it is a baseline as well, a fixed one: A(i, t) = R_i - F(i, t) - mean of the others' R.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.learning.branches import Credit
from muarl.types.episode import Episode

PRIOR = 2.0
"""What is known from earlier steps counts as this many rollouts."""
HALF_LIFE = 10.0
"""Steps after which an outcome counts half in what is known."""


@dataclass(slots=True)
class KnownOutcomes:
    """Mean outcomes at each progress, of the steps so far; older ones count less and less. ``sums``: by progress, the
    outcomes' weighted sum and their weight."""

    sums: dict[str, tuple[float, float]] = field(default_factory=dict)

    def mean(self, key: str) -> float | None:
        """The mean outcome at a progress, None where too little is known."""
        total, weight = self.sums.get(key, (0.0, 0.0))
        return total / weight if weight >= 1.0 else None

    def note(self, outcomes: Sequence[tuple[float, Sequence[str]]]) -> None:
        """A step's rewards, each with the progresses that its rollout was at."""
        fade = 0.5 ** (1 / HALF_LIFE)
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


def state_credit(rewards: Sequence[float], places: Sequence[Sequence[str]], known: KnownOutcomes) -> list[Credit]:
    """The advantage of every turn of one group's rollouts, undivided. ``places``: of each rollout, its progress before
    each of the agent's turns."""
    visited = [frozenset(own) for own in places]
    out = []
    for i, own in enumerate(places):
        others = [j for j in range(len(rewards)) if j != i]
        overall = sum(rewards[j] for j in others) / max(1, len(others))
        values = []
        for key in own:
            there = [rewards[j] for j in others if key in visited[j]]
            prior = known.mean(key)
            base = (sum(there) + PRIOR * (overall if prior is None else prior)) / (len(there) + PRIOR)
            values.append(rewards[i] - base if others else 0.0)
        out.append(Credit(0, tuple(values), (1.0,) * len(values)))
    return out


def potential_credit(rewards: Sequence[float], potentials: Sequence[Sequence[float]]) -> list[Credit]:
    """The same with potential-based shaping. ``potentials``: of each rollout, before each of the agent's turns."""
    out = []
    for i, own in enumerate(potentials):
        others = [reward for j, reward in enumerate(rewards) if j != i]
        base = sum(others) / max(1, len(others))
        values = tuple(rewards[i] - value - base if others else 0.0 for value in own)
        out.append(Credit(0, values, (1.0,) * len(own)))
    return out


def turns_of(episode: Episode) -> int:
    """How many of an episode's turns the agent's sampler has said."""
    return sum(turn.span is not None for turn in episode.turns)
