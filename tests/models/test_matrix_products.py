"""Products by oneDNN: those of PyTorch up to rounding, differentiated and packed, in training and in sampling."""

from __future__ import annotations

import asyncio

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from muarl.inference.base import SamplingParams
from muarl.inference.torch_engine import TorchEngine
from muarl.models import cached_attention, decoder, matrix_products
from muarl.models.matrix_products import linear, pack, product
from muarl.models.scoring import linear_logprobs
from support.tiny_qwen3 import tiny

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN")


@pytest.fixture(autouse=True)
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """oneDNN computes whatever it can, on whichever processor: the shapes that it was given."""
    shapes: list[tuple[int, ...]] = []
    compute = matrix_products._onednn

    def counted(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        shapes.append((*x.shape, len(weight)))
        return compute(x, weight, bias)

    monkeypatch.setattr(matrix_products, "in_float32", lambda: True)
    monkeypatch.setattr(matrix_products, "LARGE", 1)
    monkeypatch.setattr(matrix_products, "_onednn", counted)
    return shapes


def numbers(*size: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(sum(size)))


LAYOUTS = {
    "rows": lambda: numbers(9, 70),
    "columns": lambda: numbers(70, 9).t(),
    "a slice": lambda: numbers(9, 200)[:, 30:100],
    "every other": lambda: numbers(9, 140)[:, ::2],
    "one row": lambda: numbers(1, 70),
    "one row repeated": lambda: numbers(1, 70).expand(9, 70),
    "one column repeated": lambda: numbers(9, 1).expand(9, 70),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("biased", [False, True])
def test_a_product_and_its_gradients(layout: str, biased: bool, chosen: list[tuple[int, ...]]) -> None:
    sides: list[list[Tensor]] = []
    for compute in (linear, F.linear):
        x, weight = LAYOUTS[layout]().requires_grad_(), numbers(40, 70).requires_grad_()
        bias = numbers(40).requires_grad_() if biased else None
        y = compute(x, weight, bias)
        inputs = [x, weight, *([bias] if bias is not None else [])]
        # A sum's gradient is one number repeated, the square's lies in rows.
        gradients = torch.autograd.grad(y.square().sum() + y[:, :3].t().sum(), inputs)
        sides.append([y.detach(), *gradients])
    for ours, theirs in zip(*sides, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-5)
    assert len(chosen) == 3, "forward, and both gradients"


def test_what_needs_no_gradient_gets_none(chosen: list[tuple[int, ...]]) -> None:
    x, weight = numbers(9, 70).requires_grad_(), numbers(40, 70)
    linear(x, weight).sum().backward()
    assert len(chosen) == 2, "as under an adapter: forward, and the input's gradient"
    slope = torch.autograd.grad(linear(x, weight).square().sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_what_is_left_to_pytorch(chosen: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its results are PyTorch's to the bit: small matrices, no rows, other types, autocast, three dimensions."""
    x, weight = numbers(9, 70), numbers(40, 70)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
    assert torch.equal(linear(x.double(), weight.double()), F.linear(x.double(), weight.double()))
    assert torch.equal(linear(x.bfloat16(), weight.bfloat16()), F.linear(x.bfloat16(), weight.bfloat16()))
    assert linear(x[:0], weight).shape == (0, 40)
    assert torch.equal(linear(x[None], weight), F.linear(x[None], weight))
    monkeypatch.setattr(matrix_products, "LARGE", weight.numel() + 1)
    assert torch.equal(linear(x, weight), F.linear(x, weight))
    assert torch.equal(product(x, weight.t()), x @ weight.t())
    assert not matrix_products.can_pack(weight)
    assert not chosen


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_packed_matrix_gives_what_the_matrix_gives(dtype: torch.dtype) -> None:
    weight, bias = numbers(40, 70).to(dtype), numbers(40).to(dtype)
    if not matrix_products.can_pack(weight):
        pytest.skip("this processor has no such products in bfloat16")
    packed = pack(weight)
    weight_then = weight.clone()
    weight.zero_()
    for rows in (1, 3, 64, 300):
        x = numbers(rows, 70).to(dtype)
        close = {"atol": 1e-4, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 0.05, "rtol": 0.05}
        torch.testing.assert_close(linear(x, packed, bias), F.linear(x, weight_then, bias), **close)


def test_log_probabilities_and_their_gradients(chosen: list[tuple[int, ...]]) -> None:
    sides: list[tuple[Tensor, ...]] = []
    for takes in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(matrix_products, "in_float32", lambda takes=takes: takes)
            hidden, weight = numbers(30, 16).requires_grad_(), numbers(100, 16).requires_grad_()
            logprob, entropy = linear_logprobs(hidden, weight, torch.arange(30))
            (logprob.sum() + 0.1 * entropy.sum()).backward()
            assert hidden.grad is not None and weight.grad is not None
            sides.append((logprob.detach(), entropy.detach(), hidden.grad, weight.grad))
    for ours, theirs in zip(*sides, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    assert len(chosen) == 3, "the logits, again in the backward pass, and the gradient of what they were made from"


@pytest.mark.parametrize("fused", [True, False])
def test_a_model_s_update(fused: bool, monkeypatch: pytest.MonkeyPatch, chosen: list[tuple[int, ...]]) -> None:
    """Hidden states and gradients of all weights, projections concatenated or each for itself."""
    monkeypatch.setattr(decoder, "FUSE_BELOW", 1 << 20 if fused else 0)
    ids = torch.arange(24)[None] % 30
    sides, taken = [], []
    for takes in (True, False):
        chosen.clear()
        monkeypatch.setattr(matrix_products, "in_float32", lambda takes=takes: takes)
        model = tiny()
        decoder.hidden_states(model, ids, torch.arange(24)[None]).square().sum().backward()
        sides.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
        taken.append(len(chosen))
    projections = 2 if fused else 5  # of three layers and more: q, k, v together, and gate and up; out and down alone
    assert taken == [3 * 3 * (projections + 2), 0] and sides[0].keys() == sides[1].keys()
    for name, gradient in sides[0].items():
        torch.testing.assert_close(gradient, sides[1][name], atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_engine_with_packed_matrices(tied: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """It scores what it samples as the model does, also after the weights have changed, and not before."""
    monkeypatch.setattr(cached_attention, "WIDE", 1)
    if not matrix_products.can_pack(numbers(8, 8).to(dtype)):
        pytest.skip("this processor has no such products in bfloat16")
    model = tiny(tied).to(dtype)
    engine = TorchEngine(model, max_slots=4, max_context=64)
    weights = engine._cached.weights
    assert weights.packed and weights.head.is_mkldnn and weights.layers[0].gate_up.is_mkldnn
    for weight_change in (0.0, 0.02):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * weight_change)
        before = _gap(engine, model)
        engine.weights_changed()
        after = _gap(engine, model)
        bound = 1e-4 if dtype == torch.float32 else 0.1
        assert after < bound
        assert weight_change == 0.0 or before > after


def test_recorded_steps_read_matrices_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_attention, "WIDE", 1)
    model = tiny()
    engine = TorchEngine(model, max_slots=4, max_context=64, steps="fixed")
    weights = engine._cached.weights
    held = [weights.head, weights.layers[0].qkv]
    assert not any(matrix.is_mkldnn for matrix in held) and weights.head is weights.embedding
    assert _gap(engine, model) < 1e-4
    engine.weights_changed()
    assert weights.head is held[0] and weights.layers[0].qkv is held[1]


def _gap(engine: TorchEngine, model: torch.nn.Module) -> float:
    """How far the log-probabilities of what is sampled are from the model's own: the mean of the differences."""
    prompt = list(range(2, 22))

    async def all_of_them() -> list[Tensor]:
        sampled = await asyncio.gather(*(engine.sample(prompt, SamplingParams(12, seed=n)) for n in range(4)))
        differences = []
        for one in sampled:
            logits = model(torch.tensor([[*prompt, *one.ids]])).logits[0, len(prompt) - 1 : -1].float()
            exact = logits.log_softmax(-1).gather(1, torch.tensor(one.ids)[:, None])[:, 0]
            differences.append((exact - torch.tensor(one.logprobs)).abs())
        return differences

    with torch.no_grad():
        return float(torch.cat(asyncio.run(all_of_them())).mean())
