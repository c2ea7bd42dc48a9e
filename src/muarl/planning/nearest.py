"""The configuration nearest to a given one that fits: a search over the few settings that decide about memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from pydantic import ValidationError

from muarl.config import RunConfig
from muarl.planning.setup import clustered

Fits = Callable[[RunConfig], bool]
Change = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One thing that may be changed: the settings, and how much one would rather not."""

    regret: float
    changes: tuple[Change, ...] = ()


def nearest(config: RunConfig, fits: Fits) -> list[str] | None:
    """``KEY=VALUE`` overrides with the least regret under which ``fits`` holds; [] if it holds already, None if no
    combination does."""
    knobs = [[SettingChange(0.0), *steps] for steps in _knobs(config) if steps]
    combinations = sorted(product(*knobs), key=lambda steps: sum(s.regret for s in steps))
    for steps in combinations:
        changes = [change for step in steps for change in step.changes]
        changed = with_changes(config, changes)
        if changed is not None and fits(changed):
            return [f"{key}={written(value)}" for key, value in changes]
    return None


def with_changes(config: RunConfig, changes: Sequence[Change]) -> RunConfig | None:
    """The configuration with these settings; None if they do not go together."""
    values = config.model_dump(mode="json")
    for key, value in changes:
        section = values
        *above, last = key.split(".")
        for name in above:
            section = section[name]
        section[last] = value
    try:
        return RunConfig.model_validate(values)
    except ValidationError:
        return None


def _knobs(config: RunConfig) -> Iterator[list[SettingChange]]:
    """What may be changed, each with its steps: first what costs time only, then what costs GPUs, then what changes
    what is learned."""
    rl, learner, context = config.rl, config.learner, config.model.max_context
    if learner.pack_tokens > context:
        yield [SettingChange(1.0, (("learner.pack_tokens", context),))]
    if not learner.recompute:
        yield [SettingChange(1.5, (("learner.recompute", True),))]
    deployed = not clustered(config) and not config.engine.urls and config.model.device != "cpu"
    if deployed and rl.asynchrony == "synchronous" and not config.engine.sleep:
        yield [SettingChange(2.2, (("engine.sleep", True),))]
    if config.engine.kind == "torch":
        halves = _halves(config.rollout.concurrency, 4)
        yield [SettingChange(1.0 + n, (("rollout.concurrency", at_once),)) for n, at_once in enumerate(halves)]
    if learner.kind == "fsdp":
        if rl.kl_coef > 0 and not learner.offload_reference and learner.lora is None:
            yield [SettingChange(2.5, (("learner.offload_reference", True),))]
        yield [SettingChange(4.0 + 2 * n, (("learner.processes", learner.processes * 2 ** (n + 1)),)) for n in range(4)]
        if not learner.offload_optimizer:
            yield [SettingChange(3.5, (("learner.offload_optimizer", True),))]
    elif config.model.held == "float32":
        yield [SettingChange(4.0, (("model.dtype", "bfloat16"),))]
    if config.engine.kind == "vllm":
        yield [
            SettingChange(1.2 + n, (("engine.memory", share),))
            for n, share in enumerate((0.6, 0.4))
            if share < config.engine.memory
        ]
        yield [
            SettingChange(4.0 + 2 * n, (("engine.tensor_parallel", gpus),))
            for n, gpus in enumerate((2, 4, 8))
            if gpus > config.engine.tensor_parallel
        ]
    yield [SettingChange(8.0 + 2 * n, _shorter(config, length)) for n, length in enumerate(_halves(context, 4096)[:3])]
    if learner.lora is None:
        yield [SettingChange(11.0, (("learner.lora", {"rank": 32}),))]
    if rl.kl_coef > 0 and learner.lora is None:
        yield [SettingChange(12.0, (("rl.kl_coef", 0.0),))]


def _shorter(config: RunConfig, context: int) -> tuple[Change, ...]:
    """A shorter context, and micro-batches that are no longer than it if they were no longer before."""
    changes: tuple[Change, ...] = (("model.max_context", context),)
    if config.learner.pack_tokens == config.model.max_context:
        changes += (("learner.pack_tokens", context),)
    return changes


def _halves(value: int, least: int) -> list[int]:
    found = []
    while value // 2 >= least:
        value //= 2
        found.append(value)
    return found


def written(value: Any) -> str:
    """A value as in an override on a command line, without spaces."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}: {written(v)}" for k, v in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)
