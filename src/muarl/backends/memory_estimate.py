"""What the planner needs from this machine: a checkpoint's sizes, and how much memory there is.

Light until it must look at a run's folder or a GPU: ``muarl plan`` of a published model never imports torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.backends.hardware import Machines
from muarl.backends.prompt_lengths import prompt_tokens
from muarl.basics.errors import CheckpointError
from muarl.config import RunConfig
from muarl.environments.registry import find, is_folder
from muarl.planning.assumptions import Assumptions
from muarl.planning.learning import LearningPlan, plan_learning
from muarl.planning.models import ModelShape, published, shape_from_config
from muarl.planning.nearest import nearest
from muarl.planning.plan import ResourcePlan, make_plan, starts_with_models


def plan_of(
    config: RunConfig, assumptions: Assumptions, *, seen: Machines | None = None, prompt: float | None = None
) -> tuple[ResourcePlan, list[str] | None]:
    """A configuration's plan, and the overrides of the nearest one that fits (None: there is none).

    ``seen``: the GPUs that the run would find. ``prompt``: tokens of policy and tools, where they were counted; else
    they are taken by their length.
    """
    planning = planner(config, assumptions, seen=seen, prompt=prompt)
    made = planning(config)
    return made, [] if made.fits else nearest(config, lambda c: planning(c).fits)


def planner(
    config: RunConfig, assumptions: Assumptions, *, seen: Machines | None = None, prompt: float | None = None
) -> Callable[[RunConfig], ResourcePlan]:
    """Who makes plans of a configuration and of others like it, all with the same model, machines and prompts."""
    shape = model_shape(config)
    machine = None
    if in_one_process(config) and seen is None and not assumptions.given and config.model.device in ("auto", "cpu"):
        machine = free_memory()
    known = assumptions if seen is None else seen.assumed(assumptions)
    if "prompt_tokens" not in assumptions.given:
        known = known.unless_given(prompt_tokens=prompt or prompt_tokens(config))
    imagined = imagined_share(config.coldstart.scenarios) if starts_with_models(config) else 1.0
    return lambda c: make_plan(c, shape, known, machine=machine, imagined=imagined)


def imagined_share(scenarios: Sequence[str]) -> float:
    """The share of a cold start's scenarios whose tools a model can play. ConfigError for an unknown environment."""
    played = [is_folder(name) or find(name, "coldstart.scenarios").imagined is not None for name in scenarios]
    return sum(played) / len(played)


def learning_plan(
    config: RunConfig, shape: ModelShape, steps: int, assumptions: Assumptions, seen: Machines | None = None
) -> LearningPlan:
    """The plan of a cold start of so many steps: on this machine's CPU where it would run there, else on GPUs."""
    here = config.learner.kind == "torch" and config.cluster.address is None and config.model.device in ("auto", "cpu")
    on_cpu = here and seen is None and not assumptions.given
    known = assumptions if seen is None else seen.assumed(assumptions)
    return plan_learning(config, shape, steps, known, machine=free_memory() if on_cpu else None)


def in_one_process(config: RunConfig) -> bool:
    """Whether everything runs in one process of this machine."""
    return config.learner.kind == "torch" and config.engine.kind == "torch" and config.cluster.address is None


def local_folder(spec: str) -> Path | None:
    """The folder of a checkpoint on this machine, None if it is only a published model's name. CheckpointError if it is
    neither."""
    path = Path(spec).expanduser()
    if (path / "config.json").is_file():
        return path
    if not path.exists() and published(spec) is not None:
        return None
    return checkpoint_folder(spec)


def model_shape(config: RunConfig) -> ModelShape:
    """The sizes of ``model.checkpoint``: of its config.json, or of the published model of that name."""
    spec = config.model.checkpoint
    folder = local_folder(spec)
    found = published(spec) if folder is None else shape_from_config(folder)
    if found is None:
        raise CheckpointError(f"{spec}: neither a checkpoint on this machine nor the name of a published model")
    return found


def check_present(config: RunConfig) -> None:
    """CheckpointError, with the command that gets it, if ``model.checkpoint`` names a published model that is not on
    this machine."""
    spec = config.model.checkpoint
    if local_folder(spec) is None:
        raise CheckpointError(
            f"{spec}: is not on this machine. Fetch it first, such as by `hf download {spec} --local-dir {spec}`, or "
            "set model.checkpoint to its folder"
        )


def free_memory() -> int:
    """Bytes that this process may still take, swap and what the system can drop included; 0 where it does not say."""
    free = 0
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line)
        free = sum(int(fields[name].split()[0]) * 1024 for name in ("MemAvailable", "SwapFree"))
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            used = int(Path("/sys/fs/cgroup/memory.current").read_text())
            stat = dict(line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines())
            free = min(free, int(limit) - used + int(stat.get("inactive_file", 0)) + int(stat.get("active_file", 0)))
    except (OSError, ValueError, KeyError):
        pass  # what is known so far is still true
    if not free and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(free, 0)
