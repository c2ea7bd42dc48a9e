"""Decode steps of fixed shapes: what a GPU can record once and repeat, without the host launching each kernel.

The step is the one that ``TorchEngine`` takes on a CPU, kernel by kernel. What differs is its shape: rows, positions
and the common prefix are rounded to few sizes, and rows that are not needed work on a spare slot that nobody reads. So
a shape comes back often, and what was recorded for it is repeated: all that changes lies in tensors that stay where
they are. After each step the host waits once, to learn who is done.
"""

from __future__ import annotations

import inspect
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from muarl.basics.errors import ConfigError
from muarl.inference.decode_state import DecodeState, Traits
from muarl.models.decoder_cached import CachedDecoder
from muarl.models.fused import power
from muarl.models.support import Support

log = logging.getLogger(__name__)

StepKind = Literal["auto", "none", "fixed", "compile", "cuda-graphs"]
"""How decode steps are taken. ``none``: kernel by kernel, of the size that is needed. ``fixed``: of fixed shapes,
kernel by kernel (what the others record; for tests). ``compile``: of fixed shapes, compiled by torch.compile, and on a
GPU recorded. ``cuda-graphs``: of fixed shapes, recorded. ``auto``: cuda-graphs on a GPU, else none."""

FETCH = 3
"""Attention reads the cache in place unless that is more than this many times what it needs: to gather a row first is
to read it, write it and read it again."""
KEPT = 128
"""Recorded shapes; of more, the one used longest ago is forgotten."""
WARM_UP = 2
COMPILING: dict[str, Any] = {"pattern_matcher": False}
"""Torch 2.13's search for attention to replace fails on this one where it reads gathered rows."""


def padded(needed: int, unit: int, most: int) -> int:
    """The smallest allowed size of at least ``needed``: 1 to 8 units, from there in steps of a quarter to an eighth, or
    ``most``."""
    units, scale = -(-needed // unit), 1
    while units > 8 * scale:
        scale *= 2
    return min(-(-units // scale) * scale * unit, most)


def trimmed(length: int, unit: int) -> int:
    """The largest size, of those that ``padded`` gives, of at most ``length``; 0 below one unit."""
    units, scale = length // unit, 1
    while units > 8 * scale:
        scale *= 2
    return units // scale * scale * unit


def resolved(kind: StepKind, device: torch.device, support: Support) -> StepKind:
    """What ``auto`` stands for on this device, with this kind of model. ConfigError if they cannot do what is asked."""
    if kind == "auto":
        return "cuda-graphs" if device.type == "cuda" and support.fixed_steps else "none"
    if kind == "cuda-graphs" and device.type != "cuda":
        raise ConfigError(
            f"engine.compile is cuda-graphs, and the model is on {device.type}: set engine.compile=none, or "
            "model.device=cuda"
        )
    if kind != "none" and not support.fixed_steps:
        raise ConfigError(
            f"engine.compile is {kind}, and decode steps of models of type {support.family!r} cannot be recorded "
            f"({support.unrecorded}): set engine.compile=none"
        )
    return kind


def _compiled(take: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """``take`` by torch.compile; each shape's recompilations are counted apart where this PyTorch can (from 2.13)."""
    compiled: Any = torch.compile  # its stub lacks an argument
    parameters = inspect.signature(compiled).parameters
    apart = {"isolate_recompiles": True} if "isolate_recompiles" in parameters else {}
    return cast(Callable[[], Tensor], compiled(take, dynamic=False, fullgraph=True, options=COMPILING, **apart))


@dataclass(frozen=True, slots=True)
class StepShape:
    """All of a step that is not in its tensors: how many rows, how far attention looks, how much of that is common,
    whether it reads the cache in place, and how rows sample."""

    rows: int
    span: int
    skip: int
    in_place: bool
    traits: Traits


class FixedSteps:
    """Decode steps over this model's cache and this state, whose last slot is the spare one.

    ``kind``: of ``StepKind``, resolved. ``lenient``: where recording fails, say so and continue kernel by kernel.
    ``unit``: of positions, see ``padded``.
    """

    def __init__(
        self,
        model: CachedDecoder,
        state: DecodeState,
        kind: StepKind,
        *,
        unit: int,
        lenient: bool = False,
    ) -> None:
        self.kind = kind
        self._model, self._state = model, state
        # Compiled steps are PyTorch's own, whose attention is over all rows alike.
        self._direct = model.direct and kind != "compile"
        self._device, self._positions = model.weights.device, model.cache.positions
        self._spare, self._unit, self._lenient = model.cache.slots - 1, unit, lenient
        self._slots = torch.zeros(model.cache.slots, dtype=torch.int64, device=self._device)
        self._lead = torch.zeros(1, dtype=torch.int64, device=self._device)
        self._held = np.zeros(0, dtype=np.int64)  # what the host knows to be in _slots
        self._first = 0  # and in _lead
        self._widened = state.widened
        self._steps: OrderedDict[StepShape, Callable[[], Tensor]] = OrderedDict()
        self._pool: Any = None

    @property
    def recorded(self) -> int:
        """How many shapes can be repeated at present."""
        return len(self._steps)

    def shape(self, common: int) -> StepShape:
        """The shape of a step of the rows that run now, which have so many leading positions in common."""
        state = self._state
        count, top = len(state.active), state.highest + 1
        if self._direct:
            return self._direct_shape(count, trimmed(common, self._unit))
        in_place = top <= FETCH * count
        span = padded(state.longest + 1, self._unit, self._positions)
        rows = padded(top if in_place else count, 1, self._spare)
        return StepShape(rows, span, trimmed(common, self._unit), in_place, state.traits)

    def _direct_shape(self, count: int, skip: int) -> StepShape:
        """The same where a row reads its own positions alone, so that neither rows nor positions too many cost much:
        fewer shapes, and so less to record."""
        state, units = self._state, -(-(self._state.longest + 1) // self._unit)
        size = power(units)
        span = 3 * size // 4 if size >= 4 and units <= 3 * size // 4 else size
        return StepShape(
            min(power(count), self._spare), min(span * self._unit, self._positions), skip, False, state.traits
        )

    def step(self, common: tuple[int, int]) -> list[int]:
        """One token for every running row of a refreshed state; the slots that are done. ``common``: see ``decode``."""
        shape = self.shape(common[1])
        if self._state.widened != self._widened:
            self._forget()  # they read tensors that are gone
            self._widened = self._state.widened
        step = self._steps.get(shape)
        if step is None:
            step = self._steps[shape] = self._prepared(shape)
            if len(self._steps) > KEPT:
                self._steps.popitem(last=False)
        self._steps.move_to_end(shape)
        self._choose(shape, common[0])
        done = step().cpu().numpy()
        return self._state.moved(self._held[done & (self._held != self._spare)].tolist())

    def _choose(self, shape: StepShape, lead: int) -> None:
        """Tell the device which rows take this step."""
        rows = self._state.rows
        slots = np.full(shape.rows, self._spare, dtype=np.int64)
        slots[rows if shape.in_place else slice(len(rows))] = rows
        self._put(slots)
        if lead != self._first:
            self._lead.fill_(lead)
            self._first = lead

    def _put(self, slots: np.ndarray) -> None:
        if not np.array_equal(slots, self._held):
            self._slots[: len(slots)].copy_(torch.from_numpy(slots))
            self._held = slots

    def _take(self, shape: StepShape) -> Tensor:
        """The step itself: bool [rows], whether each is done."""
        state, slots = self._state, self._slots[: shape.rows]
        tokens, positions = state.inputs(slots)
        logits = self._model.decode(
            tokens,
            slots,
            positions,
            span=shape.span,
            rows=shape.rows if shape.in_place else 0,
            common=(self._lead, shape.skip),
        )
        done = state.move(logits, slots, shape.traits, look=False)
        state.restart(self._spare)
        return done

    # ---- recording

    def _prepared(self, shape: StepShape) -> Callable[[], Tensor]:
        """The step of this shape, ready to be repeated."""

        def take() -> Tensor:
            return self._take(shape)

        if self.kind == "fixed":
            return take
        try:
            step = take
            if self.kind == "compile":
                step = _compiled(take)
            # Rows that nobody reads go first: what is recorded must not move the running ones.
            self._put(np.full(shape.rows, self._spare, dtype=np.int64))
            if self._device.type == "cuda":
                return self._graph(step)
            step()
            return step
        except Exception as problem:
            said = " ".join(str(problem).split())[:300]
            if not self._lenient:
                raise ConfigError(
                    f"engine.compile is {self.kind}, and a decode step could not be recorded "
                    f"({type(problem).__name__}: {said}): set engine.compile=none"
                ) from problem
            log.warning("A decode step could not be recorded, so steps are taken kernel by kernel: %s", said)
            self.kind = "fixed"
            self._forget()
            return take

    def _forget(self) -> None:
        self._steps.clear()
        self._pool = None  # it ends with the last graph that it belongs to

    def _graph(self, step: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """``step`` as a CUDA graph. The first calls are outside: they choose kernels and allocate workspaces."""
        device = self._device
        here, aside = torch.cuda.current_stream(device), torch.cuda.Stream(device)
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                step()
        here.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        # A learner may allocate in a thread of its own meanwhile: only this thread's calls count. But no thread may
        # draw from the device's default generator until this ends: a recording claims it, on every thread.
        with torch.cuda.graph(graph, pool=self._pool, stream=aside, capture_error_mode="thread_local"):
            done = step()
        self._pool = graph.pool()

        def replay() -> Tensor:
            graph.replay()
            return done

        return replay
