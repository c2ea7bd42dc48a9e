"""Log-probabilities of chosen tokens under a causal language model, for packed or padded rows.

Dense Qwen3 models take the fast path of ``muarl.models.qwen3``; anything else runs its own Hugging Face forward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from muarl.errors import CheckpointError
from muarl.learning.packing import Rows
from muarl.models.attention import can_share
from muarl.models.qwen3 import shape_of, token_logprobs

CHUNK_ELEMENTS = 1 << 27
"""Logits are made for at most this many (token, vocabulary) pairs at a time, so that a large vocabulary cannot blow up
memory (float32: 512 MiB)."""


@dataclass(frozen=True, slots=True)
class TokenScores:
    """``logprobs`` float32 [n], with gradient where enabled; ``entropy`` float32 [n] in nats, detached, or None.
    In row-major order of the rows' targets."""

    logprobs: Tensor
    entropy: Tensor | None


def attention_mask(documents: Tensor) -> Tensor:
    """Bool [R, 1, L, L]: query t sees key s if s <= t and both belong to one document. Padding (-1) sees padding, since
    a row of the mask that is False throughout would make softmax undefined."""
    length = documents.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=documents.device).tril()
    return ((documents[:, :, None] == documents[:, None, :]) & causal)[:, None]


def hidden_states(model: torch.nn.Module, rows: Rows) -> Tensor:
    """Last hidden states [R, L, d] of a Hugging Face causal LM's body.

    Padding stands at the ends of rows, where causal attention never lets a real token see it; so rows of one document
    need no mask, and attention can take its fast causal path.
    """
    mask = attention_mask(rows.documents) if rows.packed else None
    output = cast(Any, model).model(
        input_ids=rows.ids, attention_mask=mask, position_ids=rows.positions, use_cache=False
    )
    return cast(Tensor, output.last_hidden_state)


def has_fast_path(model: torch.nn.Module) -> bool:
    """True if ``muarl.models.qwen3`` computes this model exactly."""
    try:
        shape_of(model, adapters=True)
    except CheckpointError:
        return False
    return True


def can_share_prefixes(model: torch.nn.Module) -> bool:
    """True if ``selected_logprobs`` follows the layout that ``pack`` plans with ``share``."""
    return has_fast_path(model) and can_share(next(model.parameters()))


def selected_logprobs(
    model: torch.nn.Module,
    rows: Rows,
    *,
    temperature: float = 1.0,
    entropy: bool = False,
    recompute: bool = False,
    fast: bool | None = None,
) -> TokenScores:
    """log softmax(logits / temperature) of each target token, given what precedes it in its own document.

    Only the hidden states that predict a target go through the output matrix: with a large vocabulary that is most of
    the memory. Always float32, whatever the weights' type. ``recompute`` trades time for memory (fast path only).
    ``fast``: whether to take the fast path; None: where the model has one.
    """
    if has_fast_path(model) if fast is None else fast:
        logprobs, spread = token_logprobs(
            model,
            rows.ids,
            rows.positions,
            rows.documents,
            rows.targets,
            temperature,
            entropy=entropy,
            recompute=recompute,
            layout=rows.layout,
        )
        return TokenScores(logprobs, spread.detach() if entropy else None)
    hidden = hidden_states(model, rows)
    # The target at place t is predicted at t - 1; targets are never first in a document, so t - 1 is in the same row.
    predicting = hidden[:, :-1][rows.targets[:, 1:]]
    head = cast(Any, model).get_output_embeddings().weight
    return _score(head, predicting, rows.ids[rows.targets], temperature, entropy)


def _score(head: Tensor, hidden: Tensor, wanted: Tensor, temperature: float, entropy: bool) -> TokenScores:
    chunk = max(CHUNK_ELEMENTS // head.shape[0], 1)
    if len(wanted) <= chunk:
        return _score_chunk(head, hidden, wanted, temperature, entropy)
    # Each chunk's logits are made again for the backward pass instead of being kept.
    parts = [
        checkpoint(_score_chunk, head, part, ids, temperature, entropy, use_reentrant=False)
        for part, ids in zip(hidden.split(chunk), wanted.split(chunk), strict=True)
    ]
    return TokenScores(
        torch.cat([p.logprobs for p in parts]), torch.cat([p.entropy for p in parts]) if entropy else None
    )


def _score_chunk(head: Tensor, hidden: Tensor, wanted: Tensor, temperature: float, entropy: bool) -> TokenScores:
    logits = functional.linear(hidden, head).float()
    if temperature != 1.0:
        logits = logits / temperature
    logprobs = -functional.cross_entropy(logits, wanted, reduction="none")
    if not entropy:
        return TokenScores(logprobs, None)
    with torch.no_grad():
        every = logits.detach().log_softmax(-1)
        return TokenScores(logprobs, -(every.exp() * every).sum(-1))
