"""A run's parts on a cluster: what each process there makes of the run's configuration.

The functions at the top run in those processes. They get plain values and folders, and look for checkpoints and data
where this machine does: both must lie in a file system that all machines share, or be installed on each.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from muarl.agents.sampled import SampledAgent, Sampling
from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.backends.hardware import Machines, of_resources
from muarl.backends.local import local_learner, local_sampler, sharding
from muarl.backends.model_support import model_shape
from muarl.backends.models import load_model, model_format
from muarl.backends.plans import PromptTokens, plan_of
from muarl.backends.process_config import ProcessConfig, Values, set_up
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError
from muarl.basics.system import usable_cores
from muarl.config.parts import Compute, PlannedRun
from muarl.config.rl import RlConfig
from muarl.config.scale import ClusterConfig, sends_adapter
from muarl.config.sections import RunConfig
from muarl.config.stages import SftConfig
from muarl.environments.configure import places_of
from muarl.environments.play import Player
from muarl.environments.registry import approve, approved
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
from muarl.workers.cluster.machines import ProcessGroup
from muarl.workers.cluster.runtime import Cluster, Each, join
from muarl.workers.cluster.sampler_actor import Board, SamplerActor
from muarl.workers.cluster.samplers import ClusterSampler, RoutedSampler
from muarl.workers.cluster.workers import ActorWorker, ClusterExecutor, WorkerActor

if TYPE_CHECKING:
    from muarl.learning.learner import Learner
    from muarl.learning.settings import LearnerConfig

# ---- in the cluster's processes


def build_sampler(values: Values) -> PolicySampler:
    """A sampler with the weights of ``model.checkpoint``."""
    compute = Compute.of(RunConfig.model_validate(values))
    policy = load_model(compute.model, weights=compute.engine.kind == "torch")  # vLLM reads the folder itself
    return local_sampler(policy, compute, adapters=sends_adapter(compute.engine, compute.learner, clustered=True))


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
    return Player.of(places, agent, make_users(config.user, places, Compute.of(config))).play


def build_learner(values: Values, settings: LearnerConfig, rank: int, world: int, address: str) -> Learner:
    """Process ``rank`` of a learner that begins with the weights of ``model.checkpoint``."""
    from muarl.learning.fsdp import ShardedLearner

    compute = Compute.of(RunConfig.model_validate(values))
    if compute.learner.kind == "fsdp":
        folder = checkpoint_folder(compute.model.checkpoint)
        return ShardedLearner(folder, settings, sharding(compute), rank=rank, world=world, address=address)
    return local_learner(load_model(compute.model), compute, settings)


# ---- in the driver

PROCESS_BYTES = 400 * 2**20
"""Memory of a process with torch in it that has done nothing yet."""


@contextmanager
def joined(run: PlannedRun, prompt: PromptTokens, *, alone: bool = False) -> Iterator[Cluster]:
    """The run's cluster, from here to the end of the block. See ``join`` for what may be wrong with it. ``prompt``: see
    ``plan_of``. ``alone``: the run needs a learner there and nobody else.
    """
    c = run.cluster
    assert c.address is not None
    cores = usable_cores() if c.address == "local" else None
    stage = run.sft if alone else run.rl
    parts = parts_of(run, stage)
    parts = parts[:1] if alone else parts
    cluster = join(c.address, parts, timeout=c.start_timeout, spread=c.spread, cores=cores)
    try:
        check_gpus(run, stage, of_resources(cluster.resources), prompt)
        yield cluster
    finally:
        cluster.close()


def parts_of(compute: Compute, stage: RlConfig | SftConfig) -> list[ProcessGroup]:
    """What the run needs, the learner first. Of the machines' own memory only what is certainly taken is reserved: of a
    process with a GPU, itself and what is moved off its GPU. ``stage``: what is learned."""
    c = compute.cluster
    shape = model_shape(compute.model.checkpoint)
    setup = learner_setup(compute, stage, on_gpu=c.learner_gpus > 0)
    weights = shape.parameters * setup.frozen_bytes
    moved = sum(host_memory(shape, setup).values())
    learner = PROCESS_BYTES + (moved if c.learner_gpus else sure_learner_bytes(compute, stage, on_gpu=False))
    # Without a GPU: the model, and the engine's own copy.
    sampler = PROCESS_BYTES + (0 if c.sampler_gpus else 2 * weights)
    return [
        ProcessGroup("learner", compute.learner.processes, c.learner_cpus, c.learner_gpus, learner),
        ProcessGroup("sampler", c.samplers, c.sampler_cpus, c.sampler_gpus, sampler, "cluster.samplers"),
        ProcessGroup("rollout worker", c.rollout_workers, c.worker_cpus, 0.0, PROCESS_BYTES, "cluster.rollout_workers"),
    ]


def sure_learner_bytes(compute: Compute, stage: RlConfig | SftConfig, *, on_gpu: bool) -> int:
    """What a learner process certainly takes on its device, whatever the episodes' lengths."""
    shape = model_shape(compute.model.checkpoint)
    held = learner_memory(shape, learner_setup(compute, stage, on_gpu=on_gpu))
    return sum(held.get(name, 0) for name in ("weights", "gradients", "optimiser", "reference"))


def check_gpus(run: PlannedRun, stage: RlConfig | SftConfig, machines: Machines | None, prompt: PromptTokens) -> None:
    """ConfigError, with the nearest settings that fit, if the cluster's GPUs are too small for the learner. Without a
    complaint where Ray does not say which GPUs there are."""
    if not run.cluster.learner_gpus or machines is None or machines.kind is None:
        return
    device = machines.assumed(Assumptions()).device
    needed = sure_learner_bytes(run, stage, on_gpu=True)
    if needed <= device.memory:
        return
    _, fitting = plan_of(run, Assumptions(), prompt, seen=machines)
    hint = f"The nearest that fits: {' '.join(fitting)}" if fitting else "No settings make it fit."
    raise ConfigError(
        f"cluster: a learner process needs at least {needed / GIB:.1f} GiB of its GPU, and there are {machines}. {hint}"
    )


def _setup(compute: Compute, cpus: float) -> Callable[[], None]:
    return partial(set_up, compute.threads or max(1, int(cpus)), compute.seed)


def clustered_sampler(
    policy: Policy, compute: Compute, run_settings: ProcessConfig, cluster: Cluster
) -> ClusterSampler:
    """The run's samplers, started, with the weights of the policy's folder."""
    if compute.engine.kind == "vllm" and (compute.engine.servers or compute.engine.urls):
        raise ConfigError(
            "engine.servers, engine.urls: on a cluster each sampler is an engine of its own process: leave them out, "
            "and say how many in cluster.samplers"
        )
    c, transport, concurrency = compute.cluster, cluster_transport(compute), compute.rollout.concurrency
    board = cluster.beside_driver(Board)
    build = partial(build_sampler, run_settings.values(policy.path, concurrency=math.ceil(concurrency / c.samplers)))
    names = cluster.start(
        "sampler",
        SamplerActor,
        _setup(compute, c.sampler_cpus),
        build,
        board,
        c.update_timeout,
        concurrency=concurrency + 64,
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
        direct=_route(transport, c),
    )


def _route(transport: WeightTransport, c: ClusterConfig) -> DirectRoute | None:
    if transport.kind not in ("broadcast", "ipc"):
        return None
    device = "cuda" if transport.on_gpu else "cpu"
    return DirectRoute(transport.kind, device, seconds=c.update_timeout, forming=c.start_timeout)


def clustered_learner(
    policy: Policy, compute: Compute, run_settings: ProcessConfig, settings: LearnerConfig, cluster: Cluster
) -> ClusterLearner:
    """The run's learner, started, with the weights of the policy's folder; ready, if it is all that the run needs."""
    c = compute.cluster
    build = partial(build_learner, run_settings.values(policy.path), settings)
    world = compute.learner.processes
    names = cluster.start("learner", LearnerActor, _setup(compute, c.learner_cpus), build, Each(int), world)
    meet = compute.learner.kind == "fsdp"
    learner = make_learners(
        names, meet=meet, seconds=c.update_timeout, release=partial(cluster.end, "learner"), lora=settings.lora
    )
    cluster.later(learner.made)
    if len(cluster.parts) == 1:
        cluster.settle()
    return learner


def clustered_executor(
    compute: Compute, run_settings: ProcessConfig, player: Player, cluster: Cluster
) -> ClusterExecutor:
    """The run's rollout workers, each of which makes a player like this one; they and all others are then ready."""
    c = compute.cluster
    agent = player.agents.same
    if not isinstance(agent, SampledAgent) or not isinstance(agent.sampler, ClusterSampler):
        raise ConfigError(
            "cluster.address: rollout workers play episodes of the policy that the cluster's samplers hold"
        )
    values, sampler = run_settings.values(), agent.sampler
    builds = Each(lambda n: partial(build_runner, values, approved(), sampler.client(n), agent.sampling))
    each = c.worker_concurrency or math.ceil(compute.rollout.concurrency / c.rollout_workers)
    names = cluster.start(
        "rollout worker",
        WorkerActor,
        _setup(compute, c.worker_cpus),
        builds,
        concurrency=each + 8,
        restarts=c.restarts,
    )
    cluster.settle()
    return ClusterExecutor(
        [ActorWorker(name, n) for n, name in enumerate(names)],
        concurrency=min(compute.rollout.concurrency, each * c.rollout_workers),
        tries=c.tries,
        seconds=c.episode_timeout,
        patience=c.start_timeout,
    )
