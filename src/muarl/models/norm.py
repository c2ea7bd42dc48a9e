"""RMSNorm with a backward pass of few operations: on a CPU, PyTorch would differentiate it piece by piece.

Source: Zhang and Sennrich 2019 (1910.07467): y = x / sqrt(mean(x**2) + epsilon) * gain, over the last dimension.
"""

from __future__ import annotations

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
