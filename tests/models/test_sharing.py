"""Computing common prefixes once changes nothing: attention, log-probabilities, entropies and every gradient."""

from __future__ import annotations

import random

import pytest
import torch

from muarl.models import decoder
from muarl.models.attention import attend
from muarl.models.layout import SHARE_FROM, plan_layout
from support.tiny_qwen3 import tiny

Ids = list[int]


def text(seed: int, length: int) -> Ids:
    source = random.Random(seed)
    return [source.randrange(97) for _ in range(length)]


ROOT, OTHER = text(1, 60), text(2, 45)
TASK = [ROOT + text(n, 40) for n in (3, 4)]
CASES: dict[str, list[Ids]] = {
    "one group": [ROOT + text(n, 5 + 7 * n) for n in range(4)],
    "two groups and a loner": [p + text(n, 9) for p in (ROOT, OTHER) for n in range(3)] + [text(9, 80)],
    "nested": [p + text(10 + n, 3 + n) for p in TASK for n in range(3)] + [ROOT + text(30, 50)],
    "short nested": [ROOT + [1] * 5 + text(n, 10) for n in (5, 6)] + [ROOT + [2] * 9 + text(n, 10) for n in (7, 8)],
    "identical": [ROOT + text(5, 9)] * 3 + [OTHER] * 2,
    "one continues the other": [ROOT, ROOT + text(6, 12), ROOT + text(6, 12) + text(7, 50)],
    "next token differs": [[*ROOT, n, 5, 6] for n in range(4)],
    "too little in common": [ROOT[: SHARE_FROM - 1] + [n] * 20 for n in range(4)],
}


def rectangle(documents: list[Ids]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """ids, positions, documents [B, T], in an order that mixes the groups; two documents in the first row."""
    mixed = random.Random(0).sample(documents, len(documents))
    rows = [[mixed[0], mixed[1]], *([d] for d in mixed[2:])]
    width = max(sum(map(len, row)) for row in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.int64)
    positions, numbers = torch.zeros_like(ids), torch.full_like(ids, -1)
    for r, row in enumerate(rows):
        at = 0
        for d, document in enumerate(row):
            end = at + len(document)
            ids[r, at:end] = torch.tensor(document)
            positions[r, at:end] = torch.arange(len(document))
            numbers[r, at:end] = 2 * r + d
            at = end
    return ids, positions, numbers


@pytest.mark.parametrize("case", CASES)
def test_a_layout_holds_every_context_once(case: str) -> None:
    ids, positions, documents = rectangle(CASES[case])
    layout = plan_layout(documents, ids)
    place, flat = layout.place.view(ids.shape), ids.view(-1)
    assert ((place >= 0) == (documents >= 0)).all()
    assert torch.equal(flat[layout.tokens][place[place >= 0]], ids[place >= 0])
    rows: dict[int, Ids] = {}
    for b, t in (documents >= 0).nonzero().tolist():
        context = ids[b, t - int(positions[b, t]) : t + 1].tolist()
        assert rows.setdefault(int(place[b, t]), context) == context  # equal rows: equal contexts
    assert len(rows) == len(layout.tokens)
    total = sum(map(len, CASES[case]))
    assert (len(rows) < total) == (case != "too little in common")
    assert len(rows) >= len({tuple(d[: n + 1]) for d in CASES[case] for n in range(len(d))})


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("autocast", [True, False])
def test_a_cpu_attends_in_float32_whatever_it_is_given(shared: bool, autocast: bool) -> None:
    ids, _, documents = rectangle(CASES["two groups and a loner"])
    layout = plan_layout(documents, ids if shared else None)
    source = torch.Generator().manual_seed(0)
    heads = [torch.randn(len(layout.tokens), h, 8, generator=source).bfloat16() for h in (4, 2, 2)]
    exact = [x.float().requires_grad_() for x in heads]
    expected = attend(*exact, layout).bfloat16()
    expected.float().sum().backward()
    narrow = [x.float().requires_grad_() if autocast else x.clone().requires_grad_() for x in heads]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        mixed = attend(*narrow, layout)
    assert mixed.dtype == torch.bfloat16
    assert torch.equal(mixed, expected)
    mixed.float().sum().backward()
    for x, y in zip(narrow, exact, strict=True):
        assert x.grad is not None and y.grad is not None
        torch.testing.assert_close(x.grad.float(), y.grad, atol=0.05, rtol=0.02)


@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("case", CASES)
def test_attention_equals_that_of_whole_documents(case: str, heads: int) -> None:
    ids, _, documents = rectangle(CASES[case])
    layout = plan_layout(documents, ids)
    count, real = len(layout.tokens), documents.view(-1) >= 0
    source = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(count, h, 8, dtype=torch.float64, generator=source) for h in (heads, 2, 2))
    q, k, v = (x.mul_(2).requires_grad_() for x in (q, k, v))
    spread = [x.index_select(0, layout.place[real]) for x in (q, k, v)]
    whole = attend(*spread, plan_layout(documents))
    shared = attend(q, k, v, layout).index_select(0, layout.place[real])
    torch.testing.assert_close(shared, whole, atol=1e-12, rtol=1e-10)
    slope = torch.randn(whole.shape, dtype=torch.float64, generator=source)
    ours, theirs = (torch.autograd.grad((out * slope).sum(), (q, k, v)) for out in (shared, whole))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-11, rtol=1e-9)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("chosen", ["everything", "what differs", "some"])
@pytest.mark.parametrize("case", CASES)
def test_log_probabilities_entropies_and_gradients(case: str, chosen: str, tied: bool) -> None:
    """Also with loss on the shared part, where each document's own weight counts."""
    model = tiny(tied).double()
    ids, positions, documents = rectangle(CASES[case])
    select = (documents >= 0) & (positions >= {"everything": 1, "what differs": 50, "some": 1}[chosen])
    if chosen == "some":
        select &= torch.rand(ids.shape, generator=torch.Generator().manual_seed(4)) < 0.3
    results = []
    for layout in (plan_layout(documents), plan_layout(documents, ids)):
        logprob, entropy = decoder.token_logprobs(model, ids, positions, documents, select, 0.8, layout=layout)
        weight = torch.rand(logprob.shape, generator=torch.Generator().manual_seed(3))
        loss = (logprob * weight).sum() + 0.3 * (entropy * weight.flip(0)).sum()
        results.append((logprob, entropy, *torch.autograd.grad(loss, list(model.parameters()))))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("recompute", [False, True])
def test_sharing_is_the_default_and_stands_recomputing_and_bfloat16(recompute: bool) -> None:
    model = tiny()
    ids, positions, documents = rectangle(CASES["nested"])
    select = (documents >= 0) & (positions > 0)
    plain = plan_layout(documents)
    exact, _ = decoder.token_logprobs(model, ids, positions, documents, select, layout=plain, recompute=recompute)
    same, _ = decoder.token_logprobs(model, ids, positions, documents, select, recompute=recompute)
    torch.testing.assert_close(same, exact, atol=1e-5, rtol=1e-5)
    with torch.autocast("cpu", torch.bfloat16):
        rough, _ = decoder.token_logprobs(model, ids, positions, documents, select, recompute=recompute)
    rough.sum().backward()
    torch.testing.assert_close(rough, exact, atol=0.15, rtol=0)
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in model.parameters())
