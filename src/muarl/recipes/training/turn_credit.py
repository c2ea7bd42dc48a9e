"""What each turn of a step's episodes is learned from, where ``rl.credit`` asks for more than one advantage an episode:
the progress of the world before each turn, and what was known of it from earlier steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muarl.config.rl import RlConfig
from muarl.domains.tasks import Task
from muarl.environments.places import Places
from muarl.learning.branches import Credit, turn_credits
from muarl.rewards.known_outcomes import KnownOutcomes, state_means
from muarl.rewards.progress import TaskProgress, progress_of
from muarl.types.episode import BRANCH, Episode

KNOWN = "known_outcomes"
"""Where a checkpoint keeps what is known."""
PROGRESS = "progress"
"""The tag with an episode's progress before each turn, so that a step can be learned from again (``rl.replay``):
[right, left, wrong, asked], see rewards/progress.py; null where it cannot be had."""


class TurnCredit:
    """Gives credit by turn, step after step. An episode whose progress cannot be had (on a tool server, say) is at one
    place all the time, so that its turns are compared as without."""

    def __init__(self, places: Places, outcomes: KnownOutcomes | None = None) -> None:
        self.places, self.outcomes = places, outcomes or KnownOutcomes()
        self._tasks: Mapping[str, Task] = {}
        self._new: list[tuple[float, Sequence[str]]] = []

    @classmethod
    def resumed(cls, rl: RlConfig, places: Places, checkpoint: Mapping[str, Any]) -> TurnCredit | None:
        """As a checkpoint left it; None where ``rl.credit`` is the outcome alone."""
        if rl.credit == "outcome":
            return None
        return cls(places, KnownOutcomes.from_json(checkpoint.get(KNOWN, {})))

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {KNOWN: self.outcomes.to_json()}

    def begin(self, tasks: Mapping[str, Task]) -> None:
        """A step begins, of these tasks; none are needed of recorded episodes."""
        self._tasks, self._new = tasks, []

    def end(self) -> None:
        """The step has been learned from: what it showed is known from now on."""
        self.outcomes.note(self._new)

    def __call__(self, rewards: Sequence[float], episodes: Sequence[Episode]) -> list[Credit]:
        """The credit of one group's episodes."""
        progress = [self._progress(episode) for episode in episodes]
        kinds = [str(e.tags.get("intent", "")) for e in episodes]
        keys = [
            [f"{kind} ?" if p is None else p.key(kind) for p in own] for kind, own in zip(kinds, progress, strict=True)
        ]
        self._new += [*zip(rewards, keys, strict=True)]
        return state_credit(rewards, episodes, keys, self.outcomes)

    def look(self, episodes: Iterable[Episode]) -> None:
        """Note the progress of episodes that are learned from later."""
        for episode in episodes:
            self._progress(episode)

    def _progress(self, episode: Episode) -> Sequence[TaskProgress | None]:
        if PROGRESS not in episode.tags:
            task = self._tasks.get(episode.task_id)
            own = None if task is None else self.places.own(task)
            made = None if own is None else progress_of(self.places.of(own).domain, own, episode)
            episode.tags[PROGRESS] = None if made is None else [[p.right, p.left, p.wrong, int(p.asked)] for p in made]
        rows = episode.tags[PROGRESS]
        if rows is None:
            return [None] * sum(turn.span is not None for turn in episode.turns)
        return [TaskProgress(right, left, wrong, bool(asked)) for right, left, wrong, asked in rows]


def state_credit(
    rewards: Sequence[float], episodes: Sequence[Episode], places: Sequence[Sequence[str]], outcomes: KnownOutcomes
) -> list[Credit]:
    """The advantage of every turn of one group's rollouts, undivided. ``places``: see ``state_means``."""
    trees = [str(e.tags[BRANCH]["of"]) if BRANCH in e.tags else e.id for e in episodes]
    return turn_credits(rewards, episodes, state_means(rewards, places, trees, outcomes))
