"""The files of a checkpoint folder: written whole or not at all, and weights read or written piece by piece.

A folder is made under a temporary name next to its place and then renamed. Nothing is pickled: tensors go to
safetensors, everything else to JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from muarl.basics.errors import CheckpointError, DataError, MuarlError
from muarl.basics.files import FULL, room_left
from muarl.basics.untrusted import read_json_object
from muarl.learning.manifest import MANIFEST, flush, seal

WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
FILE_BYTES = 4 << 30
"""Most bytes of tensors in one file of weights, and so also what a process that gathers them holds at a time."""


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that becomes ``path`` (replacing what is there) if the block succeeds, and vanishes if not.

    Before it takes its place it gets its manifest, unless it has one. MuarlError if the disk is full; the former
    contents of ``path`` are then untouched.
    """
    path = Path(path)
    staging: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial"))
        staging.chmod(0o755)
        yield staging
        if not (staging / MANIFEST).is_file():
            seal(staging)
        old = None
        if path.exists():
            old = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".old"))
            os.replace(path, old)  # an empty folder may be renamed over
        try:
            os.replace(staging, path)
        except BaseException:
            if old is not None:
                os.replace(old, path)
            raise
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
        flush(path.parent)
    except BaseException as problem:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
        if is_disk_full(problem):
            raise full_disk(path) from problem
        raise


def full_disk(path: Path) -> MuarlError:
    """The error about a checkpoint that found no room."""
    return MuarlError(
        f"{path}: the disk is full{room_left(path)}, so this checkpoint was not written. Free some space, or keep "
        "fewer checkpoints (checkpoints.keep_last), and use --resume: the last complete checkpoint is intact"
    )


def is_disk_full(problem: BaseException) -> bool:
    """True for "no space left", "quota exceeded" and "file too large", also as safetensors and tokenizers word them:
    both are written in Rust, and the latter raises a plain Exception."""
    if isinstance(problem, OSError):
        return problem.errno in FULL
    worded = isinstance(problem, SafetensorError) or type(problem) is Exception
    return worded and any(f"os error {n})" in str(problem) for n in FULL)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file, within bounds of size and depth: checkpoints come from anywhere. CheckpointError if
    there is none."""
    if not path.exists():
        raise CheckpointError(f"{path}: missing: the checkpoint is incomplete, make or copy it again")
    if not path.is_file():
        raise CheckpointError(f"{path}: is no plain file: the checkpoint is incomplete, make or copy it again")
    try:
        return read_json_object(path)
    except DataError as problem:
        raise CheckpointError(str(problem).rstrip(".")) from None


def stored_shapes(path: Path) -> Iterator[tuple[str, tuple[Path, tuple[int, ...]]]]:
    """(tensor name, (file, shape)) from the headers of the weight files."""
    files = [path / WEIGHTS]
    if not files[0].is_file():
        if not (path / WEIGHTS_INDEX).is_file():
            raise CheckpointError(f"{path / WEIGHTS}: missing: the checkpoint has no safetensors weights")
        parts = read_json(path / WEIGHTS_INDEX).get("weight_map")
        if not isinstance(parts, dict):
            raise CheckpointError(f"{path / WEIGHTS_INDEX}: has no weight_map")
        # The index names files inside its own folder, nothing else.
        files = sorted({path / Path(str(name)).name for name in parts.values()})
    for file in files:
        if not file.is_file():
            raise CheckpointError(f"{file}: missing: the checkpoint is incomplete, copy it again")
        try:
            with safe_open(file, framework="pt") as stored:
                for name in stored.keys():  # noqa: SIM118 (not a dict)
                    yield name, (file, tuple(stored.get_slice(name).get_shape()))
        except (SafetensorError, OSError) as problem:
            raise CheckpointError(f"{file}: cannot be read ({problem}): copy it again") from problem


def save_tensors(file: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    """Write a safetensors file; the tensors may be on any device."""
    save_file({n: t.detach().cpu().contiguous() for n, t in tensors.items()}, file, metadata=metadata)
    file.chmod(0o644)  # the writer makes them private, unlike the files beside them


class WeightReader:
    """Reads rows of a checkpoint's weights without reading the rest. CheckpointError for what cannot be read."""

    def __init__(self, path: Path) -> None:
        found = dict(stored_shapes(path))
        self._files = {name: file for name, (file, _) in found.items()}
        self.shapes = {name: shape for name, (_, shape) in found.items()}

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Tensor:
        """Rows ``start`` to ``stop`` of the tensor, in the stored type, on the CPU."""
        file = self._files[name]
        try:
            with safe_open(file, framework="pt") as stored:
                whole = not self.shapes[name]  # a number has no rows
                tensor: Tensor = stored.get_tensor(name) if whole else stored.get_slice(name)[start:stop]
                return tensor
        except (SafetensorError, OSError) as problem:
            raise CheckpointError(f"{file}: cannot be read ({problem}): copy it again") from problem


class WeightWriter:
    """Writes tensors that come one after another, in files of at most ``limit`` bytes, never holding more than one
    file's. ``shapes``: of all that will come, in that order; ``dtype``: the type they are stored in."""

    def __init__(
        self, folder: Path, shapes: Mapping[str, torch.Size], dtype: torch.dtype, limit: int = FILE_BYTES
    ) -> None:
        self.folder, self.dtype = folder, dtype
        self._plan: list[list[str]] = [[]]
        self._bytes, room = 0, limit
        for name, shape in shapes.items():
            size = shape.numel() * dtype.itemsize
            if size > room and self._plan[-1]:
                self._plan.append([])
                room = limit
            self._plan[-1].append(name)
            self._bytes, room = self._bytes + size, room - size
        self._held: dict[str, Tensor] = {}
        self._done = 0

    def add(self, name: str, tensor: Tensor) -> None:
        self._held[name] = tensor.detach().to(self.dtype).cpu()
        if len(self._held) < len(self._plan[self._done]):
            return
        file = self.folder / self._name(self._done)
        # Other readers look for this key to know which framework the file is for.
        save_tensors(file, self._held, {"format": "pt"})
        self._held = {}
        self._done += 1

    def finish(self) -> None:
        """Write the index, where there are several files. ValueError if tensors are missing."""
        if self._done != len(self._plan):
            raise ValueError(f"{self.folder}: only {self._done} of {len(self._plan)} files of weights were written")
        if self._done > 1:
            where = {name: self._name(n) for n, names in enumerate(self._plan) for name in names}
            index = {"metadata": {"total_size": self._bytes}, "weight_map": where}
            (self.folder / WEIGHTS_INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")

    def _name(self, number: int) -> str:
        count = len(self._plan)
        return WEIGHTS if count == 1 else f"model-{number + 1:05d}-of-{count:05d}.safetensors"
