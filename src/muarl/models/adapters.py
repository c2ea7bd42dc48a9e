"""Low-rank adapters inside a model: what ``peft`` puts in a projection's place, and how the fast path computes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import torch.nn.functional as F
from torch import Tensor, nn

from muarl.models.matrix_products import linear

ADAPTER = "default"
_base_only: ContextVar[bool] = ContextVar("base_only", default=False)


@contextmanager
def base_only() -> Iterator[None]:
    """Within the block, the fast path computes the model as it is without adapters."""
    token = _base_only.set(True)
    try:
        yield
    finally:
        _base_only.reset(token)


def is_base_only() -> bool:
    """Whether this is within ``base_only``."""
    return _base_only.get()


@contextmanager
def adapters_off(model: nn.Module) -> Iterator[None]:
    """Within the block, the model's own modules compute it as it is without adapters. Nothing is trained meanwhile."""
    adapted = [module for module in model.modules() if hasattr(module, "lora_A")]
    for module in adapted:
        cast(Any, module).enable_adapters(False)
    try:
        yield
    finally:
        for module in adapted:
            cast(Any, module).enable_adapters(True)


def is_plain(module: nn.Module) -> bool:
    """A linear map that is nothing but its matrix."""
    return type(module) is nn.Linear


def is_adapted(module: nn.Module) -> bool:
    """A linear map with one plain LoRA adapter of ours: no dropout, no bias, no variant."""
    names = list(getattr(module, "lora_A", ()))
    if names != [ADAPTER] or not is_plain(getattr(module, "base_layer", module)):
        return False
    inner = cast(Any, module)
    dropout = type(inner.lora_dropout[ADAPTER]) is nn.Identity
    return dropout and not inner.lora_variant.get(ADAPTER) and inner.lora_B[ADAPTER].bias is None


def base_weight(module: nn.Module) -> Tensor:
    """The projection's own matrix."""
    return cast(Tensor, cast(Any, module).base_layer.weight if hasattr(module, "base_layer") else module.weight)


def base_bias(module: nn.Module) -> Tensor | None:
    """The projection's own bias, if it has one."""
    return cast("Tensor | None", getattr(module, "base_layer", module).bias)


def project(module: nn.Module, x: Tensor) -> Tensor:
    """The projection of ``x`` [..., in], with its adapter where there is one."""
    y = linear(x, base_weight(module), base_bias(module))
    if is_plain(module) or _base_only.get():
        return y
    inner = cast(Any, module)
    down, up = inner.lora_A[ADAPTER].weight, inner.lora_B[ADAPTER].weight
    return y + (F.linear(F.linear(x.to(down.dtype), down), up) * inner.scaling[ADAPTER]).to(y.dtype)
