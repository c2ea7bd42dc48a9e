"""The number format that this machine is fast at, and what ``model.dtype=auto`` becomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from muarl.config.sections import RunConfig

Format = Literal["float32", "bfloat16"]
FORMATS: tuple[Format, ...] = ("float32", "bfloat16")
MATTERS = 1.15
"""How much faster a format must be to be chosen for its speed."""
SECONDS = 0.5
"""Of measuring in each number format."""
ROUNDS = 5
"""In which the formats take turns, so that what else the machine does falls on both."""
WIDTH = 256
ROWS = 64


def settled(
    config: RunConfig, *, training: bool, rates: Callable[[str], tuple[str, Mapping[Format, float]]] | None = None
) -> RunConfig:
    """The configuration with ``model.dtype=auto`` replaced by what this machine is fast at; any other as it is.

    ``training``: the weights will be trained, and so are held in float32, whose small updates bfloat16 would round
    away; they are computed and sampled with in the fast format. What the configuration says of those two stays.
    ``rates``: measures, given ``model.device``.
    """
    if config.model.dtype != "auto":
        return config
    _, measured = (rates or _measured)(config.model.device)
    fast: Format = "bfloat16" if measured["bfloat16"] > MATTERS * measured["float32"] else "float32"
    model = config.model.model_copy(update={"dtype": "float32" if training else fast})
    engine, learner = config.engine, config.learner
    if engine.dtype == "auto" and fast == "bfloat16":
        engine = engine.model_copy(update={"dtype": fast})
    if training and learner.precision is None and fast == "bfloat16":
        learner = learner.model_copy(update={"precision": fast})
    return config.model_copy(update={"model": model, "engine": engine, "learner": learner})


def measure(device: str = "auto") -> tuple[str, dict[Format, float]]:
    """The kind of device ("cpu", "cuda"), and training steps of a small layer a second on it, by number format. On a
    CPU seconds are those of its threads, so that other jobs do not count. ``device``: as ``model.device``."""
    import torch

    name = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    where = torch.device(name)
    clock = time.process_time if where.type == "cpu" else time.perf_counter
    steps = {kind: _step(torch, getattr(torch, kind), where) for kind in FORMATS}
    rates: dict[Format, float] = dict.fromkeys(FORMATS, 0.0)
    for _ in range(ROUNDS):
        for kind, step in steps.items():
            rates[kind] += _per_second(step, SECONDS / ROUNDS, clock) / ROUNDS
    return where.type, rates


_measured = lru_cache(maxsize=8)(measure)
"""Asked once in a process."""


def _step(torch: Any, kind: Any, device: Any) -> Callable[[], None]:
    """A forward and backward pass of attention and two products, as a layer has them."""
    from muarl.models.attention import causal
    from muarl.models.matrix_products import linear

    x = torch.randn(4 * ROWS, WIDTH, device=device, dtype=kind, requires_grad=True)
    up = torch.randn(4 * WIDTH, WIDTH, device=device, dtype=kind, requires_grad=True)
    down = torch.randn(WIDTH, 4 * WIDTH, device=device, dtype=kind, requires_grad=True)

    def step() -> None:
        heads = x.view(4, ROWS, 4, WIDTH // 4).transpose(1, 2)
        mixed = causal(heads, heads, heads)
        mixed = mixed.transpose(1, 2).reshape(4 * ROWS, WIDTH)
        linear(linear(mixed, up), down).float().sum().backward()
        x.grad = up.grad = down.grad = None
        if device.type == "cuda":
            torch.cuda.synchronize()

    return step


def _per_second(step: Callable[[], None], seconds: float, clock: Callable[[], float]) -> float:
    step()
    start, count = clock(), 0
    while (passed := clock() - start) < seconds:
        step()
        count += 1
    return count / passed
