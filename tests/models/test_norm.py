"""Our RMSNorm equals PyTorch's, gradients included."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from muarl.models.backward import rms_norm


@pytest.mark.parametrize("shape", [(5, 8), (4, 3, 8), (0, 8)])
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_rms_norm_equals_that_of_pytorch(shape: tuple[int, ...], scale: float) -> None:
    source = torch.Generator().manual_seed(0)
    x = (torch.randn(shape, dtype=torch.float64, generator=source) * scale).requires_grad_()
    gain = torch.rand(8, dtype=torch.float64, generator=source).requires_grad_()
    slope = torch.randn(shape, dtype=torch.float64, generator=source)
    ours, theirs = rms_norm(x, gain, 1e-6), F.rms_norm(x, (8,), gain, 1e-6)
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-10)
    results = (torch.autograd.grad(y, (x, gain), slope) for y in (ours, theirs))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-9)


def test_bfloat16_keeps_its_type() -> None:
    x = torch.randn(3, 8, dtype=torch.bfloat16)
    assert rms_norm(x, torch.ones(8), 1e-6).dtype == torch.bfloat16
