"""A run's parts on a cluster: what each process there makes of the run's configuration.

The functions at the top run in those processes. They get plain values and folders, and look for checkpoints and data
where this machine does: both must lie in a file system that all machines share, or be installed on each.
"""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.agents.sampled import SampledAgent, Sampling
from muarl.backends.checkpoint_names import SHIPPED, checkpoint_folder
from muarl.backends.hardware import Machines, of_resources
from muarl.backends.local import local_learner, local_sampler, sharding
from muarl.backends.memory_estimate import model_shape, plan_of
from muarl.backends.models import load_model, model_format
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError
from muarl.basics.system import usable_cores
from muarl.config import RunConfig
from muarl.config.scale import ClusterConfig, sends_adapter
from muarl.environments.configure import places_of
from muarl.environments.play import Player
from muarl.environments.registry import approve, approved, canonical, is_reference
from muarl.inference.base import PolicySampler
from muarl.learning.checkpoints import Policy, load_tokenizer
from muarl.planning.assumptions import GIB, Assumptions
from muarl.planning.memory import host_memory, learner_memory
from muarl.planning.setup import learner_setup
from muarl.planning.weight_transport import WeightTransport, cluster_transport
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.types.episode import Episode
from muarl.workers.cluster.direct import DirectRoute
from muarl.workers.cluster.learners import ClusterLearner, LearnerActor, make_learners
from muarl.workers.cluster.places import ProcessGroup
from muarl.workers.cluster.runtime import Cluster, Each, join
from muarl.workers.cluster.sampler_actor import Board, SamplerActor
from muarl.workers.cluster.samplers import ClusterSampler, RoutedSampler
from muarl.workers.cluster.workers import ActorWorker, ClusterExecutor, WorkerActor

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
    return local_sampler(policy, config, adapters=sends_adapter(config.engine, config.learner, clustered=True))


def build_runner(
    values: Values, allowed: Sequence[str], sampler: RoutedSampler, sampling: Sampling
) -> Callable[[RolloutRequest], Awaitable[Episode]]:
    """Who plays training episodes: world, users and agent of the run. ``allowed``: the references to code that the
    person has named to the driver, which may be imported here too."""
    for reference in allowed:
        approve(reference)
    config = RunConfig.model_validate(values)
    places = places_of(config)
    tokenizer = load_tokenizer(checkpoint_folder(config.model.checkpoint))
    agent = SampledAgent(sampler, model_format(tokenizer, config.model), sampling)
    return Player.of(places, agent, make_users(config.user, places)).play


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


@contextmanager
def joined(config: RunConfig, *, alone: bool = False) -> Iterator[Cluster]:
    """The run's cluster, from here to the end of the block. See ``join`` for what may be wrong with it. ``alone``: the
    run needs a learner there and nobody else.
    """
    c = config.cluster
    assert c.address is not None
    cores = usable_cores() if c.address == "local" else None
    parts = parts_of(config, with_rl=not alone)
    parts = parts[:1] if alone else parts
    cluster = join(c.address, parts, timeout=c.start_timeout, spread=c.spread, cores=cores)
    try:
        check_gpus(config, of_resources(cluster.resources), alone=alone)
        yield cluster
    finally:
        cluster.close()


def parts_of(config: RunConfig, *, with_rl: bool = True) -> list[ProcessGroup]:
    """What the run needs, the learner first. Of the machines' own memory only what is certainly taken is reserved: of a
    process with a GPU, itself and what is moved off its GPU."""
    c = config.cluster
    shape = model_shape(config)
    setup = learner_setup(config, on_gpu=c.learner_gpus > 0, with_rl=with_rl)
    weights = shape.parameters * setup.frozen_bytes
    moved = sum(host_memory(shape, setup).values())
    learner = PROCESS_BYTES + (moved if c.learner_gpus else sure_learner_bytes(config, on_gpu=False, compared=with_rl))
    # Without a GPU: the model, and the engine's own copy.
    sampler = PROCESS_BYTES + (0 if c.sampler_gpus else 2 * weights)
    return [
        ProcessGroup("learner", config.learner.processes, c.learner_cpus, c.learner_gpus, learner),
        ProcessGroup("sampler", c.samplers, c.sampler_cpus, c.sampler_gpus, sampler, "cluster.samplers"),
        ProcessGroup("rollout worker", c.rollout_workers, c.worker_cpus, 0.0, PROCESS_BYTES, "cluster.rollout_workers"),
    ]


def sure_learner_bytes(config: RunConfig, *, on_gpu: bool, compared: bool = True) -> int:
    """What a learner process certainly takes on its device, whatever the episodes' lengths. ``compared``: with a
    reference model, where the configuration has one."""
    shape = model_shape(config)
    held = learner_memory(shape, learner_setup(config, on_gpu=on_gpu, with_rl=compared))
    return sum(held.get(name, 0) for name in ("weights", "gradients", "optimiser", "reference"))


def check_gpus(config: RunConfig, machines: Machines | None, *, alone: bool = False) -> None:
    """ConfigError, with the nearest settings that fit, if the cluster's GPUs are too small for the learner. Without a
    complaint where Ray does not say which GPUs there are. ``alone``: see ``joined``."""
    if not config.cluster.learner_gpus or machines is None or machines.kind is None:
        return
    device = machines.assumed(Assumptions()).device
    needed = sure_learner_bytes(config, on_gpu=True, compared=not alone)
    if needed <= device.memory:
        return
    _, fitting = plan_of(config, Assumptions(), seen=machines)
    hint = f"The nearest that fits: {' '.join(fitting)}" if fitting else "No settings make it fit."
    raise ConfigError(
        f"cluster: a learner process needs at least {needed / GIB:.1f} GiB of its GPU, and there are {machines}. {hint}"
    )


def travelling(config: RunConfig, folder: Path | None = None) -> dict[str, Any]:
    """The configuration for a process of the cluster, which does its part without a cluster of its own.

    ``folder``: of the weights to begin with. Checkpoints shipped with muarl go by their name.
    """
    named = config.model.checkpoint
    shipped = named in SHIPPED and folder in (None, checkpoint_folder(named))
    spec = named if shipped else str((folder or checkpoint_folder(named)).absolute())
    update: dict[str, Any] = {
        "cluster": ClusterConfig(),
        "resume": None,
        "model": config.model.model_copy(update={"checkpoint": spec}),
    }
    update["domain"] = [
        domain.model_copy(update={"name": canonical(domain.name)}) if is_reference(domain.name) else domain
        for domain in config.domains
    ]
    return config.model_copy(update=update).model_dump(mode="json")


def _threads(config: RunConfig, cpus: float) -> int:
    return config.threads or max(1, int(cpus))


def _setup(config: RunConfig, cpus: float) -> Callable[[], None]:
    return partial(set_up, _threads(config, cpus), config.seed)


def clustered_sampler(policy: Policy, config: RunConfig, cluster: Cluster) -> ClusterSampler:
    """The run's samplers, started, with the weights of the policy's folder."""
    if config.engine.kind == "vllm" and (config.engine.servers or config.engine.urls):
        raise ConfigError(
            "engine.servers, engine.urls: on a cluster each sampler is an engine of its own process: leave them out, "
            "and say how many in cluster.samplers"
        )
    c, transport = config.cluster, cluster_transport(config)
    board = cluster.beside_driver(Board)
    share = config.rollout.model_copy(update={"concurrency": math.ceil(config.rollout.concurrency / c.samplers)})
    own = config.model_copy(update={"rollout": share})
    build = partial(build_sampler, travelling(own, policy.path))
    names = cluster.start(
        "sampler",
        SamplerActor,
        _setup(config, c.sampler_cpus),
        build,
        board,
        c.update_timeout,
        concurrency=config.rollout.concurrency + 64,
        restarts=c.restarts,
    )
    return ClusterSampler(
        names,
        board,
        deadline=c.request_timeout,
        seconds=c.update_timeout,
        bucket=c.bucket_mb * 2**20,
        release=partial(cluster.end, "sampler"),
        adapters=transport.adapter,
        direct=_route(transport, config),
    )


def _route(transport: WeightTransport, config: RunConfig) -> DirectRoute | None:
    c = config.cluster
    if transport.kind not in ("broadcast", "ipc"):
        return None
    device = "cuda" if transport.on_gpu else "cpu"
    return DirectRoute(transport.kind, device, seconds=c.update_timeout, forming=c.start_timeout)


def clustered_learner(policy: Policy, config: RunConfig, settings: LearnerConfig, cluster: Cluster) -> ClusterLearner:
    """The run's learner, started, with the weights of the policy's folder; ready, if it is all that the run needs."""
    c = config.cluster
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


def clustered_executor(config: RunConfig, player: Player, cluster: Cluster) -> ClusterExecutor:
    """The run's rollout workers, each of which makes a player like this one; they and all others are then ready."""
    c = config.cluster
    agent = player.agents.same
    if not isinstance(agent, SampledAgent) or not isinstance(agent.sampler, ClusterSampler):
        raise ConfigError(
            "cluster.address: rollout workers play episodes of the policy that the cluster's samplers hold"
        )
    values, sampler = travelling(config), agent.sampler
    builds = Each(lambda n: partial(build_runner, values, approved(), sampler.client(n), agent.sampling))
    each = c.worker_concurrency or math.ceil(config.rollout.concurrency / c.rollout_workers)
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
        concurrency=min(config.rollout.concurrency, each * c.rollout_workers),
        tries=c.tries,
        seconds=c.episode_timeout,
        patience=c.start_timeout,
    )
