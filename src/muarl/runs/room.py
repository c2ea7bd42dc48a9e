"""Whether there is room for a run: in the model's context for its episodes, on this machine's device for the model and
what training needs, on its disk for checkpoints; and what ``learner.pack_tokens: auto`` becomes where memory is short.

What is wrong is told with the settings that get on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from muarl.backends.hardware import free_on_device, total_memory
from muarl.backends.model_support import check_present, check_supported, model_shape, user_model_shape
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.basics.files import free_space, size_text
from muarl.config.keeping import CheckpointsConfig
from muarl.config.parts import Compute, PlannedRun
from muarl.config.rl import RlConfig
from muarl.config.sections import DomainConfig, RunConfig
from muarl.config.stages import SftConfig
from muarl.environments.places import Places
from muarl.environments.registry import find
from muarl.learning.checkpoint_folders import list_checkpoints
from muarl.learning.retention import Retention
from muarl.planning.assumptions import GIB, Assumptions
from muarl.planning.learning import plan_learning
from muarl.planning.memory import checkpoint_bytes, learner_memory, playing_memory, torch_engine_memory
from muarl.planning.models import ModelShape
from muarl.planning.nearest import nearest
from muarl.planning.plan import make_plan
from muarl.planning.setup import BYTES, deployment, learner_setup

if TYPE_CHECKING:
    from muarl.learning.checkpoints import Policy

Stage = SftConfig | RlConfig
"""What a run trains by."""
Learning = Literal["sft", "rl"]
"""The section that says how a run trains."""

SURE = ("weights", "gradients", "optimiser", "reference", "start model")
"""Parts of a learner's memory that every update takes, whatever the episodes' lengths."""
STEP = 256
"""Tokens by which a pack is made smaller."""
STEADY = 3 * GIB
"""Bytes, or half of a smaller machine, that are counted on whatever is free at the moment: what other programs take
must not decide about the packs of a small run, and so about the rounding of its sums."""
SPEAKING = 1.5
"""A conversation's least length that is proposed, in times what policy text and tools take."""


def check_memory(run: PlannedRun, learning: Learning | None, *, sampling: bool = True) -> None:
    """Check, before anything is loaded, that the model allows what is asked of it (see ``check_supported``), and that
    it and what its training needs have room on this machine.

    Counts only what is certainly taken: weights, gradients, optimiser, reference model, the sampler's copy of the
    weights, and on a GPU its whole cache. ``learning``: by which section it trains, None for one that only samples;
    ``sampling`` False: one that only learns. ConfigError says how much is missing and which settings would do. Without
    a complaint where the run is not all in this process, or where the system does not say what is free.
    """
    check_present(run.model.checkpoint)
    check_supported(run.model.checkpoint, run.engine, sampling=sampling)
    if sampling:
        check_processes(run)
    alone = run.learns_here if learning else run.samples_here
    if not (run.in_one_process if learning and sampling else alone):
        return
    try:
        shape = model_shape(run.model.checkpoint)
    except CheckpointError:
        return  # whoever loads it says in full what is wrong
    on_gpu, free = free_on_device(run.model.device)

    def needs(c: PlannedRun) -> int:
        return sure_bytes(c, shape, learning, on_gpu=on_gpu, sampling=sampling)

    needed = needs(run)
    if not free or needed <= free:
        return
    fitting = nearest(run, lambda c: needs(c) <= free)
    where = "the GPU" if on_gpu else "this machine"
    hint = f": try {' '.join(fitting)}" if fitting else ", and no setting makes it fit: take a smaller model"
    raise ConfigError(
        f"model.checkpoint: {shape.name} with {shape.parameters:,} parameters needs at least {needed / GIB:.1f} GiB "
        f"under these settings, and {where} has {free / GIB:.1f} GiB free{hint} (muarl plan shows what takes how much)"
    )


def check_processes(compute: Compute) -> None:
    """ConfigError if several processes were to sample from a model on a GPU (``engine.processes``)."""
    if compute.engine.processes not in (1, "auto") and free_on_device(compute.model.device)[0]:
        raise ConfigError(
            "engine.processes: processes share the cores of a CPU, and this machine has a GPU, where the model would "
            "be: set engine.processes=1, or model.device=cpu"
        )


def check_disk(run: PlannedRun, place: Path, keeping: CheckpointsConfig, *stages: Stage) -> None:
    """Check that the disk of ``place``, where the run is written, has room for the checkpoints that are there at the
    same time: those that its ``stages`` keep, in their order, and the next one before an older one goes. What a
    resumed run has already counts as there. ConfigError says how much they take, and what gets on."""
    try:
        shape = model_shape(run.model.checkpoint)
    except CheckpointError:
        return  # whoever loads it says in full what is wrong
    where = place.expanduser()
    retention = Retention(keeping.keep_last, keeping.keep_best, keeping.keep_every)
    size = max(checkpoint_bytes(shape, learner_setup(run, stage)) for stage in stages)
    count = max(_at_once(retention, [_saved(stage) for stage in stages]), 1)
    free, present = free_space(where), _bytes_of_checkpoints(where / "checkpoints")
    needed = max(count * size - present, size)
    if free is None or free >= needed:
        return
    several = f", and this run has {count} at the same time, {size_text(count * size)} in all" if count > 1 else ""
    fewer = "keep fewer (checkpoints.keep_last=1, and a larger checkpoint_every), " if count > 2 else ""
    raise ConfigError(
        f"{where.absolute()}: a checkpoint of {shape.name} takes at least {size_text(size)} under these settings"
        f"{several}; the disk has {size_text(free)} free: free some space (old runs and checkpoints are the usual "
        f"suspects), {fewer}or set runs_dir to another disk"
    )


def _saved(stage: Stage) -> list[int]:
    """The steps after which a stage writes a checkpoint."""
    steps, every = stage.steps, stage.checkpoint_every
    if isinstance(stage, SftConfig) and stage.epochs is not None:
        if stage.demonstrations_file is not None:
            return [1]  # how many it holds is not known yet: the last checkpoint at least
        steps = stage.step_count(stage.demonstrations)
    return [*(range(every, steps, every) if every else ()), *([steps] if steps else ())]


def _at_once(retention: Retention, saved: Sequence[Sequence[int]]) -> int:
    """The most checkpoints at the same time, of stages one after another."""
    kept = most = 0
    for steps in saved:
        most = max(most, kept + retention.at_once(steps))
        kept += len(steps) - len(retention.doomed(steps))
    return most


def _bytes_of_checkpoints(root: Path) -> int:
    """What the checkpoints of a run take on the disk."""
    folders = [folder for place in (root, root / "rl") for _, folder in list_checkpoints(place)]
    return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


def sure_bytes(
    run: PlannedRun, shape: ModelShape, learning: Learning | None, *, on_gpu: bool, sampling: bool = True
) -> int:
    """The least that a run in one process takes; see ``check_memory``."""
    chosen = deployment(run, run.rl if learning == "rl" else run.sft, shape, on_gpu=on_gpu)
    engine = torch_engine_memory(shape, chosen.slots, chosen.positions, chosen.engine_bytes)
    # A CPU's pages of the cache are taken only as conversations grow.
    sampler = sum(engine.values()) if on_gpu else engine["weights"]
    if sampling and chosen.processes > 1:
        parts = {"weights": sampler}
        sampler = sum(playing_memory(shape, parts, chosen.processes, chosen.learner.frozen_bytes).values())
    learner = learner_memory(shape, chosen.learner)
    if learning is None:
        return shape.parameters * BYTES[run.model.held] + sampler
    if not sampling:
        return sum(learner.get(name, 0) for name in SURE)
    return sum(learner.get(name, 0) for name in SURE) + sampler


def within_memory(config: RunConfig, *, sampling: bool = True) -> tuple[RunConfig, str]:
    """The configuration with the largest ``learner.pack_tokens`` that fits by the estimate of ``muarl plan``, at most
    the one it has and at least as long as an episode; and a line that says so, empty where nothing changed.

    ``sampling``: False for a run that only learns, from demonstrations. Nothing changes where the estimate or the free
    memory is not known.
    """
    run = PlannedRun.of(config)
    packed, longest = run.learner.pack_tokens, run.model.max_context
    if longest >= packed or not run.in_one_process:
        return config, ""
    try:
        shape, user = model_shape(run.model.checkpoint), user_model_shape(run.user)
    except CheckpointError:
        return config, ""  # whoever loads it says in full what is wrong
    on_gpu, free = free_on_device(run.model.device)
    if not free:
        return config, ""
    room = free if on_gpu else max(free, min(STEADY, total_memory() // 2))

    def needed(tokens: int) -> tuple[int, bool]:
        return _needed(_packed(run, tokens), shape, user, room, on_gpu, sampling)

    whole, fits = needed(packed)
    if fits:
        return config, ""
    chosen = next((tokens for tokens in _smaller(packed, longest) if needed(tokens)[1]), longest)
    where = "the GPU" if on_gpu else "this machine"
    return config.model_copy(update={"learner": _packed(run, chosen).learner}), (
        f"learner.pack_tokens: auto is {chosen} here instead of {packed}, with which a run would take about "
        f"{whole / GIB:.1f} GiB: {where} has {free / GIB:.1f} GiB free"
    )


def _smaller(packed: int, longest: int) -> Iterator[int]:
    yield from range(packed - STEP, longest, -STEP)
    yield longest


def _packed(run: PlannedRun, tokens: int) -> PlannedRun:
    return replace(run, learner=run.learner.model_copy(update={"pack_tokens": tokens}))


def _needed(
    run: PlannedRun, shape: ModelShape, user: ModelShape | None, room: int, on_gpu: bool, sampling: bool
) -> tuple[int, bool]:
    """Bytes that a run takes on its device, and whether it has them. ``user``: the user model's sizes."""
    assumptions = Assumptions().unless_replaced(gpu_gib=room / GIB) if on_gpu else Assumptions()
    machine = None if on_gpu else room
    if not sampling:
        learning = plan_learning(run, run.sft, shape, 1, assumptions, machine=machine)
        return learning.total, learning.fits
    places = make_plan(run, shape, assumptions, user=user, machine=machine).places
    return max(place.total for place in places), all(place.fits for place in places)


def check_room(
    compute: Compute,
    domains: Sequence[DomainConfig],
    places: Places,
    policy: Policy,
    *,
    measured: str | None = None,
) -> None:
    """Check that policy text and tools leave the agent room to speak, and that an update has room for the longest
    episode. ``measured``: a split that is only played, without updates. ConfigError says all that is wrong, how much
    they take, and what gets on."""
    from muarl.backends.models import model_format

    taken: dict[str, int] = {}
    others = []
    try:
        chat = model_format(policy.tokenizer, compute.model)
    except ConfigError as problem:
        others.append(str(problem))
    else:
        for domain, place in zip(domains, places, strict=True):
            task = place.example_task(measured or "train")
            taken[domain.name] = len(chat.prompt(place.system_prompt(task), place.tools(task), []))
    most = policy.model.config.max_position_embeddings
    check_context(compute, domains, taken, most, training=measured is None, others=others)


def check_context(
    compute: Compute,
    domains: Sequence[DomainConfig],
    taken: Mapping[str, int],
    most: int,
    *,
    training: bool = True,
    about: bool = False,
    others: list[str] | None = None,
) -> None:
    """ConfigError if a model that reads ``most`` tokens has no room for the run's episodes.

    ``taken``: by domain, tokens of policy text and tools; ``about``: estimated, of the domain that has most.
    ``others``: what else was found wrong.
    """
    longest = compute.model.max_context
    problems, context, hopeless = list(others or ()), min(longest, most), False
    if longest > most:
        problems.append(f"model.max_context is {longest}, but this model reads at most {most} tokens")
    for name, tokens in taken.items():
        if tokens < min(longest, most):
            continue
        remedy = "raise it, or choose a smaller domain.size" if _has_smaller(domains, name) else "raise it"
        if tokens >= most:
            hopeless = True
            remedy = f"this model reads at most {most}; take another one"
            if not find(name).is_benchmark:
                remedy += f", such as one whose vocabulary is this domain's (muarl base domain.name={name})"
        context = max(context, min(most, _power_of_two(SPEAKING * tokens)))
        of = f" of {name}" if len(domains) > 1 and not about else ""
        counted = f"{'about ' if about else ''}{tokens}"
        problems.append(
            f"model.max_context is {longest}, and policy text and tools{of} alone take {counted} tokens: {remedy}"
        )
    packed = compute.learner.pack_tokens
    if training and packed < min(longest, most):
        problems.append(
            f"learner.pack_tokens is {packed}, and an episode may grow to {min(longest, most)} tokens "
            "(model.max_context): raise the one, or lower the other"
        )
    if not problems:
        return
    settings = [f"model.max_context={context}"] if context != longest else []
    settings += [f"learner.pack_tokens={context}"] if training and packed < context else []
    hint = [f"To go on, add {' '.join(settings)} to the command"] if settings and not hopeless else []
    raise ConfigError("\n".join([*problems, *hint]))


def _has_smaller(domains: Sequence[DomainConfig], name: str) -> bool:
    sizes = find(name).sizes[1:]
    return any(domain.size in sizes for domain in domains if domain.name == name)


def _power_of_two(least: float) -> int:
    power = 1
    while power < least:
        power *= 2
    return power
