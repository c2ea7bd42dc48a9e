"""Weights on their way between processes: in buckets, each one run of bytes with a table of what lies where.

All ways of sending weights have their parts from here, and differ in what carries them: memory that processes share, a
socket, Ray's object store, a process group, files.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import Tensor

ALIGN = 64
"""Every tensor of a bucket begins at a multiple of this many bytes, so that it can be read where it lies."""

NamedTensor = tuple[str, Tensor]


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor in a bucket: its name, torch's name of its type, its shape, and where its bytes lie."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Bucket:
    """Some tensors as one run of bytes (uint8), on any device. Pickled, as Ray does, the bytes are an array of numpy,
    which processes of one machine read where it lies and must not write to."""

    entries: tuple[Entry, ...]
    data: Tensor

    @classmethod
    def of(cls, tensors: Sequence[NamedTensor]) -> Bucket:
        """A copy of these tensors, on the device of the first."""
        entries = layout(tensors)
        like = tensors[0][1] if tensors else torch.empty(0)
        bucket = cls(entries, like.new_zeros(size_of(entries), dtype=torch.uint8))
        with torch.no_grad():
            for (_, place), (_, tensor) in zip(bucket.tensors(), tensors, strict=True):
                place.copy_(tensor)
        return bucket

    @classmethod
    def at(cls, table: Iterable[Sequence[Any]], data: Tensor) -> Bucket:
        """The bucket with this ``table`` and these bytes."""
        return cls(tuple(Entry(name, dtype, tuple(shape), *place) for name, dtype, shape, *place in table), data)

    @property
    def table(self) -> list[tuple[Any, ...]]:
        """The entries as JSON values."""
        return [astuple(entry) for entry in self.entries]

    def tensors(self) -> Iterator[NamedTensor]:
        """The tensors, read where they lie."""
        for entry in self.entries:
            dtype: Any = getattr(torch, entry.dtype)
            yield entry.name, self.data[entry.start : entry.start + entry.size].view(dtype).reshape(entry.shape)

    def on_cpu(self) -> Bucket:
        """The bucket in this machine's memory."""
        return Bucket(self.entries, self.data.cpu())

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_array, (self.entries, self.data.cpu().numpy())


def _of_array(entries: tuple[Entry, ...], data: Any) -> Bucket:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return Bucket(entries, torch.from_numpy(data))


class SharedWeights:
    """A bucket of weights in memory that a process shares with its children: written by the one, read by the others.

    The memory has no name in any folder, so that nothing is left of it however the processes end: children inherit the
    ``descriptor`` of its file, which is closed with this object.
    """

    def __init__(self, table: Iterable[Sequence[Any]], descriptor: int) -> None:
        self.descriptor = descriptor
        empty = Bucket.at(table, torch.empty(0))
        memory = mmap.mmap(descriptor, size_of(empty.entries) or 1)
        self.bucket = Bucket(empty.entries, torch.frombuffer(memory, dtype=torch.uint8))

    @classmethod
    def like(cls, named: Iterable[NamedTensor]) -> SharedWeights:
        """New memory with room for these tensors, and a copy of them in it. OSError if there is too little memory."""
        tensors = list(named)
        empty = Bucket(layout(tensors), torch.empty(0))
        descriptor = _unnamed_file()
        try:
            os.ftruncate(descriptor, size_of(empty.entries) or 1)
            made = cls(empty.table, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        made.write(tensors)
        return made

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, where they lie."""
        return dict(self.bucket.tensors())

    def write(self, named: Iterable[NamedTensor]) -> None:
        """Copy the same tensors with new values. ValueError for others."""
        own = self.tensors
        with torch.no_grad():
            for name, value in named:
                if name not in own or own[name].shape != value.shape or own[name].dtype != value.dtype:
                    raise ValueError(f"the shared memory was made for other tensors than {name!r}")
                own[name].copy_(value)

    def close(self) -> None:
        """Give up the descriptor; the memory goes with the last tensor, and the last process, that has it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def buckets(weights: Iterable[NamedTensor], size: int) -> Iterator[Bucket]:
    """Tensors in buckets of at most ``size`` bytes, or of one tensor that is larger."""
    for part in parts(weights, size, ALIGN):
        yield Bucket.of(part)


def parts(weights: Iterable[NamedTensor], size: int, align: int = 1) -> Iterator[list[NamedTensor]]:
    """Tensors in order, at most ``size`` bytes together, or one that is larger. ``align``: each begins at a multiple of
    so many bytes."""
    held: list[NamedTensor] = []
    end = 0
    for name, tensor in weights:
        more = tensor.numel() * tensor.element_size()
        if held and end + more > size:
            yield held
            held, end = [], 0
        held.append((name, tensor.detach()))
        end += -(-more // align) * align
    if held:
        yield held


def layout(tensors: Iterable[NamedTensor]) -> tuple[Entry, ...]:
    """Where each tensor lies when they are put one behind the other."""
    entries, end = [], 0
    for name, tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        entries.append(Entry(name, dtype_name(tensor), tuple(tensor.shape), end, size))
        end += -(-size // ALIGN) * ALIGN
    return tuple(entries)


def size_of(entries: Sequence[Entry]) -> int:
    """Bytes of a bucket with these entries."""
    return entries[-1].start + entries[-1].size if entries else 0


def dtype_name(tensor: Tensor) -> str:
    """Torch's name of its type, such as "bfloat16"."""
    return str(tensor.dtype).removeprefix("torch.")


def _unnamed_file() -> int:
    """The descriptor of a file without a name: in memory, where the system has such files (Linux)."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("muarl weights")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
