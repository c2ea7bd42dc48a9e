"""Attention on a GPU: what it takes in memory, which a CPU's own kernel does not show."""

from __future__ import annotations

import pytest
import torch

from muarl.models.attention import attend
from muarl.models.layout import plan_layout

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_no_scores_are_written_down_for_grouped_heads(kind: torch.dtype) -> None:
    length, heads, kv, dim = 8192, 9, 3, 64
    layout = plan_layout(torch.zeros(1, length, dtype=torch.int64)).to("cuda")
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(length, n, dim, generator=generator).to("cuda", kind).requires_grad_() for n in (heads, kv, kv)
    )
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    attend(q, k, v, layout).float().sum().backward()
    assert k.grad is not None and k.grad.shape == k.shape
    scores = heads * length * length * 4
    assert torch.cuda.max_memory_allocated() - before < scores / 4
