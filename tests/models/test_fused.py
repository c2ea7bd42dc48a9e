"""The kernels of a GPU against the plain operations: results, gradients, attention to a cache.

Run by ``pytest -m gpu`` on a CUDA device, or with TRITON_INTERPRET=1 on a CPU where Triton is installed.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from muarl.models import fused, fused_cache

INTERPRETED = fused.interpreted()
DEVICE = "cpu" if INTERPRETED else "cuda"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not (torch.cuda.is_available() or INTERPRETED), reason="no CUDA device"),
]

KINDS = [torch.float32] if INTERPRETED else [torch.float32, torch.bfloat16]


@pytest.fixture(autouse=True)
def exact_products() -> Any:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


def draw(*shape: int, kind: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, kind)


def off(found: Tensor, expected: Tensor) -> float:
    """Relative size of the difference."""
    found, expected = found.detach(), expected.detach()
    return float((found.double() - expected.double()).norm() / expected.double().norm().clamp_min(1e-9))


def bound(kind: torch.dtype) -> float:
    return 1e-5 if kind == torch.float32 else 1e-2


def gradients(run: Any, *tensors: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Results of ``run`` and the gradients of a random projection of them."""
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    results = run(*leaves)
    results = list(results) if isinstance(results, tuple) else [results]
    total = sum((r.double() * draw(*r.shape, seed=9 + n).double()).sum() for n, r in enumerate(results))
    assert isinstance(total, Tensor)
    total.backward()
    return results, [leaf.grad for leaf in leaves if leaf.grad is not None]


def same(ours: Any, theirs: Any, kind: torch.dtype) -> None:
    for found, expected in zip((*ours[0], *ours[1]), (*theirs[0], *theirs[1]), strict=True):
        assert found.shape == expected.shape
        assert off(found, expected) < bound(kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [48, 256])
def test_norms(kind: torch.dtype, width: int) -> None:
    x, y, gain = draw(37, width, kind=kind), draw(37, width, kind=kind, seed=1), draw(width, kind=kind, seed=2)

    def plain(a: Tensor, g: Tensor) -> Tensor:
        return F.rms_norm(a.double(), (width,), g.double(), 1e-6)

    same(gradients(lambda a, g: fused.norm(a, g, 1e-6), x, gain), gradients(plain, x, gain), kind)

    def added(a: Tensor, b: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        total = a.double() + b.double()
        return total, F.rms_norm(total, (width,), g.double(), 1e-6)

    ours = gradients(lambda a, b, g: fused.add_norm(a, b, g, 1e-6), x, y, gain)
    same(ours, gradients(added, x, y, gain), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normed", [True, False])
def test_heads(kind: torch.dtype, normed: bool) -> None:
    rows, heads, dim = 21, 6, 32
    flat, gain = draw(rows, heads * dim + 64, kind=kind), draw(dim, kind=kind, seed=1)
    cos, sin = draw(rows, 1, dim, seed=2), draw(rows, 1, dim, seed=3)

    def ours(a: Tensor, g: Tensor) -> Tensor:
        return fused.turn(a[:, : heads * dim].unflatten(1, (heads, dim)), g if normed else None, cos, sin, 1e-6)

    def plain(a: Tensor, g: Tensor) -> Tensor:
        x = a[:, : heads * dim].unflatten(1, (heads, dim)).double()
        x = F.rms_norm(x, (dim,), g.double(), 1e-6) if normed else x
        return x * cos + x.roll(dim // 2, -1) * sin

    same(gradients(ours, flat, gain), gradients(plain, flat, gain), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gated_product(kind: torch.dtype) -> None:
    gate, up = draw(19, 1100, kind=kind), draw(19, 1100, kind=kind, seed=1)
    same(gradients(fused.gated, gate, up), gradients(lambda a, b: F.silu(a.double()) * b.double(), gate, up), kind)
    both = draw(19, 2200, kind=kind, seed=2)
    with torch.no_grad():
        found = fused.gated(*both.split(1100, -1))
    assert off(found, F.silu(both[:, :1100].double()) * both[:, 1100:].double()) < bound(kind)


@pytest.mark.parametrize("vocab", [300, 9000])
@pytest.mark.parametrize("entropy", [True, False])
def test_scores(vocab: int, entropy: bool) -> None:
    logits = 3 * draw(11, vocab)
    targets = torch.randint(0, vocab, (11,), generator=torch.Generator().manual_seed(5)).to(DEVICE)
    a, b = draw(11, seed=1), draw(11, seed=2)
    scores = logits.double().requires_grad_()
    logp = (scores / 0.7).log_softmax(-1)
    expected = [logp.gather(1, targets[:, None])[:, 0], -(logp.exp() * logp).sum(-1)]
    found = fused.score(logits, targets, 1 / 0.7, entropy)
    assert off(found[0], expected[0]) < 1e-5
    assert off(found[1], (scores / 0.7).logsumexp(-1)) < 1e-5
    if entropy:
        assert off(found[2], expected[1]) < 1e-5
    aim = (expected[0] * a).sum() + ((expected[1] * b).sum() if entropy else 0.0)
    aim.backward()
    slope = fused.score_slope(logits, targets, found[1], found[2], a, b if entropy else None, 1 / 0.7, torch.float32)
    assert scores.grad is not None
    assert off(slope, scores.grad) < 1e-4


def attention(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """One token's heads [heads, D] over keys and values [kv_heads, positions, D]."""
    groups = len(query) // len(keys)
    keys, values = keys.double().repeat_interleave(groups, 0), values.double().repeat_interleave(groups, 0)
    return ((keys @ query.double()[:, :, None])[..., 0].softmax(-1)[:, None] @ values)[:, 0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("heads", "kv"), [(6, 2), (4, 4)])
@pytest.mark.parametrize("skip", [0, 96])
def test_decoding_reads_each_row_of_the_cache_as_far_as_it_goes(
    kind: torch.dtype, heads: int, kv: int, skip: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_cache, "PROGRAMS", 24)
    slots, spots, dim = 7, 300, 32
    keys, values = draw(slots, kv, spots, dim, kind=kind), draw(slots, kv, spots, dim, kind=kind, seed=1)
    chosen = torch.tensor([5, 0, 3, 6], device=DEVICE)
    keys[:, :, :skip], values[:, :, :skip] = keys[3:4, :, :skip], values[3:4, :, :skip]
    positions = torch.tensor([100, 250, 96, 131], device=DEVICE)
    queries = draw(4, heads, dim, kind=kind, seed=2) * dim**-0.5
    lead = torch.tensor([3], device=DEVICE)
    found = fused_cache.decode(queries, keys, values, chosen, positions, 256, lead, skip)
    for n, (slot, position) in enumerate(zip(chosen.tolist(), positions.tolist(), strict=True)):
        expected = attention(queries[n], keys[slot, :, : position + 1], values[slot, :, : position + 1])
        assert off(found[n], expected.flatten()) < bound(kind), n


@pytest.mark.parametrize("kind", KINDS)
def test_prefill_reads_up_to_each_token(kind: torch.dtype) -> None:
    slots, spots, dim, heads, kv = 5, 400, 32, 6, 2
    keys, values = draw(slots, kv, spots, dim, kind=kind), draw(slots, kv, spots, dim, kind=kind, seed=1)
    chosen, starts = torch.tensor([4, 0, 2], device=DEVICE), torch.tensor([0, 37, 150], device=DEVICE)
    counts = [3, 40, 170] if not INTERPRETED else [3, 40, 20]
    edges = [0, counts[0], counts[0] + counts[1], sum(counts)]
    offsets = torch.tensor(edges, device=DEVICE)
    queries = draw(sum(counts), heads, dim, kind=kind, seed=2) * dim**-0.5
    found = fused_cache.prefill(queries, keys, values, chosen, starts, offsets, max(counts))
    for n, slot in enumerate(chosen.tolist()):
        for k in range(counts[n]):
            end = int(starts[n]) + k + 1
            expected = attention(queries[edges[n] + k], keys[slot, :, :end], values[slot, :, :end])
            assert off(found[edges[n] + k], expected.flatten()) < bound(kind), (n, k)
