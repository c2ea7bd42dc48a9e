"""``--dry-run``: everything of a training run is built and checked that needs neither weights nor a GPU.

The model, the learner and its optimiser are made on PyTorch's meta device, which has shapes and no memory; tasks are
drawn, the prompt is measured, a group of full-length episodes is packed, and the plan is reckoned. What does not fit
together ends it with the error that the run itself would have ended with, but before a GPU was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from muarl.backends.hardware import Machines, look
from muarl.backends.local import learner_settings
from muarl.backends.model_support import local_folder, model_shape
from muarl.backends.models import model_format
from muarl.backends.plans import learning_plan, plan_of, prompt_length
from muarl.basics.errors import ConfigError, MuarlError
from muarl.basics.keys import host_of, is_named
from muarl.config.parts import Compute, PlannedRun
from muarl.config.rl import RlConfig
from muarl.config.sections import DomainConfig, ModelConfig, RunConfig
from muarl.config.stages import SftConfig
from muarl.endpoints.config import endpoint_config
from muarl.environments.configure import places_of
from muarl.environments.places import Places
from muarl.learning.checkpoints import Policy, check_policy, load_tokenizer
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Batch, Sample, pack
from muarl.learning.settings import LearnerConfig
from muarl.models.path import path_of
from muarl.models.support import support_of
from muarl.planning.assumptions import GIB, Assumptions
from muarl.planning.memory import cache_per_token
from muarl.planning.models import ModelShape
from muarl.planning.nearest import nearest
from muarl.planning.plan import ResourcePlan
from muarl.recipes.sft import read_demonstrations
from muarl.recipes.training.loss_settings import learner_config
from muarl.runs.checks import user_splits
from muarl.runs.roles import Cast, Role, check_fits
from muarl.runs.room import check_context, check_memory, check_room
from muarl.runs.tasks import check_tasks, demonstration_notes
from muarl.runs.users import check_users

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def dry_run(
    config: RunConfig, recipe: str, assumptions: Assumptions | None = None
) -> tuple[list[str], ResourcePlan, list[str] | None]:
    """Build and check what ``recipe`` ("rl", "sft" or "quickstart") would run, on the GPUs that it would find: of its
    cluster, of this machine, or the assumed ones.

    Returns what was found, line by line; the plan of its reinforcement learning; and the overrides of the nearest
    configuration that fits (see ``plan_of``). The first thing that does not fit together is raised, as ConfigError,
    CheckpointError or DataError. Endpoints are not asked.
    """
    places = places_of(config, with_rl=recipe != "sft")
    validates = recipe == "quickstart" or (recipe == "rl" and config.rl.eval_every > 0)
    roles: list[Role] = ["user", "eval_user"] if validates else ["user"]
    run, cast = PlannedRun.of(config), Cast.of(config)
    check_fits(cast, *roles)
    cold = recipe == "sft"
    notes = demonstration_notes(config.sft, places) if cold else check_tasks(config.rl, places)
    check_users(cast, places, user_splits(config, recipe))
    folder, shape = local_folder(run.model.checkpoint), model_shape(run.model.checkpoint)
    model = _on_meta(run.model.held, shape, folder)
    assumed = assumptions or Assumptions()
    # What would not run on GPUs here is planned for a CPU; so is a small cluster of this machine.
    seen = None if run.model.device == "cpu" or run.cluster.address == "local" else look(run.cluster.address)
    lines = [_model_line(run.model.held, shape, folder), *notes]
    measured = config.eval.split if recipe == "sft" else None
    prompt, prompt_line = _prompt(run, config.domains, places, shape, model, folder, measured=measured)
    count = min(config.sft.demonstrations, 8) if recipe == "sft" else config.rl.tasks_per_step
    lines += [_tasks(places, config.domain_text, count, config.rl.seed), prompt_line, *_machines(run, assumed, seen)]
    lines += _users(cast, roles)
    lines.append(_learner(run, config.sft if recipe == "sft" else config.rl, model))
    lines.append(_packing(run.model.max_context, run.learner.pack_tokens, config.rl.group_size))
    if recipe == "sft":
        lines += _cold_start(run, shape, assumed, seen)
    else:
        lines.append(_cache(run, model, shape))
    if folder is not None:
        check_memory(run, "sft" if recipe == "sft" else "rl", sampling=recipe != "sft")
    made, fitting = plan_of(run, assumed, lambda: prompt, seen=seen)
    return lines, made, fitting


def complain(plan: ResourcePlan, fitting: list[str] | None) -> None:
    """ConfigError if the planned GPUs do not have the memory. For a CPU ``check_memory`` has spoken already, which
    counts only what is certain."""
    if plan.fits or plan.pace is None:
        return
    hint = f"The nearest that fits: {' '.join(fitting)}" if fitting else "No settings make it fit."
    raise ConfigError(f"This run does not fit its machines: {'; '.join(plan.problems)}. {hint}")


def _on_meta(held: str, shape: ModelShape, folder: Path | None) -> PreTrainedModel:
    """The model without memory, after a look at the names and shapes of the checkpoint's tensors where it is here."""
    import torch

    from muarl.models.configs import empty_model, model_config

    described = model_config(shape.to_config()) if folder is None else check_policy(folder)
    model: Any = empty_model(described).to(getattr(torch, held))
    path_of(model)
    counted = sum(p.numel() for p in model.parameters())
    if counted != shape.parameters:
        raise MuarlError(f"{shape.name}: the planner counts {shape.parameters:,} parameters, and there are {counted:,}")
    return cast("PreTrainedModel", model)


def _model_line(held: str, shape: ModelShape, folder: Path | None) -> str:
    where = f"checkpoint {folder}" if folder else "not on this machine: its published sizes are taken"
    return f"model: {shape.name}, {shape.parameters:,} parameters in {held} ({where})"


def _machines(compute: Compute, assumed: Assumptions, seen: Machines | None) -> Iterator[str]:
    """Which GPUs are planned with, and how that is known."""
    if "gpu" in assumed.replaced:
        yield f"machines: {assumed.gpu}, as --assume says"
    elif seen is not None:
        yield f"machines: {seen}"
    elif not compute.in_one_process:
        yield f"machines: no GPU can be seen from here, so {assumed.gpu} is assumed (another kind: --assume gpu=h100)"


def _tasks(places: Places, named: str, count: int, seed: int) -> str:
    """Draw tasks. ``named``: the places, as the configuration has them."""
    tasks = places.draw("train", count, seed, 0)
    counts = Counter(places.of(task).name for task in tasks)
    each = f" ({', '.join(f'{n} of {name}' for name, n in counts.items())})" if len(places) > 1 else ""
    return f"tasks: {len(tasks)} drawn from {named}{each}, such as {tasks[0].id}"


def _prompt(
    compute: Compute,
    domains: Sequence[DomainConfig],
    places: Places,
    shape: ModelShape,
    model: Any,
    folder: Path | None,
    *,
    measured: str | None,
) -> tuple[float, str]:
    """How many tokens the agent is told before it may speak: by the model's tokenizer where it is here. ``measured``:
    see ``check_room``."""
    longest = compute.model.max_context
    if folder is not None:
        policy = Policy(model, load_tokenizer(folder), folder)
        check_room(compute, domains, places, policy, measured=measured)
        chat = model_format(policy.tokenizer, compute.model)
        prompts = [
            chat.prompt(place.system_prompt(task), place.tools(task), [])
            for place in places
            for task in (place.example_task("train"),)
        ]
        counted = max(map(len, prompts))
        return float(counted), f"prompt: policy and tools take {counted:,} of {longest:,} tokens of context"
    about = prompt_length(places)
    longest_of = dict.fromkeys([domains[0].name], round(about))
    check_context(compute, domains, longest_of, shape.positions, training=measured is None, about=True)
    return about, f"prompt: policy and tools take about {about:,.0f} of {longest:,} tokens of context (by length)"


def _users(cast: Cast, roles: list[Role]) -> Iterator[str]:
    for role in roles:
        user = cast.user_of(role)
        if user.kind != "llm" or user.endpoint is None:
            yield f"{role}: {user.kind}"
            continue
        name = user.endpoint.api_key_env
        key = f"key in {name}, which {'is set' if is_named(name) else 'is NOT set here'}" if name else "without a key"
        where = host_of(endpoint_config(user.endpoint.model_dump()).url)
        yield f"{role}: {user.endpoint.model} at {where}, {user.endpoint.concurrency} requests at once, {key}"


def _learner(compute: Compute, stage: RlConfig | SftConfig, model: PreTrainedModel) -> str:
    """A learner on the meta device, with gradients and one optimiser step; a sharded one has the same in parts."""
    import torch

    sharded = compute.learner.kind == "fsdp"
    settings = learner_settings(compute, _settings(stage, compute.model))
    learner = TorchLearner(model.float() if sharded else model, None, settings)  # type: ignore[arg-type]
    for parameter in learner.optimizer.names:
        parameter.grad = torch.empty_like(parameter)
    for optimizer in learner.optimizer.optimizers:
        optimizer.step()
    state = sum(t.numel() * t.element_size() for t in learner.optimizer.tensors().values())
    learner.optimizer.zero_grad()
    trained = sum(p.numel() for p in learner.optimizer.names)
    reference = "with a reference model" if learner.reference is not None else "without a reference model of its own"
    where = f", sharded over {compute.learner.processes} processes" if sharded else ""
    return f"learner: trains {trained:,} parameters, {state / GIB:.2f} GiB of optimiser state{where}, {reference}"


def _packing(longest: int, budget: int, count: int) -> str:
    """Pack a group of episodes of full length. ConfigError if one is longer than a micro-batch."""
    ids = range(longest)
    batch = Batch.of([Sample(ids, [0.0] * (longest - 1) + [1.0], [0.0] * longest, 1.0) for _ in range(count)])
    rows = pack(batch, token_budget=budget)
    return f"packing: {count} episodes of {longest:,} tokens make {len(rows)} micro-batches of at most {budget:,}"


def _cold_start(run: PlannedRun, shape: ModelShape, assumed: Assumptions, seen: Machines | None) -> list[str]:
    """The plan of the cold start. ConfigError if the planned GPUs do not have the memory; DataError for a file of
    demonstrations that is there and cannot be read."""
    count, file = run.sft.demonstrations, run.sft.demonstrations_file
    lines = []
    if file is not None and file.expanduser().is_file():
        count = len(read_demonstrations(file))
        lines.append(f"demonstrations: {count:,} in {file}")
    elif file is not None:
        lines.append(
            f"demonstrations: {file} is NOT there yet, and has to be when this starts (muarl coldstart makes one); "
            f"planned with {count:,}"
        )
    made = learning_plan(run, run.sft, shape, run.sft.step_count(count), assumed, seen)
    if not made.fits and made.seconds is not None:
        fitting = nearest(run, lambda c: learning_plan(c, c.sft, shape, made.steps, assumed, seen).fits)
        hint = f"The nearest that fits: {' '.join(fitting)}" if fitting else "No settings make it fit."
        raise ConfigError(f"This run does not fit its machines: {made.lines()[0]}. {hint}")
    return [*lines, *made.lines()]


def _settings(stage: RlConfig | SftConfig, model: ModelConfig) -> LearnerConfig:
    if isinstance(stage, RlConfig):
        return learner_config(stage, model)
    return LearnerConfig(OptimizerConfig(kind=stage.optimizer), PolicyLossConfig(kl_coef=0.0))


def _cache(compute: Compute, model: PreTrainedModel, shape: ModelShape) -> str:
    import torch

    if compute.engine.kind == "vllm":
        engine = compute.engine
        return f"sampler: vLLM on {engine.tensor_parallel} GPU(s) each, {engine.max_sequences} sequences at once"
    on_gpu = (compute.model.device == "auto" and torch.cuda.is_available()) or compute.model.device.startswith("cuda")
    dtype = getattr(torch, compute.engine.computes_in(compute.model.held, on_gpu=on_gpu))
    slots, positions = compute.rollout.concurrency, compute.model.max_context
    size = slots * positions * cache_per_token(shape, dtype.itemsize)
    slower = support_of(model.config).notice
    return (
        f"sampler: a cache of {slots} conversations of {positions:,} tokens, {size / GIB:.2f} GiB"
        f"{slower and '. '}{slower}"
    )
