"""What a base checkpoint learns from at each step: conversations, difficult ones more often, and drills."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.learning.packing import Sample
from muarl.learning.state_files import parse_random

DRILL_SHARE = 0.125
"""Share of a batch that are drills. Without them it takes thousands of steps until ids are copied right."""
LONGEST_LINE = 40
"""Tokens of a drill that are to be copied, at most."""
RECALLED = 32
"""Tokens that a drill in recalling is about."""


class Batches:
    """Batches without end. ``often``: how often each sample is drawn, relative to the others. ``entities``: the tokens
    of drills, at least ``LONGEST_LINE``. ``others``: see ``thinned``. The same seed gives the same batches; ``state``
    and ``restore`` serve checkpoints."""

    def __init__(
        self,
        samples: Sequence[Sample],
        often: Sequence[float],
        entities: Sequence[int],
        size: int,
        seed: int,
        *,
        others: float = 1.0,
    ) -> None:
        self._samples, self._often, self._entities, self._size = samples, often, list(entities), size
        self._drills, self._others = round(size * DRILL_SHARE), others
        self._order = random.Random(seed)
        self._deck: list[int] = []

    def draw(self) -> list[Sample]:
        """The next batch."""
        if len(self._deck) < self._size:
            rounds = -(-self._size // len(self._samples))
            self._deck = [i for _ in range(rounds) for i in shuffled(self._order, self._often)]
        drawn = [self._samples[self._deck.pop()] for _ in range(self._size - self._drills)]
        if self._others < 1:
            drawn = [thinned(self._order, sample, self._others) for sample in drawn]
        for number in range(self._drills):
            make = recall_drill if number % 2 else copy_drill
            drawn.append(make(self._order, self._entities))
        return drawn

    def state(self) -> dict[str, Any]:
        """As JSON values."""
        return {"deck": self._deck, "order": list(self._order.getstate())}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The inverse."""
        self._deck = [int(number) for number in state["deck"]]
        self._order.setstate(parse_random(state["order"]))


def how_often(tags: Mapping[str, Any], weight: float) -> float:
    """How often the conversation of a task with these tags is read: ``weight`` times as often for each point of
    difficulty above 1, and for a request that must be refused."""
    points = float(tags.get("difficulty", 1)) - 1 + (not tags.get("feasible", True))
    return float(weight**points)


def shuffled(rng: random.Random, often: Sequence[float]) -> list[int]:
    """As many numbers as there are weights, in random order, each as often as its weight says: in expectation exactly,
    and never off by one or more (systematic sampling)."""
    numbers = rng.sample(range(len(often)), len(often)) if len(set(often)) <= 1 else []
    if numbers:
        return numbers
    step, total = sum(often) / len(often), 0.0
    at = rng.random() * step
    for number in rng.sample(range(len(often)), len(often)):
        total += often[number]
        while at < total:
            numbers.append(number)
            at += step
    rng.shuffle(numbers)
    return numbers


def thinned(rng: random.Random, sample: Sample, share: float) -> Sample:
    """A sample in which a random ``share`` of the tokens that weigh less than 1, those of users and tools, keep a
    weight: so much more that on average it is the same."""
    weights = [w if w in (0.0, 1.0) else w / share if rng.random() < share else 0.0 for w in sample.weights]
    return Sample(sample.ids, weights)


def copy_drill(rng: random.Random, entities: Sequence[int]) -> Sample:
    """A line of random ids and names, said again in pieces: only a model that copies can predict the pieces."""
    line = rng.sample(entities, rng.randint(10, LONGEST_LINE))
    ids = list(line)
    while len(ids) < 200:
        start = rng.randrange(len(line) - 4)
        ids += line[start : start + rng.randint(3, 12)]
    return Sample(ids, [0.0] * len(line) + [1.0] * (len(ids) - len(line)))


def recall_drill(rng: random.Random, entities: Sequence[int]) -> Sample:
    """Ids and names, each followed by one of two marks (the first two entities): whether it stood there before."""
    pool = rng.sample(entities, RECALLED + 2)[2:]
    ids: list[int] = []
    weights: list[float] = []
    seen: list[int] = []
    while len(ids) < 100:
        if seen and rng.random() < 0.5:
            ids += [rng.choice(seen), entities[1]]
        else:
            one = rng.choice(pool)
            ids += [one, entities[one in seen]]
            seen.append(one)
        weights += [0.0, 1.0]
    return Sample(ids, weights)
