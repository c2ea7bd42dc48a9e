"""Weights on their way from a learner to engines as safetensors files: in shared memory, or in a folder."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.system import shared_memory
from muarl.inference.vllm.settings import PREFIX
from muarl.models.buckets import parts

SHARD_BYTES = 2 << 30


class WeightFiles:
    """A folder for one learner's weights, of which the newest version is kept.

    ``where``: a folder that the engines can read, or None for this machine's shared memory (the temporary folder where
    there is none). ``dtype``: floating weights are stored so; None: as they come.
    """

    def __init__(self, where: Path | None = None, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype
        parent = where or shared_memory() or Path(tempfile.gettempdir())
        try:
            parent.mkdir(parents=True, exist_ok=True)
            _sweep(parent)
            self.folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{PREFIX}{os.getpid()}-"))
        except OSError as problem:
            raise ConfigError(f"engine.update_folder: {parent} cannot be written: {problem.strerror}") from problem
        self._versions: dict[int, list[Path]] = {}
        self._written = 0

    def write(self, weights: Iterable[tuple[str, Tensor]]) -> list[Path]:
        """Write the weights, shard by shard, and return the files; each appears whole. ``keep`` forgets older ones.

        InfrastructureError if there is no room: nothing of these weights is left then, and older ones stay.
        """
        self._written += 1
        shards: list[Path] = []
        stored = ((name, self._stored(tensor.detach())) for name, tensor in weights)
        try:
            for part in parts(stored, SHARD_BYTES):
                shards.append(self._save(dict(part), len(shards)))
        except BaseException:
            self.forget(shards)
            raise
        return shards

    @contextmanager
    def adapter(self) -> Iterator[Path]:
        """A new folder for an adapter, which is deleted when the block ends.

        InfrastructureError if the block runs out of room.
        """
        folder = Path(tempfile.mkdtemp(dir=self.folder, prefix="sent-"))
        try:
            yield folder
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
            raise InfrastructureError(
                f"{self.folder.parent} has no room for an adapter", boundary="agent", retryable=False
            ) from problem
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self, shards: Iterable[Path]) -> None:
        """Delete files of ``write``."""
        for path in shards:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _stored(self, tensor: Tensor) -> Tensor:
        """A tensor as it is written."""
        dtype = self.dtype if tensor.is_floating_point() else None
        return tensor.to(dtype or tensor.dtype).to("cpu").contiguous()

    def _save(self, part: dict[str, Tensor], number: int) -> Path:
        path = self.folder / f"weights-{self._written:06d}-{number:04d}.safetensors"
        temporary = path.with_suffix(".tmp")
        needed = sum(t.numel() * t.element_size() for t in part.values())
        try:
            # A full shared memory does not fail a write to a mapped file, it ends the process.
            free = shutil.disk_usage(self.folder).free
            if free < needed + (1 << 20):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            save_file(part, temporary)
            temporary.chmod(0o600)
            os.replace(temporary, path)
        except Exception as problem:
            temporary.unlink(missing_ok=True)
            if isinstance(problem, OSError) and problem.errno != errno.ENOSPC:
                raise
            raise InfrastructureError(
                f"{self.folder.parent} has no room for {needed / (1 << 20):.0f} MiB more of weights: set engine.update="
                "file and engine.update_folder to a folder that has, or make room",
                boundary="agent",
                retryable=False,
            ) from problem
        return path


def _sweep(parent: Path) -> None:
    """Delete what learners left here that were killed: shared memory is not freed by itself."""
    for folder in parent.glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        try:
            if owner.isdecimal() and folder.stat().st_uid == os.getuid():
                os.kill(int(owner), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
