"""Sampling for many rows at once: one softmax, one running sum, one search; the noise depends on (seed, index) only."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_WORD = (1 << 64) - 1
BLOCK = 128
"""Ids whose weights a GPU adds up first."""


def _signed(word: int) -> int:
    """The int64 with the same 64 bits."""
    word &= _WORD
    return word - (1 << 64) if word >> 63 else word


def spread_seed(seed: int) -> int:
    """A seed of any size as a well mixed int64, so that neighbouring seeds give unrelated noise.

    SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
    """
    mixed = 0
    while True:  # every 64 bits of a larger seed count
        mixed = (mixed ^ (seed & _WORD)) + _GOLDEN & _WORD
        mixed = (mixed ^ mixed >> 30) * _MIX[0] & _WORD
        mixed = (mixed ^ mixed >> 27) * _MIX[1] & _WORD
        mixed ^= mixed >> 31
        seed >>= 64
        if seed in (0, -1):
            return _signed(mixed)


def _logical_shift(x: Tensor, bits: int) -> Tensor:
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def uniform(seeds: Tensor, index: Tensor) -> Tensor:
    """Uniform numbers strictly between 0 and 1, float32 [n], from int64 seeds and counters [n]: SplitMix64's stream.

    23 bits at half steps: the largest times any float32 total stays below that total, and none is 0.
    """
    z = seeds + (index + 1) * _signed(_GOLDEN)
    z = (z ^ _logical_shift(z, 30)) * _signed(_MIX[0])
    z = (z ^ _logical_shift(z, 27)) * _signed(_MIX[1])
    z = z ^ _logical_shift(z, 31)
    return (_logical_shift(z, 41).to(torch.float32) + 0.5) * 2.0**-23


def restrict(probabilities: Tensor, top_k: Tensor, top_p: Tensor, *, look: bool = True) -> Tensor:
    """Zero all but each row's top-k, and of those all but the smallest leading set that holds top_p of their mass.

    ``probabilities`` [n, vocab]; ``top_k`` int64 [n], 0 for off; ``top_p`` float32 [n], 1 for off. The result is not
    normalised again. The most probable token always stays. ``look``: see how far the filters go, and so save work where
    they are few; False where the host must not wait for the device.
    """
    vocab = probabilities.shape[-1]
    limit = torch.where(top_k > 0, top_k, vocab)
    if look and bool((top_p >= 1).all()):
        most = int(limit.max())
        ranked, order = probabilities.topk(min(most, vocab), dim=-1)
    else:
        ranked, order = probabilities.sort(dim=-1, descending=True)
    rank = torch.arange(ranked.shape[-1], device=ranked.device)
    ranked = ranked.masked_fill(rank >= limit[:, None], 0.0)
    mass = ranked.cumsum(-1)
    outside = mass - ranked >= top_p[:, None] * mass[:, -1:]
    outside &= (rank > 0) & (top_p < 1)[:, None]
    return torch.zeros_like(probabilities).scatter_(1, order, ranked.masked_fill_(outside, 0.0))


def inverse_in_blocks(weights: Tensor, noise: Tensor) -> Tensor:
    """The first id of each row at which the running sum of ``weights`` [n, vocab] exceeds ``noise`` [n] times its end.

    First the block, then the place in it: a GPU's running sum over a whole row would keep one multiprocessor busy. In
    float64, whose rounding is far below the noise's own step. An id of weight 0 is never found.
    """
    rows, vocab = weights.shape
    if vocab % BLOCK:
        weights = F.pad(weights, (0, BLOCK - vocab % BLOCK))
    blocks = weights.view(rows, -1, BLOCK)
    edges = blocks.sum(-1, dtype=torch.float64).cumsum(-1)
    aim = noise[:, None].to(torch.float64) * edges[:, -1:]
    block = torch.searchsorted(edges, aim, right=True).clamp_max_(edges.shape[1] - 1)
    before = edges.gather(1, (block - 1).clamp_min_(0)).masked_fill_(block == 0, 0.0)
    inner = blocks.gather(1, block[:, :, None].expand(-1, -1, BLOCK))[:, 0].cumsum(-1, dtype=torch.float64)
    aim = torch.minimum(aim - before, inner[:, -1:] * (1.0 - 2.0**-40))  # rounding may not lead past the last weight
    return (block * BLOCK + torch.searchsorted(inner, aim, right=True))[:, 0]


def sample(
    logits: Tensor,
    noise: Tensor,
    *,
    scale: Tensor | None = None,
    greedy: Tensor | None = None,
    top_k: Tensor | None = None,
    top_p: Tensor | None = None,
    look: bool = True,
) -> tuple[Tensor, Tensor]:
    """One id for each row of ``logits`` [n, vocab] float32: the distribution's inverse at ``noise`` [n] in (0, 1).

    ``scale`` [n]: 1 / temperature (None: all 1); ``greedy`` bool [n]: take the most probable (None: nobody); ``top_k``,
    ``top_p`` and ``look`` as in ``restrict`` (both filters None: nobody restricts). Returns ids int64 [n] and their
    log-probabilities float32 [n] under the scaled, unrestricted softmax.
    """
    if scale is not None:
        logits = logits * scale[:, None]
    probabilities = logits.softmax(-1)
    weights = probabilities
    if top_k is not None and top_p is not None:
        weights = restrict(probabilities, top_k, top_p, look=look)
    if weights.is_cuda:
        ids = inverse_in_blocks(weights, noise)
    else:
        mass = weights.cumsum(-1)
        ids = torch.searchsorted(mass, noise[:, None] * mass[:, -1:], right=True)[:, 0]
    if greedy is not None:
        ids = torch.where(greedy, logits.argmax(-1), ids)
    return ids, probabilities.gather(1, ids[:, None])[:, 0].log()
