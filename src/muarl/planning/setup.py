"""From a configuration's sections about scale to how a run holds its model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from muarl.config.parts import Compute
from muarl.config.rl import RlConfig
from muarl.config.scale import sends_adapter
from muarl.config.section import UserConfig
from muarl.config.stages import SftConfig
from muarl.planning.assumptions import GIB, Assumptions
from muarl.planning.memory import LearnerSetup, Reference, ServerSetup, cached_tokens
from muarl.planning.models import PROJECTIONS, ModelShape
from muarl.planning.speed import ServingSetup

BYTES = {"float32": 4, "bfloat16": 2}
AHEAD = {"synchronous": 1.0, "one_step_off": 2.0}


@dataclass(frozen=True, slots=True)
class Deployment:
    """Who holds what."""

    learner: LearnerSetup
    """The learner, on ``learner_gpus`` devices."""
    learner_gpus: int
    engines: int
    """How many samplers there are, of ``server`` each."""
    server: ServerSetup | None
    """None: muarl's own engine in the learner's process, or in each of ``processes`` children of it."""
    shared: bool
    """Learner and samplers on the same GPUs."""
    slots: int
    """Slots of muarl's own engine."""
    positions: int
    """Tokens of a slot."""
    engine_bytes: int
    """Bytes of a number in muarl's own engine."""
    sequences: int
    sent_bytes: int
    """Bytes of a weight as it is sent."""
    sent_rank: int = 0
    """Adapters of this rank alone are sent where it is above 0."""
    clustered: bool = False
    """The processes are a Ray cluster's."""
    sleeps: bool = False
    """Samplers give their memory back while the learner updates."""
    ahead: float = 1.0
    """Steps of rollouts that run at once; 1: synchronous."""
    in_turns: bool = False
    """A step's rollouts still end before the next ones begin."""
    processes: int = 1
    """Children of the learner's process with an engine each."""

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        samplers = 0 if self.server is None else self.engines * self.server.gpus
        return max(self.learner_gpus, samplers) if self.shared else self.learner_gpus + samplers

    def nodes(self, gpus_per_node: int) -> int:
        return -(-self.gpus // gpus_per_node)

    def serving(self, shape: ModelShape, a: Assumptions) -> ServingSetup:
        """The samplers as ``speed`` wants them."""
        if self.server is None:
            return ServingSetup(1, 1, self.slots, float(self.slots * self.positions), self.engine_bytes)
        held = float(cached_tokens(shape, self.server, a.device.memory))
        return ServingSetup(self.engines, self.server.gpus, self.sequences, held, self.server.element_bytes)


def _playing(compute: Compute, on_gpu: bool) -> int:
    """How many processes play episodes."""
    return 1 if on_gpu and compute.engine.processes == "auto" else compute.processes


def deployment(compute: Compute, stage: RlConfig | SftConfig, shape: ModelShape, *, on_gpu: bool = True) -> Deployment:
    """Who holds what of a model. ``stage``: what is learned; RL has a reference model, and rollouts that may run ahead,
    while a cold start has neither, nor has an evaluation."""
    engine = compute.engine
    held = BYTES[engine.computes_in(compute.model.held, on_gpu=on_gpu)]
    learner, server, engines, shared = learner_setup(compute, stage, on_gpu=on_gpu), None, 1, False
    alone = sends_adapter(engine, compute.learner, clustered=compute.clustered)
    playing = 1 if engine.kind == "vllm" or compute.clustered else _playing(compute, on_gpu)
    ahead, in_turns = 1.0, False
    if isinstance(stage, RlConfig):
        ahead = AHEAD.get(stage.asynchrony) or stage.staleness + 1
        in_turns = stage.asynchrony == "one_step_off"
    if compute.clustered:
        engines = compute.cluster.samplers
    if engine.kind == "vllm":
        cache = None if engine.cache_gib is None else int(engine.cache_gib * GIB)
        server = ServerSetup(engine.tensor_parallel, engine.memory, held, cache)
        if not compute.clustered:
            engines = engine.servers or len(engine.urls) or 1
            shared = not engine.urls and engine.first_device < learner.shards
    return Deployment(
        learner=learner,
        learner_gpus=learner.shards,
        engines=engines,
        server=server,
        shared=shared,
        slots=-(-compute.rollout.concurrency // playing)
        + (on_gpu and engine.compile != "none"),  # recorded steps need a spare one
        positions=compute.model.max_context,
        engine_bytes=held,
        sequences=engine.max_sequences,
        sent_bytes=4 if alone else learner.compute_bytes,
        sent_rank=learner.rank if alone else 0,
        clustered=compute.clustered,
        sleeps=engine.sleep,
        ahead=ahead,
        in_turns=in_turns,
        processes=playing,
    )


def served_here(user: UserConfig) -> bool:
    """Whether a model on this machine plays the user."""
    address = user.endpoint.base_url if user.kind == "llm" and user.endpoint is not None else None
    return address is not None and urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")


def notes(compute: Compute, user: UserConfig) -> Iterator[str]:
    """What does not go together, though each for itself is right. ``user``: that of training."""
    c, engine = compute.cluster, compute.engine
    if c.sampler_gpus and engine.kind == "vllm" and c.sampler_gpus != engine.tensor_parallel:
        yield (
            f"cluster.sampler_gpus is {c.sampler_gpus:g}, and engine.tensor_parallel is {engine.tensor_parallel}: a "
            "sampler gets the GPUs of the one, and uses as many as the other says"
        )
    if c.learner_gpus > 0 and c.learner_gpus != 1:
        yield f"cluster.learner_gpus is {c.learner_gpus:g}: a learner process works on one GPU"
    if served_here(user):
        yield (
            "the user's model is served on this machine (user.endpoint.base_url): what it takes of the same GPU is "
            "planned for by --assume reserved_gib=GIB"
        )
    if user.kind == "sampled" and compute.clustered:
        yield "each rollout worker holds the user model (user.checkpoint), which is not planned for"
    concurrency = compute.rollout.concurrency
    places = min(concurrency, c.rollout_workers * (c.worker_concurrency or concurrency))
    generating = engine.max_sequences * (c.samplers if compute.clustered else engine.servers or 1)
    if engine.kind == "vllm" and generating < places / 4:
        yield (
            f"{places} conversations run concurrently, and samplers generate at most {generating} at a time "
            "(engine.max_sequences): the others wait"
        )


def learner_setup(compute: Compute, stage: RlConfig | SftConfig, *, on_gpu: bool = True) -> LearnerSetup:
    """How a run's learner holds the model (backends/engines.py:Backend.learner). ``stage``: see ``deployment``."""
    section, held = compute.learner, BYTES[compute.model.held]
    computed = BYTES[section.precision or compute.model.held]
    sharded, rank = section.kind == "fsdp", section.lora_rank
    reference: Reference = "device"
    if not isinstance(stage, RlConfig) or stage.kl_coef == 0:
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
        muon=not rank and stage.optimizer == "muon",
        offload=section.offload_optimizer and on_gpu,
        reference=reference,
        reference_bytes=computed if sharded else held,
        # This process then has the model for its own sampler, or adapts a copy of it.
        start=not compute.clustered and (compute.engine.kind == "torch" if sharded else rank > 0),
        recompute=section.recompute,
        tokens=section.pack_tokens,
        on_gpu=on_gpu,
    )
