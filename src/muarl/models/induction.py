"""A head start for copying: random weights with one previous-token head and two induction heads already laid out.

A transformer finds a thing that it has seen before by two heads in a row (Olsson et al. 2022, "In-context learning and
induction heads"): one writes into each place which token stood before it, the next looks for the place whose
predecessor equals the current token, and copies what stands there. A tiny model takes thousands of steps to find that
by itself, and everything here hangs on copying ids; laid out in the start weights it is sharp after some fifty steps.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from transformers import PreTrainedModel

from muarl.models.configs import rotary_base

CONSTANT = 3.0
"""Value of the first embedding dimension, in units of the embeddings' spread; the previous-token head steers by it."""
STEERING_PAIRS = 3
"""How many of the fastest rotary pairs point the previous-token head one place back; together they peak only there."""
SLOW = 0.004
"""Rotary pairs slower than this (radians a token) hardly turn within an episode: the induction heads match on them."""
COPY = 8.0
"""How loudly an induction head speaks, in units of an embedding's length."""
QUIET = 0.2
"""Factor on all other output matrices, so that they do not drown the laid-out heads at the start."""


@torch.no_grad()
def lay_out_induction(model: PreTrainedModel, seed: int = 0) -> None:
    """Change a fresh model's first two layers in place. It needs two layers or more, and tied embeddings."""
    config = model.config
    width, size = config.hidden_size, config.head_dim
    groups = config.num_key_value_heads or config.num_attention_heads
    half, share = size // 2, config.num_attention_heads // groups
    speed = rotary_base(config) ** (-torch.arange(half) / half)
    generator = torch.Generator().manual_seed(seed)
    embeddings = model.model.embed_tokens.weight
    embeddings[:, 0] = CONSTANT * embeddings.pow(2).mean().sqrt()
    length = embeddings.norm(dim=1).mean()
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.mul_(QUIET)
        layer.mlp.down_proj.weight.mul_(QUIET)

    # Three orthogonal parts of the residual stream: what a token is, what stood before it, and the rest.
    basis = torch.zeros(width - 1, width)
    basis[:, 1:] = _orthogonal(width - 1, width - 1, generator)
    token, before = basis[:size], basis[size : 2 * size]
    elsewhere = torch.cat([basis[:size], basis[2 * size :]])

    first = model.model.layers[0].self_attn
    first.q_norm.weight.fill_(2.0)
    first.k_norm.weight.fill_(2.0)
    query, key = torch.zeros(size), torch.zeros(size)
    for pair in range(STEERING_PAIRS):  # the key is turned by one place, so the match is best one place back
        query[pair] = 1.0
        key[pair], key[pair + half] = math.cos(speed[pair]), math.sin(speed[pair])
    for weight, steer in ((first.q_proj.weight, query), (first.k_proj.weight, key)):
        weight[:size] = 0.0
        weight[:size, 0] = steer
    first.v_proj.weight[:size] = token
    first.o_proj.weight[:, :size] = before.T * (length / size**0.5)

    second = model.model.layers[1].self_attn
    second.q_norm.weight.fill_(2.0)
    second.k_norm.weight.fill_(1.5)
    slow = [i for i in range(half) if speed[i] < SLOW]
    places = slow + [i + half for i in slow]
    for group in range(min(2, groups)):  # one induction head in each of two key/value groups
        head = slice(group * share * size, (group * share + 1) * size)
        shared = slice(group * size, (group + 1) * size)
        match = torch.randn(len(places), size, generator=generator) / math.sqrt(size)
        second.q_proj.weight[head] = _spread(match @ token, places, size)
        second.k_proj.weight[shared] = _spread(match @ before, places, size)
        copied = _orthogonal(size, len(elsewhere), generator) @ elsewhere
        second.v_proj.weight[shared] = copied
        second.o_proj.weight[:, head] = copied.T * (COPY * length / size**0.5)


def _orthogonal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.linalg.qr(torch.randn(columns, rows, generator=generator))[0].T.contiguous()


def _spread(rows: Tensor, places: list[int], size: int) -> Tensor:
    out = torch.zeros(size, rows.shape[1])
    out[places] = rows
    return out
