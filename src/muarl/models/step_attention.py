"""Attention of a decode step over the cache, without kernels of its own: what each slot holds, and what all have in
common.

All rows together are few calls: what slots hold is gathered first, or read in place with all slots between, and every
row takes as long as the longest conversation. Row by row nothing is copied and no row looks further than its own
conversation; that pays where the reading costs more than the calls (``WIDE``).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

WIDE = 192
"""Numbers in a layer's keys of one token from which rows are computed one by one on a CPU (SmolLM2-135M has 192, the
shipped models 64)."""


def step_bias(positions: Tensor, skip: int, span: int) -> Tensor:
    """What ``together`` adds to scores [rows, 1, span - skip]: -inf for positions after each row's own."""
    hidden_from_view = torch.arange(skip, span, device=positions.device)[None] > positions[:, None]
    zeros = torch.zeros(hidden_from_view.shape, device=positions.device)
    return zeros.masked_fill_(hidden_from_view, float("-inf"))[:, None]


def together(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    slots: Tensor | None,
    bias: Tensor,
    common: tuple[int | Tensor, int],
    *,
    span: int,
) -> Tensor:
    """What queries [n, kv, groups, head_dim] find in one layer's ``keys`` and ``values`` [slots, kv, positions,
    head_dim] at positions below ``span``; [n, kv, groups, head_dim]. ``slots``: each row's; None: row i reads slot i in
    place. ``bias``: of ``step_bias``. ``common``: see ``decoder_cached.decode``."""
    count, kv, groups, dim = query.shape
    lead, skip = common
    scores = _scores(query.reshape(count * kv, groups, dim), _own(keys, slots, count, skip, span))
    scores.view(count, kv * groups, span - skip).add_(bias)
    if skip:
        scores = torch.cat((_early(query, keys, lead, skip).reshape(count * kv, groups, skip), scores), -1)
    shares = scores.softmax(-1).to(query.dtype)
    own_values = _own(values, slots, count, skip, span)  # only now, when the keys need no memory any more
    mixed = torch.bmm(shares[..., skip:], own_values).view(count, kv, groups, dim)
    if skip:
        mixed.add_(_mixed_early(shares.view(count, kv, groups, -1), values, lead, skip))
    return mixed


def row_by_row(
    query: Tensor, keys: Tensor, values: Tensor, rows: Sequence[tuple[int, int]], common: tuple[int | Tensor, int]
) -> Tensor:
    """The same. ``rows``: each row's slot, and how many positions it looks at, all of them more than are in common."""
    count, kv, groups, _ = query.shape
    lead, skip = common
    scores = query.new_full((count, kv, groups, max(length for _, length in rows)), float("-inf"))
    if skip:
        scores[..., :skip] = _early(query, keys, lead, skip)
    for number, (slot, length) in enumerate(rows):
        torch.bmm(query[number], keys[slot, :, skip:length].transpose(1, 2), out=scores[number, :, :, skip:length])
    shares = scores.softmax(-1)
    mixed = torch.empty_like(query)
    for number, (slot, length) in enumerate(rows):
        torch.bmm(shares[number, :, :, skip:length], values[slot, :, skip:length], out=mixed[number])
    if skip:
        mixed.add_(_mixed_early(shares, values, lead, skip))
    return mixed


def _early(query: Tensor, keys: Tensor, lead: int | Tensor, skip: int) -> Tensor:
    """Scores [n, kv, groups, skip] of what all have in common: one product a key/value head for all queries."""
    count, kv, groups, dim = query.shape
    asked = query.transpose(0, 1).reshape(kv, count * groups, dim)
    return _scores(asked, _leading(keys, lead, skip)).view(kv, count, groups, skip).transpose(0, 1)


def _mixed_early(shares: Tensor, values: Tensor, lead: int | Tensor, skip: int) -> Tensor:
    count, kv, groups, _ = shares.shape
    early = shares[..., :skip].transpose(0, 1).reshape(kv, count * groups, skip)
    return torch.bmm(early, _leading(values, lead, skip)).view(kv, count, groups, -1).transpose(0, 1)


def _own(store: Tensor, slots: Tensor | None, count: int, skip: int, span: int) -> Tensor:
    """[count * kv, span - skip, head_dim]: what the slots hold beyond what they have in common."""
    if slots is None:
        return store[:count].flatten(0, 1)[:, skip:span]
    return store[:, :, skip:span].index_select(0, slots).flatten(0, 1)


def _scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Products [batch, queries, keys] in float32, whatever type queries and keys [batch, ..., head_dim] have."""
    if queries.dtype != torch.float32 and queries.is_cuda:
        return torch.bmm(queries, keys.transpose(1, 2), out_dtype=torch.float32)  # not rounded in between
    return torch.bmm(queries, keys.transpose(1, 2)).float()


def _leading(store: Tensor, slot: int | Tensor, length: int) -> Tensor:
    """[kv_heads, length, head_dim]: the first positions of one slot."""
    if isinstance(slot, int):
        return store[slot, :, :length]
    return store[:, :, :length].index_select(0, slot)[0]
