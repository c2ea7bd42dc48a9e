"""``--dry-run``: everything of a training run is built and checked that needs neither weights nor a GPU.

The model, the learner and its optimiser are made on PyTorch's meta device, which has shapes and no memory; tasks are
drawn, the prompt is measured, a group of full-length episodes is packed, and the plan is reckoned. What does not fit
together ends it with the error that the run itself would have ended with, but before a GPU was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.config import RunConfig
from muarl.endpoints.config import endpoint_config
from muarl.errors import ConfigError, MuarlError
from muarl.keys import host_of, is_named
from muarl.learning.checkpoints import Policy, check_policy, load_tokenizer
from muarl.learning.learner import TorchLearner
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Batch, Sample, pack
from muarl.learning.settings import LearnerConfig, PolicyLossConfig
from muarl.models.qwen3 import shape_of
from muarl.models.qwen3_cached import KVCache
from muarl.planning.assumptions import GIB, Assumptions
from muarl.planning.models import ModelShape
from muarl.planning.nearest import nearest
from muarl.planning.plan import Plan
from muarl.recipes.hardware import Machines, look
from muarl.recipes.local import learner_settings
from muarl.recipes.planned import in_one_process, learning_plan, local_folder, model_shape, plan_of
from muarl.recipes.preflight import Role, check_fits, check_memory, check_room, check_tasks
from muarl.recipes.prompts import prompt_length
from muarl.recipes.setting import Setting, make_setting
from muarl.recipes.sft import read_demonstrations, step_count
from muarl.recipes.updates import learner_config
from muarl.tokens import ChatTokens

if TYPE_CHECKING:
    from transformers import Qwen3ForCausalLM


def dry_run(
    config: RunConfig, recipe: str, assumptions: Assumptions | None = None
) -> tuple[list[str], Plan, list[str] | None]:
    """Build and check what ``recipe`` ("rl", "sft" or "quickstart") would run, on the GPUs that it would find: of its
    cluster, of this machine, or the assumed ones.

    Returns what was found, line by line; the plan of its reinforcement learning; and the overrides of the nearest
    configuration that fits (see ``plan_of``). The first thing that does not fit together is raised, as ConfigError,
    CheckpointError or DataError. Endpoints are not asked.
    """
    setting = make_setting(config)
    validates = recipe == "quickstart" or (recipe == "rl" and config.rl.eval_every > 0)
    roles: list[Role] = ["user", "eval_user"] if validates else ["user"]
    check_fits(config, *roles)
    notes = [] if recipe == "sft" else check_tasks(config, setting)
    folder, shape = local_folder(config.model.checkpoint), model_shape(config)
    model = _on_meta(config, shape, folder)
    assumed = assumptions or Assumptions()
    # What would not run on GPUs here is planned for a CPU; so is a small cluster of this machine.
    seen = None if config.model.device == "cpu" or config.cluster.address == "local" else look(config)
    lines = [_model_line(config, shape, folder), *notes]
    prompt, told = _prompt(config, setting, shape, model, folder, training=recipe != "sft")
    lines += [*_tasks(config, setting, training=recipe != "sft"), told, *_machines(config, assumed, seen)]
    lines += _users(config, roles)
    lines.append(_learner(config, model, recipe))
    lines.append(_packing(config, recipe))
    if recipe == "sft":
        lines += _cold_start(config, shape, assumed, seen)
    else:
        lines.append(_cache(config, model))
    if folder is not None:
        check_memory(config, sampling=recipe != "sft")
    made, fitting = plan_of(config, assumed, seen=seen, prompt=prompt)
    return lines, made, fitting


def complain(plan: Plan, fitting: list[str] | None) -> None:
    """ConfigError if the planned GPUs do not have the memory. For a CPU ``check_memory`` has spoken already, which
    counts only what is certain."""
    if plan.fits or plan.pace is None:
        return
    hint = f"The nearest that fits: {' '.join(fitting)}" if fitting else "No setting makes it fit."
    raise ConfigError(f"This run does not fit its machines: {'; '.join(plan.problems)}. {hint}")


def _on_meta(config: RunConfig, shape: ModelShape, folder: Path | None) -> Qwen3ForCausalLM:
    """The model without memory, after a look at the names and shapes of the checkpoint's tensors where it is here."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    fields = {k: v for k, v in shape.to_config().items() if k not in ("architectures", "model_type")}
    described = Qwen3Config(**fields) if folder is None else check_policy(folder)
    with torch.device("meta"):
        model = Qwen3ForCausalLM(described).to(getattr(torch, config.model.dtype))
    shape_of(model)
    counted = sum(p.numel() for p in model.parameters())
    if counted != shape.parameters:
        raise MuarlError(f"{shape.name}: the planner counts {shape.parameters:,} parameters, and there are {counted:,}")
    return model


def _model_line(config: RunConfig, shape: ModelShape, folder: Path | None) -> str:
    where = f"checkpoint {folder}" if folder else "not on this machine: its published sizes are taken"
    return f"model: {shape.name}, {shape.parameters:,} parameters in {config.model.dtype} ({where})"


def _machines(config: RunConfig, assumed: Assumptions, seen: Machines | None) -> Iterator[str]:
    """Which GPUs are planned with, and how that is known."""
    if "gpu" in assumed.given:
        yield f"machines: {assumed.gpu}, as --assume says"
    elif seen is not None:
        yield f"machines: {seen}"
    elif not in_one_process(config):
        yield f"machines: no GPU can be seen from here, so {assumed.gpu} is assumed (another kind: --assume gpu=h100)"


def _tasks(config: RunConfig, setting: Setting, *, training: bool) -> Iterator[str]:
    """Draw tasks."""
    count = config.rl.tasks_per_step if training else min(config.sft.demonstrations, 8)
    tasks = setting.draw("train", count, config.rl.seed, 0)
    yield f"tasks: {len(tasks)} drawn from {config.domain.name}, such as {tasks[0].id}"


def _prompt(
    config: RunConfig, setting: Setting, shape: ModelShape, model: Any, folder: Path | None, *, training: bool
) -> tuple[float, str]:
    """How many tokens the agent is told before it may speak: by the model's tokenizer where it is here."""
    longest = config.model.max_context
    if folder is not None:
        policy = Policy(model, load_tokenizer(folder), folder)
        check_room(config, setting, policy, training=training)
        task = setting.some_task("train")
        chat = ChatTokens(policy.tokenizer, thinking=config.model.thinking)
        counted = len(chat.prompt(setting.told(task), setting.tools(task), []))
        return float(counted), f"prompt: policy and tools take {counted:,} of {longest:,} tokens of context"
    if longest > shape.positions:
        raise ConfigError(f"model.max_context is {longest}, but this model reads at most {shape.positions} tokens")
    about = prompt_length(setting)
    if about >= longest:
        raise ConfigError(
            f"model.max_context is {longest}, and policy text and tools alone take about {about:.0f} tokens: raise it, "
            "or choose a smaller domain.size"
        )
    return about, f"prompt: policy and tools take about {about:,.0f} of {longest:,} tokens of context (by length)"


def _users(config: RunConfig, roles: list[Role]) -> Iterator[str]:
    for role in roles:
        user = config.user if role == "user" else config.eval_user
        if user.kind != "llm" or user.endpoint is None:
            yield f"{role}: {user.kind}"
            continue
        name = user.endpoint.api_key_env
        key = f"key in {name}, which {'is set' if is_named(name) else 'is NOT set here'}" if name else "without a key"
        where = host_of(endpoint_config(user.endpoint.model_dump()).url)
        yield f"{role}: {user.endpoint.model} at {where}, {user.endpoint.concurrency} requests at once, {key}"


def _learner(config: RunConfig, model: Qwen3ForCausalLM, recipe: str) -> str:
    """A learner on the meta device, with gradients and one optimiser step; a sharded one has the same in parts."""
    import torch

    sharded = config.learner.kind == "fsdp"
    settings = learner_settings(config, _settings(config, recipe))
    learner = TorchLearner(model.float() if sharded else model, None, settings)  # type: ignore[arg-type]
    for parameter in learner.optimizer.names:
        parameter.grad = torch.empty_like(parameter)
    for optimizer in learner.optimizer.optimizers:
        optimizer.step()
    state = sum(t.numel() * t.element_size() for t in learner.optimizer.tensors().values())
    learner.optimizer.zero_grad()
    trained = sum(p.numel() for p in learner.optimizer.names)
    reference = "with a reference model" if learner.reference is not None else "without a reference model of its own"
    where = f", sharded over {config.learner.processes} processes" if sharded else ""
    return f"learner: trains {trained:,} parameters, {state / GIB:.2f} GiB of optimiser state{where}, {reference}"


def _packing(config: RunConfig, recipe: str) -> str:
    """Pack a group of episodes of full length. ConfigError if one is longer than a micro-batch."""
    longest, count = config.model.max_context, config.rl.group_size
    budget = _settings(config, recipe).token_budget
    ids = range(longest)
    batch = Batch.of([Sample(ids, [0.0] * (longest - 1) + [1.0], [0.0] * longest, 1.0) for _ in range(count)])
    rows = pack(batch, token_budget=budget)
    return f"packing: {count} episodes of {longest:,} tokens make {len(rows)} micro-batches of at most {budget:,}"


def _cold_start(config: RunConfig, shape: ModelShape, assumed: Assumptions, seen: Machines | None) -> list[str]:
    """The plan of the cold start. ConfigError if the planned GPUs do not have the memory; DataError for a file of
    demonstrations that is there and cannot be read."""
    count, file = config.sft.demonstrations, config.sft.demonstrations_file
    lines = []
    if file is not None and file.expanduser().is_file():
        count = len(read_demonstrations(file))
        lines.append(f"demonstrations: {count:,} in {file}")
    elif file is not None:
        lines.append(
            f"demonstrations: {file} is NOT there yet, and has to be when this starts (muarl coldstart makes one); "
            f"planned with {count:,}"
        )
    made = learning_plan(config, shape, step_count(config.sft, count), assumed, seen)
    if not made.fits and made.seconds is not None:
        found = nearest(config, lambda c: learning_plan(c, shape, made.steps, assumed, seen).fits)
        hint = f"The nearest that fits: {' '.join(found)}" if found else "No setting makes it fit."
        raise ConfigError(f"This run does not fit its machines: {made.lines()[0]}. {hint}")
    return [*lines, *made.lines()]


def _settings(config: RunConfig, recipe: str) -> LearnerConfig:
    if recipe != "sft":
        return learner_config(config)
    return LearnerConfig(
        optimizer=OptimizerConfig(kind=config.sft.optimizer),
        policy=PolicyLossConfig(kl_coef=0.0),
        token_budget=config.rl.pack_tokens,
        precision=config.model.dtype,
    )


def _cache(config: RunConfig, model: Qwen3ForCausalLM) -> str:
    import torch

    if config.engine.kind == "vllm":
        engine = config.engine
        return f"sampler: vLLM on {engine.tensor_parallel} GPU(s) each, {engine.max_sequences} sequences at once"
    on_gpu = (config.model.device == "auto" and torch.cuda.is_available()) or config.model.device.startswith("cuda")
    dtype = getattr(torch, config.engine.computes_in(config.model.dtype, on_gpu=on_gpu))
    cache = KVCache(shape_of(model), config.rl.concurrency, config.model.max_context, torch.device("meta"), dtype)
    size = sum(t.numel() * t.element_size() for t in (*cache.keys, *cache.values))
    return (
        f"sampler: a cache of {config.rl.concurrency} conversations of {config.model.max_context:,} tokens, "
        f"{size / GIB:.2f} GiB"
    )
