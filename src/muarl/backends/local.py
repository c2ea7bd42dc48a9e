"""Samplers and learners of one machine: in this process, or in others that it starts."""

from __future__ import annotations

from dataclasses import replace

from muarl.backends.vllm import takes_weights, vllm_sampler
from muarl.basics.errors import ConfigError
from muarl.config.parts import Compute
from muarl.inference.base import PolicySampler
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoints import Policy
from muarl.learning.learner import Learner, TorchLearner
from muarl.learning.process_group import ShardingConfig
from muarl.learning.settings import LearnerConfig, LoraSettings
from muarl.learning.workers import MultiProcessLearner


def local_sampler(policy: Policy, compute: Compute, *, adapters: bool = False) -> PolicySampler:
    """A generation engine with the policy's weights in it. ``adapters``: they are those that a learner elsewhere puts
    adapters on, and only these are sent."""
    return (
        torch_sampler(policy, compute, adapters=adapters)
        if compute.engine.kind == "torch"
        else vllm_sampler(policy, compute)
    )


def torch_sampler(policy: Policy, compute: Compute, *, adapters: bool = False) -> TorchEngine:
    """muarl's own engine, where the policy's model is. ``adapters``: see ``local_sampler``."""
    import torch

    engine, device = compute.engine, policy.model.device
    kind = engine.computes_in(compute.model.held, on_gpu=device.type == "cuda")
    return TorchEngine(
        policy.model,
        max_slots=compute.rollout.concurrency,
        max_context=compute.model.max_context,
        dtype=getattr(torch, kind),
        seed=compute.seed,
        steps=engine.compile,
        adapters=adapters,
    )


def local_learner(policy: Policy, compute: Compute, settings: LearnerConfig) -> Learner:
    """Who trains the policy's weights, under settings that ``learner_settings`` has completed."""
    if compute.engine.kind == "vllm" and settings.lora is None and not takes_weights(policy.model):
        raise ConfigError(
            f"engine.kind is vllm, which cannot take the weights of a model of type {policy.model.config.model_type!r} "
            "from a learner while it runs: set engine.kind=torch, or train adapters (learner.lora)"
        )
    if compute.learner.kind == "torch":
        return TorchLearner(policy.model, policy.tokenizer, settings)
    return MultiProcessLearner(
        policy.path, settings, sharding(compute), processes=compute.learner.processes, port=compute.learner.port
    )


def learner_settings(compute: Compute, settings: LearnerConfig) -> LearnerConfig:
    """A stage's loss and optimiser with what the configuration says besides: packing, precision, adapters, seed."""
    section, lora = compute.learner, compute.learner.lora
    return replace(
        settings,
        seed=compute.seed,
        token_budget=section.pack_tokens,
        precision=section.precision or compute.model.held,
        recompute=section.recompute,
        lora=None if lora is None else LoraSettings(lora.rank, lora.alpha, lora.targets),
    )


def sharding(compute: Compute) -> ShardingConfig:
    """How the processes of a sharded learner work."""
    import torch

    device = compute.model.device
    on_gpu = torch.cuda.is_available() if device == "auto" else device.startswith("cuda")
    section = compute.learner
    return ShardingConfig(
        "cuda" if on_gpu else "cpu",
        offload_reference=section.offload_reference,
        offload_optimizer=section.offload_optimizer,
        deadline=section.deadline,
    )
