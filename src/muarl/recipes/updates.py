"""What a configuration's ``rl`` section means to a learner: its settings, and the samples of scored groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl.config import RunConfig
from muarl.learning.advantages import group_advantages
from muarl.learning.corrections import Correction
from muarl.learning.learner import LearnerConfig, PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Sample
from muarl.rewards.layered import layered_reward
from muarl.rewards.shaped import shaped_reward
from muarl.rollout import Groups

ADVANTAGES: Mapping[str, Mapping[str, Any]] = {
    "group_std": {"baseline": "mean", "scale": "std"},
    "group_mean": {"baseline": "mean", "scale": "none"},
    "leave_one_out": {"baseline": "leave_one_out", "scale": "none"},
}


def learner_config(config: RunConfig) -> LearnerConfig:
    """The learner's settings that a configuration's rl section stands for."""
    rl = config.rl
    correction = Correction(rl.correction, rl.correction_cap, rl.sequence_mask)
    policy = PolicyLossConfig(
        ratio=rl.ratio,
        clip_low=rl.clip_low,
        clip_high=rl.clip_high,
        dual_clip=rl.dual_clip,
        aggregation=rl.loss_aggregation,
        constant_length=config.model.max_context if rl.loss_aggregation == "dr_grpo" else None,
        kl_coef=rl.kl_coef,
        kl_estimator=rl.kl_estimator,
        temperature=rl.temperature,
        epochs=rl.epochs,
        minibatches=rl.minibatches,
        # Filters of the sampler change what its log-probabilities mean, and a correction accounts for the difference
        # itself; the ratio is then taken to the learner's own.
        old_logprobs="sampler" if rl.top_p == 1.0 and not correction.active else "recompute",
        correction=correction,
    )
    updates = max(1, rl.steps * rl.epochs * rl.minibatches)
    schedule = ScheduleConfig(rl.schedule, rl.warmup, updates)
    optimizer = OptimizerConfig(lr=rl.lr, weight_decay=rl.weight_decay, max_grad_norm=rl.grad_clip, schedule=schedule)
    return LearnerConfig(
        optimizer=optimizer,
        policy=policy,
        token_budget=rl.pack_tokens,
        precision=config.model.dtype,
        seed=config.seed,
    )


def samples_of(groups: Groups, config: RunConfig, *, oldest: int | None = None) -> list[Sample]:
    """Groups of scored episodes as samples for the learner: ids, log-probabilities and an advantage each.

    ``oldest``: episodes with tokens of an older version than this count in their group's baseline, and are left out.
    """
    episodes = [e for g in groups.kept for e in g.episodes]
    names = [g.name for g in groups.kept for _ in g.episodes]
    rewards = [reward for group in _rewards(groups, config) for reward in group]
    kind = ADVANTAGES[config.rl.advantage]
    advantages = group_advantages(rewards, names, drop_zero_variance=config.rl.drop_zero_variance, **kind)
    samples = []
    for episode, advantage, kept in zip(episodes, advantages.values, advantages.kept, strict=True):
        t = episode.tokens
        episode.tags["advantage"] = float(advantage)  # for whoever reads the episode; the learner has its own
        if kept and t is not None and t.sampled_count and (oldest is None or t.oldest_version >= oldest):
            samples.append(Sample.sampled(t.ids, t.loss_mask, t.logprobs, float(advantage)))
    return samples


def equal_groups(groups: Groups, config: RunConfig) -> int:
    """How many of the kept groups give no gradient, since all their rewards (as the learner sees them) are the same."""
    return sum(len(set(rewards)) == 1 for rewards in _rewards(groups, config))


def _rewards(groups: Groups, config: RunConfig) -> list[list[float]]:
    """The rewards of each kept group, with what shaping and layers add and take."""
    weights, layers = config.rl.shaping.model_dump(), config.rl.layers
    return [
        [layered_reward(shaped_reward(e, weights), e, layers.penalties, layers.gates) for e in group.episodes]
        for group in groups.kept
    ]
