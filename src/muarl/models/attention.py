"""Causal attention over a ``Layout``: rectangles of segments, and prefixes that several segments see."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from muarl.models import fused
from muarl.models.layout import Layout

flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
"""PyTorch's attention for CPUs, which gives the log-sum-exps too."""
_flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
NOTHING = 1e30
"""As the logarithm of a softmax's total: every probability is 0."""


def causal(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """PyTorch's causal attention: ``query`` [rows, heads, T, D], ``key`` and ``value`` [rows, kv_heads, T, D] ->
    [rows, heads, T, D] in the type that products here have. ``scale`` of the scores; None: D ** -0.5."""
    if query.device.type == "cpu" and fused.computed_in(query) == torch.bfloat16:
        return cast(Tensor, _Widened.apply(query.bfloat16(), key.bfloat16(), value.bfloat16(), scale))
    grouped = key.shape[1] != query.shape[1]
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=grouped)


def can_share(tensor: Tensor) -> bool:
    """True where ``attend`` can handle prefixes: it needs attention's log-sum-exp, which PyTorch gives on a CPU."""
    return tensor.device.type == "cpu"


def attend(q: Tensor, k: Tensor, v: Tensor, layout: Layout) -> Tensor:
    """Causal attention inside each document: ``q`` [N, heads, D], ``k``, ``v`` [N, kv_heads, D] -> [N, heads * D]."""
    if layout.prefixes:
        if torch.is_autocast_enabled(q.device.type):
            kind = torch.get_autocast_dtype(q.device.type)
            q, k, v = q.to(kind), k.to(kind), v.to(kind)
        return cast(Tensor, _TreeAttention.apply(q, k, v, layout)).flatten(1)
    out = []
    heads, kv, dim = q.shape[1], k.shape[1], q.shape[2]
    whole: tuple[Tensor, ...] = (q, k, v)
    if layout.pack is not None or not fused.usable(q):
        flat = torch.cat(whole, 1).flatten(1)
        if layout.pack is not None:
            flat = Rearrange.apply(flat, layout.pack, layout.unpack, None)
        whole = flat.view(-1, heads + 2 * kv, dim).split((heads, kv, kv), 1)
    base = 0
    for rows, length in layout.blocks:
        query, key, value = (x[base : base + rows * length].unflatten(0, (rows, length)).transpose(1, 2) for x in whole)
        if query.is_cuda and query.dtype == torch.float32 and heads != kv:
            # No kernel of a GPU takes grouped heads in float32, and what PyTorch does instead writes all scores down.
            key, value = (x.repeat_interleave(heads // kv, 1) for x in (key, value))
        out.append(causal(query, key, value).transpose(1, 2).reshape(rows * length, heads * dim))
        base += rows * length
    joined = out[0] if len(out) == 1 else torch.cat(out)
    if layout.pack is not None:
        joined = Rearrange.apply(joined, layout.unpack, layout.pack, layout.pads)
    return joined


class Rearrange(torch.autograd.Function):
    """Select rows in an order that hits each real row once: the backward pass is a selection too, not a scatter-add."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, inverse: Tensor, pads: Tensor | None) -> Tensor:
        ctx.inverse, ctx.pads = inverse, pads
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        grad = grads[0].index_select(0, ctx.inverse)
        if ctx.pads is not None:
            grad.index_fill_(0, ctx.pads, 0.0)
        return grad, None, None, None


def _wide(tensor: Tensor) -> Tensor:
    """float32 for bfloat16. On a CPU that takes about as long, and PyTorch's kernels for bfloat16 keep memory for every
    length that they have seen (about 6 MB each in the backward pass)."""
    return tensor.float() if tensor.dtype == torch.bfloat16 else tensor


class _Widened(torch.autograd.Function):
    """Causal attention in float32 of bfloat16 heads, which is also what it keeps for the backward pass."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        *heads, ctx.scale = inputs
        out, total = flash(*map(_wide, heads), 0.0, True, scale=ctx.scale)
        out = out.to(heads[0].dtype)
        ctx.save_for_backward(*heads, out, total)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        *heads, out, total = ctx.saved_tensors
        wide = map(_wide, (*grads, *heads, out))
        slopes = _flash_backward(*wide, total, 0.0, True, scale=ctx.scale)
        return *(d.to(x.dtype) for d, x in zip(slopes, heads, strict=True)), None


class _TreeAttention(torch.autograd.Function):
    """Attention of each row to its own segment and to the prefixes before it, merged by the log-sum-exps of the parts.

    The gradient of a softmax over a union of keys, restricted to some of the keys, needs only the whole's result and
    log-sum-exp; so the backward pass handles the parts one by one as well.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, layout: Layout) -> Tensor:
        outs, totals = [], []
        heads = (q, k, v)
        q, k, v = map(_wide, heads)
        for query, key, value in zip(*(_cut(x, layout) for x in (q, k, v)), strict=True):
            out, total = flash(query, key, value, 0.0, True)
            outs.append(out.transpose(1, 2).flatten(0, 1))
            totals.append(total.transpose(1, 2).flatten(0, 1))
        out, total = _join(outs, layout), _join(totals, layout)
        for first, last, end in layout.prefixes:
            more, weight = flash(_heads(q[last:end]), _heads(k[first:last]), _heads(v[first:last]))
            more, weight = more[0].transpose(0, 1), weight[0].transpose(0, 1)
            old = total[last:end]
            out[last:end] = torch.lerp(out[last:end], more, (weight - old).sigmoid().to(out.dtype)[..., None])
            total[last:end] = torch.logaddexp(old, weight)
        out = out.to(heads[0].dtype)
        ctx.save_for_backward(*heads, out, total)
        ctx.layout = layout
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        *heads, out, total = ctx.saved_tensors
        q, k, v, out, grad = map(_wide, (*heads, out, grad))
        layout: Layout = ctx.layout
        parts: list[tuple[Tensor, ...]] = []
        cut = (_cut(grad, layout, 0.0), *(_cut(x, layout) for x in (q, k, v, out)), _cut(total, layout, NOTHING))
        for slope, query, key, value, mixed, norm in zip(*cut, strict=True):
            grads = _flash_backward(slope, query, key, value, mixed, norm, 0.0, True)
            parts.append(tuple(g.transpose(1, 2).flatten(0, 1) for g in grads))
        dq, dk, dv = (_join([p[n] for p in parts], layout) for n in range(3))
        for first, last, end in layout.prefixes:
            rows = (_heads(x[last:end]) for x in (grad, q))
            a, b, c = _flash_backward(
                *rows,
                _heads(k[first:last]),
                _heads(v[first:last]),
                _heads(out[last:end]),
                _heads(total[last:end]),
                0.0,
                False,
            )
            dq[last:end] += a[0].transpose(0, 1)
            dk[first:last] += b[0].transpose(0, 1)
            dv[first:last] += c[0].transpose(0, 1)
        return *(d.to(x.dtype) for d, x in zip((dq, dk, dv), heads, strict=True)), None


def _heads(x: Tensor) -> Tensor:
    """[rows, heads, ...] as [1, heads, rows, ...]."""
    return x.transpose(0, 1)[None]


def _cut(x: Tensor, layout: Layout, pad: float | None = None) -> list[Tensor]:
    """Rectangles of ``x`` [N, heads, ...], each [segments, heads, longest, ...]; padding holds ``pad`` or any row."""
    if layout.pack is not None:
        x = x.index_select(0, layout.pack)
        if pad is not None:
            x.index_fill_(0, layout.pads, pad)
    out, base = [], 0
    for rows, length in layout.blocks:
        out.append(x[base : base + rows * length].unflatten(0, (rows, length)).transpose(1, 2))
        base += rows * length
    return out


def _join(parts: list[Tensor], layout: Layout) -> Tensor:
    """[N, ...] from rectangles [segments * longest, ...]."""
    x = parts[0] if len(parts) == 1 else torch.cat(parts)
    return x.contiguous() if layout.pack is None else x.index_select(0, layout.unpack)
