"""From the configuration to what does the slow work: a policy's sampler, its learner, and where episodes are played.

The only place that knows which kinds there are; recipes see the protocols ``PolicySampler``, ``Learner``, ``Executor``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from muarl.config import RunConfig
from muarl.inference.base import PolicySampler
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoints import Policy
from muarl.learning.group import ShardingConfig
from muarl.learning.learner import Learner, LearnerConfig, LoraSettings, TorchLearner
from muarl.learning.workers import MultiProcessLearner
from muarl.models.weights import copy_weights
from muarl.player import Player
from muarl.recipes.clustered import clustered_executor, clustered_learner, clustered_sampler, joined
from muarl.recipes.serving import vllm_sampler
from muarl.rollout import Executor, LocalExecutor


def machines(config: RunConfig) -> AbstractContextManager[None]:
    """The machines that a training run works on, held while it does; nothing to hold where that is this process."""
    return nullcontext() if config.cluster.address is None else joined(config)


def make_executor(player: Player, config: RunConfig) -> Executor:
    """Where ``player``'s training episodes are played: by it, or by others who are made like it elsewhere."""
    if config.cluster.address is not None:
        return clustered_executor(config, player)
    return LocalExecutor(player.play, config.rl.concurrency)


def make_sampler(policy: Policy, config: RunConfig) -> PolicySampler:
    """The run's generation engine, with the policy's weights in it."""
    if config.cluster.address is not None:
        return clustered_sampler(policy, config)
    if config.engine.kind == "torch":
        return TorchEngine(
            policy.model, max_slots=config.rl.concurrency, max_context=config.model.max_context, seed=config.seed
        )
    return vllm_sampler(policy, config)


def make_learner(policy: Policy, config: RunConfig, settings: LearnerConfig) -> Learner:
    """Who trains the policy's weights, under ``settings`` (the recipe's own: each has other losses and rates)."""
    settings = learner_settings(config, settings)
    if config.cluster.address is not None:
        return clustered_learner(policy, config, settings)
    if config.learner.kind == "torch":
        return TorchLearner(policy.model, policy.tokenizer, settings)
    return MultiProcessLearner(
        policy.path, settings, sharding(config), processes=config.learner.processes, port=config.learner.port
    )


def learns_here(config: RunConfig) -> bool:
    """Whether this process itself trains the weights."""
    return config.cluster.address is None and config.learner.kind == "torch"


def samples_here(config: RunConfig) -> bool:
    """Whether this process itself generates with the weights."""
    return config.cluster.address is None and config.engine.kind == "torch"


def learner_settings(config: RunConfig, settings: LearnerConfig) -> LearnerConfig:
    """A recipe's settings with what the section ``learner`` says besides."""
    section, lora = config.learner, config.learner.lora
    return replace(
        settings,
        precision=section.precision or settings.precision,
        recompute=section.recompute,
        lora=None if lora is None else LoraSettings(lora.rank, lora.alpha, lora.targets),
    )


def sharding(config: RunConfig) -> ShardingConfig:
    """How the processes of a sharded learner work."""
    import torch

    device = config.model.device
    on_gpu = torch.cuda.is_available() if device == "auto" else device.startswith("cuda")
    section = config.learner
    return ShardingConfig(
        "cuda" if on_gpu else "cpu",
        offload_reference=section.offload_reference,
        offload_optimizer=section.offload_optimizer,
        deadline=section.deadline,
    )


def settle(policy: Policy, learner: Learner, checkpoint: Path | None) -> None:
    """Training is over: the policy's model gets the learner's weights, where it has other memory, and the learner is
    closed. ``checkpoint``: where these weights were saved, if they were."""
    if policy.model.device.type != "meta":
        copy_weights(learner.weights(), policy.model)
    policy.path = checkpoint or policy.path
    learner.close()
