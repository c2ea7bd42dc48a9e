"""Triton kernels of the own path on a GPU. ``fused`` and ``fused_cache`` call them; importing this needs Triton.

Sums and exponentials are float32 whatever is read and written. Every kernel gives the same result each time: what
several programs add up is written down in parts, and summed afterwards.
"""

from __future__ import annotations

import triton
import triton.language as tl

# ---- norms


@triton.jit
def norm(x, y, gain, total, out, inverse, width, epsilon, ADD: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Rows of RMSNorm(x), or with ADD of RMSNorm(x + y), whose sum goes to ``total``."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = tl.load(x + row * width + at, mask=inside, other=0.0).to(tl.float32)
    if ADD:
        value += tl.load(y + row * width + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(total + row * width + at, value, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(value * value, 0) / width + epsilon)
    tl.store(inverse + row, scale)
    factor = tl.load(gain + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, value * scale * factor, mask=inside)


@triton.jit
def norm_back(  # type: ignore[no-untyped-def]
    grad, more, x, gain, inverse, out, narrow, parts, rows, programs, width, ADD: tl.constexpr, BLOCK: tl.constexpr
):
    """What reaches x; with ADD together with ``more``, what reaches the sum besides, and once more as ``narrow``."""
    first = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < width
    factor = tl.load(gain + at, mask=inside, other=0.0).to(tl.float32)
    gain_sum = tl.zeros([BLOCK], tl.float32)
    for number in range(first, rows, programs):
        base = tl.cast(number, tl.int64) * width + at
        scale = tl.load(inverse + number)
        normed = tl.load(x + base, mask=inside, other=0.0).to(tl.float32) * scale
        slope = tl.load(grad + base, mask=inside, other=0.0).to(tl.float32)
        gain_sum += slope * normed
        slope *= factor
        value = scale * (slope - normed * (tl.sum(slope * normed, 0) / width))
        if ADD:
            value += tl.load(more + base, mask=inside, other=0.0).to(tl.float32)
            tl.store(narrow + base, value, mask=inside)
        tl.store(out + base, value, mask=inside)
    tl.store(parts + first * width + at, gain_sum, mask=inside)


# ---- heads


@triton.jit
def turn(  # type: ignore[no-untyped-def]
    x, gain, cos, sin, out, heads, stride, epsilon, NORM: tl.constexpr, HEADS: tl.constexpr, DIM: tl.constexpr
):
    """Heads of one token, normed (with NORM) and rotated."""
    row = tl.program_id(0).to(tl.int64)
    head, here = tl.arange(0, HEADS)[:, None], tl.arange(0, DIM)[None, :]
    there = (here + DIM // 2) % DIM
    inside = head < heads
    a = tl.load(x + row * stride + head * DIM + here, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x + row * stride + head * DIM + there, mask=inside, other=0.0).to(tl.float32)
    if NORM:
        scale = 1.0 / tl.sqrt(tl.sum(a * a, 1) / DIM + epsilon)[:, None]
        a *= scale * tl.load(gain + here).to(tl.float32)
        b *= scale * tl.load(gain + there).to(tl.float32)
    c, s = tl.load(cos + row * DIM + here).to(tl.float32), tl.load(sin + row * DIM + here).to(tl.float32)
    tl.store(out + (row * heads + head) * DIM + here, a * c + b * s, mask=inside)


@triton.jit
def turn_back(  # type: ignore[no-untyped-def]
    grad, x, gain, cos, sin, out, parts, rows, programs, heads, stride, epsilon,
    NORM: tl.constexpr, HEADS: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0)
    head, here = tl.arange(0, HEADS)[:, None], tl.arange(0, DIM)[None, :]
    there = (here + DIM // 2) % DIM
    inside = head < heads
    gain_sum = tl.zeros([DIM], tl.float32)
    for number in range(first, rows, programs):
        row = tl.cast(number, tl.int64)
        c, s = tl.load(cos + row * DIM + here).to(tl.float32), tl.load(sin + row * DIM + there).to(tl.float32)
        base = (row * heads + head) * DIM
        slope = tl.load(grad + base + here, mask=inside, other=0.0).to(tl.float32) * c
        slope += tl.load(grad + base + there, mask=inside, other=0.0).to(tl.float32) * s
        if NORM:
            a = tl.load(x + row * stride + head * DIM + here, mask=inside, other=0.0).to(tl.float32)
            scale = 1.0 / tl.sqrt(tl.sum(a * a, 1) / DIM + epsilon)[:, None]
            a *= scale
            gain_sum += tl.sum(slope * a, 0)
            slope *= tl.load(gain + here).to(tl.float32)
            slope = scale * (slope - a * (tl.sum(slope * a, 1) / DIM)[:, None])
        tl.store(out + base + here, slope, mask=inside)
    if NORM:
        tl.store(parts + first * DIM + tl.arange(0, DIM), gain_sum)


# ---- the feed-forward block


@triton.jit
def gated(gate, up, out, stride, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """silu(gate) * up."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    a = tl.load(gate + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(up + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, a * tl.sigmoid(a) * b, mask=inside)


@triton.jit
def gated_back(grad, gate, up, d_gate, d_up, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    place = row * width + at
    slope = tl.load(grad + place, mask=inside, other=0.0).to(tl.float32)
    a = tl.load(gate + place, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(up + place, mask=inside, other=0.0).to(tl.float32)
    half = tl.sigmoid(a)
    tl.store(d_gate + place, slope * b * half * (1.0 + a * (1.0 - half)), mask=inside)
    tl.store(d_up + place, slope * a * half, mask=inside)


# ---- the loss


@triton.jit
def score(  # type: ignore[no-untyped-def]
    logits, targets, logprob, normaliser, entropy, vocab, scale, ENTROPY: tl.constexpr, BLOCK: tl.constexpr
):
    """Of one row of logits: the target's log-probability, the logarithm of the softmax's total, the entropy."""
    row = tl.program_id(0).to(tl.int64)
    top, total, along = -float("inf"), 0.0, 0.0
    for start in range(0, vocab, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < vocab
        value = tl.load(logits + row * vocab + at, mask=inside, other=-float("inf")) * scale
        higher = tl.maximum(top, tl.max(value, 0))
        shares = tl.exp(value - higher)
        shrunk = tl.exp(top - higher)
        total = total * shrunk + tl.sum(shares, 0)
        if ENTROPY:
            along = along * shrunk + tl.sum(tl.where(inside, shares * value, 0.0), 0)
        top = higher
    size = top + tl.log(total)
    tl.store(normaliser + row, size)
    tl.store(logprob + row, tl.load(logits + row * vocab + tl.load(targets + row)) * scale - size)
    if ENTROPY:  # H = log Z - sum p * logit
        tl.store(entropy + row, size - along / total)


@triton.jit
def score_back(  # type: ignore[no-untyped-def]
    logits, targets, normaliser, entropy, g_logprob, g_entropy, out, vocab, scale,
    LOGPROB: tl.constexpr, ENTROPY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """What reaches the logits before they were scaled."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < vocab
    value = tl.load(logits + row * vocab + at, mask=inside, other=0.0) * scale - tl.load(normaliser + row)
    slope = tl.zeros([BLOCK], tl.float32)
    if ENTROPY:
        slope -= (value + tl.load(entropy + row)) * tl.load(g_entropy + row)
    if LOGPROB:
        slope -= tl.load(g_logprob + row)
    slope *= tl.exp(value)
    if LOGPROB:
        slope += tl.where(at == tl.load(targets + row), tl.load(g_logprob + row), 0.0)
    tl.store(out + row * vocab + at, slope * scale, mask=inside)


# ---- the cache


@triton.jit
def turn_and_keep(  # type: ignore[no-untyped-def]
    qkv, gain, cos, sin, slots, positions, out, keys, values, length, all_heads, heads, kv, spots, epsilon,
    NORM: tl.constexpr, HEADS: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Of one token: query and key heads normed and rotated, the queries to ``out``, keys and values to their places."""
    row = tl.program_id(0).to(tl.int64)
    head, here = tl.arange(0, HEADS)[:, None], tl.arange(0, DIM)[None, :]
    there = (here + DIM // 2) % DIM
    turned = head < heads + kv
    base = qkv + row * all_heads * DIM + head * DIM
    a = tl.load(base + here, mask=head < all_heads, other=0.0)
    b = tl.load(base + there, mask=turned, other=0.0).to(tl.float32)
    slot, position = tl.load(slots + row), tl.load(positions + row)
    c, s = tl.load(cos + position * DIM + here).to(tl.float32), tl.load(sin + position * DIM + here).to(tl.float32)
    f = a.to(tl.float32)
    if NORM:
        scale = 1.0 / tl.sqrt(tl.sum(f * f, 1) / DIM + epsilon)[:, None]
        f *= scale * tl.load(gain + head * DIM + here, mask=turned, other=0.0).to(tl.float32)
        b *= scale * tl.load(gain + head * DIM + there, mask=turned, other=0.0).to(tl.float32)
    f = f * c + b * s
    if not NORM:
        f = tl.where(head < heads, f * length, f)
    tl.store(out + (row * heads + head) * DIM + here, f, mask=head < heads)
    place = slot * kv * spots
    where = (place + (head - heads) * spots + position) * DIM + here
    tl.store(keys + where, f, mask=(head >= heads) & turned)
    where = (place + (head - heads - kv) * spots + position) * DIM + here
    tl.store(values + where, a, mask=(head >= heads + kv) & (head < all_heads))


@triton.jit
def look(  # type: ignore[no-untyped-def]
    asked, horizon, keys, values, place, first, last, most, total, mixed,
    EXACT: tl.constexpr, BLOCK: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Positions ``first`` to ``last`` - 1 of one cached head, softmax on the run: see ``horizon`` of the callers."""
    for start in range(first, last, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < last
        where = place + at[:, None] * DIM + tl.arange(0, DIM)[None, :]
        key = tl.load(keys + where, mask=inside[:, None], other=0.0)
        if EXACT:
            scores = tl.dot(asked, tl.trans(key), input_precision="ieee")
        else:
            scores = tl.dot(asked, tl.trans(key))
        scores = tl.where(inside[None, :] & (at[None, :] <= horizon[:, None]), scores, -float("inf"))
        higher = tl.maximum(most, tl.max(scores, 1))
        safe = tl.where(higher == -float("inf"), 0.0, higher)
        shares = tl.exp(scores - safe[:, None])
        shrunk = tl.exp(most - safe)
        value = tl.load(values + where, mask=inside[:, None], other=0.0)
        if EXACT:
            gathered = tl.dot(shares, value, input_precision="ieee")
        else:
            gathered = tl.dot(shares.to(value.dtype), value)
        mixed = mixed * shrunk[:, None] + gathered
        total = total * shrunk + tl.sum(shares, 1)
        most = higher
    return most, total, mixed


@triton.jit
def decode_own(  # type: ignore[no-untyped-def]
    queries, keys, values, slots, positions, parts, sizes, heads, kv, spots, skip, size, pieces,
    GROUPS: tl.constexpr, QUERIES: tl.constexpr, EXACT: tl.constexpr, BLOCK: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """One piece of the positions from ``skip`` on that one token's heads of one key/value head see."""
    row, head, piece = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    member, here = tl.arange(0, QUERIES), tl.arange(0, DIM)
    inside = member < GROUPS
    number = row * heads + head * GROUPS + member
    end = tl.load(positions + row).to(tl.int32) + 1
    first = skip + piece * size
    last = tl.minimum(first + size, end)
    most = tl.full([QUERIES], -float("inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    mixed = tl.zeros([QUERIES, DIM], tl.float32)
    if first < last:
        asked = tl.load(queries + number[:, None] * DIM + here[None, :], mask=inside[:, None], other=0.0)
        place = (tl.load(slots + row) * kv + head) * spots * DIM
        horizon = tl.full([QUERIES], 1 << 30, tl.int32)
        most, total, mixed = look(
            asked, horizon, keys, values, place, first, last, most, total, mixed, EXACT, BLOCK, DIM
        )
    keep = number * pieces + piece
    tl.store(sizes + keep, most + tl.log(tl.maximum(total, 1e-38)), mask=inside)
    mixed = mixed / tl.maximum(total, 1e-38)[:, None]
    tl.store(parts + keep[:, None] * DIM + here[None, :], mixed, mask=inside[:, None])


@triton.jit
def decode_common(  # type: ignore[no-untyped-def]
    queries, keys, values, lead, parts, sizes, rows, heads, kv, spots, skip, size, pieces, before,
    GROUPS: tl.constexpr, QUERIES: tl.constexpr, EXACT: tl.constexpr, BLOCK: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """One piece of the first ``skip`` positions, which all tokens have in common, for some tokens of one key/value
    head."""
    block, head, piece = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    query, here = (block * QUERIES + tl.arange(0, QUERIES)).to(tl.int64), tl.arange(0, DIM)
    inside = query < rows * GROUPS
    number = (query // GROUPS) * heads + head * GROUPS + query % GROUPS
    asked = tl.load(queries + number[:, None] * DIM + here[None, :], mask=inside[:, None], other=0.0)
    place = (tl.load(lead) * kv + head) * spots * DIM
    horizon = tl.full([QUERIES], 1 << 30, tl.int32)
    first = piece * size
    most = tl.full([QUERIES], -float("inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    mixed = tl.zeros([QUERIES, DIM], tl.float32)
    most, total, mixed = look(
        asked,
        horizon,
        keys,
        values,
        place,
        first,
        tl.minimum(first + size, skip),
        most,
        total,
        mixed,
        EXACT,
        BLOCK,
        DIM,
    )
    keep = number * pieces + before + piece
    tl.store(sizes + keep, most + tl.log(tl.maximum(total, 1e-38)), mask=inside)
    mixed = mixed / tl.maximum(total, 1e-38)[:, None]
    tl.store(parts + keep[:, None] * DIM + here[None, :], mixed, mask=inside[:, None])


@triton.jit
def decode_join(parts, sizes, out, pieces, PIECES: tl.constexpr, DIM: tl.constexpr):  # type: ignore[no-untyped-def]
    """One head of one token: its pieces, each weighed by what its softmax added up to."""
    number = tl.program_id(0).to(tl.int64)
    piece, here = tl.arange(0, PIECES), tl.arange(0, DIM)
    inside = piece < pieces
    size = tl.load(sizes + number * pieces + piece, mask=inside, other=-float("inf"))
    shares = tl.exp(size - tl.max(size, 0))
    where = (number * pieces + piece)[:, None] * DIM + here[None, :]
    value = tl.load(parts + where, mask=inside[:, None], other=0.0)
    mixed = tl.sum(value * shares[:, None], 0) / tl.sum(shares, 0)
    tl.store(out + number * DIM + here, mixed)


@triton.jit
def prefill_own(  # type: ignore[no-untyped-def]
    queries, keys, values, slots, starts, offsets, out, heads, kv, spots,
    GROUPS: tl.constexpr, QUERIES: tl.constexpr, EXACT: tl.constexpr, BLOCK: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Some new tokens of one prompt, one head: attention to the cache up to each token's own position."""
    # The last tokens see most: they go first.
    block, head, row = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begin = tl.load(offsets + row)
    count = tl.load(offsets + row + 1) - begin
    if block * QUERIES < count:
        token, here = block * QUERIES + tl.arange(0, QUERIES), tl.arange(0, DIM)
        inside = token < count
        number = (begin + token) * heads + head
        asked = tl.load(queries + number[:, None] * DIM + here[None, :], mask=inside[:, None], other=0.0)
        start = tl.load(starts + row)
        horizon = (start + token).to(tl.int32)
        place = (tl.load(slots + row) * kv + head // GROUPS) * spots * DIM
        last = (start + tl.minimum((block + 1) * QUERIES, count)).to(tl.int32)
        most = tl.full([QUERIES], -float("inf"), tl.float32)
        total = tl.zeros([QUERIES], tl.float32)
        mixed = tl.zeros([QUERIES, DIM], tl.float32)
        most, total, mixed = look(asked, horizon, keys, values, place, 0, last, most, total, mixed, EXACT, BLOCK, DIM)
        mixed = mixed / tl.maximum(total, 1e-38)[:, None]
        tl.store(out + number[:, None] * DIM + here[None, :], mixed, mask=inside[:, None])
