"""From samples (one document each) to micro-batches of rows of tokens, without ever splitting or truncating a document.

A ``Batch`` holds samples and, flattened in sample order, one entry for each *target*: a token that carries loss. A
``Rows`` is one micro-batch: rectangles of ids with positions and document numbers, and for each target in it (in
row-major order) its index among the batch's targets. Losses work on the flat vectors; only the forward pass sees
rectangles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from muarl.basics.errors import ConfigError
from muarl.models.layout import SHARE_FROM, Layout, common_prefixes, plan_layout

Strategy = Literal["sorted", "ffd"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One document of T ids. ValueError if lengths differ."""

    ids: Sequence[int]
    """[T]: the token ids."""
    weights: Sequence[float]
    """[T]: loss weight of each id as something to predict, 0 for context; the first id has no past, so its weight is
    ignored."""
    logprobs: Sequence[float] = ()
    """[T]: the sampler's log-probabilities, read only where the weight is not 0 (empty for supervised samples)."""
    advantage: float | Sequence[float] = 0.0
    """The advantage of the whole document, or [T] of each id."""
    episode: int | None = None
    """Samples of one batch with the same number are segments of one episode, and together weigh what an episode does;
    None: an episode by itself."""

    def __post_init__(self) -> None:
        if len(self.ids) == 0:
            raise ValueError("a sample has no ids")
        if len(self.weights) != len(self.ids):
            raise ValueError(f"{len(self.ids)} ids came with {len(self.weights)} weights")
        if len(self.logprobs) not in (0, len(self.ids)):
            raise ValueError(f"{len(self.ids)} ids came with {len(self.logprobs)} log-probabilities")
        if not isinstance(self.advantage, (int, float)) and len(self.advantage) != len(self.ids):
            raise ValueError(f"{len(self.ids)} ids came with {len(self.advantage)} advantages")

    @classmethod
    def supervised(cls, ids: Sequence[int], loss_mask: Sequence[bool], other_weight: float = 0.0) -> Sample:
        """A demonstration: weight 1 where ``loss_mask`` is True (the agent's tokens), ``other_weight`` elsewhere."""
        return cls(ids, [1.0 if m else other_weight for m in loss_mask])

    @classmethod
    def sampled(
        cls,
        ids: Sequence[int],
        loss_mask: Sequence[bool],
        logprobs: Sequence[float],
        advantage: float | Sequence[float],
        episode: int | None = None,
    ) -> Sample:
        """An episode, or a segment of one: weight 1 on the ids that the policy sampled, with the sampler's
        log-probabilities."""
        return cls(ids, [1.0 if m else 0.0 for m in loss_mask], logprobs, advantage, episode)


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples and their n targets, flattened sample by sample."""

    samples: tuple[Sample, ...]
    weights: Tensor
    """float32 [n]: loss weights."""
    logprobs: Tensor
    """float32 [n]: the sampler's, 0 where the samples have none."""
    advantages: Tensor
    """float32 [n]: of each target."""
    sequences: Tensor
    """int64 [n]: index of the target's sample."""
    starts: tuple[int, ...]
    """Where each sample's targets begin (length: samples + 1)."""
    has_logprobs: bool
    episodes: Tensor | None = None
    """int64 [n]: which targets belong to one episode; None where every sample is an episode by itself."""

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Batch:
        weights: list[NDArray[np.float32]] = []
        logprobs: list[NDArray[np.float32]] = []
        advantages: list[NDArray[np.float32]] = []
        starts = [0]
        for sample in samples:
            all_weights = np.asarray(sample.weights, dtype=np.float32)
            scored = 1 + np.flatnonzero(all_weights[1:])
            weights.append(all_weights[scored])
            all_logprobs = (
                np.asarray(sample.logprobs, dtype=np.float32) if len(sample.logprobs) else np.zeros_like(all_weights)
            )
            logprobs.append(all_logprobs[scored])
            own = np.asarray(sample.advantage, dtype=np.float32)
            advantages.append(own[scored] if own.ndim else np.full(len(scored), own))
            starts.append(starts[-1] + len(scored))
        counts = torch.tensor([b - a for a, b in pairwise(starts)], dtype=torch.int64)
        whole = torch.tensor(episode_numbers(samples), dtype=torch.int64)
        several = len(whole.unique()) < len(samples)
        return cls(
            tuple(samples),
            torch.from_numpy(np.concatenate([np.zeros(0, dtype=np.float32), *weights])),
            torch.from_numpy(np.concatenate([np.zeros(0, dtype=np.float32), *logprobs])),
            torch.from_numpy(np.concatenate([np.zeros(0, dtype=np.float32), *advantages])),
            torch.arange(len(samples)).repeat_interleave(counts),
            tuple(starts),
            all(len(s.logprobs) > 0 for s in samples),
            whole.repeat_interleave(counts) if several else None,
        )

    def to(self, device: torch.device | str) -> Batch:
        return replace(
            self,
            weights=self.weights.to(device),
            logprobs=self.logprobs.to(device),
            advantages=self.advantages.to(device),
            sequences=self.sequences.to(device),
            episodes=self.episodes.to(device) if self.episodes is not None else None,
        )


def episode_numbers(samples: Sequence[Sample]) -> list[int]:
    """For each sample the index of the first one of its episode."""
    first: dict[int, int] = {}
    return [n if s.episode is None else first.setdefault(s.episode, n) for n, s in enumerate(samples)]


@dataclass(frozen=True, slots=True)
class Rows:
    """One micro-batch, [R, L]: R rows of L tokens."""

    ids: Tensor
    positions: Tensor
    """Restarting at 0 with each document."""
    documents: Tensor
    """Index of the sample a token belongs to, -1 for padding, which stands only at the ends of rows."""
    targets: Tensor
    """bool [R, L]: tokens whose log-probability is asked for, never a document's first."""
    index: Tensor
    """[targets.sum()]: for each target in row-major order its place in the batch's flat vectors."""
    tokens: int
    """Tokens that are not padding."""
    packed: bool
    """Some row holds several documents."""
    layout: Layout | None = None
    """How to compute common beginnings once; None where ``pack`` was not asked to plan that."""

    @property
    def places(self) -> int:
        """What a forward pass computes: tokens without repeats where they are shared, else padding and all."""
        return self.ids.numel() if self.layout is None else self.layout.tokens.numel()

    def to(self, device: torch.device | str) -> Rows:
        return replace(
            self,
            ids=self.ids.to(device),
            positions=self.positions.to(device),
            documents=self.documents.to(device),
            targets=self.targets.to(device),
            index=self.index.to(device),
            layout=self.layout.to(device) if self.layout is not None else None,
        )


def pack(
    batch: Batch,
    *,
    token_budget: int,
    strategy: Strategy = "sorted",
    row_length: int | None = None,
    subset: Sequence[int] | None = None,
    share: bool = False,
) -> list[Rows]:
    """Micro-batches of at most ``token_budget`` places (rows x length, padding included) over the batch's samples, or
    over the ``subset`` of their indices. Each sample lands in exactly one row, whole; samples without targets are left
    out.

    - ``"sorted"``: documents sorted by length, one to a row, padded to the longest of the micro-batch.
    - ``"ffd"``: first-fit-decreasing packing of several documents into rows of ``row_length`` (default: the longest
      document), kept apart by a block-diagonal mask.

    ``share``: plan for a forward pass that computes what documents have in common at their beginnings once, and skips
    padding. ``token_budget`` then counts the tokens computed, and ``"sorted"`` puts documents that begin alike together
    instead of documents of similar length.

    ConfigError if a document is longer than a row or the budget: nothing is ever truncated silently.
    """
    chosen = range(len(batch.samples)) if subset is None else subset
    order = sorted(
        (i for i in chosen if batch.starts[i + 1] > batch.starts[i]), key=lambda i: (-len(batch.samples[i].ids), i)
    )
    if not order:
        return []
    longest = len(batch.samples[order[0]].ids)
    if longest > token_budget:
        raise ConfigError(
            f"a document of {longest} tokens does not fit into a micro-batch of token_budget={token_budget}: "
            f"raise token_budget to at least {longest}, or limit the context of episodes"
        )
    if strategy == "sorted":
        bins = [[i] for i in order]
    elif strategy == "ffd":
        limit = longest if row_length is None else min(row_length, token_budget)
        if longest > limit:
            raise ConfigError(f"a document of {longest} tokens is longer than row_length={limit}: raise row_length")
        bins = _first_fit([(i, len(batch.samples[i].ids)) for i in order], limit)
    else:
        raise ConfigError(f"unknown packing strategy {strategy!r}: sorted or ffd")
    if share and strategy == "sorted":
        return [_rectangle(batch, [[i] for i in members], True) for members in _alike(batch, order, token_budget)]
    lengths = [sum(len(batch.samples[i].ids) for i in members) for members in bins]
    rows: list[Rows] = []
    start = 0
    while start < len(bins):
        width, end = lengths[start], start + 1
        while end < len(bins) and max(width, lengths[end]) * (end + 1 - start) <= token_budget:
            width, end = max(width, lengths[end]), end + 1
        rows.append(_rectangle(batch, bins[start:end], share))
        start = end
    return rows


def spread(batch: Batch, parts: int, subset: Sequence[int] | None = None, *, share: bool = False) -> list[list[int]]:
    """The samples that carry loss (among the ``subset`` of their indices) in ``parts`` with about as many tokens to
    compute each; some are empty where there are few samples. ``share``: those that begin alike stay together."""
    chosen = range(len(batch.samples)) if subset is None else subset
    chosen = [i for i in chosen if batch.starts[i + 1] > batch.starts[i]]
    shares: list[list[int]] = [[] for _ in range(parts)]
    if share and chosen:
        order, shared = common_prefixes([np.asarray(batch.samples[i].ids, dtype=np.int64) for i in chosen])
        sizes = np.array([len(batch.samples[chosen[at]].ids) for at in order]) - shared
        middles = np.cumsum(sizes) - sizes / 2
        for at, place in zip(order, middles * parts / sizes.sum(), strict=True):
            shares[min(parts - 1, int(place))].append(chosen[at])
        return shares
    loads = [0] * parts
    for i in sorted(chosen, key=lambda i: (-len(batch.samples[i].ids), i)):
        lightest = loads.index(min(loads))
        shares[lightest].append(i)
        loads[lightest] += len(batch.samples[i].ids)
    return shares


def idle_rows() -> Rows:
    """A micro-batch with nothing to learn from: what a process computes while others have more than it has."""
    one = torch.zeros(1, 1, dtype=torch.int64)
    return Rows(one, one, one, one.bool(), torch.zeros(0, dtype=torch.int64), 0, False)


def _alike(batch: Batch, chosen: Sequence[int], budget: int) -> list[list[int]]:
    """Samples in groups of at most ``budget`` tokens to compute, those that begin alike together."""
    documents = [np.asarray(batch.samples[i].ids, dtype=np.int64) for i in chosen]
    order, shared = common_prefixes(documents)
    groups: list[list[int]] = []
    used = budget
    for at, common in zip(order, shared, strict=True):
        # A document shares all it has in common with its neighbour, but for a piece too short for a prefix of its own.
        more = len(documents[at]) - max(0, int(common) - SHARE_FROM + 1)
        if used + more > budget:
            groups.append([])
            used, more = 0, len(documents[at])
        groups[-1].append(chosen[at])
        used += more
    return groups


def _first_fit(documents: list[tuple[int, int]], limit: int) -> list[list[int]]:
    """First-fit: each (index, length), in the given decreasing order, into the first bin that has room for it."""
    bins: list[list[int]] = []
    room: list[int] = []
    for index, length in documents:
        place = next((b for b, free in enumerate(room) if free >= length), None)
        if place is None:
            bins.append([index])
            room.append(limit - length)
        else:
            bins[place].append(index)
            room[place] -= length
    return bins


def _rectangle(batch: Batch, bins: list[list[int]], share: bool) -> Rows:
    width = max(sum(len(batch.samples[i].ids) for i in members) for members in bins)
    ids = torch.zeros(len(bins), width, dtype=torch.int64)
    # Padding keeps the column's number as its position: harmless, since nothing real can see it.
    positions = torch.arange(width).repeat(len(bins), 1)
    documents = torch.full((len(bins), width), -1, dtype=torch.int64)
    targets = torch.zeros(len(bins), width, dtype=torch.bool)
    index: list[Tensor] = []
    tokens = 0
    for row, members in enumerate(bins):
        at = 0
        for i in members:
            sample = batch.samples[i]
            end = at + len(sample.ids)
            ids[row, at:end] = torch.tensor(list(sample.ids), dtype=torch.int64)
            positions[row, at:end] = torch.arange(end - at)
            documents[row, at:end] = i
            scored = torch.tensor(list(sample.weights), dtype=torch.float32) != 0
            scored[0] = False
            targets[row, at:end] = scored
            index.append(torch.arange(batch.starts[i], batch.starts[i + 1]))
            at = end
        tokens += at
    layout = plan_layout(documents, ids) if share else None
    return Rows(ids, positions, documents, targets, torch.cat(index), tokens, any(len(m) > 1 for m in bins), layout)
