"""The tasks of a run: the seeds that each stage draws them by, how many are validated on, and that they can be trained
on. Stages of one run never meet each other's tasks, and runs of different seeds draw different ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from muarl.basics.errors import ConfigError
from muarl.config.rl import PracticeConfig, RlConfig
from muarl.config.sections import DomainConfig, EvalConfig
from muarl.config.stages import BaseConfig, SftConfig
from muarl.domains.tasks import Task, kind_of
from muarl.environments.benchmark_training import benchmarks_played
from muarl.environments.places import Places
from muarl.environments.registry import find

RUN = 1000
"""How far apart the seeds of runs with neighbouring ``seed`` lie."""
RL = 500_000
"""Where reinforcement learning's seeds begin; demonstrations' begin at 0."""
PRETRAINING = 7_000_000
"""Where the seeds of pretraining's conversations begin."""
PRACTICE = 40_000_000
"""Where the seeds of tasks begin that are made because others have failed."""
AHEAD = 1000
"""Training tasks whose gold actions are replayed before the first step."""


def demonstration_seed(sft: SftConfig, run_seed: int) -> int:
    """Of the tasks that demonstrations are made of."""
    return sft.seed + RUN * run_seed


def rl_seed(rl: RlConfig, run_seed: int) -> int:
    """Of the tasks that reinforcement learning draws."""
    return rl.seed + RUN * run_seed + RL


def pretraining_seed(base: BaseConfig) -> int:
    """Of the tasks that a base checkpoint's conversations are made of."""
    return base.seed + PRETRAINING


def practice_seed(number: int) -> int:
    """Of the tasks that ``muarl tasks practise`` makes. ``number``: as the person gives it."""
    return number + PRACTICE


def validation_tasks(ev: EvalConfig, places: Places) -> Sequence[Task]:
    """The tasks of a validation in training."""
    return places.draw("validation", ev.validation_tasks, ev.seed, 0)


def check_may_train(
    domains: Sequence[DomainConfig], *, on_benchmark: bool, files: Mapping[str, str | Path | None] | None = None
) -> None:
    """ConfigError if a run would train on a benchmark's own tasks without saying so (``train_on_benchmark``): in these
    domains, or on the conversations in ``files``, by the settings that name them."""
    for setting, file in (files or {}).items():
        if file is not None and not on_benchmark and (played := benchmarks_played(file)):
            raise ConfigError(
                f"{setting}: {file} holds conversations about a benchmark's own tasks ({', '.join(played)}), and "
                "learning from them makes its scores meaningless: take others, or set train_on_benchmark=true if this "
                "is what you want."
            )
    for environment in (find(domain.name) for domain in domains):
        if environment.is_benchmark and not on_benchmark:
            instead = f"Train on domain.name={environment.practice}, or set" if environment.practice else "Set"
            raise ConfigError(
                f"domain.name is {environment.name}: training on a benchmark's own tasks makes its scores meaningless. "
                f"{instead} train_on_benchmark=true if this is what you want."
            )


def check_tasks(rl: RlConfig, places: Places) -> list[str]:
    """Check that there are tasks to train on and, where training is to validate, to validate on; what is worth knowing
    about them, line by line. DataError or ConfigError if there are none."""
    check_practice(rl.practice, places)
    places.example_tasks("train")
    if not rl.eval_every:
        return []
    places.example_tasks("validation")
    return [f"{note} (rl.eval_every=0 trains on all of them)" for note in places.validation_notes()]


def demonstration_notes(sft: SftConfig, places: Places) -> list[str]:
    """What is worth knowing about the tasks that demonstrations are made of, line by line: those that reinforcement
    learning validates on are held out of them, too."""
    return places.validation_notes() if sft.demonstrations_file is None else []


def check_practice(practice: PracticeConfig, places: Places) -> None:
    """ConfigError if tasks are to be chosen by kind (``rl.practice.adaptive``), and do not say of which kind they
    are."""
    if not practice.adaptive:
        return
    for task in places.example_tasks("train"):
        if kind_of(task.tags) is None:
            raise ConfigError(
                f"rl.practice.adaptive: task {task.id} has no tag `intent`, and tasks are chosen by it: give the "
                "environment's tasks this tag, or set rl.practice.adaptive=false"
            )


def check_gold(rl: RlConfig, ev: EvalConfig, seed: int, places: Places) -> None:
    """Replay the gold actions of the tasks that a training run will draw: all for validation, the first ``AHEAD`` to
    train on. Those drawn later are replayed as they are drawn. ``seed``: the run's. DataError names one that fails.

    Nothing is replayed that a generator has (``Place.check``).
    """
    if places.replayed:
        return
    first = rl_seed(rl, seed)
    if rl.eval_every:
        places.check(validation_tasks(ev, places))
    for start in range(0, min(rl.steps * rl.tasks_per_step, AHEAD), rl.tasks_per_step):
        places.check(places.draw("train", rl.tasks_per_step, first, start))
