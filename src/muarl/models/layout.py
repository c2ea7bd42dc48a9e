"""Where each token of a batch is computed: documents' common prefixes once, the rest in rectangles of similar length.

Equal tokens after equal tokens have equal hidden states. So documents that begin alike (a prompt's rollouts, episodes
under one system prompt) form a tree: what several share is one run of rows that all of them attend to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SHARE_FROM = 32
"""A common prefix is computed once if it has at least this many tokens (beyond the one it continues): shorter ones
would save less than one more pass of attention costs."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a batch's documents are spread for computing."""

    tokens: Tensor
    """[N]: the places in the flattened [B*T] batch that are computed, in the order of rows of all activations."""
    place: Tensor
    """[B*T]: the row that holds each place's hidden state, -1 for padding. Rows form segments in which attention is
    causal."""
    blocks: tuple[tuple[int, int], ...]
    """(segments, longest) rectangles that lie one after another in the padded order."""
    pack: Tensor | None
    """[P]: takes rows to the padded order; None where the order is the padded order already."""
    unpack: Tensor
    """[N]: takes them back."""
    pads: Tensor
    """The padded places that hold no row."""
    prefixes: tuple[tuple[int, int, int], ...] = ()
    """(first, last, end): rows last..end - 1 continue rows first..last - 1, and so see all of them, besides what they
    see in their own segment."""

    def to(self, device: torch.device | str) -> Layout:
        return replace(
            self,
            tokens=self.tokens.to(device),
            place=self.place.to(device),
            pack=None if self.pack is None else self.pack.to(device),
            unpack=self.unpack.to(device),
            pads=self.pads.to(device),
        )


def plan_layout(documents: Tensor, ids: Tensor | None = None, waste: float = 1.1) -> Layout:
    """Lay out the runs of equal document id >= 0 in each row of ``documents`` [B, T]; ids < 0 are padding.

    With ``ids`` [B, T], common prefixes of at least ``SHARE_FROM`` tokens are computed once; without, every token is. A
    rectangle has at most ``waste`` times as many places as tokens, except that small ones are merged.
    """
    docs = documents.detach().cpu().numpy()
    real = docs.reshape(-1) >= 0
    edge = np.ones(docs.shape, dtype=bool)
    edge[:, 1:] = docs[:, 1:] != docs[:, :-1]
    starts = np.flatnonzero(edge.reshape(-1))
    lengths = np.diff(np.append(starts, docs.size))
    keep = real[starts]
    starts, lengths = starts[keep], lengths[keep]
    tokens = np.flatnonzero(real)
    place = np.full(docs.size, -1, dtype=np.int64)
    place[tokens] = np.arange(len(tokens))
    prefixes: tuple[tuple[int, int, int], ...] = ()
    if ids is not None:
        flat = ids.detach().reshape(-1).cpu().numpy()
        order, shared = common_prefixes([flat[s : s + n] for s, n in zip(starts, lengths, strict=True)])
        if shared.max(initial=0) >= SHARE_FROM:
            tokens, lengths, prefixes = _share(starts[order], lengths[order], shared, place)

    def move(x: Ints) -> Tensor:
        return torch.from_numpy(x.astype(np.int64)).to(documents.device)

    blocks, pack, unpack, pads = _rectangles(lengths, waste)
    identity = len(pack) == len(unpack) and bool((pack == np.arange(len(pack))).all())
    rows = None if identity else move(pack)
    return Layout(move(tokens), move(place), blocks, rows, move(unpack), move(pads), prefixes)


def common_prefixes(documents: Sequence[Ints]) -> tuple[list[int], Ints]:
    """The documents' lexicographic order, and for each in that order the number of leading ids that it shares with the
    one before (0 for the first)."""
    order = sorted(range(len(documents)), key=lambda i: documents[i].astype(">u8").tobytes())
    shared = np.zeros(len(order), dtype=np.int64)
    for at in range(1, len(order)):
        a, b = documents[order[at - 1]], documents[order[at]]
        n = min(len(a), len(b))
        differs = a[:n] != b[:n]
        shared[at] = differs.argmax() if differs.any() else n
    return order, shared


def _share(
    starts: Ints, lengths: Ints, shared: Ints, place: Ints
) -> tuple[Ints, Ints, tuple[tuple[int, int, int], ...]]:
    """Rows for documents in lexicographic order that share ``shared`` ids with the one before: (tokens, the segments'
    lengths, prefixes). Fills ``place``. The rows of a subtree follow those of its prefix, depth first."""
    tokens: list[Ints] = []
    segments: list[int] = []
    prefixes: list[tuple[int, int, int]] = []
    row = 0
    # (documents low..high - 1, of which ``depth`` ids have rows); or, once a subtree is done, (first, last, -1).
    todo = [(0, len(starts), 0)]
    while todo:
        low, high, depth = todo.pop()
        if depth < 0:
            if row > high:
                prefixes.append((low, high, row))
            continue
        alone = high - low == 1
        inner = shared[low + 1 : high]
        until = int(lengths[low] if alone else inner.min())
        if until > depth and (alone or until - depth >= SHARE_FROM):
            count = until - depth
            tokens.append(np.arange(starts[low] + depth, starts[low] + until))
            segments.append(count)
            for start in starts[low:high]:
                place[start + depth : start + until] = np.arange(row, row + count)
            if not alone:
                todo.append((row, row + count, -1))
            row, depth = row + count, until
        if not alone:
            cuts = [low, *(np.flatnonzero(inner == inner.min()) + low + 1).tolist(), high]
            todo.extend((a, b, depth) for a, b in zip(cuts[-2::-1], cuts[:0:-1], strict=True))
    return np.concatenate(tokens), np.array(segments), tuple(prefixes)


def _rectangles(lengths: Ints, waste: float) -> tuple[tuple[tuple[int, int], ...], Ints, Ints, Ints]:
    """Blocks, pack, unpack and pads (see ``Layout``) for consecutive segments of these lengths."""
    count = int(lengths.sum())
    first = np.concatenate(([0], np.cumsum(lengths)[:-1])) if len(lengths) else lengths
    order = np.argsort(-lengths, kind="stable")
    blocks: list[tuple[int, int]] = []
    pack: list[Ints] = []
    pads: list[Ints] = []
    at = base = 0
    while at < len(order):
        longest = int(lengths[order[at]])
        sizes = lengths[order[at:]]
        # As long a prefix of the length-sorted segments as keeps the rectangle mostly full, or tiny anyway.
        area = longest * np.arange(1, len(sizes) + 1)
        fits = (area <= waste * np.cumsum(sizes)) | (area - np.cumsum(sizes) <= 512)
        take = int(np.flatnonzero(fits)[-1]) + 1
        chosen = order[at : at + take]
        column = np.arange(longest)
        inside = column[None] < lengths[chosen][:, None]
        pack.append(np.where(inside, first[chosen][:, None] + column[None], 0).reshape(-1))
        pads.append(np.flatnonzero(~inside.reshape(-1)) + base)
        blocks.append((take, longest))
        at, base = at + take, base + take * longest
    packed = np.concatenate(pack) if pack else np.zeros(0, dtype=np.int64)
    padded = np.concatenate(pads) if pads else np.zeros(0, dtype=np.int64)
    filled = np.ones(len(packed), dtype=bool)
    filled[padded] = False
    unpack = np.empty(count, dtype=np.int64)
    unpack[packed[filled]] = np.flatnonzero(filled)
    return tuple(blocks), packed, unpack, padded
