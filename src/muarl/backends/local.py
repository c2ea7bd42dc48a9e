"""Samplers and learners of one machine: in this process, or in others that it starts."""

from __future__ import annotations

from dataclasses import replace

from muarl.backends.vllm import takes_weights, vllm_sampler
from muarl.basics.errors import ConfigError
from muarl.config import RunConfig
from muarl.inference.base import PolicySampler
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoints import Policy
from muarl.learning.group import ShardingConfig
from muarl.learning.learner import Learner, LearnerConfig, LoraSettings, TorchLearner
from muarl.learning.workers import MultiProcessLearner


def local_sampler(policy: Policy, config: RunConfig, *, adapters: bool = False) -> PolicySampler:
    """A generation engine with the policy's weights in it. ``adapters``: they are those that a learner elsewhere puts
    adapters on, and only these are sent."""
    return (
        torch_sampler(policy, config, adapters=adapters)
        if config.engine.kind == "torch"
        else vllm_sampler(policy, config)
    )


def torch_sampler(policy: Policy, config: RunConfig, *, adapters: bool = False) -> TorchEngine:
    """muarl's own engine, where the policy's model is. ``adapters``: see ``local_sampler``."""
    import torch

    engine, device = config.engine, policy.model.device
    kind = engine.computes_in(config.model.held, on_gpu=device.type == "cuda")
    return TorchEngine(
        policy.model,
        max_slots=config.rollout.concurrency,
        max_context=config.model.max_context,
        dtype=getattr(torch, kind),
        seed=config.seed,
        steps=engine.compile,
        adapters=adapters,
    )


def local_learner(policy: Policy, config: RunConfig, settings: LearnerConfig) -> Learner:
    """Who trains the policy's weights, under settings that ``learner_settings`` has completed."""
    if config.engine.kind == "vllm" and settings.lora is None and not takes_weights(policy.model):
        raise ConfigError(
            f"engine.kind is vllm, which cannot take the weights of a model of type {policy.model.config.model_type!r} "
            "from a learner while it runs: set engine.kind=torch, or train adapters (learner.lora)"
        )
    if config.learner.kind == "torch":
        return TorchLearner(policy.model, policy.tokenizer, settings)
    return MultiProcessLearner(
        policy.path, settings, sharding(config), processes=config.learner.processes, port=config.learner.port
    )


def learner_settings(config: RunConfig, settings: LearnerConfig) -> LearnerConfig:
    """A stage's loss and optimiser with what the configuration says besides: packing, precision, adapters, seed."""
    section, lora = config.learner, config.learner.lora
    return replace(
        settings,
        seed=config.seed,
        token_budget=section.pack_tokens,
        precision=section.precision or config.model.held,
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
