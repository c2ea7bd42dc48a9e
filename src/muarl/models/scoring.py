"""Log-probabilities and entropies straight from hidden states, without ever holding all logits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from muarl.models import fused
from muarl.models.matrix_products import product

CHUNK_LOGITS = 1 << 20
"""Logits computed at a time on a CPU (4 MiB in float32, about a cache's size); a GPU takes 256 times as many,
so that adding up the output matrix's gradient costs little beside its products."""


def chunk_rows(vocab: int, device: torch.device) -> int:
    """Of how many tokens logits are computed at a time."""
    scale = 256 if device.type == "cuda" else 1
    return max(64, scale * CHUNK_LOGITS // vocab)


class _LinearLogprobs(torch.autograd.Function):
    """log softmax(h @ W.T / T)[target] and its entropy, chunk by chunk; the backward pass computes the logits again."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float, want_entropy: bool
    ) -> tuple[Tensor, Tensor]:
        rows = chunk_rows(weight.shape[0], hidden.device)
        count = hidden.shape[0]
        logprob = torch.empty(count, dtype=torch.float32, device=hidden.device)
        entropy = torch.zeros_like(logprob)
        normaliser = torch.empty_like(logprob)
        together = fused.usable(hidden)
        for a in range(0, count, rows):
            b = min(a + rows, count)
            if together:
                logits = products(hidden[a:b], weight)
                result = fused.score(logits, targets[a:b], 1.0 / temperature, want_entropy)
                logprob[a:b], normaliser[a:b], entropy[a:b] = result
                continue
            logits = _logits(hidden[a:b], weight, temperature)
            top = logits.amax(-1, keepdim=True)
            picked = logits.gather(1, targets[a:b, None])[:, 0]
            exp = torch.exp(logits - top)
            total = exp.sum(-1)
            norm = total.log() + top[:, 0]
            normaliser[a:b] = norm
            logprob[a:b] = picked - norm
            if want_entropy:  # H = log Z - sum p * logit
                entropy[a:b] = norm - torch.linalg.vecdot(exp, logits) / total
        ctx.save_for_backward(hidden, weight, targets, normaliser, entropy)
        ctx.temperature, ctx.rows = temperature, rows
        ctx.set_materialize_grads(False)
        return logprob, entropy

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        hidden, weight, targets, normaliser, entropy = ctx.saved_tensors
        g_logprob, g_entropy = grads
        if g_logprob is None and g_entropy is None:
            return None, None, None, None, None
        d_hidden = torch.empty_like(hidden)
        d_weight = torch.zeros(weight.shape, dtype=torch.float32, device=weight.device)
        together = fused.usable(hidden)
        for a in range(0, hidden.shape[0], ctx.rows):
            b = min(a + ctx.rows, hidden.shape[0])
            part = hidden[a:b]
            if together:
                narrow = fused.score_slope(
                    products(part, weight),
                    targets[a:b],
                    normaliser[a:b],
                    entropy[a:b],
                    None if g_logprob is None else g_logprob[a:b],
                    None if g_entropy is None else g_entropy[a:b],
                    1.0 / ctx.temperature,
                    weight.dtype,
                )
                d_hidden[a:b] = narrow @ weight
                _add_product(d_weight, narrow, part)
                continue
            logp = _logits(part, weight, ctx.temperature).sub_(normaliser[a:b, None])
            prob = logp.exp()
            if g_entropy is not None:  # dH/dlogit = -p (log p + H)
                slope = logp.add_(entropy[a:b, None]).mul_(-g_entropy[a:b, None])
                if g_logprob is not None:
                    slope.sub_(g_logprob[a:b, None])
                grad = prob.mul_(slope)
            else:
                grad = prob.mul_(-g_logprob[a:b, None])
            if g_logprob is not None:  # dlogp/dlogit = onehot - p
                grad.scatter_add_(1, targets[a:b, None], g_logprob[a:b, None])
            grad = grad.mul_(1.0 / ctx.temperature)
            narrow = grad.to(weight.dtype)
            d_hidden[a:b] = product(narrow, weight)
            _add_product(d_weight, narrow if weight.is_cuda else grad, part)
        return d_hidden, d_weight.to(weight.dtype), None, None, None


def _add_product(total: Tensor, grad: Tensor, hidden: Tensor) -> None:
    """Add ``grad`` [n, vocab] transposed times ``hidden`` [n, width] to ``total``, which is float32."""
    if grad.is_cuda and grad.dtype != torch.float32:
        total += grad.t() @ hidden
    else:  # a CPU would write a product of narrow numbers down, and widen it, before it is added
        total.addmm_(grad.t().float(), hidden.float())


def products(hidden: Tensor, weight: Tensor) -> Tensor:
    """``hidden`` [n, width] times ``weight`` [vocab, width] transposed, in float32. A GPU's sums over narrow numbers
    are float32 anyway and come as they are; elsewhere they are rounded to the inputs' type first."""
    if hidden.is_cuda and hidden.dtype != torch.float32:
        return torch.mm(hidden, weight.t(), out_dtype=torch.float32)
    return product(hidden, weight.t()).float()


def _logits(hidden: Tensor, weight: Tensor, temperature: float) -> Tensor:
    logits = products(hidden, weight)
    return logits if temperature == 1.0 else logits.mul_(1.0 / temperature)


def linear_logprobs(
    hidden: Tensor, weight: Tensor, targets: Tensor, *, temperature: float = 1.0, entropy: bool = True
) -> tuple[Tensor, Tensor]:
    """Log-probability of ``targets`` [N] under softmax(hidden @ weight.T / temperature), and that softmax's entropy.

    ``hidden`` [N, width], ``weight`` [vocab, width]. Both results are float32 [N], in nats, differentiable in hidden
    and weight; ``entropy`` False returns zeros for the second.
    """
    if temperature <= 0:
        raise ValueError(f"temperature must be positive to score tokens, not {temperature}")
    kind = hidden.dtype
    if torch.is_autocast_enabled(hidden.device.type):
        kind = torch.get_autocast_dtype(hidden.device.type)
    hidden, weight = hidden.to(kind), weight.to(kind)
    logprob, spread = _LinearLogprobs.apply(hidden, weight, targets, float(temperature), entropy)
    return logprob, spread
