"""The plan of a cold start: what each learner process holds, and how long learning from demonstrations takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muarl.config.parts import Compute
from muarl.config.stages import SftConfig
from muarl.planning import memory, speed
from muarl.planning.assumptions import GIB, Assumptions
from muarl.planning.models import ModelShape
from muarl.planning.setup import learner_setup


@dataclass(frozen=True, slots=True)
class LearningPlan:
    """What learning takes."""

    held: memory.Parts
    """Bytes on each of ``processes`` devices, by what holds them."""
    budget: int
    """Bytes that each device may hold."""
    processes: int
    steps: int
    tokens: float
    """Tokens of one step."""
    flops: float
    """Operations of one step."""
    seconds: float | None
    """Seconds of one step on the assumed GPUs, None on a CPU."""
    dollars: float | None

    @property
    def total(self) -> int:
        return sum(self.held.values())

    @property
    def fits(self) -> bool:
        return self.total <= self.budget

    def lines(self) -> list[str]:
        """In words."""
        parts = ", ".join(f"{name} {_size(size)}" for name, size in self.held.items() if size)
        each = "the learner" if self.processes == 1 else f"each of {self.processes} learner processes"
        out = [f"memory: {each} holds {_size(self.total)} of {_size(self.budget)} ({parts})"]
        work = f"plan: {self.steps:,} steps of about {self.tokens:,.0f} tokens, {self.flops:.3g} operations each"
        if self.seconds is not None and self.dollars is not None:
            hours = self.steps * self.seconds / 3600
            work += (
                f"; about {self.seconds:,.1f} s a step, {hours:,.1f} h and {self.dollars:,.0f} dollars of GPUs in all"
            )
        return [*out, work]


def plan_learning(
    compute: Compute,
    sft: SftConfig,
    shape: ModelShape,
    steps: int,
    assumptions: Assumptions,
    *,
    machine: int | None = None,
) -> LearningPlan:
    """The plan of ``steps`` steps of a cold start, of demonstrations as long as episodes are assumed to be.

    ``machine``: bytes of memory on this machine, for a learner on its CPU; None: the assumed GPUs.
    """
    a = assumptions
    setup = learner_setup(compute, sft, on_gpu=machine is None)
    # Nobody samples; an adapted model is a copy of the one that was loaded.
    setup = replace(setup, start=setup.rank > 0 and compute.learner.kind == "torch")
    tokens = min(a.episode_tokens, float(compute.model.max_context))
    learned = min(a.sampled, tokens / 2) if sft.other_token_weight == 0 else tokens
    flops = speed.update_flops(
        shape, [tokens] * sft.batch, sft.batch * learned, recompute=setup.recompute, reference=False
    )
    seconds = dollars = None
    if machine is None:
        seconds = flops / (setup.shards * a.device.flops * a.train_mfu)
        dollars = steps * seconds / 3600 * setup.shards * a.gpu_hour
    budget = machine if machine is not None else a.budget
    held = memory.learner_memory(shape, setup)
    if machine is not None:
        held["process"] = memory.process_memory(shape)
    return LearningPlan(held, budget, setup.shards, steps, sft.batch * tokens, flops, seconds, dollars)


def _size(size: int) -> str:
    return f"{size / GIB:,.1f} GiB" if size >= GIB else f"{size / (1 << 20):,.1f} MiB"
