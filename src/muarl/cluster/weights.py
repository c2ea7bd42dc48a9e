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


def pack(weights: Iterable[tuple[str, Tensor]], size: int) -> Iterator[Bucket]:
    """Tensors as buckets of at most ``size`` bytes, or of one tensor that is larger. The bytes are copied."""
    held: list[tuple[Entry, NDArray[np.uint8]]] = []
    end = 0
    for name, tensor in weights:
        data = _bytes_of(tensor)
        if held and end + len(data) > size:
            yield _bucket(held)
            held, end = [], 0
        dtype = str(tensor.dtype).removeprefix("torch.")
        held.append((Entry(name, dtype, tuple(tensor.shape), end, len(data)), data))
        end += -(-len(data) // ALIGN) * ALIGN
    if held:
        yield _bucket(held)


def unpack(buckets: Iterable[Bucket]) -> Iterator[tuple[str, Tensor]]:
    """The tensors of buckets, on the CPU. They are read where they lie and must not be written to."""
    import torch

    for bucket in buckets:
        for entry in bucket.entries:
            part = bucket.data[entry.start : entry.start + entry.size]
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*not writable.*")
                flat = torch.from_numpy(part)
            dtype: Any = getattr(torch, entry.dtype)
            yield entry.name, flat.view(dtype).reshape(entry.shape)


def _bytes_of(tensor: Tensor) -> NDArray[np.uint8]:
    import torch

    flat: NDArray[np.uint8] = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return flat


def _bucket(held: list[tuple[Entry, NDArray[np.uint8]]]) -> Bucket:
    last, _ = held[-1]
    data = np.zeros(last.start + last.size, dtype=np.uint8)
    for entry, part in held:
        data[entry.start : entry.start + entry.size] = part
    return Bucket(tuple(entry for entry, _ in held), data)
