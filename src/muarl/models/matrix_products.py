"""Products with large matrices on a CPU, by the faster of the two libraries that PyTorch has for them.

PyTorch multiplies float32 matrices by Intel's MKL, which keeps its AVX-512 kernels for Intel's processors. oneDNN has
some for AMD's as well: on a Zen 5, at the same precision, it takes 45% of MKL's time (docs/benchmarks.md). oneDNN also
takes a matrix that was *packed*, put once into the order in which its kernels read it; that is worth most where few
rows meet a large matrix, as in decoding, and in bfloat16 too. Which library computes depends on the processor and on
sizes, never on a measurement, so that a machine gives the same numbers each time.

``torch.backends.mkldnn.flags(enabled=False)`` turns it off for what is computed or packed from then on.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

LARGE = 1 << 16
"""Numbers in a matrix from which a call of oneDNN's, which costs some 10 microseconds more, is worth it."""


@cache
def _maker() -> str:
    """What the processor calls its maker, such as AuthenticAMD; empty where it does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")), "")


def _has_onednn() -> bool:
    """Whether oneDNN has its fast kernels here, and nobody has turned it off."""
    present = torch.backends.mkldnn.is_available() and bool(torch.backends.mkldnn.enabled)
    return present and torch.backends.cpu.get_cpu_capability() == "AVX512" and not torch.compiler.is_compiling()


def in_float32() -> bool:
    """Whether this processor computes float32 products faster by oneDNN than by what PyTorch uses for them."""
    return _has_onednn() and torch.backends.mkl.is_available() and "AuthenticAMD" in _maker()


def can_pack(weight: Tensor) -> bool:
    """Whether ``pack`` takes this matrix, and products with it become faster by that."""
    if weight.device.type != "cpu" or weight.dim() != 2 or weight.numel() < LARGE:
        return False
    if weight.dtype == torch.bfloat16:  # PyTorch's own products are oneDNN's here, and order the matrix at each call
        return _has_onednn() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return weight.dtype == torch.float32 and in_float32()


def pack(weight: Tensor) -> Tensor:
    """A copy of ``weight`` [out, in] in the order in which oneDNN reads it. Only ``linear`` can do anything with it."""
    return cast(Tensor, torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x`` [..., in] times ``weight`` [out, in] transposed, and ``bias`` [out]: what ``torch.nn.functional.linear``
    gives up to rounding, differentiable once where oneDNN computes it. ``weight`` may be packed: then nothing is
    differentiated, and ``x`` is [n, in], of the type that the matrix had."""
    if weight.is_mkldnn:
        return _onednn(x, weight, bias)
    if _by_onednn(x, weight):
        return cast(Tensor, _Linear.apply(x, weight, bias))
    return F.linear(x, weight, bias)


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a`` [n, k] times ``b`` [k, m], which is large; nothing is differentiated through it."""
    return _onednn(a, b.t(), None) if _by_onednn(a, b) else torch.mm(a, b)


def _by_onednn(x: Tensor, weight: Tensor) -> bool:
    if x.dtype != torch.float32 or weight.dtype != torch.float32 or weight.numel() < LARGE or x.device.type != "cpu":
        return False
    return x.dim() == 2 and x.numel() > 0 and not torch.is_autocast_enabled("cpu") and in_float32()


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return cast(Tensor, torch.ops.mkldnn._linear_pointwise.default(_readable(x), weight, bias, "none", [], ""))


def _readable(x: Tensor) -> Tensor:
    """``x`` [n, k], copied if neither its rows nor its columns lie one after another."""
    return x if x.is_contiguous() or x.t().is_contiguous() else x.contiguous()


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        x, weight = ctx.saved_tensors
        grad = _readable(grads[0])
        want_x, want_weight, want_bias = ctx.needs_input_grad
        d_x = _onednn(grad, weight.t(), None) if want_x else None
        d_weight = _onednn(grad.t(), _readable(x).t(), None) if want_weight else None
        return d_x, d_weight, grad.sum(0) if want_bias else None
