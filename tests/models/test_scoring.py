"""Log-probabilities without all logits: the same values and gradients, and never a tensor of tokens x vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from muarl.learning import steps
from muarl.learning.packing import Batch, Sample, pack
from muarl.models import scoring
from muarl.models.generic import GenericPath
from muarl.models.path import path_of
from muarl.models.scoring import linear_logprobs
from muarl.models.support import support_of
from support.tiny_qwen3 import tiny

Scores = tuple[Tensor, Tensor]


class Largest(TorchDispatchMode):
    """The most numbers that any tensor had which was made within, in forward and backward passes."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // tensor.element_size())
        return out


def plainly(hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float) -> Scores:
    logits = (hidden @ weight.T) / temperature
    every = logits.log_softmax(-1)
    return every.gather(1, targets[:, None])[:, 0], -(every.exp() * every).sum(-1)


def chunked(hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float) -> Scores:
    return linear_logprobs(hidden, weight, targets, temperature=temperature)


def whole_step(score: Callable[..., Scores], count: int, vocab: int, temperature: float) -> list[Tensor]:
    """Values and gradients of a loss over log-probabilities and entropies."""
    generator = torch.Generator().manual_seed(0)
    hidden = (torch.randn(count, 16, generator=generator) * 0.8).requires_grad_()
    weight = (torch.randn(vocab, 16, generator=generator) * 0.4).requires_grad_()
    targets = torch.randint(0, vocab, (count,), generator=generator)
    slope = torch.randn(count, generator=generator)
    logprobs, entropy = score(hidden, weight, targets, temperature)
    ((logprobs * slope).sum() + 0.3 * (entropy * slope.flip(0)).sum()).backward()
    assert hidden.grad is not None and weight.grad is not None
    return [logprobs.detach(), entropy.detach(), hidden.grad, weight.grad]


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("count", [1, 64, 65, 200])
def test_values_and_gradients_are_those_of_all_logits_at_once(
    count: int, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "CHUNK_LOGITS", 1)  # 64 rows at a time
    for ours, theirs in zip(
        whole_step(chunked, count, 301, temperature), whole_step(plainly, count, 301, temperature), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)


def test_the_output_matrix_s_gradient_in_bfloat16_is_rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are added up in float32, without tensors of the matrix's size besides: in between, each product would be
    rounded, written down and widened."""
    monkeypatch.setattr(scoring, "CHUNK_LOGITS", 1)
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(400, 16, generator=generator).bfloat16().requires_grad_()
    weight = (torch.randn(301, 16, generator=generator) * 0.4).bfloat16().requires_grad_()
    targets = torch.randint(0, 301, (400,), generator=generator)
    linear_logprobs(hidden, weight, targets, entropy=False)[0].sum().backward()
    logits = (hidden.detach() @ weight.detach().T).float()  # as rounded as those that were scored
    slope = torch.nn.functional.one_hot(targets, 301) - logits.softmax(-1)
    exact = slope.double().T @ hidden.detach().double()
    assert weight.grad is not None
    torch.testing.assert_close(weight.grad.double(), exact, rtol=2**-8, atol=1e-5)


def test_no_tensor_has_the_size_of_all_logits() -> None:
    """2,048 tokens of a vocabulary of 32,768: 67 million logits, of which 2 million are made at a time."""
    count, vocab = 2048, 32768
    with Largest() as seen:
        whole_step(chunked, count, vocab, 1.0)
    assert seen.numbers == 64 * vocab == count * vocab // 32
    with Largest() as naive:
        whole_step(plainly, 256, vocab, 1.0)
    assert naive.numbers == 256 * vocab, "what is counted are logits"


@pytest.mark.parametrize("fast", [True, False])
def test_a_model_s_whole_update_holds_no_more(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generic path (``fast`` False) makes its logits in parts too, and makes them again."""
    vocab, length = 8192, 400
    model = tiny(vocab_size=vocab, num_hidden_layers=1)
    model.train()
    monkeypatch.setattr(scoring, "CHUNK_LOGITS", 64 * vocab)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, vocab, (length,), generator=generator).tolist()
    batch = Batch.of([Sample(ids, [0.0] * 10 + [1.0] * (length - 10), [0.0] * length, 1.0)])
    (rows,) = pack(batch, token_budget=length)
    with Largest() as seen:
        path = path_of(model) if fast else GenericPath(model, support_of({"model_type": "unknown"}))
        steps.selected_logprobs(path, rows, recompute=True).logprobs.sum().backward()
    assert seen.numbers <= 64 * vocab < (length - 10) * vocab / 6
