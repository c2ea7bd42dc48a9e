"""What the backward pass makes again is what was there before, bit for bit."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from muarl.models import decoder
from muarl.models.backward import Make, make_once, remaking
from support.tiny_qwen3 import tiny

KINDS: dict[str, dict[str, Any]] = {
    "dense": {},
    "mixture": dict(model_type="qwen3_moe", num_experts=6, num_experts_per_tok=2, moe_intermediate_size=40),
}


@contextmanager
def keeping_all(like: Tensor) -> Iterator[Make]:
    yield make_once


def gradients(kind: str) -> list[Tensor]:
    torch.manual_seed(0)
    model = tiny(**KINDS[kind])
    ids, positions = torch.randint(0, 97, (4, 64)), torch.arange(64).repeat(4, 1)
    select = torch.ones(4, 64, dtype=torch.bool)
    select[:, 0] = False
    logprobs, entropy = decoder.token_logprobs(model, ids, positions, None, select)
    (logprobs.sum() + entropy.sum()).backward()
    return [logprobs.detach()] + [p.grad for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("joined", [True, False])
def test_gradients_are_the_same_bits(kind: str, joined: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not joined:
        monkeypatch.setattr(decoder, "FUSE_BELOW", 0)
    ours = gradients(kind)
    monkeypatch.setattr(decoder, "remaking", keeping_all)
    for one, other in zip(ours, gradients(kind), strict=True):
        assert torch.equal(one, other)


def test_it_is_made_again_once_for_each_reader() -> None:
    asked: list[int] = []

    def doubled(x: Tensor) -> Tensor:
        asked.append(1)
        return x * 2

    x, weight = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    with remaking(x) as make:
        y = make(doubled, x)
        total = (y * weight).sum() + (y * weight * 3).sum()
    assert len(asked) == 1
    total.backward()
    assert len(asked) == 3
    assert weight.grad is not None and weight.grad.tolist() == [8.0] * 3


def test_it_does_not_outlive_the_block() -> None:
    """Not even until the garbage collector comes: a layer's tensors would lie beside the next layers'."""
    x, weight = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    gc.disable()
    try:
        with remaking(x) as make:
            y = make(torch.mul, x, 2)
            total, alive = (y * weight).sum(), weakref.ref(y)
        del y, make
        assert alive() is None
    finally:
        gc.enable()
    total.backward()
    assert weight.grad is not None and weight.grad.tolist() == [2.0] * 3


def test_a_part_of_it_is_kept_as_it_is() -> None:
    """A view has another shape, and must not be taken for the whole."""
    x, weight = torch.arange(6.0).view(3, 2).requires_grad_(), torch.ones(2, 2, requires_grad=True)
    with remaking(x) as make:
        y = make(torch.mul, x, 2)
        (y[:2] * weight).sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [[0.0, 2.0], [4.0, 6.0]]


@pytest.mark.parametrize("case", ["no gradients", "bfloat16", "autocast"])
def test_elsewhere_everything_is_kept(case: str) -> None:
    x = torch.ones(2, 4, dtype=torch.bfloat16 if case == "bfloat16" else torch.float32, requires_grad=True)
    with (
        torch.set_grad_enabled(case != "no gradients"),
        torch.autocast("cpu", torch.bfloat16, enabled=case == "autocast"),
        remaking(x) as make,
    ):
        assert make is make_once
        assert make(torch.mul, x, 2).tolist() == [[2.0] * 4] * 2
