"""Which training tasks a step plays, where they are to follow what the policy can do already (``rl.practice``).

A group of rollouts whose rewards are all equal teaches nothing. So for each task that is played several are drawn as
always, and those are preferred whose kind (``domains.task_kinds``) makes differing rewards likely:

- **Estimates.** Success of a kind is a Beta distribution. A group counts as one observation, its share of successes,
  since its rollouts are of one task; what was seen counts half after ``half_life`` steps. A kind starts from what
  other difficulties of the same intent show, which counts as two observations.
- **Uncertainty.** Each step draws a success p for every kind from its distribution (Thompson sampling, 1933), and
  weighs its tasks by 1 - p^n - (1 - p)^n, the chance that n rollouts differ. So what is little known is tried.
- **Choice.** A task's chance to be played is ``floor`` of the chance that it had without preference, and the rest by
  weight; each domain keeps its share of the tasks. One random offset gives a sample of fixed size with exactly these
  chances (systematic sampling, Madow 1949), spread over the kinds.
- **Repeats.** Under ``rl.practice.repeat`` some of a step's tasks are of those played before (repeats.py). They count
  neither for the estimates nor for the figures.
- **Figures.** The success of what was chosen is not that of the tasks as they are drawn. Since all chances are known,
  the latter can be estimated without bias: what was predicted for all tasks drawn, corrected by what the played ones
  show, each divided by its chance (the difference estimator of survey sampling; Cassel, Särndal, Wretman 1976).

Everything follows from the run's seed, the number of the draw and the state that checkpoints hold.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from statistics import fmean
from typing import Any

from muarl.accounts.metrics import DOMAIN, is_success, scored
from muarl.basics.errors import DataError
from muarl.basics.seeds import derive_seed
from muarl.config.rl import PracticeConfig
from muarl.domains.tasks import Kind, Task, kind_of
from muarl.environments.places import Places
from muarl.recipes.training.repeats import REPEATS, DrawPosition, Repeats
from muarl.types.episode import Episode

PRACTICE = "practice"
"""Where a checkpoint has the estimates, and what the names of their figures begin with."""
PRIOR = 2.0
"""How many observations the start of an estimate counts as."""


class SuccessByKind:
    """What is known of success by kind: successes and failures, in groups, with forgetting."""

    def __init__(self, half_life: float, seen: Mapping[Kind, tuple[float, float]] | None = None) -> None:
        self.half_life = half_life
        self._seen = dict(seen or {})

    def parameters(self, kind: Kind) -> tuple[float, float]:
        """Of the Beta distribution of a kind's success."""
        alike = [
            counts
            for other, counts in self._seen.items()
            if (other.intent, other.domain) == (kind.intent, kind.domain) and other != kind
        ]
        right, wrong = (1 + sum(counts[n] for counts in alike) for n in (0, 1))
        start = right / (right + wrong)
        own = self._seen.get(kind, (0.0, 0.0))
        return PRIOR * start + own[0], PRIOR * (1 - start) + own[1]

    def mean(self, kind: Kind) -> float:
        """The expected success of a kind, within (0, 1)."""
        right, wrong = self.parameters(kind)
        return right / (right + wrong)

    def observe(self, groups: Iterable[tuple[Kind, float]]) -> None:
        """One step's groups: their kind and share of successes. What was seen before fades."""
        fade = 0.5 ** (1 / self.half_life)
        self._seen = {kind: (right * fade, wrong * fade) for kind, (right, wrong) in self._seen.items()}
        for kind, share in groups:
            right, wrong = self._seen.get(kind, (0.0, 0.0))
            self._seen[kind] = right + share, wrong + 1 - share

    def state(self) -> list[list[Any]]:
        """As JSON values."""
        return [[*kind, *counts] for kind, counts in sorted(self._seen.items())]

    @classmethod
    def from_state(cls, half_life: float, state: Any) -> SuccessByKind:
        """The inverse of ``state``. DataError for anything else."""
        try:
            seen = {
                Kind(intent, difficulty, domain): (float(right), float(wrong))
                for intent, difficulty, domain, right, wrong in state
            }
        except (TypeError, ValueError) as problem:
            raise DataError(f"the checkpoint's {PRACTICE!r} is not success by kind: {problem}") from None
        return cls(half_life, seen)


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """Tasks chosen among candidates."""

    tasks: Sequence[Task]
    """The chosen tasks, in the order of drawing."""
    chances: Mapping[str, float]
    """By a chosen task's id, the chance that it had of being chosen, in (0, 1]."""
    candidates: Sequence[tuple[Task, float]]
    """All, with the success that was expected of each."""
    repeated: Sequence[Task] = ()
    """Tasks of earlier steps that are played besides."""
    positions: Mapping[str, DrawPosition] = field(default_factory=dict)
    """By id, where each of either was drawn."""

    @property
    def played(self) -> list[Task]:
        """All that the step plays of it."""
        return [*self.repeated, *self.tasks]

    def as_drawn(self, outcomes: Mapping[str, float], domain: str | None = None) -> float:
        """An estimate, without bias, of the mean outcome over tasks as they are drawn (of one domain).

        ``outcomes``: by id of a task that was played. One that is missing counts as expected. It may lie somewhat
        outside the range of the outcomes.
        """
        own = [(t, guess) for t, guess in self.candidates if domain is None or t.tags.get(DOMAIN) == domain]
        if not own:
            raise ValueError(f"no candidate is of the domain {domain}")
        surprise = sum(
            (outcomes[task.id] - guess) / self.chances[task.id] for task, guess in own if task.id in outcomes
        )
        return (sum(guess for _, guess in own) + surprise) / len(own)


class Practice:
    """Chooses the tasks of a run's steps. ``size``: rollouts of a task. ``seed``: the run's. ``seen``: success by kind
    so far. ``repeats``: tasks to play again."""

    def __init__(
        self,
        config: PracticeConfig,
        size: int,
        seed: int,
        seen: SuccessByKind | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        self.config, self.size, self.seed = config, size, seed
        self.seen = seen or SuccessByKind(config.half_life)
        self.repeats = repeats or Repeats(config.max_repeats)

    @classmethod
    def resumed(
        cls,
        config: PracticeConfig,
        size: int,
        seed: int,
        checkpoint: Mapping[str, Any],
        places: Places,
        task_seed: int,
    ) -> Practice:
        """As a checkpoint (empty: a run that begins) left it. ``task_seed``: of the training tasks. DataError if what
        it says cannot be read."""
        seen = SuccessByKind.from_state(config.half_life, checkpoint[PRACTICE]) if PRACTICE in checkpoint else None
        repeats = Repeats.from_state(config.max_repeats, checkpoint.get(REPEATS, []), places, task_seed)
        return cls(config, size, seed, seen, repeats)

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds of it."""
        return {PRACTICE: self.seen.state()} | ({REPEATS: self.repeats.state()} if self.config.repeat else {})

    def draw(self, places: Places, count: int, seed: int, number: int, *, repeat: bool = True) -> TaskChoice:
        """The tasks of draw ``number``: ``count``, of which at most the share ``rl.practice.repeat`` was played before
        (none if not ``repeat``). The others are chosen among ``candidates`` times ``count`` new ones (fewer where a
        fixed set has no more), or are the first ones drawn, unless ``adaptive``. ``seed``: of the training tasks."""
        candidates: dict[str, tuple[Task, DrawPosition]] = {}
        parts = self.config.candidates if self.config.adaptive else 1
        for part in range(parts):
            start = (number * parts + part) * count
            for index, task in enumerate(places.draw("train", count, seed, start)):
                candidates.setdefault(task.id, (task, DrawPosition(count, start, index)))
        again = self.repeats.choose(int(self.config.repeat * count), candidates) if repeat else []
        new, fresh = [task for task, _ in candidates.values()], count - len(again)
        choice = self.choose(new, fresh, number) if self.config.adaptive else self._as_drawn(new[:fresh])
        drawn = {one.task.id: one.position for one in again}
        drawn |= {task.id: candidates[task.id][1] for task in choice.tasks}
        return replace(choice, repeated=[one.task for one in again], positions=drawn)

    def _as_drawn(self, tasks: Sequence[Task]) -> TaskChoice:
        expected = [(task, self.seen.mean(_kind(task))) for task in tasks]
        return TaskChoice(tasks, {task.id: 1.0 for task in tasks}, expected)

    def choose(self, candidates: Sequence[Task], count: int, number: int) -> TaskChoice:
        """``count`` of the candidates, all of which have ids of their own."""
        rng = random.Random(derive_seed(self.seed, PRACTICE, number))
        kinds = {task.id: _kind(task) for task in candidates}
        worth = {kind: self._worth(rng, kind) for kind in sorted(set(kinds.values()))}
        order = rng.sample(candidates, len(candidates))
        order.sort(key=lambda task: (kinds[task.id].domain, kinds[task.id]))
        chances: list[float] = []
        for domain in dict.fromkeys(kinds[task.id].domain for task in order):
            weights = [worth[kinds[task.id]] for task in order if kinds[task.id].domain == domain]
            chances += chances_of(weights, count * len(weights) / len(order), self.config.floor)
        picked = {order[n].id: chances[n] for n in systematic(chances, count, rng.random())}
        return TaskChoice(
            [task for task in candidates if task.id in picked],
            picked,
            [(task, self.seen.mean(kinds[task.id])) for task in candidates],
        )

    def _worth(self, rng: random.Random, kind: Kind) -> float:
        """The chance that a group's rewards differ, if the kind's success is one that may be."""
        p = rng.betavariate(*self.seen.parameters(kind))
        return float(1 - p**self.size - (1 - p) ** self.size)

    def note(self, draws: Sequence[tuple[TaskChoice, Sequence[Episode]]]) -> dict[str, float]:
        """Learn from a step's draws and their episodes (or the first ones of each task), and give the step's figures.

        ``reward`` and ``success`` (in all, and by domain) as they would be of the tasks as they are drawn, estimated
        from the step's first draw, since whether there are more depends on how it went; ``practice/kinds``, how many
        kinds have been seen;
        ``practice/share/INTENT`` and ``practice/success/INTENT``, of the new tasks played: the share with this intent
        and the mean success expected of them afterwards (of several domains: ``DOMAIN/INTENT``);
        ``practice/repeated``, how many tasks were played again, and ``practice/repeated_success``, their success.
        """
        rows = [(choice, *_outcomes(episodes)) for choice, episodes in draws]
        for choice, _, right in rows if self.config.repeat else ():
            self.repeats.note({t.id: (t, choice.positions[t.id]) for t in choice.played}, right)
        self.seen.observe(
            (_kind(task), right[task.id]) for choice, _, right in rows for task in choice.tasks if task.id in right
        )
        choice, rewards, successes = rows[0]
        out: dict[str, float] = {}
        domains = {str(t.tags[DOMAIN]): None for t, _ in choice.candidates if DOMAIN in t.tags}
        for prefix, domain in [("", None), *((f"{DOMAIN}/{name}/", name) for name in domains)]:
            out[f"{prefix}reward"] = choice.as_drawn(rewards, domain)
            out[f"{prefix}success"] = choice.as_drawn(successes, domain)
        by_intent: dict[str, list[float]] = defaultdict(list)
        for chosen, _, _ in rows:
            for kind in map(_kind, chosen.tasks):
                by_intent[f"{kind.domain}/{kind.intent}" if kind.domain else kind.intent].append(self.seen.mean(kind))
        whole = sum(map(len, by_intent.values()))
        out[f"{PRACTICE}/kinds"] = float(len(self.seen.state()))
        if self.config.repeat:
            out[f"{PRACTICE}/repeated"] = float(sum(len(choice.repeated) for choice, _, _ in rows))
            if again := [right[task.id] for choice, _, right in rows for task in choice.repeated if task.id in right]:
                out[f"{PRACTICE}/repeated_success"] = fmean(again)
        for intent, expected in sorted(by_intent.items()):
            out[f"{PRACTICE}/share/{intent}"] = len(expected) / whole
            out[f"{PRACTICE}/success/{intent}"] = fmean(expected)
        return out


def played_figures(episodes: Iterable[Episode]) -> dict[str, float]:
    """``practice/played_reward`` and ``practice/played_success``: the means over what was played, whatever chose it."""
    played = scored(episodes)
    if not played:
        return {}
    return {
        f"{PRACTICE}/played_reward": fmean(e.reward for e in played),
        f"{PRACTICE}/played_success": fmean(is_success(e.reward) for e in played),
    }


def chances_of(weights: Sequence[float], count: float, floor: float) -> list[float]:
    """The chance of each item to be among ``count`` chosen ones: of the sum of all, ``floor`` is divided evenly and the
    rest by weight; where this gives an item more than 1, the others share what it has too much. They sum to ``count``,
    which is at most the number of items."""
    whole = sum(weights)
    shares = [floor / len(weights) + (1 - floor) * (w / whole if whole else 1 / len(weights)) for w in weights]
    sure: set[int] = set()
    while True:
        free = sum(share for n, share in enumerate(shares) if n not in sure)
        scale = (count - len(sure)) / free if free else 0.0
        over = {n for n, share in enumerate(shares) if n not in sure and share * scale >= 1}
        if not over:
            return [1.0 if n in sure else share * scale for n, share in enumerate(shares)]
        sure |= over


def systematic(chances: Sequence[float], count: int, offset: float) -> list[int]:
    """``count`` of the items, each with its chance; ``chances`` sum to ``count``, ``offset`` is random in [0, 1)."""
    ends = list(accumulate(chances))
    return sorted({min(bisect_right(ends, offset + n), len(ends) - 1) for n in range(count)})


def _kind(task: Task) -> Kind:
    """Tasks that do not say of which kind they are count as one."""
    return kind_of(task.tags) or Kind("", domain=str(task.tags.get(DOMAIN, "")))


def _outcomes(episodes: Iterable[Episode]) -> tuple[dict[str, float], dict[str, float]]:
    """Mean reward and success by task."""
    by_task: dict[str, list[float]] = defaultdict(list)
    for episode in scored(episodes):
        by_task[episode.task_id].append(episode.reward)
    return (
        {name: fmean(rewards) for name, rewards in by_task.items()},
        {name: fmean(map(is_success, rewards)) for name, rewards in by_task.items()},
    )
