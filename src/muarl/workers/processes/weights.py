"""A model's parameters in memory that a process shares with its children: written by the one, read by the others.

The memory has no name in any folder, so that nothing is left of it however the processes end: children inherit its
file descriptor.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from muarl.workers.cluster.weights import ALIGN, Entry, split

if TYPE_CHECKING:
    from torch import Tensor


class SharedWeights:
    """Named tensors on the CPU in shared memory. ``entries``: where each lies. ``descriptor``: of the memory's file;
    it is closed with this object."""

    def __init__(self, entries: Iterable[Entry], descriptor: int) -> None:
        import torch

        self.entries = tuple(entries)
        self.descriptor = descriptor
        self._data = torch.frombuffer(mmap.mmap(descriptor, size_of(self.entries)), dtype=torch.uint8)

    @classmethod
    def like(cls, named: Iterable[tuple[str, Tensor]]) -> SharedWeights:
        """New memory with room for these tensors, and a copy of them in it. OSError if there is too little memory."""
        given = list(named)
        entries = layout(given)
        descriptor = _unnamed_file()
        try:
            os.ftruncate(descriptor, size_of(entries))
            made = cls(entries, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        made.write(given)
        return made

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, where they lie."""
        return dict(split(self.entries, self._data))

    def write(self, named: Iterable[tuple[str, Tensor]]) -> None:
        """Copy the same tensors with new values. ValueError for others."""
        import torch

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


def layout(named: Sequence[tuple[str, Tensor]]) -> tuple[Entry, ...]:
    """Where each tensor lies when they are put one behind the other."""
    entries, end = [], 0
    for name, tensor in named:
        size = tensor.numel() * tensor.element_size()
        entries.append(Entry(name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), end, size))
        end += -(-size // ALIGN) * ALIGN
    return tuple(entries)


def size_of(entries: Sequence[Entry]) -> int:
    """Bytes of the memory that holds these tensors."""
    return max((entry.start + entry.size for entry in entries), default=0) or 1


def _unnamed_file() -> int:
    """The descriptor of a file without a name: in memory, where the system has such files (Linux)."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("muarl weights")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
