"""A given number of GPUs, divided between learner and samplers: ``muarl plan PRESET --gpus 8``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from math import log2

from muarl.basics.errors import ConfigError
from muarl.config import RunConfig
from muarl.planning.nearest import Change, SettingChange, with_changes, written
from muarl.planning.plan import ResourcePlan

TOGETHER = 1.1
"""How much faster a step must be to be worth samplers of twice as many GPUs; a guess."""
LEARNING = 8.0
"""The regret from which on a change alters what is learned (see ``nearest``)."""


def best_split(
    config: RunConfig, gpus: int, plan: Callable[[RunConfig], ResourcePlan]
) -> tuple[list[str], ResourcePlan] | None:
    """The overrides under which a run fits on at most so many GPUs, and its plan; None if it does not.

    The fastest step of those that leave alone what is learned: how the GPUs are divided, recomputing, offloading, of
    which each must save a few percent. Only where none fits, a shorter context or adapters. Plans do not reckon what
    the GPUs of one sampler have to say to each other, so twice as many of them must save a tenth (``TOGETHER``).
    A configuration whose learner and samplers share GPUs is not divided: it must fit as it is. ConfigError for one
    without GPUs, and for any other whose parts do not have GPUs of their own.
    """
    whole = plan(config)
    if whole.pace is not None and (whole.deployment.shared or whole.deployment.server is None):
        return ([], whole) if whole.fits and whole.gpus <= gpus else None
    if config.learner.kind != "fsdp" or config.engine.kind != "vllm" or not config.cluster.sampler_gpus:
        raise ConfigError(
            "--gpus: divides GPUs between an FSDP learner and vLLM samplers on a cluster (such as preset mua-8b has), "
            "and this configuration has no such parts"
        )
    if gpus < 2:
        raise ConfigError(f"--gpus: {gpus} is too few: learner and samplers need separate GPUs, at least 2 in all")
    for wanted in (False, True):
        fitting = []
        for knobs in _combinations(config, wanted):
            changes = tuple(change for knob in knobs for change in knob.changes)
            regret = 1 + sum(knob.regret for knob in knobs) / 100
            for split in _splits(config, gpus):
                changed = with_changes(config, (*split, *changes))
                if changed is None:
                    continue
                made = plan(changed)
                if made.fits and made.pace is not None and made.gpus <= gpus:
                    apart = TOGETHER ** log2(changed.engine.tensor_parallel / config.engine.tensor_parallel)
                    fitting.append((made.pace.step * regret * max(apart, 1.0), (*split, *changes), made))
        if fitting:
            _, changes, made = min(fitting, key=lambda found: found[0])
            return [f"{key}={written(value)}" for key, value in _different(config, changes)], made
    return None


def _combinations(config: RunConfig, learning: bool) -> Iterator[tuple[SettingChange, ...]]:
    """Sets of changes: those that leave learning alone, or those that do not."""
    knobs = list(_knobs(config))
    for size in range(len(knobs) + 1):
        for chosen in combinations(knobs, size):
            if learning == any(knob.regret >= LEARNING for knob in chosen):
                yield chosen


def _knobs(config: RunConfig) -> Iterator[SettingChange]:
    rl, learner, context = config.rl, config.learner, config.model.max_context
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


def _splits(config: RunConfig, gpus: int) -> Iterator[tuple[Change, ...]]:
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
                ("engine.max_sequences", -(-config.rollout.concurrency // samplers)),
            )


def _different(config: RunConfig, changes: tuple[Change, ...]) -> list[Change]:
    """The changes that are any."""
    values = config.model_dump(mode="json")

    def now(key: str) -> object:
        found: object = values
        for name in key.split("."):
            found = found[name] if isinstance(found, dict) else None
        return found

    return [(key, value) for key, value in changes if now(key) != value]
