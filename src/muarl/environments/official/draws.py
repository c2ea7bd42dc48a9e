"""Draws of benchmarks' official tasks, for training on them where that is allowed, and for evaluation."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from muarl.basics.errors import ConfigError
from muarl.domains.base import Task
from muarl.environments.official.base import Official

HELD_OUT = 5
"""One in so many training tasks is validated on, where a benchmark has no tasks for that."""


def held_out(source: Official) -> tuple[Sequence[Task], Sequence[Task]]:
    """A benchmark's training tasks as (trained on, validated on), the same ones in every run."""
    found = source.tasks(source.training_split)
    chosen = set(random.Random(f"held out of {source.name}").sample(range(len(found)), len(found) // HELD_OUT))
    return [t for n, t in enumerate(found) if n not in chosen], [t for n, t in enumerate(found) if n in chosen]


def draw_tasks(source: Official, *, validating: bool = False) -> Callable[[str, int, int, int], Sequence[Task]]:
    """``draw(split, count, seed, start)`` over official tasks: in file order, as many as there are; ``train`` without
    end.

    Training goes round the official training tasks, each round in a new order. A round is as many whole draws as there
    are tasks for, so that no draw holds a task twice; a draw larger than the split is the whole split.

    ``validation`` is the split that the benchmark has for it. Where there is none, training that is ``validating``
    holds out a share of its tasks, which are then not trained on; otherwise ConfigError.
    """

    def draw(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        shares = validating and source.validation_split is None
        if split == "validation" and source.validation_split is None and not shares:
            raise ConfigError(
                f"{source.name} has no validation tasks: set rl.eval_every=0 in training, and eval.split=test in "
                "evaluation"
            )
        if shares and split in ("train", "validation"):
            found = held_out(source)[split == "validation"]
        else:
            own = {"train": source.training_split, "validation": source.validation_split}
            found = source.tasks(own.get(split) or split)
        if split != "train":
            return found[start : start + count]
        turn, place = divmod(start // count, max(1, len(found) // count))
        order = random.Random(f"official round {seed} {turn}").sample(found, len(found))
        return order[place * count : (place + 1) * count]

    return draw
