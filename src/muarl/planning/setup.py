"""From a run configuration to how it holds its model: the one place of the planner that reads ``RunConfig``'s sections
about scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from muarl.config import RunConfig
from muarl.config.scale import sends_adapter
from muarl.config.section import UserConfig
from muarl.planning.assumptions import GIB, Assumptions
from muarl.planning.memory import LearnerSetup, Reference, ServerSetup, cached_tokens
from muarl.planning.models import PROJECTIONS, ModelShape
from muarl.planning.speed import Serving

BYTES = {"float32": 4, "bfloat16": 2}
AHEAD = {"synchronous": 1.0, "one_step_off": 2.0}


@dataclass(frozen=True, slots=True)
class Deployment:
    """Who holds what.

    ``learner`` on ``learner_gpus`` devices; ``engines`` samplers of ``server`` each, or (None) muarl's own engine in
    the learner's process, or in each of ``processes`` children of it, with ``slots`` of ``positions`` tokens of
    ``engine_bytes`` a number. ``shared``: learner and
    samplers on the same GPUs. ``sent_bytes``: of a weight as it is sent, of adapters of ``sent_rank`` alone where that
    is above 0. ``clustered``: the processes are a Ray cluster's. ``sleeps``: samplers give their memory back while the
    learner updates. ``ahead``: steps of rollouts that run at once; 1: synchronous. ``in_turns``: a step's
    rollouts still end before the next ones begin.
    """

    learner: LearnerSetup
    learner_gpus: int
    engines: int
    server: ServerSetup | None
    shared: bool
    slots: int
    positions: int
    engine_bytes: int
    sequences: int
    sent_bytes: int
    sent_rank: int = 0
    clustered: bool = False
    sleeps: bool = False
    ahead: float = 1.0
    in_turns: bool = False
    processes: int = 1
    notes: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        samplers = 0 if self.server is None else self.engines * self.server.gpus
        return max(self.learner_gpus, samplers) if self.shared else self.learner_gpus + samplers

    def nodes(self, gpus_per_node: int) -> int:
        return -(-self.gpus // gpus_per_node)

    def serving(self, shape: ModelShape, a: Assumptions) -> Serving:
        """The samplers as ``speed`` wants them."""
        if self.server is None:
            return Serving(1, 1, self.slots, float(self.slots * self.positions), self.engine_bytes)
        held = float(cached_tokens(shape, self.server, a.device.memory))
        return Serving(self.engines, self.server.gpus, self.sequences, held, self.server.element_bytes)


def _playing(config: RunConfig, on_gpu: bool) -> int:
    """How many processes play episodes."""
    return 1 if on_gpu and config.engine.processes == "auto" else config.process_count


def deployment(config: RunConfig, shape: ModelShape, *, on_gpu: bool = True, with_rl: bool = True) -> Deployment:
    """The deployment that a configuration's sections model, rollout, learner, engine and cluster stand for, and (unless
    ``with_rl`` is False, as for an evaluation or a cold start) the section rl: a reference model, and how far rollouts
    run ahead."""
    engine = config.engine
    held = BYTES[engine.computes_in(config.model.held, on_gpu=on_gpu)]
    learner, server, engines, shared = learner_setup(config, on_gpu=on_gpu, with_rl=with_rl), None, 1, False
    alone = sends_adapter(engine, config.learner, clustered=clustered(config))
    playing = 1 if engine.kind == "vllm" or clustered(config) else _playing(config, on_gpu)
    if clustered(config):
        engines = config.cluster.samplers
    if engine.kind == "vllm":
        cache = None if engine.cache_gib is None else int(engine.cache_gib * GIB)
        server = ServerSetup(engine.tensor_parallel, engine.memory, held, cache)
        if not clustered(config):
            engines = engine.servers or len(engine.urls) or 1
            shared = not engine.urls and engine.first_device < learner.shards
    return Deployment(
        learner=learner,
        learner_gpus=learner.shards,
        engines=engines,
        server=server,
        shared=shared,
        slots=-(-config.rollout.concurrency // playing)
        + (on_gpu and engine.compile != "none"),  # recorded steps need a spare one
        positions=config.model.max_context,
        engine_bytes=held,
        sequences=engine.max_sequences,
        sent_bytes=4 if alone else learner.compute_bytes,
        sent_rank=learner.rank if alone else 0,
        clustered=clustered(config),
        sleeps=engine.sleep,
        ahead=(AHEAD.get(config.rl.asynchrony) or config.rl.staleness + 1) if with_rl else 1.0,
        in_turns=with_rl and config.rl.asynchrony == "one_step_off",
        processes=playing,
        notes=tuple(_notes(config)),
    )


def clustered(config: RunConfig) -> bool:
    """Whether the processes are a Ray cluster's: one is named, or the section says how large they are."""
    c = config.cluster
    return c.address is not None or c.sampler_gpus > 0 or c.learner_gpus > 0


def served_here(user: UserConfig) -> bool:
    """Whether a model on this machine plays the user."""
    address = user.endpoint.base_url if user.kind == "llm" and user.endpoint is not None else None
    return address is not None and urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")


def _notes(config: RunConfig) -> Iterator[str]:
    """What does not go together, though each for itself is right."""
    c, engine = config.cluster, config.engine
    if c.sampler_gpus and engine.kind == "vllm" and c.sampler_gpus != engine.tensor_parallel:
        yield (
            f"cluster.sampler_gpus is {c.sampler_gpus:g}, and engine.tensor_parallel is {engine.tensor_parallel}: a "
            "sampler gets the GPUs of the one, and uses as many as the other says"
        )
    if c.learner_gpus > 0 and c.learner_gpus != 1:
        yield f"cluster.learner_gpus is {c.learner_gpus:g}: a learner process works on one GPU"
    if served_here(config.user):
        yield (
            "the user's model is served on this machine (user.endpoint.base_url): what it takes of the same GPU is "
            "planned for by --assume reserved_gib=GIB"
        )
    places = min(config.rollout.concurrency, c.rollout_workers * (c.worker_concurrency or config.rollout.concurrency))
    generating = engine.max_sequences * (c.samplers if clustered(config) else engine.servers or 1)
    if engine.kind == "vllm" and generating < places / 4:
        yield (
            f"{places} conversations run concurrently, and samplers generate at most {generating} at a time "
            "(engine.max_sequences): the others wait"
        )


def learner_setup(config: RunConfig, *, on_gpu: bool = True, with_rl: bool = True) -> LearnerSetup:
    """How a run's learner holds the model (backends/engines.py:Backend.learner). ``with_rl``: see ``deployment``."""
    section, held = config.learner, BYTES[config.model.held]
    computed = BYTES[section.precision or config.model.held]
    sharded, rank = section.kind == "fsdp", section.lora_rank
    reference: Reference = "device"
    if not with_rl or config.rl.kl_coef == 0:
        reference = "none"
    elif rank:
        reference = "adapter"
    elif section.offload_reference and on_gpu:
        reference = "host"
    return LearnerSetup(
        shards=section.processes if sharded else 1,
        # Sharded, what is trained is float32 and everything else as it is computed with; so are adapters anywhere.
        trained_bytes=4 if sharded or rank else held,
        frozen_bytes=computed if sharded else held,
        compute_bytes=computed,
        rank=rank,
        targets=PROJECTIONS if section.lora is None else section.lora.targets,
        muon=not rank and (config.rl if with_rl else config.sft).optimizer == "muon",
        offload=section.offload_optimizer and on_gpu,
        reference=reference,
        reference_bytes=computed if sharded else held,
        # This process then has the model for its own sampler, or adapts a copy of it.
        start=not clustered(config) and (config.engine.kind == "torch" if sharded else rank > 0),
        recompute=section.recompute,
        tokens=config.learner.pack_tokens,
        on_gpu=on_gpu,
    )
