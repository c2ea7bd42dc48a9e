"""What a configuration's ``rl`` section means to a learner: its settings, and the samples of scored groups."""

from __future__ import annotations

from muarl.config.rl import RlConfig
from muarl.config.sections import ModelConfig
from muarl.learning.advantages import ByTurn, group_samples
from muarl.learning.loss_options import PolicyLossConfig, PolicyLossOptions
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig
from muarl.rewards.layered import layered_reward
from muarl.rewards.shaped import shaped_reward
from muarl.rollouts.rollout import Groups

KL_EPISODES = 8
"""Episodes of a step on which KL is measured where it is not in the loss."""


def learner_config(rl: RlConfig, model: ModelConfig) -> LearnerConfig:
    """The loss and the optimiser of reinforcement learning, for a ``model`` of that context."""
    chosen = {name: getattr(rl, name) for name in PolicyLossOptions.model_fields}
    policy = PolicyLossConfig(
        **chosen,
        constant_length=model.max_context if rl.loss_aggregation == "dr_grpo" else None,
        # Filters of the sampler change what its log-probabilities mean, and a correction accounts for the difference
        # itself; the ratio is then taken to the learner's own.
        old_logprobs="sampler" if rl.top_p == 1.0 and not rl.corrects else "recompute",
    )
    updates = max(1, rl.steps * rl.epochs * rl.minibatches)
    schedule = ScheduleConfig(rl.schedule, rl.warmup, updates)
    optimizer = OptimizerConfig(
        kind=rl.optimizer,
        lr=rl.lr,
        muon_lr=rl.matrix_lr,
        weight_decay=rl.weight_decay,
        max_grad_norm=rl.grad_clip,
        schedule=schedule,
    )
    return LearnerConfig(optimizer=optimizer, policy=policy, start_kl=KL_EPISODES)


def samples_of(
    groups: Groups, rl: RlConfig, *, oldest: int | None = None, by_turn: ByTurn | None = None
) -> list[Sample]:
    """Groups of scored episodes as samples for the learner: ids, log-probabilities and an advantage each.

    ``oldest``: episodes with tokens of an older version than this count in their group's baseline, and are left out.
    ``by_turn``: see ``group_samples``.
    """
    return group_samples(
        [e for g in groups.kept for e in g.episodes],
        rewards=[reward for group in _rewards(groups, rl) for reward in group],
        advantage=rl.advantage,
        drop_zero_variance=rl.drop_zero_variance,
        oldest=oldest,
        by_turn=by_turn,
    )


def equal_groups(groups: Groups, rl: RlConfig) -> int:
    """How many of the kept groups give no gradient, since all their rewards (as the learner sees them) are the same."""
    return sum(len(set(rewards)) == 1 for rewards in _rewards(groups, rl))


def _rewards(groups: Groups, rl: RlConfig) -> list[list[float]]:
    """The rewards of each kept group, with what shaping and layers add and take."""
    weights, layers = rl.shaping.model_dump(), rl.layers
    return [
        [layered_reward(shaped_reward(e, weights), e, layers.penalties, layers.gates) for e in group.episodes]
        for group in groups.kept
    ]
