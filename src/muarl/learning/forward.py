"""Log-probabilities of chosen tokens under a causal language model, for packed or padded rows."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from muarl.learning.packing import Rows
from muarl.models.path import ModelPath


@dataclass(frozen=True, slots=True)
class TokenScores:
    """``logprobs`` float32 [n], with gradient where enabled; ``entropy`` float32 [n] in nats, detached, or None.
    In row-major order of the rows' targets."""

    logprobs: Tensor
    entropy: Tensor | None


def selected_logprobs(
    path: ModelPath, rows: Rows, *, temperature: float = 1.0, entropy: bool = False, recompute: bool = False
) -> TokenScores:
    """log softmax(logits / temperature) of each target token, given what precedes it in its own document.

    Always float32, whatever the weights' type. ``recompute`` trades time for memory.
    """
    logprobs, spread = path.token_logprobs(
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
