"""What the own path differentiates in its own way on a CPU: RMSNorm, and tensors that the backward pass makes again.

PyTorch would differentiate RMSNorm piece by piece; here its backward pass has few operations. Source: Zhang and
Sennrich 2019 (1910.07467): y = x / sqrt(mean(x**2) + epsilon) * gain, over the last dimension.

The norms before the blocks of a layer and the product inside its feed-forward block are almost a third of what a layer
keeps for the backward pass; to make them again (``remaking``) takes a few element-wise operations and gives the same
bits. Whole layers are made again by ``torch.utils.checkpoint`` instead (``recompute``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from muarl.models import fused


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
        inverse = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        inverse = inverse.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
        ctx.save_for_backward(x, gain, inverse)
        return (x * inverse).mul_(gain)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        # With n = x / rms: dgain = sum of grad * n; dx = (grad * gain - n * mean(grad * gain * n)) / rms.
        x, gain, inverse = ctx.saved_tensors
        normed = x * inverse
        product = (grad * normed).flatten(0, -2)
        along = torch.mv(product, gain).div_(-x.shape[-1]).view(inverse.shape)
        return normed.mul_(along).addcmul_(grad, gain).mul_(inverse), product.sum(0), None


def rms_norm(x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    """``x`` [..., n] over its root mean square, times ``gain`` [n]; differentiable (once). In x's type, or, where a GPU
    does it in one kernel, in the type that products compute in."""
    if fused.usable(x) and x.shape[-1] <= fused.LARGEST:
        return fused.norm(x, gain, epsilon)
    if x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and x.dtype == gain.dtype:
        return cast(Tensor, _RMSNorm.apply(x, gain, epsilon))
    return F.rms_norm(x, gain.shape, gain.to(x.dtype), epsilon)


Make = Callable[..., Tensor]
"""``make(function, *inputs)``: what the function makes of them."""


def make_once(function: Callable[..., Tensor], *inputs: Any) -> Tensor:
    """A ``Make`` whose results are kept wherever the backward pass reads them."""
    return function(*inputs)


@contextmanager
def remaking(like: Tensor) -> Iterator[Make]:
    """Within the block, a tensor made by the ``Make`` is not kept for the backward pass: where an operation would keep
    it, the function and its inputs are kept instead, and it is made again when it is read. That saves memory if the
    inputs are kept anyhow, and needs a function that gives the same bits each time. Views of it are kept as they are.

    ``like``: a tensor that the block computes with. Everything is kept as always if it lies on another device than a
    CPU or is below float32, under autocast, and where nothing is differentiated.
    """
    exact = like.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled("cpu")
    if like.device.type != "cpu" or not exact or not torch.is_grad_enabled():
        yield make_once
        return
    made: dict[int, tuple[Tensor, Callable[..., Tensor], tuple[Any, ...]]] = {}

    def make(function: Callable[..., Tensor], *inputs: Any) -> Tensor:
        tensor = function(*inputs)
        made[tensor.data_ptr()] = tensor, function, inputs  # the tensor lives, so nothing else comes to lie there
        return tensor

    def keep(tensor: Tensor) -> Any:
        entry = made.get(tensor.data_ptr())
        if entry is None or tensor.shape != entry[0].shape or tensor.stride() != entry[0].stride():
            return tensor
        return entry[1:]

    def give(saved: Any) -> Tensor:
        if isinstance(saved, Tensor):
            return saved
        function, inputs = saved
        with torch.no_grad():
            return function(*inputs)

    with torch.autograd.graph.saved_tensors_hooks(keep, give):
        yield make
    made.clear()  # `make` and what it holds refer to each other, and the tensors are not to wait for the collector
