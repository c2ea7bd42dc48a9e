"""What a checkpoint's files hold: a manifest of sizes and SHA-256 sums, written last and checked when they are read.

A folder without a manifest is an older one, or came from elsewhere: it is read as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from muarl.basics.errors import CheckpointError, DataError
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
    found = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(CHUNK):
            found.update(piece)
    return found.hexdigest()


def flush(path: Path) -> None:
    """A file or folder through to the disk, so that not even a power cut loses it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def seal(folder: Path, known: Mapping[str, str] | None = None) -> None:
    """Write the manifest of what is in a folder, everything flushed to the disk before it. ``known``: sums by name of
    files that others have written, flushed and summed."""
    known = known or {}
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    with ThreadPoolExecutor(THREADS) as pool:
        sums = pool.map(lambda name: known.get(name) or _flushed_sum(folder / name), names)
        files = {
            name: {"bytes": (folder / name).stat().st_size, "sha256": found}
            for name, found in zip(names, sums, strict=True)
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
    for name, (size, wanted) in listed.items():
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
        mark = str(file.absolute()), size, status.st_mtime_ns, wanted
        if contents and mark not in _seen:
            waiting.append((file, wanted, mark))
    with ThreadPoolExecutor(THREADS) as pool:
        for (file, wanted, mark), found in zip(waiting, pool.map(_sum, [w[0] for w in waiting]), strict=True):
            if found != wanted:
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
        found = {str(name): (int(file["bytes"]), str(file["sha256"])) for name, file in data["files"].items()}
    except DataError as problem:
        raise CheckpointError(str(problem).rstrip(".")) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise CheckpointError(f"{path}: cannot be read: {problem!r}") from None
    if any(name.startswith("/") or ".." in name.split("/") for name in found):
        raise CheckpointError(f"{path}: names files outside its own folder")
    return found
