"""What the world's state is worth before each of a policy's messages, for trainers that give credit by turn.

The worth of a state is the mean reward of earlier conversations about tasks of the same kind in which the world was as
far on the way to its right final state (rewards/progress.py, rewards/known_outcomes.py). As a potential it leaves the
best policy as it is, whatever a trainer makes of it: what a message earns is what the state gained by it, and a
conversation's sum is its reward less a constant.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.place import Place
from muarl.rewards.known_outcomes import KnownOutcomes
from muarl.rewards.progress import progress_by_message
from muarl.types.episode import Episode

HALF_LIFE = 1000.0
"""Conversations after which one counts half in what a state is worth."""


@cache
def turn_values() -> TurnValues:
    """This process's, for trainers that make an adapter's object for each conversation."""
    return TurnValues()


class TurnValues:
    """What is known so far; it grows with every conversation."""

    def __init__(self) -> None:
        self._known = KnownOutcomes()

    def scores(self, task: Task, episode: Episode | None, reward: float) -> list[float | None] | None:
        """What the state was worth before the first of the policy's messages, after it, after the second, ..., and at
        the end the reward. None for a state of which too little is known, and for all where progress cannot be had."""
        progress = None if episode is None else progress_by_message(domain_of(task), task, episode)
        if not progress:
            return None
        kind = f"{task.domain} {task.tags.get('intent', '')}"
        keys = [p.key(kind) for p in progress]
        values = [*map(self._known.mean, keys), reward]
        self._known.note([(reward, keys)], HALF_LIFE)
        return values

    def gains(self, task: Task, episode: Episode | None, reward: float) -> list[float] | None:
        """What each of the policy's messages gained, which adds up to the reward less what the beginning was worth. A
        state of which too little is known is worth as much as the one before it."""
        scores = self.scores(task, episode, reward)
        return None if scores is None else [after - before for before, after in pairwise(filled(scores))]


def filled(scores: list[float | None]) -> list[float]:
    """Scores with the one before in place of None, and 0 where there is none before."""
    out, last = [], 0.0
    for score in scores:
        last = last if score is None else score
        out.append(last)
    return out


def domain_of(task: Task) -> Domain:
    """The domain of a task that an environment has made."""
    assert task.origin is not None
    return _place(task.origin.environment, task.origin.address.size).domain


@cache
def _place(environment: Environment, size: str | None) -> Place:
    return environment.place(size, mode="native" if environment.is_benchmark else "auto")
