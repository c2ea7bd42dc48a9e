"""``--dry-run``: everything of a training run is built and checked that needs neither weights nor a GPU.

The model, the learner and its optimiser are made on PyTorch's meta device, which has shapes and no memory; tasks are
drawn, the prompt is measured, a group of full-length episodes is packed, and the plan is reckoned. What does not fit
together ends it with the error that the run itself would have ended with, but before a GPU was asked for.
"""

from __future__ import annotations

import json
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
from muarl.recipes.local import learner_settings
from muarl.recipes.planned import learning_plan, local_folder, model_shape, plan_of
from muarl.recipes.preflight import Role, check_fits, check_memory, check_room, check_tasks
from muarl.recipes.setting import Setting, make_setting
from muarl.recipes.sft import step_count
from muarl.recipes.updates import learner_config

if TYPE_CHECKING:
    from transformers import Qwen3ForCausalLM

CHARACTERS_A_TOKEN = 4
"""Taken for a prompt's length where the model's tokenizer is not on this machine."""


def dry_run(config: RunConfig, recipe: str) -> tuple[list[str], Plan, list[str] | None]:
    """Build and check what ``recipe`` ("rl", "sft" or "quickstart") would run.

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
    lines = [_model_line(config, shape, folder), *notes]
    lines += _tasks(config, setting, shape, model, folder, training=recipe != "sft")
    lines += _users(config, roles)
    lines.append(_learner(config, model, recipe))
    lines.append(_packing(config, recipe))
    if recipe == "sft":
        lines += _cold_start(config, shape)
    else:
        lines.append(_cache(config, model))
    if folder is not None:
        check_memory(config, sampling=recipe != "sft")
    made, fitting = plan_of(config, Assumptions())
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


def _tasks(
    config: RunConfig, setting: Setting, shape: ModelShape, model: Any, folder: Path | None, *, training: bool
) -> Iterator[str]:
    """Draw tasks, and measure what the agent is told before it may speak."""
    count = config.rl.tasks_per_step if training else min(config.sft.demonstrations, 8)
    tasks = setting.draw("train", count, config.rl.seed, 0)
    yield f"tasks: {len(tasks)} drawn from {config.domain.name}, such as {tasks[0].id}"
    if folder is not None:
        check_room(config, setting, Policy(model, load_tokenizer(folder), folder), training=training)
        yield f"prompt: leaves room in {config.model.max_context:,} tokens of context"
        return
    if config.model.max_context > shape.positions:
        raise ConfigError(
            f"model.max_context is {config.model.max_context}, but this model reads at most {shape.positions} tokens"
        )
    tools = sum(len(json.dumps(t.parameters)) + len(t.name) + len(t.description) for t in setting.tools(tasks[0]))
    about = (len(setting.told(tasks[0])) + tools) // CHARACTERS_A_TOKEN
    if about >= config.model.max_context:
        raise ConfigError(
            f"model.max_context is {config.model.max_context}, and policy text and tools alone take about {about} "
            "tokens: raise it, or choose a smaller domain.size"
        )
    yield f"prompt: policy and tools take about {about:,} of {config.model.max_context:,} tokens of context (by length)"


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


def _cold_start(config: RunConfig, shape: ModelShape) -> list[str]:
    """The plan of the cold start. ConfigError if the planned GPUs do not have the memory."""
    made = learning_plan(config, shape, step_count(config.sft, config.sft.demonstrations))
    if not made.fits and made.seconds is not None:
        found = nearest(config, lambda c: learning_plan(c, shape, made.steps).fits)
        hint = f"The nearest that fits: {' '.join(found)}" if found else "No setting makes it fit."
        raise ConfigError(f"This run does not fit its machines: {made.lines()[0]}. {hint}")
    return made.lines()


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
