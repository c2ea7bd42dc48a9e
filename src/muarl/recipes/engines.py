"""From the configuration to what does the slow work: a policy's sampler, its learner, and where episodes are played.

Here is chosen between this machine (``local``) and a cluster (``clustered``); recipes see the protocols
``PolicySampler``, ``Learner``, ``Executor``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from muarl.agents.sampled import SampledAgent, Sampling
from muarl.config import RunConfig
from muarl.inference.base import PolicySampler, Sampler
from muarl.learning.checkpoints import Policy
from muarl.learning.learner import Learner, LearnerConfig
from muarl.models.weights import copy_weights
from muarl.player import Player
from muarl.recipes.checkpoint_names import checkpoint_name
from muarl.recipes.clustered import clustered_executor, clustered_learner, clustered_sampler, joined
from muarl.recipes.local import learner_settings, local_learner, local_sampler
from muarl.recipes.notes import model_notes
from muarl.rollout import Executor, LocalExecutor
from muarl.tokens import ChatTokens


def machines(config: RunConfig, *, alone: bool = False) -> AbstractContextManager[None]:
    """The machines that a training run works on, held while it does; nothing to hold where that is this process.
    ``alone``: the run is all learning, nobody samples for it."""
    return nullcontext() if config.cluster.address is None else joined(config, alone=alone)


def make_executor(player: Player, config: RunConfig) -> Executor:
    """Where ``player``'s training episodes are played: by it, or by others who are made like it elsewhere."""
    if config.cluster.address is not None:
        return clustered_executor(config, player)
    return LocalExecutor(player.play, config.rl.concurrency)


def make_sampler(policy: Policy, config: RunConfig) -> PolicySampler:
    """The run's generation engine, with the policy's weights in it."""
    if config.cluster.address is not None:
        return clustered_sampler(policy, config)
    return local_sampler(policy, config)


def make_agent(
    policy: Policy,
    config: RunConfig,
    *,
    temperature: float,
    top_p: float = 1.0,
    engine: Sampler | None = None,
    name: str | None = None,
) -> SampledAgent:
    """An agent that samples from a policy, through an engine of its own if none is given. ``name``: None for that of
    the checkpoint which holds the policy's weights."""
    engine = engine or make_sampler(policy, config)
    sampling = Sampling(config.rl.tokens_per_turn, config.model.max_context, temperature, top_p)
    chat = ChatTokens(policy.tokenizer, thinking=config.model.thinking)
    return SampledAgent(engine, chat, sampling, name=name or checkpoint_name(policy.path))


def make_learner(policy: Policy, config: RunConfig, settings: LearnerConfig) -> Learner:
    """Who trains the policy's weights, under ``settings`` (the recipe's own: each has other losses and rates)."""
    settings = replace(learner_settings(config, settings), notes=model_notes(config, policy.path))
    if config.cluster.address is not None:
        return clustered_learner(policy, config, settings)
    return local_learner(policy, config, settings)


def learns_here(config: RunConfig) -> bool:
    """Whether this process itself trains the weights."""
    return config.cluster.address is None and config.learner.kind == "torch"


def samples_here(config: RunConfig) -> bool:
    """Whether this process itself generates with the weights."""
    return config.cluster.address is None and config.engine.kind == "torch"


def settle(policy: Policy, learner: Learner, checkpoint: Path | None) -> None:
    """Training is over: the policy's model gets the learner's weights, where it has other memory, and the learner is
    closed. ``checkpoint``: where these weights were saved, if they were."""
    if policy.model.device.type != "meta":
        copy_weights(learner.weights(), policy.model)
    policy.path = checkpoint or policy.path
    learner.close()
