"""A run's parts on a cluster: what each process there makes of the run's configuration.

The functions at the top run in those processes. They get plain values and folders, and look for checkpoints and data
where this machine does: both must lie in a file system that all machines share, or be installed on each.
"""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.agents.sampled import SampledAgent, Sampling
from muarl.cluster.learners import ClusterLearner, LearnerActor, make_learners
from muarl.cluster.places import Part
from muarl.cluster.runtime import Cluster, Each, join
from muarl.cluster.samplers import Board, ClusterSampler, RoutedSampler, SamplerActor
from muarl.cluster.workers import ActorWorker, ClusterExecutor, WorkerActor
from muarl.config import RunConfig
from muarl.config.scale import ClusterConfig, adapter_room
from muarl.episode import Episode
from muarl.errors import ConfigError
from muarl.inference.base import PolicySampler
from muarl.learning.checkpoints import Policy, load_tokenizer
from muarl.observe.system import usable_cores
from muarl.planning.assumptions import GIB, Assumptions
from muarl.planning.memory import host_memory, learner_memory
from muarl.planning.setup import deployment
from muarl.player import Player, RolloutRequest
from muarl.recipes.checkpoint_names import SHIPPED, checkpoint_folder
from muarl.recipes.common import load_model, make_player, make_users
from muarl.recipes.hardware import Machines, of_resources
from muarl.recipes.local import local_learner, local_sampler, sharding
from muarl.recipes.planned import model_shape, plan_of
from muarl.recipes.setting import make_setting
from muarl.tokens import ChatTokens

if TYPE_CHECKING:
    from muarl.learning.learner import Learner, LearnerConfig

Values = Mapping[str, Any]
"""A run configuration as JSON values."""

# ---- in the cluster's processes


def set_up(threads: int, seed: int) -> None:
    """Threads and seeds of this process, as ``prepare`` sets them in a run of one process."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import random

    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    random.seed(seed)


def build_sampler(values: Values) -> PolicySampler:
    """A sampler with the weights of ``model.checkpoint``."""
    config = RunConfig.model_validate(values)
    policy = load_model(config.model, weights=config.engine.kind == "torch")  # vLLM reads the folder itself
    return local_sampler(policy, config)


def build_player(
    values: Values, sampler: RoutedSampler, sampling: Sampling
) -> Callable[[RolloutRequest], Awaitable[Episode]]:
    """Who plays training episodes: world, users and agent of the run."""
    config = RunConfig.model_validate(values)
    setting = make_setting(config)
    tokenizer = load_tokenizer(checkpoint_folder(config.model.checkpoint))
    agent = SampledAgent(sampler, ChatTokens(tokenizer, thinking=config.model.thinking), sampling)
    return make_player(setting, agent, make_users(config.user, setting)).play


def build_learner(values: Values, settings: LearnerConfig, rank: int, world: int, address: str) -> Learner:
    """Process ``rank`` of a learner that begins with the weights of ``model.checkpoint``."""
    from muarl.learning.fsdp import ShardedLearner

    config = RunConfig.model_validate(values)
    if config.learner.kind == "fsdp":
        folder = checkpoint_folder(config.model.checkpoint)
        return ShardedLearner(folder, settings, sharding(config), rank=rank, world=world, address=address)
    return local_learner(load_model(config.model), config, settings)


# ---- in the driver

PROCESS_BYTES = 400 * 2**20
"""Memory of a process with torch in it that has done nothing yet."""

_joined: list[tuple[RunConfig, Cluster]] = []
"""The cluster that this process has joined, and for which run. Ray allows one at a time."""


@contextmanager
def joined(config: RunConfig, *, alone: bool = False) -> Iterator[None]:
    """The run's cluster, from here to the end of the block. See ``join`` for what may be wrong with it. ``alone``: the
    run needs a learner there and nobody else.
    """
    c = config.cluster
    if c.address is None or _joined:
        raise ConfigError("cluster.address: this process is part of a cluster already")
    cores = usable_cores() if c.address == "local" else None
    parts = parts_of(config)
    parts = parts[:1] if alone else parts
    cluster = join(c.address, parts, timeout=c.start_timeout, spread=c.spread, cores=cores)
    _joined.append((config, cluster))
    try:
        check_gpus(config, of_resources(cluster.resources), alone=alone)
        yield
    finally:
        _joined.clear()
        cluster.close()


def cluster_of(config: RunConfig) -> Cluster:
    """The cluster that this process has joined. ConfigError if it has joined none."""
    if not _joined or _joined[0][0] != config:
        raise ConfigError("cluster.address: only `muarl train` and `muarl sft` run on a cluster; leave it out here")
    return _joined[0][1]


def parts_of(config: RunConfig) -> list[Part]:
    """What the run needs, the learner first. Of the machines' own memory only what is certainly taken is reserved: of a
    process with a GPU, itself and what is moved off its GPU."""
    c = config.cluster
    shape = model_shape(config)
    setup = deployment(config, shape, on_gpu=c.learner_gpus > 0).learner
    weights = shape.parameters * setup.frozen_bytes
    moved = sum(host_memory(shape, setup).values())
    learner = PROCESS_BYTES + (moved if c.learner_gpus else sure_learner_bytes(config, on_gpu=False))
    # Without a GPU: the model, and the engine's own copy.
    sampler = PROCESS_BYTES + (0 if c.sampler_gpus else 2 * weights)
    return [
        Part("learner", config.learner.processes, c.learner_cpus, c.learner_gpus, learner),
        Part("sampler", c.samplers, c.sampler_cpus, c.sampler_gpus, sampler, "cluster.samplers"),
        Part("rollout worker", c.rollout_workers, c.worker_cpus, 0.0, PROCESS_BYTES, "cluster.rollout_workers"),
    ]


def sure_learner_bytes(config: RunConfig, *, on_gpu: bool, compared: bool = True) -> int:
    """What a learner process certainly takes on its device, whatever the episodes' lengths. ``compared``: with a
    reference model, where the configuration has one."""
    shape = model_shape(config)
    held = learner_memory(shape, deployment(config, shape, on_gpu=on_gpu).learner)
    return sum(held.get(name, 0) for name in ("weights", "gradients", "optimiser", *(("reference",) * compared)))


def check_gpus(config: RunConfig, found: Machines | None, *, alone: bool = False) -> None:
    """ConfigError, with the nearest settings that fit, if the cluster's GPUs are too small for the learner. Without a
    complaint where Ray does not say which GPUs there are. ``alone``: see ``joined``."""
    if not config.cluster.learner_gpus or found is None or found.kind is None:
        return
    device = found.assumed(Assumptions()).device
    needed = sure_learner_bytes(config, on_gpu=True, compared=not alone)
    if needed <= device.memory:
        return
    _, fitting = plan_of(config, Assumptions(), seen=found)
    hint = f"The nearest that fits: {' '.join(fitting)}" if fitting else "No setting makes it fit."
    raise ConfigError(
        f"cluster: a learner process needs at least {needed / GIB:.1f} GiB of its GPU, and there are {found}. {hint}"
    )


def travelling(config: RunConfig, folder: Path | None = None) -> dict[str, Any]:
    """The configuration for a process of the cluster, which does its part without a cluster of its own.

    ``folder``: of the weights to begin with. Checkpoints shipped with muarl go by their name.
    """
    named = config.model.checkpoint
    shipped = named in SHIPPED and folder in (None, checkpoint_folder(named))
    spec = named if shipped else str((folder or checkpoint_folder(named)).absolute())
    update = {
        "cluster": ClusterConfig(),
        "resume": None,
        "model": config.model.model_copy(update={"checkpoint": spec}),
    }
    return config.model_copy(update=update).model_dump(mode="json")


def _threads(config: RunConfig, cpus: float) -> int:
    return config.threads or max(1, int(cpus))


def _setup(config: RunConfig, cpus: float) -> Callable[[], None]:
    return partial(set_up, _threads(config, cpus), config.seed)


def clustered_sampler(policy: Policy, config: RunConfig) -> ClusterSampler:
    """The run's samplers, started, with the weights of the policy's folder."""
    if config.engine.kind == "vllm" and (config.engine.servers or config.engine.urls):
        raise ConfigError(
            "engine.servers, engine.urls: on a cluster each sampler is an engine of its own process: leave them out, "
            "and say how many in cluster.samplers"
        )
    c, cluster = config.cluster, cluster_of(config)
    board = cluster.beside_driver(Board)
    share = config.rl.model_copy(update={"concurrency": math.ceil(config.rl.concurrency / c.samplers)})
    own = config.model_copy(update={"rl": share})
    build = partial(build_sampler, travelling(own, policy.path))
    names = cluster.start(
        "sampler",
        SamplerActor,
        _setup(config, c.sampler_cpus),
        build,
        board,
        c.update_timeout,
        concurrency=config.rl.concurrency + 64,
        restarts=c.restarts,
    )
    return ClusterSampler(
        names,
        board,
        deadline=c.request_timeout,
        seconds=c.update_timeout,
        bucket=c.bucket_mb * 2**20,
        release=partial(cluster.end, "sampler"),
        adapters=adapter_room(config.engine, config.learner) > 0,
    )


def clustered_learner(policy: Policy, config: RunConfig, settings: LearnerConfig) -> ClusterLearner:
    """The run's learner, started, with the weights of the policy's folder; ready, if it is all that the run needs."""
    c, cluster = config.cluster, cluster_of(config)
    build = partial(build_learner, travelling(config, policy.path), settings)
    world = config.learner.processes
    names = cluster.start("learner", LearnerActor, _setup(config, c.learner_cpus), build, Each(int), world)
    meet = config.learner.kind == "fsdp"
    learner = make_learners(
        names, meet=meet, seconds=c.update_timeout, release=partial(cluster.end, "learner"), lora=settings.lora
    )
    cluster.later(learner.made)
    if len(cluster.parts) == 1:
        cluster.settle()
    return learner


def clustered_executor(config: RunConfig, player: Player) -> ClusterExecutor:
    """The run's rollout workers, each of which makes a player like this one; they and all others are then ready."""
    c, cluster = config.cluster, cluster_of(config)
    agent = player.agent
    if not isinstance(agent, SampledAgent) or not isinstance(agent.sampler, ClusterSampler):
        raise ConfigError(
            "cluster.address: rollout workers play episodes of the policy that the cluster's samplers hold"
        )
    values, sampler = travelling(config), agent.sampler
    builds = Each(lambda n: partial(build_player, values, sampler.client(n), agent.sampling))
    each = c.worker_concurrency or math.ceil(config.rl.concurrency / c.rollout_workers)
    names = cluster.start(
        "rollout worker",
        WorkerActor,
        _setup(config, c.worker_cpus),
        builds,
        concurrency=each + 8,
        restarts=c.restarts,
    )
    cluster.settle()
    return ClusterExecutor(
        [ActorWorker(name, n) for n, name in enumerate(names)],
        concurrency=min(config.rl.concurrency, each * c.rollout_workers),
        tries=c.tries,
        seconds=c.episode_timeout,
        patience=c.start_timeout,
    )
