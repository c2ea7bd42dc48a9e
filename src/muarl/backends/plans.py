"""Plans of this machine's models: ``muarl.planning`` is about numbers; here its shapes come from checkpoints and its
devices from what is there. ``muarl plan`` of a published model never imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muarl.backends.hardware import Machines, free_memory
from muarl.backends.model_support import model_shape, user_model_shape
from muarl.basics.errors import DataError
from muarl.config.parts import Compute, PlannedRun
from muarl.config.sections import RunConfig
from muarl.config.stages import SftConfig
from muarl.domains.prompt_size import estimated_tokens
from muarl.domains.tasks import Task
from muarl.environments.configure import places_of
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.environments.registry import find, is_folder
from muarl.planning.assumptions import Assumptions
from muarl.planning.learning import LearningPlan, plan_learning
from muarl.planning.models import ModelShape
from muarl.planning.nearest import nearest
from muarl.planning.plan import ResourcePlan, make_plan, starts_with_models

PromptTokens = Callable[[], float | None]
"""Counts the tokens of policy and tools, where they are not assumed."""


def plan_of(
    run: PlannedRun, assumptions: Assumptions, prompt: PromptTokens, *, seen: Machines | None = None
) -> tuple[ResourcePlan, list[str] | None]:
    """A run's plan, and the overrides of the nearest one that fits (None: there is none). ``seen``: the GPUs that the
    run would find."""
    planning = planner(run, assumptions, prompt, seen=seen)
    made = planning(run)
    return made, [] if made.fits else nearest(run, lambda other: planning(other).fits)


def planner(
    run: PlannedRun, assumptions: Assumptions, prompt: PromptTokens, *, seen: Machines | None = None
) -> Callable[[PlannedRun], ResourcePlan]:
    """Who makes plans of a run and of others like it, all with the same model, machines and prompts."""
    shape, user = model_shape(run.model.checkpoint), user_model_shape(run.user)
    machine = None
    if run.in_one_process and seen is None and not assumptions.replaced and run.model.device in ("auto", "cpu"):
        machine = free_memory()
    assumed = assumptions if seen is None else seen.assumed(assumptions)
    if "prompt_tokens" not in assumptions.replaced:
        assumed = assumed.unless_replaced(prompt_tokens=prompt())
    models = starts_with_models(run.sft, run.coldstart)
    imagined = imagined_share(run.coldstart.scenarios) if models else 1.0
    return lambda other: make_plan(other, shape, assumed, user=user, machine=machine, imagined=imagined)


def imagined_share(scenarios: Sequence[str]) -> float:
    """The share of a cold start's scenarios whose tools a model can play. ConfigError for an unknown environment."""
    played = [is_folder(name) or find(name, "coldstart.scenarios").imagined is not None for name in scenarios]
    return sum(played) / len(played)


def learning_plan(
    compute: Compute,
    sft: SftConfig,
    shape: ModelShape,
    steps: int,
    assumptions: Assumptions,
    seen: Machines | None = None,
) -> LearningPlan:
    """The plan of a cold start of so many steps: on this machine's CPU where it would run there, else on GPUs."""
    on_cpu = (
        compute.learns_here and compute.model.device in ("auto", "cpu") and seen is None and not assumptions.replaced
    )
    assumed = assumptions if seen is None else seen.assumed(assumptions)
    return plan_learning(compute, sft, shape, steps, assumed, machine=free_memory() if on_cpu else None)


def prompt_tokens(config: RunConfig) -> float | None:
    """Tokens of policy and tools at the start of a training episode, by their length, without a tokenizer; None where
    that cannot be seen: a benchmark's data are not installed, or the tools are a server's."""
    if any(find(domain.name).on_server for domain in config.domains):
        return None
    try:
        return prompt_length(places_of(config))
    except DataError:
        return None


def prompt_length(places: Places) -> float:
    """The same of places, of several that of the longest. DataError if there are no tasks."""
    return max(_length(place, place.example_task("train")) for place in places)


def _length(place: Place, task: Task) -> float:
    return float(estimated_tokens(place.system_prompt(task), place.tools(task)))
