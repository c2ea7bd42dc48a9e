"""How benchmarks' official tasks are played: their worlds, rules, limits, prompts and seeds, to the letter.

``official(name)`` gives what a benchmark says of one of its domains (base.Official).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from muarl.domains.base import Task
from muarl.environments.official.acebench import AceOfficial
from muarl.environments.official.base import Mode, Official
from muarl.environments.official.bfcl import BfclOfficial
from muarl.environments.official.tau import TAU1_DOMAINS, TAU2_DOMAINS, Tau1, Tau2, has_ticket, trial_seeds
from muarl.errors import ConfigError

__all__ = [
    "FAMILIES",
    "HELD_OUT",
    "NAMES",
    "Mode",
    "Official",
    "draw_tasks",
    "has_ticket",
    "held_out",
    "official",
    "trial_seeds",
]

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "tau2": TAU2_DOMAINS,
    "tau1": TAU1_DOMAINS,
    "bfcl": ("v3", "v4"),
    "acebench": ("en", "zh"),
}
"""Each benchmark's domains. ``muarl.benchmarks.FAMILY`` gives them by ``domain(name)`` and ``tasks(name, split)``."""

KINDS: Mapping[str, type[Official]] = {"tau2": Tau2, "tau1": Tau1, "bfcl": BfclOfficial, "acebench": AceOfficial}

NAMES = tuple(f"{family}-{name}" for family, names in FAMILIES.items() for name in names)
"""What a configuration's ``domain.name`` may say, beside the generated domains."""


def official(name: str, mode: str = "auto", *, sampled: bool = False, training: bool = False) -> Official:
    """The benchmark domain of that name, such as "tau2-retail". ``mode``: see ``Mode``; "auto" for its own, which may
    depend on whether the agent is ``sampled`` from a checkpoint. In ``training`` there is but one.

    ConfigError if there is no such benchmark, or if it is not played in that mode.
    """
    if name not in NAMES:
        raise ConfigError(f"domain.name: {name!r} is no benchmark's domain; there are {', '.join(NAMES)}")
    kind = KINDS[name.partition("-")[0]]
    if training:
        return kind(name, kind.training_mode)
    usual = kind.sampled_mode if sampled else kind.modes[0]
    chosen = next((m for m in kind.modes if m == (usual if mode == "auto" else mode)), None)
    if chosen is None:
        raise ConfigError(f"eval.mode: {name} is played in mode {' or '.join(kind.modes)}, not {mode}")
    return kind(name, chosen)


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
