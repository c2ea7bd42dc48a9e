"""What the tests of sharded learners share: samples, settings, and the same run on one process and on several."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file

from muarl.inference.base import AdapterWeights
from muarl.learning.checkpoints import load_policy
from muarl.learning.learner import Learner, TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Sample
from muarl.learning.process_group import ShardingConfig
from muarl.learning.settings import LearnerConfig
from muarl.learning.workers import MultiProcessLearner

VOCAB = 40
WAITS = ShardingConfig(deadline=900.0)
TIMES = ("seconds", "tokens_per_second")
SPREAD = ("padding", "shared")
"""Figures that say how the work was spread, and so differ with it."""


def episodes(seed: int, count: int = 7, longest: int = 30) -> list[Sample]:
    """Episodes of very different lengths, with the log-probabilities of nobody in particular."""
    source = random.Random(seed)
    found = []
    for _ in range(count):
        n = source.randint(6, longest)
        mask = [t >= 3 and source.random() < 0.7 for t in range(n)]
        mask[-1] = True
        ids = [source.randrange(VOCAB) for _ in range(n)]
        found.append(Sample.sampled(ids, mask, [-4 * source.random() for _ in ids], source.uniform(-1, 1)))
    return found


def demonstrations(seed: int, count: int = 7) -> list[Sample]:
    return [Sample.supervised(s.ids, [w == 1 for w in s.weights], 0.1) for s in episodes(seed, count)]


def settings(policy: PolicyLossConfig | None = None, kind: str = "adamw", **fields: object) -> LearnerConfig:
    """Small micro-batches; an epsilon that keeps Adam from blowing up the rounding of gradients that are nearly 0."""
    optimizer = OptimizerConfig(kind=kind, lr=3e-3, eps=1e-4, schedule=ScheduleConfig(warmup_steps=2))  # type: ignore[arg-type]
    policy = policy or PolicyLossConfig(kl_coef=0.1)
    return LearnerConfig(**{"optimizer": optimizer, "policy": policy, "token_budget": 40} | fields)  # type: ignore[arg-type]


def one(folder: Path, config: LearnerConfig) -> TorchLearner:
    policy = load_policy(folder)
    return TorchLearner(policy.model, policy.tokenizer, config)


def several(folder: Path, config: LearnerConfig, processes: int = 2) -> MultiProcessLearner:
    return MultiProcessLearner(folder, config, WAITS, processes=processes)


def same_metrics(ours: Mapping[str, float], theirs: Mapping[str, float], tolerance: float = 1e-5) -> None:
    """All figures agree to ``tolerance`` (relative above 1), but for those about time and spread."""
    assert ours.keys() == theirs.keys()
    for name in ours.keys() - {*TIMES, *SPREAD}:
        assert abs(ours[name] - theirs[name]) <= tolerance * max(1.0, abs(theirs[name])), name


def same_weights(ours: Learner, theirs: Learner, tolerance: float = 1e-5) -> None:
    mine, others = dict(ours.weights()), dict(theirs.weights())
    assert mine.keys() == others.keys()
    for name in mine:
        torch.testing.assert_close(mine[name], others[name].cpu(), atol=tolerance, rtol=0.0, msg=name)


def same_adapters(many: Learner, alone: TorchLearner, folder: Path) -> None:
    """What samplers that take adapters get, if the learners train any."""
    ours, theirs = many.weights, alone.weights
    assert isinstance(ours, AdapterWeights) == isinstance(theirs, AdapterWeights) == (alone.config.lora is not None)
    if isinstance(ours, AdapterWeights) and isinstance(theirs, AdapterWeights):
        for name, weights in (("many", ours), ("alone", theirs)):
            weights.write_adapter(folder / name)
        found, expected = (load_file(folder / name / "adapter_model.safetensors") for name in ("many", "alone"))
        assert found.keys() == expected.keys()
        for name, value in found.items():
            torch.testing.assert_close(value, expected[name], atol=1e-4, rtol=1e-3)


def run(learner: Learner, steps: Sequence[int]) -> list[dict[str, float]]:
    """Policy updates on the episodes of these seeds, with a supervised one after each."""
    found = []
    for seed in steps:
        found += [learner.policy_step(episodes(seed)), learner.sft_step(demonstrations(seed))]
    return found
