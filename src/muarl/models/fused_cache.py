"""Generation on a GPU with kernels of its own: heads go to the cache as they are made, and attention reads it in place.

Each token reads what its own slot holds up to its own position, and nothing else: no rows are gathered, no scores are
written down, and no masks are needed. In a decode step a row's positions are divided among several programs, since one
alone would not keep a GPU busy; what all rows have in common is read once for many of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from muarl.models.fused import kernels, power, turns, usable, warps

PROGRAMS = 1024
"""A decode step is divided until about so many programs work on it: some for each multiprocessor."""
LEAST = 64
"""Positions of a piece at least."""
TOGETHER = 64
"""Queries that read common positions, or a prompt's, at once."""


def attends(tensor: Tensor, dim: int, groups: int) -> bool:
    """Whether this file computes attention for a cache where ``tensor`` lies."""
    return usable(tensor) and turns(dim) and dim <= 256 and groups <= 64


def keep(
    qkv: Tensor,
    gain: Tensor | None,
    tables: tuple[Tensor, Tensor],
    slots: Tensor,
    positions: Tensor,
    keys: Tensor,
    values: Tensor,
    heads: int,
    epsilon: float,
) -> Tensor:
    """Write keys and values of ``qkv`` [n, all heads * D] to (slots, positions) of one layer's cache [slots, kv_heads,
    positions, D]; the queries [n, heads, D], divided by sqrt(D). ``tables``: cosine and sine of every position."""
    kv, spots, dim = keys.shape[1:]
    rows, every = len(qkv), heads + 2 * kv
    out = torch.empty(rows, heads, dim, dtype=qkv.dtype, device=qkv.device)
    padded = power(every)
    kernels().turn_and_keep[(rows,)](
        qkv, qkv if gain is None else gain, *tables, slots, positions, out, keys, values, dim**-0.5, every, heads, kv,
        spots, epsilon, NORM=gain is not None, HEADS=padded, DIM=dim, num_warps=warps(padded * dim),
    )  # fmt: skip
    return out


def _pieces(programs: int, positions: int, most: int) -> tuple[int, int]:
    """Into how many pieces of how many positions to divide, where there are so many programs for each."""
    pieces = max(1, min(PROGRAMS // max(programs, 1), -(-positions // LEAST), most))
    blocks = -(-positions // LEAST)
    size = -(-blocks // pieces) * LEAST
    return -(-positions // size), size


def decode(
    queries: Tensor, keys: Tensor, values: Tensor, slots: Tensor, positions: Tensor, span: int, lead: Tensor, skip: int
) -> Tensor:
    """[n, heads * D]: each row's attention to its slot up to its position (< ``span``), the first ``skip`` of which
    slot ``lead`` [1] holds for all."""
    rows, heads, dim = queries.shape
    kv, spots = keys.shape[1:3]
    groups = heads // kv
    exact = queries.dtype == torch.float32
    own, size = _pieces(rows * kv, span - skip, 128)
    common, common_size, together = 0, 0, TOGETHER
    if skip:
        together = min(TOGETHER, max(16, power(rows * groups)))
        common, common_size = _pieces(kv * -(-rows * groups // together), skip, 128)
    pieces = own + common
    parts = torch.empty(rows * heads * pieces, dim, dtype=torch.float32, device=queries.device)
    sizes = torch.empty(rows * heads * pieces, dtype=torch.float32, device=queries.device)
    out = torch.empty(rows, heads * dim, dtype=queries.dtype, device=queries.device)
    ours = kernels()
    ours.decode_own[(rows, kv, own)](
        queries, keys, values, slots, positions, parts, sizes, heads, kv, spots, skip, size, pieces,
        GROUPS=groups, QUERIES=max(16, power(groups)), EXACT=exact, BLOCK=32 if exact else 64, DIM=dim, num_warps=4,
        num_stages=3,
    )  # fmt: skip
    if skip:
        ours.decode_common[(-(-rows * groups // together), kv, common)](
            queries, keys, values, lead, parts, sizes, rows, heads, kv, spots, skip, common_size, pieces, own,
            GROUPS=groups, QUERIES=together, EXACT=exact, BLOCK=32 if exact else 64, DIM=dim, num_warps=4,
            num_stages=3,
        )  # fmt: skip
    ours.decode_join[(rows * heads,)](
        parts, sizes, out, pieces, PIECES=power(pieces), DIM=dim, num_warps=max(1, min(8, power(pieces) * dim // 2048))
    )
    return out


def prefill(
    queries: Tensor, keys: Tensor, values: Tensor, slots: Tensor, starts: Tensor, offsets: Tensor, longest: int
) -> Tensor:
    """[N, heads * D]: row i's tokens are ``offsets[i]`` to ``offsets[i + 1]``, at most ``longest``, and stand at
    positions from ``starts[i]`` on."""
    heads, dim = queries.shape[1:]
    kv, spots = keys.shape[1:3]
    exact = queries.dtype == torch.float32
    out = torch.empty(len(queries), heads * dim, dtype=queries.dtype, device=queries.device)
    asked = 16 if exact else min(128, max(16, power(longest)))
    kernels().prefill_own[(-(-longest // asked), heads, len(slots))](
        queries, keys, values, slots, starts, offsets, out, heads, kv, spots,
        GROUPS=heads // kv, QUERIES=asked, EXACT=exact, BLOCK=32 if exact else 64, DIM=dim,
        num_warps=8 if asked == 128 else 4, num_stages=3,
    )  # fmt: skip
    return out
