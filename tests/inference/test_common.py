"""Decoding over a prefix that all running rows have in common gives what separate reading gives."""

from __future__ import annotations

import pytest
import torch

from muarl.inference.slots import SlotTable
from muarl.models import decoder_cached as cached
from support.tiny_qwen3 import tiny


@pytest.mark.parametrize("slots", [[0, 1, 2, 3], [1, 2, 5], [4]])
@pytest.mark.parametrize("in_place", [True, False])
def test_decode_with_a_common_prefix(slots: list[int], in_place: bool) -> None:
    model = tiny()
    first = torch.Generator().manual_seed(0)
    prompt = torch.randint(0, 97, (40,), generator=first)
    tails = [torch.randint(0, 97, (3 + 4 * n,), generator=first) for n in range(len(slots))]
    where = torch.tensor(slots)
    results = []
    with torch.inference_mode():
        for common in ((0, 0), (slots[-1], 32), (slots[0], 40)):
            weights = cached.InferenceWeights(model, device=torch.device("cpu"), dtype=torch.float32, max_positions=96)
            cache = cached.KVCache(weights.shape, 6, 96, torch.device("cpu"), torch.float32)
            texts = [torch.cat((prompt, tail)) for tail in tails]
            cached.prefill(weights, cache, texts, where, torch.zeros(len(slots), dtype=torch.int64), span=64)
            positions = torch.tensor([len(t) for t in texts])
            tokens = torch.full((len(slots),), 5)
            rows = slots[-1] + 1 if in_place else 0
            results.append(cached.decode(weights, cache, tokens, where, positions, span=96, rows=rows, common=common))
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], atol=2e-5, rtol=1e-4)


def test_the_table_knows_what_slots_have_in_common() -> None:
    table = SlotTable(4, 10)
    table.ids[:3] = torch.arange(10).numpy()
    table.ids[2, 7] = 0
    table.valid[:3] = (9, 8, 8)
    assert table.in_common([0, 1]) == 8
    assert table.in_common([0, 1, 2]) == 7
    assert table.in_common([2]) == 8


def test_empty_slots_are_taken_from_the_lowest() -> None:
    table = SlotTable(4, 10)
    for slot in (0, 1):
        assert table.choose(slot) == slot
        table.take(slot, str(slot))
        table.release(slot)
        table.close(str(slot))
    table.valid[0] = 3
    assert table.choose(3) == 3  # whose prefix is wanted
    table.take(3, "x")
    assert table.choose(3) == 1
    table.invalidate()
    assert table.choose(3) == 0
