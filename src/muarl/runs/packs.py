"""What ``learner.pack_tokens: auto`` becomes where memory is short."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from muarl.backends.memory_estimate import in_one_process, model_shape
from muarl.basics.errors import CheckpointError
from muarl.config import RunConfig
from muarl.planning.assumptions import GIB, Assumptions
from muarl.planning.learning import plan_learning
from muarl.planning.models import ModelShape
from muarl.planning.plan import make_plan
from muarl.runs.preflight import free_on_device

STEP = 256
"""Tokens by which a pack is made smaller."""
STEADY = 3 * GIB
"""Bytes, or half of a smaller machine, that are counted on whatever is free at the moment: what other programs take
must not decide about the packs of a small run, and so about the rounding of its sums."""


def within_memory(config: RunConfig, *, sampling: bool = True) -> tuple[RunConfig, str]:
    """The configuration with the largest ``learner.pack_tokens`` that fits by the estimate of ``muarl plan``, at most
    the one it has and at least as long as an episode; and a line that says so, empty where nothing changed.

    ``sampling``: False for a run that only learns, from demonstrations. Nothing changes where the estimate or the free
    memory is not known.
    """
    packed, longest = config.learner.pack_tokens, config.model.max_context
    if longest >= packed or not in_one_process(config):
        return config, ""
    try:
        shape = model_shape(config)
    except CheckpointError:
        return config, ""  # whoever loads it says in full what is wrong
    on_gpu, free = free_on_device(config.model.device)
    if not free:
        return config, ""
    room = free if on_gpu else max(free, min(STEADY, total_memory() // 2))

    def needed(tokens: int) -> tuple[int, bool]:
        return _needed(_packed(config, tokens), shape, room, on_gpu, sampling)

    whole, fits = needed(packed)
    if fits:
        return config, ""
    chosen = next((tokens for tokens in _smaller(packed, longest) if needed(tokens)[1]), longest)
    where = "the GPU" if on_gpu else "this machine"
    return _packed(config, chosen), (
        f"learner.pack_tokens: auto is {chosen} here instead of {packed}, with which a run would take about "
        f"{whole / GIB:.1f} GiB: {where} has {free / GIB:.1f} GiB free"
    )


def total_memory() -> int:
    """Bytes of memory that this machine, or this process's control group, has; 0 where it does not say."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8").strip()
        return total if limit == "max" else min(total, int(limit))
    except (OSError, ValueError):
        return total


def _smaller(packed: int, longest: int) -> Iterator[int]:
    yield from range(packed - STEP, longest, -STEP)
    yield longest


def _packed(config: RunConfig, tokens: int) -> RunConfig:
    return config.model_copy(update={"learner": config.learner.model_copy(update={"pack_tokens": tokens})})


def _needed(config: RunConfig, shape: ModelShape, room: int, on_gpu: bool, sampling: bool) -> tuple[int, bool]:
    """Bytes that a run takes on its device, and whether it has them."""
    known = Assumptions().unless_given(gpu_gib=room / GIB) if on_gpu else Assumptions()
    machine = None if on_gpu else room
    if not sampling:
        learning = plan_learning(config, shape, 1, known, machine=machine)
        return learning.total, learning.fits
    places = make_plan(config, shape, known, machine=machine).places
    return max(place.total for place in places), all(place.fits for place in places)
