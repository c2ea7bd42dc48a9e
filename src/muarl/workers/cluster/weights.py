"""Weights on their way from a learner to samplers: packed into buckets of bytes, each of which is sent as one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

ALIGN = 64
"""Every tensor begins at a multiple of this many bytes, so that it can be read where it lies."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor in a bucket: its name, torch's name of its type, its shape, and where its bytes lie."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """Some tensors as one run of bytes (uint8)."""

    entries: tuple[Entry, ...]
    data: NDArray[np.uint8]


def flatten(weights: Iterable[tuple[str, Tensor]], size: int) -> Iterator[tuple[tuple[Entry, ...], Tensor]]:
    """Tensors as buckets of at most ``size`` bytes, or of one tensor that is larger: what lies where, and the bytes
    (uint8), copied, on the device of the bucket's first tensor."""
    held: list[tuple[Entry, Tensor]] = []
    end = 0
    for name, tensor in weights:
        data = _bytes_of(tensor)
        if held and end + len(data) > size:
            yield _joined(held)
            held, end = [], 0
        dtype = str(tensor.dtype).removeprefix("torch.")
        held.append((Entry(name, dtype, tuple(tensor.shape), end, len(data)), data))
        end += -(-len(data) // ALIGN) * ALIGN
    if held:
        yield _joined(held)


def pack(weights: Iterable[tuple[str, Tensor]], size: int) -> Iterator[Bucket]:
    """``flatten`` in this machine's memory."""
    for entries, data in flatten(weights, size):
        yield Bucket(entries, data.cpu().numpy())


def split(entries: Iterable[Entry], data: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The tensors of one bucket, read where they lie."""
    import torch

    for entry in entries:
        dtype: Any = getattr(torch, entry.dtype)
        yield entry.name, data[entry.start : entry.start + entry.size].view(dtype).reshape(entry.shape)


def unpack(buckets: Iterable[Bucket]) -> Iterator[tuple[str, Tensor]]:
    """The tensors of buckets, on the CPU. They are read where they lie and must not be written to."""
    import torch

    for bucket in buckets:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not writable.*")
            data = torch.from_numpy(bucket.data)
        yield from split(bucket.entries, data)


def _bytes_of(tensor: Tensor) -> Tensor:
    import torch

    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _joined(held: list[tuple[Entry, Tensor]]) -> tuple[tuple[Entry, ...], Tensor]:
    last, _ = held[-1]
    first = held[0][1]
    data = first.new_zeros(last.start + last.size)
    for entry, part in held:
        data[entry.start : entry.start + entry.size].copy_(part)
    return tuple(entry for entry, _ in held), data
