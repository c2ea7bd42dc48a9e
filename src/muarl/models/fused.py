"""What a GPU does in one kernel each, if Triton is there: norms, rotated heads, the gated product, a softmax's scores.

PyTorch takes several for each, which read and write memory in between: on a GPU that, not arithmetic, was most of an
update. The results are those of the plain operations but for the order of sums, and are rounded once. Whoever calls
these has asked ``usable``.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from types import ModuleType

PARTS = 1024
"""Programs that add up a gain's gradient, each a part of the tokens."""
LARGEST = 1 << 16
"""A row of so many numbers at most is normed by one program."""


@functools.cache
def _there() -> bool:
    return importlib.util.find_spec("triton") is not None


def interpreted() -> bool:
    """Whether Triton plays its kernels on a CPU, which tests ask it to."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def usable(tensor: Tensor) -> bool:
    """Whether kernels of one's own run where this tensor lies. Not while torch.compile looks: it makes its own."""
    if not (tensor.is_cuda or (interpreted() and tensor.device.type == "cpu")) or torch.compiler.is_compiling():
        return False
    return tensor.dtype in (torch.float32, torch.bfloat16) and torch.version.hip is None and _there()


@functools.cache
def kernels() -> ModuleType:
    from muarl.models import kernels as found

    return found


def power(number: int) -> int:
    """The least power of two that is no less."""
    return 1 << (number - 1).bit_length()


def warps(numbers: int) -> int:
    """Warps for a program that holds so many numbers of a row."""
    return min(max(numbers // 1024, 1), 8) if numbers < 1 << 14 else 16


def computed_in(x: Tensor) -> torch.dtype:
    """The type that products after this tensor compute in."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


class _AddNorm(torch.autograd.Function):
    """``y`` None: RMSNorm(x). Else x + y, and RMSNorm of that."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor | None, gain: Tensor, epsilon: float, kind: torch.dtype) -> Any:
        width = x.shape[-1]
        rows = x.numel() // width
        total = x if y is None else torch.empty_like(x)
        out = torch.empty(x.shape, dtype=kind, device=x.device)
        inverse = torch.empty(rows, dtype=torch.float32, device=x.device)
        block = power(width)
        kernels().norm[(rows,)](
            x, x if y is None else y, gain, total, out, inverse, width, epsilon,
            ADD=y is not None, BLOCK=block, num_warps=warps(block),
        )  # fmt: skip
        ctx.save_for_backward(total, gain, inverse)
        ctx.narrow = None if y is None else y.dtype
        return out if y is None else (total, out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        x, gain, inverse = ctx.saved_tensors
        add = ctx.narrow is not None
        grad, more = grads[-1].contiguous(), (grads[0].contiguous() if add else None)
        width, rows = x.shape[-1], inverse.numel()
        programs, block = min(rows, PARTS), power(width)
        out = torch.empty_like(x)
        narrow = torch.empty(x.shape, dtype=ctx.narrow, device=x.device) if add else out
        parts = torch.empty(programs, width, dtype=torch.float32, device=x.device)
        kernels().norm_back[(programs,)](
            grad, grad if more is None else more, x, gain, inverse, out, narrow, parts, rows, programs, width,
            ADD=add, BLOCK=block, num_warps=warps(block),
        )  # fmt: skip
        return out, narrow if add else None, parts.sum(0).to(gain.dtype), None, None


def norm(x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    """RMSNorm of ``x`` [..., n], in the type that products compute in."""
    return cast(Tensor, _AddNorm.apply(x.contiguous(), None, gain, epsilon, computed_in(x)))


def add_norm(x: Tensor, y: Tensor, gain: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """x + y, in x's type, and its RMSNorm in the type that products compute in."""
    outputs = _AddNorm.apply(x.contiguous(), y.contiguous(), gain, epsilon, computed_in(x))
    return cast(tuple[Tensor, Tensor], outputs)


class _Turn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor | None, cos: Tensor, sin: Tensor, epsilon: float) -> Tensor:
        rows, heads, dim = x.shape
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        padded = power(heads)
        kernels().turn[(rows,)](
            x, x if gain is None else gain, cos, sin, out, heads, x.stride(0), epsilon,
            NORM=gain is not None, HEADS=padded, DIM=dim, num_warps=warps(padded * dim),
        )  # fmt: skip
        ctx.save_for_backward(x, gain, cos, sin)
        ctx.epsilon = epsilon
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        x, gain, cos, sin = ctx.saved_tensors
        grad = grads[0].contiguous()
        rows, heads, dim = x.shape
        programs, padded = min(rows, 4 * PARTS), power(heads)
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        parts = torch.empty(programs, dim, dtype=torch.float32, device=x.device)
        kernels().turn_back[(programs,)](
            grad, x, x if gain is None else gain, cos, sin, out, parts, rows, programs, heads, x.stride(0), ctx.epsilon,
            NORM=gain is not None, HEADS=padded, DIM=dim, num_warps=warps(padded * dim),
        )  # fmt: skip
        return out, None if gain is None else parts.sum(0).to(gain.dtype), None, None, None


def turns(dim: int) -> bool:
    """Whether heads of this many numbers can be rotated here."""
    return dim >= 16 and power(dim) == dim


def turn(x: Tensor, gain: Tensor | None, cos: Tensor, sin: Tensor, epsilon: float) -> Tensor:
    """Heads ``x`` [N, heads, head_dim], normed unless ``gain`` is None, and rotated by ``decoder.rotary_tables``."""
    if x.stride(2) != 1 or x.stride(1) != x.shape[2]:
        x = x.contiguous()
    return cast(Tensor, _Turn.apply(x, gain, cos, sin, epsilon))


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return _gated(gate, up)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        gate, up = ctx.saved_tensors
        width = gate.shape[-1]
        d_gate, d_up = torch.empty_like(gate), torch.empty_like(up)
        kernels().gated_back[(gate.numel() // width, -(-width // 1024))](
            grads[0].contiguous(), gate, up, d_gate, d_up, width, BLOCK=1024
        )
        return d_gate, d_up


def _gated(gate: Tensor, up: Tensor) -> Tensor:
    rows, width = gate.shape
    out = torch.empty(rows, width, dtype=gate.dtype, device=gate.device)
    kernels().gated[(rows, -(-width // 1024))](gate, up, out, gate.stride(0), width, BLOCK=1024)
    return out


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, of [N, n] each; without gradients also of two parts of one tensor."""
    if not torch.is_grad_enabled() or not (gate.requires_grad or up.requires_grad):
        return _gated(gate, up)
    return cast(Tensor, _Gated.apply(gate.contiguous(), up.contiguous()))


def score(logits: Tensor, targets: Tensor, scale: float, entropy: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Of logits [n, vocab] times ``scale``: the targets' log-probabilities, the softmax's normalisers, entropies."""
    rows, vocab = logits.shape
    logprob, normaliser = (torch.empty(rows, dtype=torch.float32, device=logits.device) for _ in range(2))
    spread = torch.zeros_like(logprob)
    kernels().score[(rows,)](
        logits, targets, logprob, normaliser, spread, vocab, scale,
        ENTROPY=entropy, BLOCK=min(8192, power(vocab)), num_warps=8,
    )  # fmt: skip
    return logprob, normaliser, spread


def score_slope(
    logits: Tensor,
    targets: Tensor,
    normaliser: Tensor,
    entropy: Tensor,
    g_logprob: Tensor | None,
    g_entropy: Tensor | None,
    scale: float,
    kind: torch.dtype,
) -> Tensor:
    """What reaches the logits, [n, vocab] of type ``kind``, from what reaches log-probabilities and entropies."""
    rows, vocab = logits.shape
    out = torch.empty(rows, vocab, dtype=kind, device=logits.device)
    first = normaliser if g_logprob is None else g_logprob.contiguous()
    second = normaliser if g_entropy is None else g_entropy.contiguous()
    kernels().score_back[(rows, -(-vocab // 4096))](
        logits, targets, normaliser, entropy, first, second, out, vocab, scale,
        LOGPROB=g_logprob is not None, ENTROPY=g_entropy is not None, BLOCK=4096, num_warps=8,
    )  # fmt: skip
    return out
