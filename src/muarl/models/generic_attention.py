"""Attention of the classes of ``transformers`` in memory that grows with the tokens, and not with their square.

Plain causal attention is PyTorch's fused kernel. What that cannot compute (sliding windows, attention sinks, capped
scores) is computed for some queries at a time, against only those keys that they may see, and computed again in the
backward pass: neither a mask nor scores of all tokens with all tokens are ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from muarl.models.attention import causal

NAME = "muarl"
"""Under which models know it (``attn_implementation``)."""
ROWS = 128
"""Queries whose visible keys are looked up together."""
SCORES = 1 << 24
"""Scores computed at a time (64 MiB), unless those of a single query are more."""

Span = tuple[int, int, int, int]
"""Queries first..last - 1 see keys low..high - 1, or some of them."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyVisibility:
    """Which keys each query sees."""

    spans: tuple[Span, ...]
    """Spans of consecutive queries."""
    mask: Callable[[int, int, int, int], Tensor]
    """A span's, [rows, 1, queries, keys], True where a key is seen."""


def keep_linear(model: nn.Module) -> None:
    """From now on the model's layers attend as this file does, wherever its class lets them."""
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, seen)
    inner = cast(Any, model)
    if inner.config._attn_implementation != NAME and inner._can_set_attn_implementation():
        inner.set_attn_implementation(NAME)


def seen(
    *,
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any],
    attention_mask: Tensor | None = None,
    local_size: int | None = None,
    allow_is_causal_skip: bool = True,
    use_vmap: bool = False,
    device: Any = "cpu",
    **_: Any,
) -> KeyVisibility | None:
    """In the place of a mask: what ``transformers`` describes by these arguments. None for plain causal attention."""
    plain = allow_is_causal_skip and (local_size is None or kv_length < local_size)
    if plain and q_length in (1, kv_length) and (attention_mask is None or bool(attention_mask.all())):
        return None

    def mask(first: int, last: int, low: int, high: int) -> Tensor:
        result = sdpa_mask(
            batch_size=batch_size,
            q_length=last - first,
            kv_length=high - low,
            q_offset=q_offset + first,
            kv_offset=kv_offset + low,
            mask_function=mask_function,
            attention_mask=attention_mask,
            allow_is_causal_skip=False,
            use_vmap=use_vmap,
            device=device,
        )
        return cast(Tensor, result)

    if q_length <= ROWS:
        return KeyVisibility(((0, q_length, 0, kv_length),), mask)
    spans = []
    for first in range(0, q_length, ROWS):
        last = min(first + ROWS, q_length)
        keys = mask(first, last, 0, kv_length).flatten(0, 2).any(0).nonzero()[:, 0]
        spans.append((first, last, int(keys[0]), int(keys[-1]) + 1) if keys.numel() else (first, last, 0, 1))
    return KeyVisibility(tuple(spans), mask)


def _causal(queries: int, keys: int, device: torch.device) -> KeyVisibility:
    """The last ``queries`` of as many tokens as there are keys, each of which sees all up to itself."""
    before = keys - queries

    def mask(first: int, last: int, low: int, high: int) -> Tensor:
        at = torch.arange(before + first, before + last, device=device)[:, None]
        return (at >= torch.arange(low, high, device=device)[None])[None, None]

    ends = ((first, min(first + ROWS, queries)) for first in range(0, queries, ROWS))
    return KeyVisibility(tuple((first, last, 0, before + last) for first, last in ends), mask)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: KeyVisibility | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """As ``transformers`` calls it: ``query`` [rows, heads, queries, D], ``key`` and ``value`` [rows, kv_heads, keys,
    D] -> [rows, queries, heads, D]. ``softcap``: scores stay within it; ``s_aux`` [heads]: the score of a key that
    gives nothing."""
    if (
        dropout
        or position_bias is not None
        or not (attention_mask is None or isinstance(attention_mask, KeyVisibility))
    ):
        raise ValueError(f"{type(module).__name__} asks for attention with dropout, a bias or a mask of its own")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if attention_mask is None and softcap is None and s_aux is None:
        mixed = _fused(query, key, value, scale)
    else:
        visible = attention_mask or _causal(query.shape[2], key.shape[2], query.device)
        kind = value.dtype
        if torch.is_autocast_enabled(query.device.type):
            kind = torch.get_autocast_dtype(query.device.type)
        query, key, value = query.to(kind), key.to(kind), value.to(kind)
        mixed = cast(Tensor, _InParts.apply(query, key, value, s_aux, visible, scale, softcap))
    return mixed.transpose(1, 2).contiguous(), None


def _fused(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Causal attention by PyTorch's kernels, which want queries, keys and values of one width."""
    width, value_width = max(query.shape[-1], value.shape[-1]), value.shape[-1]
    query, key, value = (x if x.shape[-1] == width else F.pad(x, (0, width - x.shape[-1])) for x in (query, key, value))
    if query.shape[2] > 1:
        mixed = causal(query, key, value, scale)
    else:
        grouped = query.shape[1] != key.shape[1]
        mixed = F.scaled_dot_product_attention(query, key, value, scale=scale, enable_gqa=grouped)
    return mixed[..., :value_width]


class _InParts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        query, key, value, sinks, visible, scale, softcap = inputs
        out = query.new_empty(*query.shape[:3], value.shape[-1])
        for first, last, low, high in _pieces(visible, query):
            keys, values = key[:, :, low:high], value[:, :, low:high]
            mask = visible.mask(first, last, low, high)
            out[:, :, first:last] = _attend(query[:, :, first:last], keys, values, sinks, mask, scale, softcap)
        ctx.save_for_backward(query, key, value, sinks)
        ctx.visible, ctx.scale, ctx.softcap = visible, scale, softcap
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        query, key, value, sinks = ctx.saved_tensors
        slope = torch.empty_like(query)
        sums = [torch.zeros_like(x, dtype=torch.float32) for x in (key, value, *([] if sinks is None else [sinks]))]
        for first, last, low, high in _pieces(ctx.visible, query):
            mask = ctx.visible.mask(first, last, low, high)
            own, keys, values = (
                x.detach().requires_grad_()
                for x in (query[:, :, first:last], key[:, :, low:high], value[:, :, low:high])
            )
            sink = None if sinks is None else sinks.detach().requires_grad_()
            with torch.enable_grad():
                mixed = _attend(own, keys, values, sink, mask, ctx.scale, ctx.softcap)
            differentiable = [x for x in (own, keys, values, sink) if x is not None]
            gradients = torch.autograd.grad(mixed, differentiable, grads[0][:, :, first:last])
            slope[:, :, first:last] = gradients[0]
            sums[0][:, :, low:high] += gradients[1]
            sums[1][:, :, low:high] += gradients[2]
            if sinks is not None:
                sums[2] += gradients[3]
        ours = [total.to(x.dtype) for total, x in zip(sums, (key, value, sinks), strict=False)]
        return slope, *ours, *([None] if sinks is None else []), None, None, None


def _pieces(visible: KeyVisibility, query: Tensor) -> Iterator[Span]:
    """The spans, cut so that none has more than ``SCORES`` scores."""
    for first, last, low, high in visible.spans:
        rows = max(1, SCORES // (query.shape[0] * query.shape[1] * (high - low)))
        for at in range(first, last, rows):
            yield at, min(at + rows, last), low, high


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sinks: Tensor | None,
    mask: Tensor,
    scale: float,
    softcap: float | None,
) -> Tensor:
    """[rows, heads, queries, D]. The softmax is float32."""
    rows, heads, queries, _ = query.shape
    kv = key.shape[1]
    grouped = (rows, kv, heads // kv, queries)
    with torch.autocast(query.device.type, enabled=False):
        scores = (query.reshape(rows, kv, -1, query.shape[-1]) @ key.transpose(2, 3)).view(*grouped, -1).float() * scale
        if softcap is not None:
            scores = (scores / softcap).tanh() * softcap
        scores = scores.masked_fill(~mask[:, :, None], torch.finfo(scores.dtype).min)
        top = scores.detach().amax(-1, keepdim=True)
        sink = None if sinks is None else sinks.float().view(1, kv, -1, 1, 1)
        if sink is not None:
            top = top.maximum(sink.detach())
        weights = (scores - top).exp()
        total = weights.sum(-1, keepdim=True)
        if sink is not None:
            total = total + (sink - top).exp()
        weights = (weights / total).to(value.dtype).view(rows, kv, -1, key.shape[2])
        return (weights @ value).view(rows, heads, queries, -1)
