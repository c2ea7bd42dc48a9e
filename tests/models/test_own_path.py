"""Every family of the own path equals transformers: log-probabilities and gradients, packed, and the cached decode."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from muarl.models import cached_attention, decoder_cached
from muarl.models.cached_attention import untouched_zeros
from muarl.models.decoder_cached import CachedDecoder
from muarl.models.path import OwnPath, path_of
from muarl.models.support import OWN_FAMILIES, support_of
from support.tiny_families import OWN, VOCAB, tiny_family


def documents_of(sizes: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """ids, positions and documents of packed rows."""
    width = max(map(sum, sizes))
    ids = torch.randint(3, VOCAB, (len(sizes), width), generator=torch.Generator().manual_seed(1))
    positions, documents = torch.zeros_like(ids), torch.full_like(ids, -1)
    for row, lengths in enumerate(sizes):
        at = 0
        for number, size in enumerate(lengths):
            positions[row, at : at + size] = torch.arange(size)
            documents[row, at : at + size] = number
            at += size
    return ids, positions, documents


def test_every_family_of_the_own_path_is_here() -> None:
    assert {name.partition(",")[0] for name in OWN} == set(OWN_FAMILIES)


@pytest.mark.parametrize("name", OWN)
def test_packed_documents_equal_transformers_one_by_one(name: str) -> None:
    model = tiny_family(name, OWN[name])
    path = path_of(model)
    assert isinstance(path, OwnPath) and path.support == support_of(model.config.to_dict())
    ids, positions, documents = documents_of([[7, 30, 2], [40]])
    select = (documents >= 0) & (positions > 0)
    found, _ = path.token_logprobs(ids, positions, documents, select)
    expected = []
    for row in range(2):
        for number in documents[row][documents[row] >= 0].unique().tolist():
            own = ids[row, documents[row] == number]
            logits = model(own[None]).logits[0, :-1]
            expected.append(logits.log_softmax(-1).gather(1, own[1:, None])[:, 0])
    torch.testing.assert_close(found, torch.cat(expected), atol=1e-4, rtol=1e-4)
    weights = torch.rand(found.shape, generator=torch.Generator().manual_seed(3))
    parameters = list(model.parameters())
    ours = torch.autograd.grad((found * weights).sum(), parameters)
    theirs = torch.autograd.grad((torch.cat(expected) * weights).sum(), parameters)
    for (key, _), a, b in zip(model.named_parameters(), ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3, msg=lambda text, key=key: f"{key}: {text}")


@pytest.mark.parametrize("name", OWN)
@torch.no_grad()
def test_decoding_with_a_cache_equals_transformers_also_after_an_update(name: str) -> None:
    model = tiny_family(name, OWN[name])
    cached = CachedDecoder(model, slots=2, positions=64, device=torch.device("cpu"), dtype=torch.float32)
    for seed in (0, 5):
        if seed:
            for own, other in zip(model.parameters(), tiny_family(name, OWN[name], seed).parameters(), strict=True):
                own.copy_(other)
            cached.refresh(model)
        ids = torch.randint(3, VOCAB, (2, 40), generator=torch.Generator().manual_seed(seed))
        expected = model(ids).logits
        cached.prefill([ids[0, :30], ids[1, :20]], torch.tensor([0, 1]), torch.tensor([0, 0]), span=64)
        for step in range(5):
            tokens = torch.stack((ids[0, 30 + step], ids[1, 20 + step]))
            positions = torch.tensor([30 + step, 20 + step])
            logits = cached.decode(tokens, torch.tensor([0, 1]), positions, span=64, rows=2 if step % 2 else 0)
            wanted = torch.stack((expected[0, 30 + step], expected[1, 20 + step]))
            torch.testing.assert_close(logits, wanted, atol=1e-4, rtol=1e-4)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for this process's memory")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_cache_takes_memory_only_where_it_is_written(dtype: torch.dtype) -> None:
    before = resident()
    zeros = untouched_zeros((4, 1 << 26), torch.device("cpu"), dtype)
    assert resident() - before < zeros.nbytes / 8
    assert zeros.dtype == dtype and zeros.data_ptr() % 64 == 0 and zeros.is_contiguous()
    zeros[1, :10] = 3
    assert float(zeros[1, :20].sum()) == 30
    assert float(zeros[3, -5:].abs().sum()) == 0


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for this process's memory")
def test_a_cache_gives_its_memory_back() -> None:
    before = resident()
    for _ in range(3):  # the C library would keep a block of this size once the first was freed
        zeros = untouched_zeros((1 << 23,), torch.device("cpu"), torch.bfloat16)
        zeros.fill_(1)
        assert resident() - before > zeros.nbytes / 2
        del zeros
        assert resident() - before < 1 << 22


@pytest.mark.parametrize("starts", [(0, 0), (0, 7)])
@torch.no_grad()
def test_long_prompts_are_read_in_pieces_that_look_only_at_what_is_before_them(
    starts: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_family("qwen3", OWN["qwen3"])
    ids = torch.randint(3, VOCAB, (2, 50), generator=torch.Generator().manual_seed(2))
    stop = torch.tensor([49, 41])
    looked: list[int] = []
    attention = torch.nn.functional.scaled_dot_product_attention

    def watched(query: torch.Tensor, keys: torch.Tensor, *others: Any, **named: Any) -> torch.Tensor:
        looked.append(query.shape[2] * keys.shape[2])
        return attention(query, keys, *others, **named)

    def logits(piece: int) -> torch.Tensor:
        monkeypatch.setattr(cached_attention, "PIECE", piece)
        looked.clear()
        cached = CachedDecoder(model, slots=2, positions=64, device=torch.device("cpu"), dtype=torch.float32)
        both = torch.tensor([0, 1])
        early = [row[:start] for row, start in zip(ids, starts, strict=True) if start]
        if early:
            cached.prefill(early, torch.tensor([1]), torch.tensor([0]), span=32)
        late = [row[start:end] for row, start, end in zip(ids, starts, stop.tolist(), strict=True)]
        with monkeypatch.context() as patched:
            patched.setattr(decoder_cached.F, "scaled_dot_product_attention", watched)
            cached.prefill(late, both, torch.tensor(starts), span=64)
        return cached.decode(ids[both, stop], both, stop, span=64, rows=2)

    whole = logits(64)
    work = sum(looked)
    torch.testing.assert_close(logits(16), whole, atol=1e-5, rtol=1e-5)
    assert sum(looked) < 0.75 * work


@pytest.mark.parametrize("piece", [512, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_masks_hide_what_is_beyond_each_tokens_reach_for_every_group(
    piece: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_attention, "PIECE", piece)
    starts, lengths, span = torch.tensor([0, 9, 4]), torch.tensor([6, 7, 1]), 16
    found = cached_attention.spans_of(starts, lengths, 7, span)
    assert [(s.first, s.end) for s in found] == ([(0, 7)] if piece == 512 else [(0, 3), (3, 6), (6, 7)])
    for part in found:
        reach = [
            [min(start + column, start + length - 1) for column in range(part.first, part.end)]
            for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
        ]
        rows = [
            [[0.0 if place <= last else -math.inf for place in range(part.span)] for _ in range(2) for last in row]
            for row in reach
        ]
        mask = part.mask(2, dtype)
        assert mask.dtype == dtype and mask.is_contiguous() and torch.equal(mask[:, 0], torch.tensor(rows).to(dtype))
