"""From the configuration to vLLM: an engine of this process, servers of ours, or servers that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from muarl.basics.errors import ConfigError
from muarl.config.parts import Compute
from muarl.config.scale import adapter_room
from muarl.inference.base import PolicySampler
from muarl.learning.checkpoint_files import WeightReader
from muarl.models.weights import family_of, stored_weights, travels_as_stored

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from muarl.inference.vllm.servers import Transport
    from muarl.inference.vllm.settings import VllmSettings
    from muarl.learning.checkpoints import Policy

NOT_REPLACED = frozenset({"gpt_oss"})
"""Families whose weights vLLM 0.32 copies past the loaders that its reloading waits for: the old ones would stay."""


def vllm_sampler(policy: Policy, compute: Compute) -> PolicySampler:
    """vLLM with the policy's present weights, as version 0: its folder may hold older ones.

    ConfigError if vLLM is not installed or cannot do what is asked; InfrastructureError if it does not come up.
    """
    from muarl.inference.vllm.engine import VllmEngine
    from muarl.inference.vllm.pool import Patience
    from muarl.inference.vllm.servers import VllmServers, connect_servers, start_servers
    from muarl.inference.vllm.settings import require_vllm

    engine = compute.engine
    if not engine.urls:
        require_vllm()
    can_take = takes_weights(policy.model)
    if not can_take and not _is_stored(policy):
        family = family_of(policy.model)
        raise ConfigError(
            f"engine.kind is vllm, which cannot take the weights of a model of type {family!r} while it runs, and "
            f"those in {policy.path} are older: begin with a checkpoint of what was trained, or set engine.kind=torch"
        )
    sampler: VllmEngine | VllmServers
    patience = Patience(
        deadline=engine.deadline, start=engine.start_deadline, update=engine.update_deadline, restarts=engine.restarts
    )
    if engine.urls:
        way, room = transport(policy, compute), adapter_room(engine, compute.learner)
        sampler = connect_servers(engine.urls, patience=patience, transport=way, adapters=room > 0)
    else:
        settings = vllm_settings(policy, compute)
        if engine.servers:
            way = transport(policy, compute)
            sampler = start_servers(settings, engine.servers, patience=patience, transport=way)
        else:
            sampler = VllmEngine(
                settings,
                deadline=engine.deadline,
                update_deadline=engine.update_deadline,
                update_folder=engine.update_folder,
            )
    if can_take:
        sampler.load(policy.weights, 0)
    return sampler


def takes_weights(model: PreTrainedModel) -> bool:
    """Whether a running vLLM can be given all weights of such a model: a learner has them under the names and in the
    shapes of checkpoints, and vLLM can put them in place of others."""
    return family_of(model) not in NOT_REPLACED and travels_as_stored(model)


def _is_stored(policy: Policy) -> bool:
    """Whether the policy's folder holds its present weights."""
    if policy.model.device.type == "meta":
        return True
    stored = WeightReader(policy.path)
    for name, tensor in stored_weights(policy.model, policy.model.named_parameters()).items():
        if name in stored.shapes:
            value = stored.read(name)
            if not torch.equal(value, tensor.to(value.device, value.dtype)):
                return False
    return True


def vllm_settings(policy: Policy, compute: Compute) -> VllmSettings:
    """What each engine of this run is told."""
    from muarl.inference.vllm.settings import VllmSettings, on_cpu

    engine = compute.engine
    return VllmSettings(
        model=str(policy.path),
        max_context=compute.model.max_context,
        max_sequences=engine.max_sequences,
        dtype=engine.computes_in(compute.model.held, on_gpu=not on_cpu()),
        tensor_parallel=engine.tensor_parallel,
        first_device=engine.first_device,
        memory=engine.memory,
        cache_gib=engine.cache_gib,
        lora_rank=adapter_room(engine, compute.learner),
        seed=compute.seed,
        sleep=engine.sleep,
        start_deadline=engine.start_deadline,
    )


def transport(policy: Policy, compute: Compute) -> Transport:
    """How this run's weights travel; see ``engine.update``."""
    from muarl.inference.vllm.servers import Transport
    from muarl.inference.vllm.settings import on_cpu

    engine = compute.engine
    kind = engine.update
    if kind == "auto":
        if engine.urls:
            kind = "stream" if engine.update_folder is None else "file"
        elif engine.update_folder is not None:
            kind = "file"
        else:
            direct = _apart(policy, compute) and not adapter_room(engine, compute.learner)
            kind = "nccl" if direct else "shared_memory"
    if kind == "nccl":
        return Transport("nccl", devices=engine.tensor_parallel)
    # Nobody knows what servers elsewhere compute in, unless they are said to.
    number = engine.computes_in(compute.model.held, on_gpu=not engine.urls and not on_cpu())
    return Transport(kind, engine.update_folder, getattr(torch, number))


def _apart(policy: Policy, compute: Compute) -> bool:
    """Whether the learner is this process on a GPU that no server uses."""
    engine = compute.engine
    device = next(policy.model.parameters()).device
    if not engine.servers or device.type != "cuda" or compute.learner.kind != "torch":
        return False
    servers = range(engine.first_device, engine.first_device + engine.servers * engine.tensor_parallel)
    return servers.stop <= torch.cuda.device_count() and (device.index or 0) not in servers
