"""The seeds of the tasks that each stage of a run draws. Stages of one run never meet each other's tasks, and runs of
different seeds draw different ones."""

from __future__ import annotations

from muarl.config import BaseConfig, RlConfig, SftConfig

RUN = 1000
"""How far apart the seeds of runs with neighbouring ``seed`` lie."""
RL = 500_000
"""Where reinforcement learning's seeds begin; demonstrations' begin at 0."""
PRETRAINING = 7_000_000
"""Where the seeds of pretraining's conversations begin."""
PRACTICE = 40_000_000
"""Where the seeds of tasks begin that are made because others have failed."""


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
