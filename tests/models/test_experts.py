"""A mixture's block against the same sum written out, and that nothing else is computed."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from muarl.models.experts import mixture

EXPERTS, INNER, WIDTH, TOP_K = 6, 16, 32, 2


def block(kind: torch.dtype = torch.float32) -> list[Tensor]:
    """Tokens, router, and the experts' matrices; the router never chooses the last two experts."""
    source = torch.Generator().manual_seed(3)
    sizes = ((9, WIDTH), (EXPERTS, WIDTH), (EXPERTS, 2 * INNER, WIDTH), (EXPERTS, WIDTH, INNER))
    x, router, gate_up, down = (torch.randn(size, generator=source) * 0.4 for size in sizes)
    x[:, 0], router[:, 0] = 1.0, torch.tensor([0.0, 0, 0, 0, -50, -50])
    return [tensor.to(kind).requires_grad_() for tensor in (x, router, gate_up, down)]


def written_out(x: Tensor, router: Tensor, gate_up: Tensor, down: Tensor, normalised: bool) -> Tensor:
    rows = []
    for token in x:
        shares = F.softmax(router @ token, 0)
        best = shares.topk(TOP_K).indices.tolist()
        total = shares[best].sum() if normalised else 1.0
        outputs = []
        for expert in best:
            gate, up = (gate_up[expert] @ token).chunk(2)
            outputs.append(shares[expert] / total * (down[expert] @ (F.silu(gate) * up)))
        rows.append(torch.stack(outputs).sum(0))
    return torch.stack(rows)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
def test_outputs_and_gradients_are_those_of_the_sum(normalised: bool, grouped: bool) -> None:
    inputs = block()
    ours = mixture(*inputs, top_k=TOP_K, normalised=normalised, grouped=grouped)
    theirs = written_out(*inputs, normalised)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    weights = torch.randn(ours.shape, generator=torch.Generator().manual_seed(5))
    for a, b in zip(*(torch.autograd.grad((o * weights).sum(), inputs) for o in (ours, theirs)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_experts_that_no_token_goes_to_are_not_computed() -> None:
    x, router, gate_up, down = block()
    with torch.no_grad():
        gate_up[4:], down[4:] = torch.nan, torch.nan
    out = mixture(x, router, gate_up, down, top_k=TOP_K, normalised=True)
    out.sum().backward()
    assert bool(out.isfinite().all())
    for tensor in (x, router, gate_up, down):
        assert tensor.grad is not None and bool(tensor.grad.isfinite().all())
    assert gate_up.grad is not None and not gate_up.grad[4:].any() and bool(gate_up.grad[:4].any())


def test_frozen_experts_get_no_gradient() -> None:
    x, router, gate_up, down = block()
    mixture(x, router, gate_up.detach(), down.detach(), top_k=TOP_K, normalised=True).sum().backward()
    assert x.grad is not None and gate_up.grad is None


def test_under_autocast_products_are_narrow() -> None:
    inputs = block()
    with torch.autocast("cpu", torch.bfloat16):
        ours = mixture(*inputs, top_k=TOP_K, normalised=True)
    assert ours.dtype == torch.bfloat16
    torch.testing.assert_close(ours.float(), mixture(*inputs, top_k=TOP_K, normalised=True), atol=0.05, rtol=0.05)


def test_no_tokens_are_no_trouble() -> None:
    x, *rest = block()
    assert mixture(x[:0], *rest, top_k=TOP_K, normalised=True).shape == (0, WIDTH)
