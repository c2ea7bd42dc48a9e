"""The files of a checkpoint folder: written whole or not at all, and weights read or written piece by piece.

A folder is made under a temporary name next to its place and then renamed. Nothing is pickled: tensors go to
safetensors, everything else to JSON. A manifest of sizes and SHA-256 sums is written last, and checked when files are
read. A folder without a manifest is an older one, or came from elsewhere: it is read as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
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

MANIFEST = "manifest.json"
FORMAT = 1
CHUNK = 1 << 20
MOST = 20_000
"""Files in one checkpoint: a learner of thousands of processes writes a few for each."""
THREADS = 4
"""Files read at once: hashing lets go of the interpreter's lock."""

_seen: set[tuple[str, int, int, str]] = set()
"""Files that this process has found right: path, size, time of change, sum."""


def file_sum(path: Path) -> str:
    """SHA-256 of a file's content, read in pieces."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def flush(path: Path) -> None:
    """A file or folder through to the disk, so that not even a power cut loses it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def seal(folder: Path, sums_by_name: Mapping[str, str] | None = None) -> None:
    """Write the manifest of what is in a folder, everything flushed to the disk before it. ``sums_by_name``: of files
    that others have written, flushed and summed."""
    sums_by_name = sums_by_name or {}
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    with ThreadPoolExecutor(THREADS) as pool:
        sums = pool.map(lambda name: sums_by_name.get(name) or _flushed_sum(folder / name), names)
        files = {
            name: {"bytes": (folder / name).stat().st_size, "sha256": digest}
            for name, digest in zip(names, sums, strict=True)
        }
    text = json.dumps({"format": FORMAT, "files": files}, indent=1) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    flush(folder / MANIFEST)
    for inner in {folder, *((folder / name).parent for name in names)}:
        flush(inner)


def _flushed_sum(path: Path) -> str:
    flush(path)
    return file_sum(path)


def verify(
    folder: Path, *, contents: bool = True, only: Callable[[str], bool] | None = None, missing_ok: bool = False
) -> bool:
    """Check a folder's files against its manifest: that they are there (unless ``missing_ok``), their sizes and (with
    ``contents``) their sums. ``only``: which of them, by name. False if there is no manifest. CheckpointError names the
    first file that differs.

    What this process has checked before is not read again as long as size and time of change are the same.
    """
    listed = _read(folder)
    if listed is None:
        return False
    waiting = []
    for name, (size, expected) in listed.items():
        if only is not None and not only(name):
            continue
        file = folder / name
        try:
            status = file.stat()
        except OSError:
            if missing_ok:
                continue
            raise CheckpointError(f"{file}: missing: the checkpoint is incomplete") from None
        if status.st_size != size:
            raise CheckpointError(f"{file}: has {status.st_size:,} bytes, and {size:,} were written")
        if not stat.S_ISREG(status.st_mode):
            raise CheckpointError(f"{file}: is no plain file")
        mark = str(file.absolute()), size, status.st_mtime_ns, expected
        if contents and mark not in _seen:
            waiting.append((file, expected, mark))
    with ThreadPoolExecutor(THREADS) as pool:
        for (file, expected, mark), digest in zip(waiting, pool.map(_sum, [w[0] for w in waiting]), strict=True):
            if digest != expected:
                raise CheckpointError(f"{file}: its contents have changed (the SHA-256 sum differs)")
            _seen.add(mark)
    return True


def _sum(path: Path) -> str:
    try:
        return file_sum(path)
    except OSError as problem:
        raise CheckpointError(f"{path}: cannot be read: {problem}") from None


def _read(folder: Path) -> dict[str, tuple[int, str]] | None:
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        if not path.is_file():
            raise ValueError("it is no plain file")
        data = read_json_object(path)
        if data["format"] != FORMAT:
            return None  # of a version of muarl that knows more
        if len(data["files"]) > MOST:
            raise ValueError(f"it lists {len(data['files']):,} files, and no checkpoint has more than {MOST:,}")
        files = {str(name): (int(file["bytes"]), str(file["sha256"])) for name, file in data["files"].items()}
    except DataError as problem:
        raise CheckpointError(str(problem).rstrip(".")) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise CheckpointError(f"{path}: cannot be read: {problem!r}") from None
    if any(name.startswith("/") or ".." in name.split("/") for name in files):
        raise CheckpointError(f"{path}: names files outside its own folder")
    return files


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
        stored = dict(stored_shapes(path))
        self._files = {name: file for name, (file, _) in stored.items()}
        self.shapes = {name: shape for name, (_, shape) in stored.items()}

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
