"""How far a sampled token is from the one that weights, context, temperature and seed choose."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import torch

from muarl.basics.seeds import derive_seed
from muarl.inference.sampling import spread_seed, uniform
from muarl.types.episode import Episode

ROUNDING = 1e-4
"""By so much may a token's share of the probabilities be off where sums were taken in another order."""


def noise_of(episode: Episode) -> dict[int, float]:
    """Of every sampled token, by its place in the trace, the number in (0, 1) that chose it."""
    assert episode.tokens is not None and not episode.tokens.restarts
    places, noise = enumerate(episode.tokens.loss_mask), {}
    turns = [list(run) for sampled, run in groupby(places, key=lambda place: place[1]) if sampled]
    for number, turn in enumerate(turns):
        seed = torch.tensor(spread_seed(derive_seed(episode.seed, number)))
        numbers = uniform(seed, torch.arange(len(turn))).tolist()
        noise |= {at: value for (at, _), value in zip(turn, numbers, strict=True)}
    return noise


@torch.no_grad()
def misses(episode: Episode, model: Any, temperature: float, *others: tuple[int, int]) -> dict[tuple[int, int], float]:
    """By how much each sampled token's number lies outside its share of [0, 1] under this ``model``: {(place, id):
    distance in [0, 1]}, 0 where the token is the one that the number chooses. ``others``: more (place, id), each judged
    after the episode's own ids before that place."""
    trace, noise = episode.tokens, noise_of(episode)
    assert trace is not None
    logits = model(torch.tensor([trace.ids])).logits[0].double()
    ends = (logits / temperature).softmax(-1).cumsum(-1)
    out = {}
    for at, token in [*((at, trace.ids[at]) for at in noise), *others]:
        row, number = ends[at - 1], noise[at]
        begin = float(row[token - 1]) if token else 0.0
        out[at, token] = max(begin - number, number - float(row[token]), 0.0)
    return out


def first_difference(mine: Episode, theirs: Episode) -> int | None:
    """The first place at which two episodes' tokens or policy versions differ; None if they are equal."""
    assert mine.tokens is not None and theirs.tokens is not None
    (a, b) = ([*zip(t.ids, t.versions, strict=True)] for t in (mine.tokens, theirs.tokens))
    if a == b:
        return None
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
