"""Attention of decode steps: the same in blocks of rows as for all rows together, and as the model itself computes."""

from __future__ import annotations

import asyncio

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from muarl.inference.base import Completion, SamplingParams
from muarl.inference.torch_engine import TorchEngine
from muarl.models import cached_attention
from muarl.models.decoder_cached import CachedDecoder
from muarl.models.path import path_of
from support.tiny_qwen3 import tiny


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=5),
    st.integers(0, 6),
    st.sampled_from([(1, 1), (2, 1), (1, 3), (3, 3)]),
    st.integers(0, 2**31),
    st.sampled_from([0, 10, 1024]),
)
def test_blocks_of_rows_find_what_all_together_find(
    own: list[int], common: int, heads: tuple[int, int], seed: int, wasted: int
) -> None:
    """``own``: how many positions each row has beyond what is in common."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_attention, "WASTED", wasted)
        _compare(own, common, heads, seed)


def _compare(own: list[int], common: int, heads: tuple[int, int], seed: int) -> None:
    kv, groups = heads
    drawn = torch.Generator().manual_seed(seed)
    keys, values = (torch.randn(7, kv, 32, 8, generator=drawn) for _ in range(2))
    slots = torch.randperm(7, generator=drawn)[: len(own)].sort().values
    lead = int(slots[seed % len(own)])
    for store in (keys, values):
        store[:, :, :common] = store[lead, :, :common].clone()
    query = torch.randn(len(own), kv, groups, 8, generator=drawn)
    lengths = [common + n for n in own]
    bias = cached_attention.step_bias(torch.tensor(lengths) - 1, common, 32)
    together = cached_attention.together(query, keys, values, slots, bias, (lead, common), span=32)
    for shared in (common, 0):
        blocks = cached_attention.row_blocks(slots.tolist(), lengths, shared, query)
        assert [n for block in blocks for n in range(len(own))[block.rows]] == list(range(len(own)))
        assert [n for block in blocks for n in range(7)[block.slots]] == slots.tolist()
        in_blocks = cached_attention.in_blocks(query, keys, values, blocks, (lead, shared))
        torch.testing.assert_close(in_blocks, together, atol=1e-5, rtol=1e-4)
        q, k, v = (x.bfloat16() for x in (query, keys, values))
        exact = cached_attention.together(q.float(), k.float(), v.float(), slots, bias, (lead, common), span=32)
        blocks = cached_attention.row_blocks(slots.tolist(), lengths, shared, q)
        in_blocks = cached_attention.in_blocks(q, k, v, blocks, (lead, shared))
        torch.testing.assert_close(in_blocks.float(), exact, atol=0.05, rtol=0.05)


def test_a_prefill_writes_the_same_whichever_slots_it_reads() -> None:
    """Neighbouring slots are read where they lie, others are gathered."""
    drawn = torch.Generator().manual_seed(0)
    first, second = (torch.randint(3, 40, (3, 6), generator=drawn) for _ in range(2))
    written = []
    for slots in ([1, 2, 3], [4, 0, 2]):
        cached = path_of(tiny()).cached(slots=5, positions=16, device=torch.device("cpu"), dtype=torch.float32)
        assert isinstance(cached, CachedDecoder)
        for begin, tokens in ((0, first), (6, second)):
            cached.prefill([*tokens], torch.tensor(slots), torch.full((3,), begin), span=12)
        written.append([store[slots, :, :12] for store in (*cached.cache.keys, *cached.cache.values)])
    for neighbours, gathered in zip(*written, strict=True):
        torch.testing.assert_close(neighbours, gathered, atol=0, rtol=0)
        assert neighbours.abs().sum() > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("slots", [[1, 2, 3], [4, 0, 2]], ids=["neighbours", "gathered"])
def test_a_prefill_of_whole_prompts_writes_the_same_with_causal_attention_as_with_masks(
    slots: list[int], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wide model's prompts of which nothing is cached need no mask; those that go on do."""
    drawn = torch.Generator().manual_seed(0)
    tokens = [torch.randint(3, 40, (count,), generator=drawn) for count in (9, 2, 5)]
    written = []
    for wide in (1, 1 << 20):
        monkeypatch.setattr(cached_attention, "WIDE", wide)
        cached = path_of(tiny()).cached(slots=5, positions=32, device=torch.device("cpu"), dtype=dtype)
        assert isinstance(cached, CachedDecoder) and cached.weights.in_blocks == (wide == 1)
        for starts in ([0, 0, 0], [9, 2, 5]):
            cached.prefill(tokens, torch.tensor(slots), torch.tensor(starts), span=20)
        held = [store[slots, :, :20].float() for store in (*cached.cache.keys, *cached.cache.values)]
        written.append([store[row, :, : 2 * len(ids)] for store in held for row, ids in enumerate(tokens)])
    for causal, masked in zip(*written, strict=True):
        assert masked.abs().sum() > 0
        torch.testing.assert_close(causal, masked, atol=1e-5 if dtype == torch.float32 else 0.05, rtol=1e-2)


@pytest.mark.parametrize("wide", [1, 1 << 20], ids=["in blocks", "together"])
def test_an_engine_samples_the_model_s_own_distribution_either_way(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_attention, "WIDE", wide)
    model = tiny()
    engine = TorchEngine(model, max_slots=4, max_context=160)
    common = [3 + n % 40 for n in range(70)]
    prompts = [[*common, *range(5, 5 + n)] for n in (1, 9, 30)]

    async def everybody() -> list[Completion]:
        return list(await asyncio.gather(*(engine.sample(p, SamplingParams(20, seed=1)) for p in prompts)))

    for prompt, sampled in zip(prompts, asyncio.run(everybody()), strict=True):
        ids = torch.tensor([[*prompt, *sampled.ids]])
        with torch.no_grad():
            logp = model(ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        own = logp.gather(1, ids[0, len(prompt) :, None])[:, 0]
        torch.testing.assert_close(torch.tensor(sampled.logprobs), own, atol=1e-4, rtol=1e-4)
    assert engine.stats.reused_tokens >= 2 * 64, "they have their beginning in common"
