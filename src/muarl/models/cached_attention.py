"""Attention over the key/value cache, without kernels of its own: of a decode step, and of a prefill; and the memory
that a cache begins with.

A decode step reads what each slot holds, and what all have in common. All rows together are few calls: what slots hold
is gathered first, or read in place with all slots between, and every row takes as long as the longest conversation. In
blocks of rows nothing is copied, and rows look hardly further than their own conversations; that pays where reading
costs more than calls (``WIDE``). What new tokens of a prefill see of the cache is computed in pieces (``spans_of``).
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from muarl.models.attention import flash

WIDE = 192
"""Numbers in a layer's keys of one token from which rows are computed in blocks on a CPU (SmolLM2-135M has 192, the
shipped models 64)."""
WASTED = 1024
"""Positions that rows of a block may look at in vain, which takes about as long as another call."""


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


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows in neighbouring slots, whose attention is one call."""

    rows: slice
    """Which of the step's rows."""
    slots: slice
    """Where in the cache they are, as many."""
    span: int
    """More than every position that they see."""
    bias: Tensor | None
    """[rows, 1, 1, span - common]: ``step_bias`` of them; None for a single row, which sees all."""


def row_blocks(slots: Sequence[int], lengths: Sequence[int], common: int, like: Tensor) -> list[RowBlock]:
    """The rows of a step in blocks, in their order. ``slots``: distinct; ``lengths``: how many positions each row
    sees, all of them more than are in common. ``like``: of the type and on the device that a bias has."""
    cuts, most = [0], 0
    for number, (slot, length) in enumerate(zip(slots, lengths, strict=True)):
        own, before = length - common, number - cuts[-1]
        wasted = (before + 1) * max(most, own) - before * most - own
        if number and (slot != slots[number - 1] + 1 or wasted > WASTED):
            cuts.append(number)
            most = 0
        most = max(most, own)
    blocks = []
    for begin, end in pairwise([*cuts, len(slots)]):
        span, bias = max(lengths[begin:end]), None
        if end - begin > 1:
            reach = torch.tensor(lengths[begin:end], device=like.device) - 1
            bias = step_bias(reach, common, span)[:, None].to(like.dtype)
        blocks.append(RowBlock(slice(begin, end), slice(slots[begin], slots[begin] + end - begin), span, bias))
    return blocks


def in_blocks(
    query: Tensor, keys: Tensor, values: Tensor, blocks: Sequence[RowBlock], common: tuple[int | Tensor, int]
) -> Tensor:
    """What ``together`` gives, [n, kv, groups, head_dim], for rows in these ``blocks`` of ``row_blocks``; on a CPU. No
    scores are written down. What rows have in common is computed once, and joined by the parts' log-sum-exps."""
    count, kv, groups, dim = query.shape
    lead, skip = common
    parts = []
    for block in blocks:
        own_keys, own_values = (store[block.slots, :, skip : block.span] for store in (keys, values))
        parts.append(flash(query[block.rows], own_keys, own_values, attn_mask=block.bias, scale=1.0))
    mixed, total = parts[0] if len(parts) == 1 else map(torch.cat, zip(*parts, strict=True))
    if not skip:
        return mixed
    asked = query.transpose(0, 1).reshape(1, kv, count * groups, dim)
    early, weight = flash(asked, *(_leading(store, lead, skip)[None] for store in (keys, values)), scale=1.0)
    early = early.view(kv, count, groups, dim).transpose(0, 1)
    weight = weight.view(kv, count, groups).transpose(0, 1)
    return torch.lerp(mixed, early, (weight - total).sigmoid_().to(mixed.dtype)[..., None])


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


PIECE = 512
"""Attention is computed for so many tokens of each prompt at a time, where prompts are twice as long: later tokens see
more than earlier ones, and neither time nor masks should grow with positions that nobody sees."""


@dataclass(frozen=True, slots=True)
class VisibleSpan:
    """What some columns of a rectangle of new tokens see."""

    first: int
    """The first of the columns."""
    end: int
    """The column after the last."""
    span: int
    """Positions of which they see some."""
    reach: Tensor
    """[n, columns]: up to which of them."""

    def mask(self, groups: int, dtype: torch.dtype) -> Tensor:
        """What is added to scores [n, 1, groups * columns, span]: 0 up to a column's reach, -inf beyond."""
        line = torch.zeros(2 * self.span - 1, device=self.reach.device, dtype=dtype)
        line[self.span :] = float("-inf")
        # Window i of the line is 0 in all but its last i places: so the mask is written once, and is never compared.
        windows = line.unfold(0, self.span, 1)
        which = (self.span - 1 - self.reach).repeat(1, groups)
        return windows.index_select(0, which.view(-1)).view(len(which), 1, -1, self.span)


def spans_of(starts: Tensor, lengths: Tensor, longest: int, span: int) -> list[VisibleSpan]:
    """The pieces of a rectangle of ``longest`` columns, whose row i has ``lengths[i]`` tokens for positions from
    ``starts[i]`` on. ``span``: more than every position."""
    size = PIECE if longest >= 2 * PIECE else longest
    spans = []
    for first in range(0, longest, size):
        end = min(first + size, longest)
        column = torch.arange(first, end, device=starts.device)
        # Padded queries look where the row's last real one looks; what they give is never read.
        reach = torch.minimum(starts[:, None] + column[None], (starts + lengths - 1)[:, None])
        spans.append(VisibleSpan(first, end, span if end == longest else int(reach.max()) + 1, reach))
    return spans


def untouched_zeros(size: Sequence[int], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Zeros that take memory on a CPU only where they are written, and give it back with the tensor. ``torch.zeros``
    writes them all at once; the operating system hands out pages that are zero already, to whoever asks it without the
    C library between, which would keep what is freed for later and have it zeroed by hand."""
    if device.type != "cpu":
        return torch.zeros(tuple(size), device=device, dtype=dtype)
    count = math.prod(size) * dtype.itemsize
    own = mmap.mmap(-1, max(count, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages = np.frombuffer(own, dtype=np.uint8)
    return torch.from_numpy(pages[:count]).view(dtype).view(tuple(size))
