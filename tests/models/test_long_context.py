"""Long documents: no tensor of tokens x tokens, none of tokens x vocabulary, in neither direction of an update."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from models.test_families import plain
from muarl.models import generic_attention, generic_head, scoring
from muarl.models.path import path_of
from support.tiny_families import GENERIC, OWN, tiny_family

WORDS = 16384
NAMES = ["qwen3", "llama", *GENERIC]
FAST = ("qwen3", "gemma3_text", "gpt_oss", "deepseek_v3", "lfm2")
"""One of each kind: full attention, windows with and without sinks, keys wider than values, convolutions. The rest take
long together, recurrent layers above all: one step in Python after another."""


class Memory(TorchDispatchMode):
    """Of all that is computed: the numbers in the largest tensor, and the most bytes that were held at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = self.held = self.peak = 0
        self.known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(found):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self.largest = max(self.largest, min(storage.nbytes() // tensor.element_size(), tensor.numel()))
                if storage not in self.known:
                    self.known.add(storage)
                    self.held += storage.nbytes()
                    weakref.finalize(storage, self.freed, storage.nbytes())
        self.peak = max(self.peak, self.held)
        return found

    def freed(self, size: int) -> None:
        self.held -= size


def update(model: Any, tokens: int) -> Memory:
    """What an update on one document takes. The entropy is asked for and has no gradient, as in a policy step."""
    path = path_of(model)
    source = torch.Generator().manual_seed(0)
    ids = torch.randint(5, WORDS, (1, tokens), generator=source)
    places = torch.arange(tokens)[None]
    path.token_logprobs(ids[:, :8], places[:, :8], None, places[:, :8] > 0)  # whatever is found out only once
    with Memory() as memory:
        logprobs, _ = path.token_logprobs(ids, places, None, places > 0)
        logprobs.sum().backward()
    return memory


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in NAMES])
def test_the_memory_of_an_update_grows_with_the_tokens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "CHUNK_LOGITS", 64 * WORDS)
    monkeypatch.setattr(generic_attention, "ROWS", 32)
    fields = {**{**OWN, **GENERIC}[name], "vocab_size": WORDS, "max_position_embeddings": 4096}
    few, many = (update(tiny_family(name, fields), n) for n in (550, 1100))
    assert many.largest < 1100 * 1100, "scores or a mask of all tokens with all tokens"
    assert many.largest <= 2.1 * few.largest
    assert many.peak <= 2.1 * few.peak
    assert many.peak - few.peak < 550 * WORDS * 4, "all logits"


@pytest.mark.parametrize("name", ["gpt_oss", "gemma2", "cohere2", "granite", "deepseek_v3"])
@pytest.mark.parametrize("rows", [1, 7])
def test_parts_make_the_whole(name: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows, sinks, caps, scales and keys wider than values, cut at every place, against transformers; of the
    log-probabilities and of their entropy."""
    monkeypatch.setattr(generic_attention, "ROWS", rows)
    monkeypatch.setattr(generic_attention, "SCORES", 40)
    model = tiny_family(name, GENERIC[name])
    path, own = path_of(model), plain(model)
    ids = torch.randint(5, 90, (1, 41), generator=torch.Generator().manual_seed(1))
    places = torch.arange(41)[None]
    monkeypatch.setattr(generic_head, "chunk_rows", lambda *_: rows)
    found, spread = path.token_logprobs(ids, places, None, places > 0, 0.8)
    every = (own(ids, use_cache=False).logits[0, :-1] / 0.8).log_softmax(-1)
    expected, wanted = every.gather(1, ids[0, 1:, None])[:, 0], -(every.exp() * every).sum(-1)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(spread, wanted, atol=1e-4, rtol=1e-4)
    (found.sum() + 3 * spread.sum()).backward()
    (expected.sum() + 3 * wanted.sum()).backward()
    for (key, a), b in zip(model.named_parameters(), own.parameters(), strict=True):
        if b.grad is not None:
            assert a.grad is not None
            assert float((a.grad - b.grad).abs().max()) <= 1e-4 * max(1.0, float(b.grad.abs().max())), key


def test_a_checkpoint_says_nothing_of_how_muarl_attends() -> None:
    model = tiny_family("gemma3_text", GENERIC["gemma3_text"])
    path_of(model)
    assert model.config._attn_implementation == generic_attention.NAME
    assert generic_attention.NAME not in str(model.config.to_dict())
