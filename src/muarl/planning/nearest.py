"""A run that fits, near to one that does not: a search over the few settings that decide about memory, and over the
ways to divide a given number of GPUs between learner and samplers (``muarl plan PRESET --gpus 8``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import log2
from typing import Any

from pydantic import ValidationError

from muarl.basics.errors import ConfigError
from muarl.config.parts import PlannedRun
from muarl.config.sections import RunConfig
from muarl.planning.plan import ResourcePlan

Fits = Callable[[PlannedRun], bool]
Change = tuple[str, Any]

TOGETHER = 1.1
"""How much faster a step must be to be worth samplers of twice as many GPUs; a guess."""
LEARNING = 8.0
"""The regret from which on a change alters what is learned."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One thing that may be changed: the settings, and how much one would rather not."""

    regret: float
    changes: tuple[Change, ...] = ()


def nearest(run: PlannedRun, fits: Fits) -> list[str] | None:
    """``KEY=VALUE`` overrides with the least regret under which ``fits`` holds; [] if it holds already, None if no
    combination does."""
    knobs = [[SettingChange(0.0), *steps] for steps in _knobs(run) if steps]
    ways = sorted(product(*knobs), key=lambda steps: sum(s.regret for s in steps))
    for steps in ways:
        changes = [change for step in steps for change in step.changes]
        changed = with_changes(run, changes)
        if changed is not None and fits(changed):
            return [f"{key}={written(value)}" for key, value in changes]
    return None


def with_changes(run: PlannedRun, changes: Sequence[Change]) -> PlannedRun | None:
    """The run with these settings; None if they do not go together."""
    values = run.values()
    for key, value in changes:
        section = values
        *above, last = key.split(".")
        for name in above:
            section = section[name]
        section[last] = value
    try:
        return PlannedRun.of(RunConfig.model_validate(values))
    except ValidationError:
        return None


def _knobs(run: PlannedRun) -> Iterator[list[SettingChange]]:
    """What may be changed, each with its steps: first what costs time only, then what costs GPUs, then what changes
    what is learned."""
    rl, learner, context = run.rl, run.learner, run.model.max_context
    if learner.pack_tokens > context:
        yield [SettingChange(1.0, (("learner.pack_tokens", context),))]
    if not learner.recompute:
        yield [SettingChange(1.5, (("learner.recompute", True),))]
    deployed = not run.clustered and not run.engine.urls and run.model.device != "cpu"
    if deployed and rl.asynchrony == "synchronous" and not run.engine.sleep:
        yield [SettingChange(2.2, (("engine.sleep", True),))]
    if run.engine.kind == "torch":
        halves = _halves(run.rollout.concurrency, 4)
        yield [SettingChange(1.0 + n, (("rollout.concurrency", at_once),)) for n, at_once in enumerate(halves)]
    if learner.kind == "fsdp":
        if rl.kl_coef > 0 and not learner.offload_reference and learner.lora is None:
            yield [SettingChange(2.5, (("learner.offload_reference", True),))]
        yield [SettingChange(4.0 + 2 * n, (("learner.processes", learner.processes * 2 ** (n + 1)),)) for n in range(4)]
        if not learner.offload_optimizer:
            yield [SettingChange(3.5, (("learner.offload_optimizer", True),))]
    elif run.model.held == "float32":
        yield [SettingChange(4.0, (("model.dtype", "bfloat16"),))]
    if run.engine.kind == "vllm":
        yield [
            SettingChange(1.2 + n, (("engine.memory", share),))
            for n, share in enumerate((0.6, 0.4))
            if share < run.engine.memory
        ]
        yield [
            SettingChange(4.0 + 2 * n, (("engine.tensor_parallel", gpus),))
            for n, gpus in enumerate((2, 4, 8))
            if gpus > run.engine.tensor_parallel
        ]
    yield [SettingChange(8.0 + 2 * n, _shorter(run, length)) for n, length in enumerate(_halves(context, 4096)[:3])]
    if learner.lora is None:
        yield [SettingChange(11.0, (("learner.lora", {"rank": 32}),))]
    if rl.kl_coef > 0 and learner.lora is None:
        yield [SettingChange(12.0, (("rl.kl_coef", 0.0),))]


def _shorter(run: PlannedRun, context: int) -> tuple[Change, ...]:
    """A shorter context, and micro-batches that are no longer than it if they were no longer before."""
    changes: tuple[Change, ...] = (("model.max_context", context),)
    if run.learner.pack_tokens == run.model.max_context:
        changes += (("learner.pack_tokens", context),)
    return changes


def _halves(value: int, least: int) -> list[int]:
    halves = []
    while value // 2 >= least:
        value //= 2
        halves.append(value)
    return halves


def written(value: Any) -> str:
    """A value as in an override on a command line, without spaces."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}: {written(v)}" for k, v in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def best_split(
    run: PlannedRun, gpus: int, plan: Callable[[PlannedRun], ResourcePlan]
) -> tuple[list[str], ResourcePlan] | None:
    """The overrides under which a run fits on at most so many GPUs, and its plan; None if it does not.

    The fastest step of those that leave alone what is learned: how the GPUs are divided, recomputing, offloading, of
    which each must save a few percent. Only where none fits, a shorter context or adapters. Plans do not reckon what
    the GPUs of one sampler have to say to each other, so twice as many of them must save a tenth (``TOGETHER``).
    A configuration whose learner and samplers share GPUs is not divided: it must fit as it is. ConfigError for one
    without GPUs, and for any other whose parts do not have GPUs of their own.
    """
    whole = plan(run)
    if whole.pace is not None and (whole.deployment.shared or whole.deployment.server is None):
        return ([], whole) if whole.fits and whole.gpus <= gpus else None
    if run.learner.kind != "fsdp" or run.engine.kind != "vllm" or not run.cluster.sampler_gpus:
        raise ConfigError(
            "--gpus: divides GPUs between an FSDP learner and vLLM samplers on a cluster (such as preset mua-8b has), "
            "and this configuration has no such parts"
        )
    if gpus < 2:
        raise ConfigError(f"--gpus: {gpus} is too few: learner and samplers need separate GPUs, at least 2 in all")
    for learning in (False, True):
        fitting = []
        for knobs in _combinations(run, learning):
            changes = tuple(change for knob in knobs for change in knob.changes)
            regret = 1 + sum(knob.regret for knob in knobs) / 100
            for split in _splits(run, gpus):
                changed = with_changes(run, (*split, *changes))
                if changed is None:
                    continue
                made = plan(changed)
                if made.fits and made.pace is not None and made.gpus <= gpus:
                    apart = TOGETHER ** log2(changed.engine.tensor_parallel / run.engine.tensor_parallel)
                    fitting.append((made.pace.step * regret * max(apart, 1.0), (*split, *changes), made))
        if fitting:
            _, changes, made = min(fitting, key=lambda option: option[0])
            return [f"{key}={written(value)}" for key, value in _different(run, changes)], made
    return None


def _combinations(run: PlannedRun, learning: bool) -> Iterator[tuple[SettingChange, ...]]:
    """Sets of changes: those that leave learning alone, or those that do not."""
    knobs = list(_split_knobs(run))
    for size in range(len(knobs) + 1):
        for chosen in combinations(knobs, size):
            if learning == any(knob.regret >= LEARNING for knob in chosen):
                yield chosen


def _split_knobs(run: PlannedRun) -> Iterator[SettingChange]:
    rl, learner, context = run.rl, run.learner, run.model.max_context
    if learner.pack_tokens > context:
        yield SettingChange(1.0, (("learner.pack_tokens", context),))
    if not learner.recompute:
        yield SettingChange(1.5, (("learner.recompute", True),))
    if rl.kl_coef > 0 and not learner.offload_reference and learner.lora is None:
        yield SettingChange(2.5, (("learner.offload_reference", True),))
    if not learner.offload_optimizer:
        yield SettingChange(3.5, (("learner.offload_optimizer", True),))
    if context // 2 >= 4096:
        shorter = min(learner.pack_tokens, context // 2)
        yield SettingChange(LEARNING, (("model.max_context", context // 2), ("learner.pack_tokens", shorter)))
    if learner.lora is None:
        yield SettingChange(11.0, (("learner.lora", {"rank": 32}),))


def _splits(run: PlannedRun, gpus: int) -> Iterator[tuple[Change, ...]]:
    """Ways to divide the GPUs: samplers of 1, 2, 4 or 8, and learners of a power of two or of what samplers leave."""
    powers = [2**n for n in range(gpus.bit_length()) if 2**n < gpus]
    for each in (1, 2, 4, 8):
        learners = {*powers, *(gpus - each * n for n in powers)}
        for processes in sorted(learners):
            samplers = (gpus - processes) // each
            if processes < 1 or samplers < 1:
                continue
            yield (
                ("learner.processes", processes),
                ("cluster.samplers", samplers),
                ("cluster.sampler_gpus", each),
                ("engine.tensor_parallel", each),
                ("engine.max_sequences", -(-run.rollout.concurrency // samplers)),
            )


def _different(run: PlannedRun, changes: tuple[Change, ...]) -> list[Change]:
    """The changes that are any."""
    values = run.values()

    def now(key: str) -> object:
        setting: object = values
        for name in key.split("."):
            setting = setting[name] if isinstance(setting, dict) else None
        return setting

    return [(key, value) for key, value in changes if now(key) != value]
