"""A mixture's feed-forward block: each token goes to a few experts, and only those are computed.

Tokens are sorted by expert, so that each expert that is hit computes one product over its own tokens: as a grouped
product where the GPU has one for the number format, else one expert after another. All experts of a layer lie in one
tensor, as ``transformers`` holds them from release 5 on.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from muarl.models.attention import Rearrange

GROUPED_MULTIPLE = 8
"""Widths that a grouped product in bfloat16 takes are multiples of this (16 bytes)."""


def route(x: Tensor, router: Tensor, top_k: int, normalised: bool) -> tuple[Tensor, Tensor]:
    """The ``top_k`` most likely experts of each token ``x`` [n, width] by ``router`` [experts, width], and their
    shares, each [n, top_k]. ``normalised``: shares add up to 1."""
    scores = F.linear(x, router)
    shares, chosen = scores.softmax(-1, dtype=torch.float32).topk(top_k, -1)
    if normalised:
        shares = shares / shares.sum(-1, keepdim=True)
    return shares.to(scores.dtype), chosen


def mixture(
    x: Tensor, router: Tensor, gate_up: Tensor, down: Tensor, *, top_k: int, normalised: bool, grouped: bool = False
) -> Tensor:
    """The block's output [n, width] for ``x`` [n, width], differentiable (once).

    ``gate_up`` [experts, 2 * inner, width] and ``down`` [experts, width, inner] hold each expert's SwiGLU. ``grouped``:
    use grouped products also where they would not be chosen.
    """
    shares, chosen = route(x, router, top_k, normalised)
    if torch.is_autocast_enabled(x.device.type):  # which knows nothing of products by expert
        kind = torch.get_autocast_dtype(x.device.type)
        x, gate_up, down = x.to(kind), gate_up.to(kind), down.to(kind)
    n, width = x.shape
    by_expert, order = chosen.reshape(-1).sort(stable=True)
    back = torch.empty_like(order).scatter_(0, order, torch.arange(n * top_k, device=x.device))
    ends = torch.searchsorted(by_expert, torch.arange(len(gate_up), device=x.device), right=True)
    bounds = None if grouped or _groups(x, gate_up) else [0, *ends.tolist()]
    rows = Rearrange.apply(x[:, None].expand(-1, top_k, -1).reshape(-1, width), order, back, None)
    gate, up = _products(rows, gate_up, ends, bounds).chunk(2, -1)
    # Weighing here rather than behind the last product keeps inner instead of width numbers for the backward pass.
    weight = Rearrange.apply(shares.reshape(-1, 1), order, back, None)
    out = _products(F.silu(gate) * up * weight, down, ends, bounds)
    return cast(Tensor, Rearrange.apply(out, back, order, None)).view(n, top_k, width).sum(1)


def _groups(x: Tensor, gate_up: Tensor) -> bool:
    """Whether the device has grouped products for these numbers: without, PyTorch would go through them one by one."""
    if not x.is_cuda or x.dtype != torch.bfloat16 or torch.cuda.get_device_capability(x.device) < (8, 0):
        return False
    return all(size % GROUPED_MULTIPLE == 0 for size in (x.shape[1], gate_up.shape[1] // 2))


def _products(rows: Tensor, matrices: Tensor, ends: Tensor, bounds: list[int] | None) -> Tensor:
    """[N, out]: ``rows`` [N, in], sorted by expert, times each one's matrix of ``matrices`` [experts, out, in]
    transposed. Expert i has the rows before ``ends[i]``; ``bounds`` has the same on the host, with a 0 in front, None
    for a grouped product."""
    if bounds is None:
        return F.grouped_mm(rows, matrices.transpose(1, 2), offs=ends.to(torch.int32))
    return cast(Tensor, _OneByOne.apply(rows, matrices, bounds))


class _OneByOne(torch.autograd.Function):
    """The products one expert after another, those without tokens left out; gradients go where they belong at once,
    where autograd would add up one tensor of all experts for each of them."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, matrices: Tensor, bounds: list[int]) -> Tensor:
        ctx.save_for_backward(rows, matrices)
        ctx.bounds = bounds
        out = rows.new_empty(len(rows), matrices.shape[1])
        for expert, (a, b) in enumerate(pairwise(bounds)):
            if a < b:
                torch.mm(rows[a:b], matrices[expert].t(), out=out[a:b])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        rows, matrices = ctx.saved_tensors
        wants_rows, wants_matrices, _ = ctx.needs_input_grad
        d_rows = torch.empty_like(rows) if wants_rows else None
        d_matrices = torch.zeros_like(matrices) if wants_matrices else None
        for expert, (a, b) in enumerate(pairwise(ctx.bounds)):
            if a < b and d_rows is not None:
                torch.mm(grad[a:b], matrices[expert], out=d_rows[a:b])
            if a < b and d_matrices is not None:
                torch.mm(grad[a:b].t(), rows[a:b], out=d_matrices[expert])
        return d_rows, d_matrices, None
