"""From the configuration to what does the slow work: a policy's sampler and its learner.

The only place that knows which kinds there are; recipes see the protocols ``PolicySampler`` and ``Learner``.
"""

from __future__ import annotations

from muarl.config import RunConfig
from muarl.errors import ConfigError
from muarl.inference.base import PolicySampler
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoints import Policy
from muarl.learning.learner import Learner, LearnerConfig, TorchLearner


def make_sampler(policy: Policy, config: RunConfig) -> PolicySampler:
    """The run's generation engine, with the policy's weights in it."""
    if config.engine.kind == "torch":
        return TorchEngine(
            policy.model, max_slots=config.rl.concurrency, max_context=config.model.max_context, seed=config.seed
        )
    raise ConfigError(f"engine.kind is {config.engine.kind}, which this version does not have")


def make_learner(policy: Policy, config: RunConfig, settings: LearnerConfig) -> Learner:
    """Who trains the policy's weights, under ``settings`` (the recipe's own: each has other losses and rates)."""
    if config.learner.kind == "torch":
        return TorchLearner(policy.model, policy.tokenizer, settings)
    raise ConfigError(f"learner.kind is {config.learner.kind}, which this version does not have")
