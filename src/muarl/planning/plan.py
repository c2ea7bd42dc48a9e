"""One run's plan: what each machine holds, how long a step takes, what it costs, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from muarl.config.parts import PlannedRun
from muarl.config.section import UserConfig
from muarl.config.stages import ColdstartConfig, SftConfig
from muarl.planning import memory, speed
from muarl.planning.assumptions import THOUGHTS, Assumptions
from muarl.planning.memory import Parts
from muarl.planning.models import ModelShape
from muarl.planning.setup import Deployment, deployment, notes, served_here
from muarl.planning.weight_transport import WeightTransport, weight_transport

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """One kind of process: how many there are, what each holds on its device, and how much it may hold."""

    name: str
    count: int
    parts: Parts
    budget: int

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        return self.total <= self.budget


@dataclass(frozen=True, slots=True)
class Pace:
    """A training step in seconds, and the rates that follow."""

    rollout: float
    update: float
    transfer: float
    step: float
    """Seconds of a step under the configured asynchrony."""
    running: float
    generated_per_second: float
    learned_per_second: float
    episode: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Of the whole stage of reinforcement learning."""

    hours: float
    gpu_hours: float
    gpu_dollars: float
    user_dollars: float
    user_dollars_per_episode: float
    validations: int = 0
    """How many conversations the validations have."""
    validation_hours: float = 0.0
    """Part of ``hours``."""
    validation_dollars: float = 0.0
    """For the users of the validations."""

    @property
    def dollars(self) -> float:
        return self.gpu_dollars + self.user_dollars + self.validation_dollars


@dataclass(frozen=True, slots=True)
class TeacherCost:
    """Dollars for a cold start's conversations, if models write them."""

    count: int
    """Conversations that are to be kept."""
    played: int
    """Conversations that are played for them."""
    teacher: float
    users: float
    tools: float

    @property
    def dollars(self) -> float:
        return self.teacher + self.users + self.tools


@dataclass(frozen=True, slots=True)
class ResourcePlan:
    """What a run takes, where it is held, and whether it fits."""

    shape: ModelShape
    deployment: Deployment
    places: tuple[ProcessMemory, ...]
    """What is held where."""
    host: Parts
    step: Mapping[str, float]
    pace: Pace | None
    """None where there are no GPUs to reckon with."""
    cost: Cost | None
    """None where there are no GPUs to reckon with."""
    teacher: TeacherCost | None
    problems: tuple[str, ...]
    """Why it does not fit, in words."""
    notes: tuple[str, ...]
    """What else is worth knowing."""
    assumptions: Assumptions
    transport: WeightTransport | None = None
    """How weights reach the samplers, where they must travel."""

    @property
    def fits(self) -> bool:
        return not self.problems

    @property
    def gpus(self) -> int:
        return self.deployment.gpus

    def to_json(self) -> dict[str, Any]:
        """Everything in it as JSON values: bytes, seconds and dollars."""
        return {
            "model": asdict(self.shape)
            | {"parameters": self.shape.parameters, "active_parameters": self.shape.active_parameters},
            "gpus": self.gpus,
            "nodes": self.deployment.nodes(self.assumptions.gpus_per_node),
            "fits": self.fits,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "places": [asdict(p) | {"total": p.total, "fits": p.fits} for p in self.places],
            "host": self.host,
            "step": dict(self.step),
            "weight_transport": None if self.transport is None else asdict(self.transport),
            "pace": None if self.pace is None else asdict(self.pace),
            "cost": None if self.cost is None else asdict(self.cost) | {"dollars": self.cost.dollars},
            "cold_start": None if self.teacher is None else asdict(self.teacher) | {"dollars": self.teacher.dollars},
            "assumptions": self.assumptions.to_json(),
        }


def make_plan(
    run: PlannedRun,
    shape: ModelShape,
    assumptions: Assumptions,
    *,
    user: ModelShape | None = None,
    machine: int | None = None,
    imagined: float = 1.0,
) -> ResourcePlan:
    """The plan of a run of reinforcement learning with a model of this shape.

    ``user``: sizes of the model that plays the user in the same process, if one does (``user.kind=sampled``).
    ``machine``: bytes of memory on this machine, for a run in one process on a CPU; None: the assumed GPUs.
    ``imagined``: share of a cold start's conversations whose tools a model can play, rather than a server or a world.
    """
    chosen, transport = deployment(run, run.rl, shape, on_gpu=machine is None), weight_transport(run)
    a = replace(
        assumptions,
        prompt_tokens=min(assumptions.prompt_tokens, run.model.max_context / 2),
    )
    if run.model.thinking:
        a = a.unless_replaced(thought_tokens=min(THOUGHTS, float(run.rollout.tokens_per_turn)))
    longest = float(run.model.max_context)
    tokens = min(a.episode_tokens, longest)
    grown = max(tokens - a.prompt_tokens, 1.0)
    device = machine if machine is not None else a.budget
    places = _places(shape, chosen, device, a)
    if user is not None and not chosen.clustered:
        first, *others = places
        places = (replace(first, parts=first.parts | _user_model(run, user, chosen)), *others)
    episodes = run.rl.tasks_per_step * run.rl.group_size
    shared = speed.shared_prefix(
        a.prompt_tokens, grown, episodes, float(run.learner.pack_tokens), chosen.learner.shards
    )
    step = {
        "episodes": float(episodes),
        "tokens": episodes * tokens,
        "computed_tokens": episodes * grown + shared.tokens,
        "sampled_tokens": episodes * min(a.sampled, longest / 2),
        "weights_sent": float(memory.transfer_bytes(shape, chosen.sent_bytes, chosen.sent_rank)),
        "checkpoint": float(memory.checkpoint_bytes(shape, chosen.learner)),
        "update_flops": speed.update_flops(
            shape,
            [grown] * episodes,
            episodes * a.sampled,
            recompute=chosen.learner.recompute,
            reference=chosen.learner.reference != "none",
            prefix=shared,
        ),
    }
    problems = [_too_much(p) for p in places if not p.fits]
    problems += _cache_problems(shape, chosen, run.model.max_context, a)
    pace = cost = teacher = None
    if machine is None:
        problems += _host_problems(shape, chosen, a)
        teacher = _teacher(run, a, imagined)
        pace = _pace(run, shape, chosen, a, step)
        cost = _cost(run, shape, chosen, a, pace, episodes)
    return ResourcePlan(
        shape,
        chosen,
        places,
        _host(shape, chosen, transport),
        step,
        pace,
        cost,
        teacher,
        tuple(problems),
        tuple(notes(run, run.user)),
        a,
        transport,
    )


def _places(shape: ModelShape, chosen: Deployment, device: int, a: Assumptions) -> tuple[ProcessMemory, ...]:
    learner = memory.learner_memory(shape, chosen.learner)
    if chosen.server is None:
        engine = memory.torch_engine_memory(
            shape, chosen.slots, chosen.positions, chosen.engine_bytes, on_gpu=chosen.learner.on_gpu
        )
        several = chosen.processes > 1
        if several:
            engine = memory.playing_memory(shape, engine, chosen.processes, chosen.learner.frozen_bytes)
        together = _together(learner, engine, "batch", chosen.sleeps)
        if not chosen.learner.on_gpu:
            together["process"] = memory.process_memory(shape)
        name = f"learner, and {chosen.processes} processes that sample" if several else "learner and sampler"
        return (ProcessMemory(name, 1, together, device),)
    server = memory.server_memory(shape, chosen.server, a.device.memory)
    if not chosen.shared:
        return (
            ProcessMemory("learner", chosen.learner_gpus, learner, device),
            ProcessMemory(
                "sampler",
                chosen.engines * chosen.server.gpus,
                server,
                min(int(a.device.memory * chosen.server.share), int(a.device.memory - a.reserved_gib * GIB)),
            ),
        )
    together = _together(learner, server, "workspace", chosen.sleeps)
    return (ProcessMemory("learner and sampler", chosen.gpus, together, device),)


def _user_model(run: PlannedRun, shape: ModelShape, chosen: Deployment) -> Parts:
    """Bytes of a user model of this shape beside the learner (backends/users.py:sampled_users): as it was loaded, in
    float32, and its engine; in each of the processes that play."""
    on_gpu = chosen.learner.on_gpu
    slots = run.user_slots + (on_gpu and run.engine.compile != "none")  # see ``deployment``
    engine = memory.torch_engine_memory(shape, slots, run.user.max_context, chosen.engine_bytes, on_gpu=on_gpu)
    parts = engine | {"weights": engine["weights"] + 4 * shape.parameters}
    return {f"user model's {name}": size * chosen.processes for name, size in parts.items()}


def _together(learner: Parts, sampler: Parts, stays: str, sleeps: bool) -> Parts:
    """What learner and sampler hold on one device. Where one ``sleeps`` while the other works it is the larger of two
    moments: all of the learner and what ``stays`` of the sampler, or all of the sampler and what the learner keeps."""
    named = {f"sampler's {name}": size for name, size in sampler.items()}
    if not sleeps:
        return learner | named
    updating = learner | {f"sampler's {stays}": sampler[stays]}
    generating = {name: size for name, size in learner.items() if name not in memory.DURING_UPDATES} | named
    return max(updating, generating, key=lambda parts: sum(parts.values()))


def _host(shape: ModelShape, chosen: Deployment, transport: WeightTransport | None) -> Parts:
    """Bytes of the machines' own memory, by what holds them."""
    held = {"each learner process": sum(memory.host_memory(shape, chosen.learner).values())}
    if chosen.clustered:
        held["each sampler, as it starts"] = shape.parameters * chosen.engine_bytes if chosen.server else 0
        there = "" if transport is not None and transport.direct else " and of each with samplers"
        held[f"/dev/shm of the learner's machine{there}"] = memory.transfer_bytes(
            shape, chosen.sent_bytes, chosen.sent_rank
        )
    return {name: size for name, size in held.items() if size}


def _host_problems(shape: ModelShape, chosen: Deployment, a: Assumptions) -> list[str]:
    """Whether a node's own memory holds what its processes put there; of the fullest node, where learner and samplers
    share one as far as their GPUs allow."""
    each = sum(memory.host_memory(shape, chosen.learner).values())
    learners = min(chosen.learner_gpus, a.gpus_per_node)
    needed = learners * each
    if chosen.clustered and chosen.server is not None:
        free = a.gpus_per_node - (learners if chosen.gpus <= a.gpus_per_node else 0)
        samplers = min(chosen.engines, max(free // chosen.server.gpus, 1))
        starting = samplers * shape.parameters * chosen.engine_bytes
        together = chosen.gpus <= a.gpus_per_node
        needed = needed + starting if together else max(needed, starting)
        needed += memory.transfer_bytes(shape, chosen.sent_bytes, chosen.sent_rank)
    if needed <= a.node_gib * GIB:
        return []
    return [
        f"a node's own memory: needs {needed / GIB:,.0f} GiB, and a node has {a.node_gib:,.0f} GiB (another figure: "
        "--assume node_gib=GIB)"
    ]


def _too_much(place: ProcessMemory) -> str:
    largest = sorted(place.parts, key=lambda name: -place.parts[name])[:2]
    named = " and ".join(f"{name} {place.parts[name] / GIB:.1f}" for name in largest)
    return (
        f"{place.name}: needs {place.total / GIB:.1f} GiB a device, and {place.budget / GIB:.1f} GiB may be planned "
        f"with (most of it: {named})"
    )


def _cache_problems(shape: ModelShape, chosen: Deployment, context: int, a: Assumptions) -> list[str]:
    """A sampler must at least hold one conversation of full length."""
    if chosen.server is None:
        return []
    held = memory.cached_tokens(shape, chosen.server, a.device.memory)
    if held >= context:
        return []
    return [
        f"sampler: what its weights leave free on {chosen.server.gpus} GPU(s) caches {held:,} tokens, and one "
        f"conversation may grow to {context:,} (model.max_context)"
    ]


def _pace(run: PlannedRun, shape: ModelShape, chosen: Deployment, a: Assumptions, step: Mapping[str, float]) -> Pace:
    serving = chosen.serving(shape, a)
    at_once = min(step["episodes"] * chosen.ahead, float(run.rollout.concurrency))
    played = speed.rollouts(shape, serving, at_once, a)
    steady = step["episodes"] / played.per_second
    # A synchronous step waits for its slowest episode, while ever fewer of the others still run.
    rollout = max(steady, a.straggler * played.episode) if chosen.ahead == 1 or chosen.in_turns else steady
    update = step["update_flops"] / (chosen.learner_gpus * a.device.flops * a.train_mfu)
    rounds = -(-step["computed_tokens"] // (chosen.learner.shards * run.learner.pack_tokens))
    update += speed.offload_seconds(shape, chosen.learner, rounds, a)
    transfer = step["weights_sent"] / a.transfer
    total = rollout + update + transfer if chosen.ahead == 1 else max(rollout, update) + transfer
    return Pace(
        rollout=rollout,
        update=update,
        transfer=transfer,
        step=total,
        running=played.running,
        generated_per_second=step["sampled_tokens"] / rollout,
        learned_per_second=step["tokens"] / update,
        episode=played.episode,
    )


def _cost(run: PlannedRun, shape: ModelShape, chosen: Deployment, a: Assumptions, pace: Pace, episodes: int) -> Cost:
    rl = run.rl
    held = (rl.steps - 1) // rl.eval_every if rl.eval_every and rl.steps else 0
    tasks = run.eval.validation_tasks
    validating = 0.0
    if held:
        played = speed.rollouts(shape, chosen.serving(shape, a), float(min(tasks, run.rollout.concurrency)), a)
        validating = held * max(tasks / played.per_second, a.straggler * played.episode) / 3600
    hours = rl.steps * pace.step / 3600 + validating
    each = _user_dollars(run.user, a)
    return Cost(
        hours,
        hours * chosen.gpus,
        hours * chosen.gpus * a.gpu_hour,
        each * episodes * rl.steps,
        each,
        held * tasks,
        validating,
        _user_dollars(run.eval_user, a) * held * tasks,
    )


def _user_dollars(user: UserConfig, a: Assumptions) -> float:
    """Of one conversation: at the prices that its endpoint states, unless others are assumed. A model that is served on
    this machine costs nothing but the machine."""
    if user.kind != "llm":
        return 0.0
    stated = user.endpoint
    if stated is not None and (stated.prompt_price or stated.completion_price or served_here(user)):
        a = a.unless_replaced(user_prompt_price=stated.prompt_price, user_completion_price=stated.completion_price)
    return _dollars(a.user_usage, a.user_prompt_price, a.user_completion_price)


def _dollars(usage: tuple[float, float], prompt_price: float, completion_price: float) -> float:
    read, written = usage
    return (read * prompt_price + written * completion_price) / 1e6


def starts_with_models(sft: SftConfig, coldstart: ColdstartConfig) -> bool:
    """Whether a run begins with conversations that models write."""
    return sft.demonstrations_file is not None or coldstart.teacher == "endpoint"


def _teacher(run: PlannedRun, a: Assumptions, imagined: float) -> TeacherCost | None:
    """The cold start's conversations at the price of models, where the configuration begins with such a set. Their user
    is taken to be as dear as that of training, and models to play tools wherever they can."""
    if not starts_with_models(run.sft, run.coldstart):
        return None
    played = round(run.coldstart.count / a.kept)
    serving = _dollars(a.teacher_usage, a.teacher_prompt_price, a.teacher_completion_price)
    tools = _dollars(a.tools_usage, a.teacher_prompt_price, a.teacher_completion_price)
    user = _dollars(a.user_usage, a.user_prompt_price, a.user_completion_price)
    return TeacherCost(run.coldstart.count, played, played * serving, played * user, played * imagined * tools)
