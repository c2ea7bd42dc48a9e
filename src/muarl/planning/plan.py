"""One run's plan: what each machine holds, how long a step takes, what it costs, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from muarl.config import RunConfig
from muarl.planning import memory, speed
from muarl.planning.assumptions import Assumptions
from muarl.planning.memory import Parts
from muarl.planning.models import ModelShape
from muarl.planning.setup import Deployment, deployment

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Place:
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
    """A training step in seconds, and the rates that follow. ``step`` under the configured asynchrony."""

    rollout: float
    update: float
    transfer: float
    step: float
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

    @property
    def dollars(self) -> float:
        return self.gpu_dollars + self.user_dollars


@dataclass(frozen=True, slots=True)
class Plan:
    """``places``: what is held where. ``pace`` and ``cost`` are None where there are no GPUs to reckon with.
    ``problems``: why it does not fit, in words. ``notes``: what else is worth knowing."""

    shape: ModelShape
    deployment: Deployment
    places: tuple[Place, ...]
    host: Parts
    step: Mapping[str, float]
    pace: Pace | None
    cost: Cost | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    assumptions: Assumptions

    @property
    def fits(self) -> bool:
        return not self.problems

    @property
    def gpus(self) -> int:
        return self.deployment.gpus

    def to_json(self) -> dict[str, Any]:
        """Everything in it as JSON values: bytes, seconds and dollars."""
        return {
            "model": asdict(self.shape) | {"parameters": self.shape.parameters},
            "gpus": self.gpus,
            "nodes": self.deployment.nodes(self.assumptions.gpus_per_node),
            "fits": self.fits,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "places": [asdict(p) | {"total": p.total, "fits": p.fits} for p in self.places],
            "host": self.host,
            "step": dict(self.step),
            "pace": None if self.pace is None else asdict(self.pace),
            "cost": None if self.cost is None else asdict(self.cost) | {"dollars": self.cost.dollars},
            "assumptions": asdict(self.assumptions),
        }


def make_plan(config: RunConfig, shape: ModelShape, assumptions: Assumptions, *, machine: int | None = None) -> Plan:
    """The plan of a run of reinforcement learning with a model of this shape.

    ``machine``: bytes of memory on this machine, for a run in one process on a CPU; None: the assumed GPUs.
    """
    chosen = deployment(config, shape, on_gpu=machine is None)
    a = replace(
        assumptions,
        prompt_tokens=min(assumptions.prompt_tokens, config.model.max_context / 2),
    )
    longest = float(config.model.max_context)
    tokens = min(a.episode_tokens, longest)
    device = machine if machine is not None else int(a.device.memory * a.memory_share)
    places = _places(shape, chosen, device, a)
    episodes = config.rl.tasks_per_step * config.rl.group_size
    step = {
        "episodes": float(episodes),
        "tokens": episodes * tokens,
        "sampled_tokens": episodes * min(a.sampled, longest / 2),
        "weights_sent": float(memory.transfer_bytes(shape, chosen.sent_bytes, chosen.sent_rank)),
        "checkpoint": float(memory.checkpoint_bytes(shape, chosen.learner)),
        "update_flops": speed.update_flops(
            shape,
            [tokens] * episodes,
            episodes * a.sampled,
            recompute=chosen.learner.recompute,
            reference=chosen.learner.reference != "none",
        ),
    }
    problems = [_too_much(p) for p in places if not p.fits]
    problems += _cache_problems(shape, chosen, config.model.max_context, a)
    pace = cost = None
    if machine is None:
        pace = _pace(config, shape, chosen, a, step)
        cost = _cost(config, chosen, a, pace, episodes)
    return Plan(
        shape,
        chosen,
        places,
        _host(shape, chosen),
        step,
        pace,
        cost,
        tuple(problems),
        chosen.notes,
        assumptions,
    )


def _places(shape: ModelShape, chosen: Deployment, device: int, a: Assumptions) -> tuple[Place, ...]:
    learner = memory.learner_memory(shape, chosen.learner)
    if chosen.server is None:
        engine = memory.torch_engine_memory(shape, chosen.slots, chosen.positions, chosen.engine_bytes)
        together = learner | {f"sampler's {name}": size for name, size in engine.items()}
        return (Place("learner and sampler", 1, together, device),)
    server = memory.server_memory(shape, chosen.server, a.device.memory)
    if not chosen.shared:
        return (
            Place("learner", chosen.learner_gpus, learner, device),
            Place("sampler", chosen.engines * chosen.server.gpus, server, int(a.device.memory * chosen.server.share)),
        )
    together = learner | {f"sampler's {name}": size for name, size in server.items()}
    return (Place("learner and sampler", chosen.gpus, together, device),)


def _host(shape: ModelShape, chosen: Deployment) -> Parts:
    """Bytes of the machines' own memory, by what holds them."""
    held = {"each learner process": sum(memory.host_memory(shape, chosen.learner).values())}
    if chosen.clustered:
        held["each sampler, as it starts"] = shape.parameters * chosen.engine_bytes if chosen.server else 0
        held["/dev/shm of the learner's machine and of each with samplers"] = memory.transfer_bytes(
            shape, chosen.sent_bytes, chosen.sent_rank
        )
    return {name: size for name, size in held.items() if size}


def _too_much(place: Place) -> str:
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


def _pace(config: RunConfig, shape: ModelShape, chosen: Deployment, a: Assumptions, step: Mapping[str, float]) -> Pace:
    serving = chosen.serving(shape, a)
    at_once = min(step["episodes"] * chosen.ahead, float(config.rl.concurrency))
    played = speed.rollouts(shape, serving, at_once, a)
    steady = step["episodes"] / played.per_second
    # A synchronous step waits for its slowest episode, while ever fewer of the others still run.
    rollout = max(steady, a.straggler * played.episode) if chosen.ahead == 1 or chosen.in_turns else steady
    update = step["update_flops"] / (chosen.learner_gpus * a.device.flops * a.train_mfu)
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


def _cost(config: RunConfig, chosen: Deployment, a: Assumptions, pace: Pace, episodes: int) -> Cost:
    hours = config.rl.steps * pace.step / 3600
    read, written = a.user_usage
    paid = config.user.kind == "llm"
    each = (read * a.user_prompt_price + written * a.user_completion_price) / 1e6 if paid else 0.0
    return Cost(
        hours,
        hours * chosen.gpus,
        hours * chosen.gpus * a.gpu_hour,
        each * episodes * config.rl.steps,
        each,
    )
