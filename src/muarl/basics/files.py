"""Writing files so that a crash, a full disk or Ctrl-C never leaves half of one."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from muarl.basics import untrusted
from muarl.basics.errors import ConfigError, MuarlError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The operating system's words for no room: on the disk, within a quota, within the largest file that is allowed."""


def free_space(path: Path) -> int | None:
    """Bytes free where ``path`` is or will be; None where nobody knows."""
    for place in (path, *path.absolute().parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:
            continue
    return None


def size_text(size: float) -> str:
    """A number of bytes for people: "1.5 GiB", "312 KiB"."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def room_left(path: Path) -> str:
    """How much room there is, for an error's text: " (312 KiB free)", or nothing."""
    free = free_space(path)
    return "" if free is None else f" ({size_text(free)} free)"


@contextmanager
def clear_disk_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's errors about a file into one sentence that names the file and the remedy."""
    try:
        yield
    except OSError as problem:
        if problem.errno in FULL:
            what = "A limit on the size of files is reached" if problem.errno == errno.EFBIG else "The disk is full"
            raise MuarlError(
                f"{what}: {path} could not be written{room_left(path)}. Nothing half-written is left. Free some space "
                "(old runs and checkpoints are the usual suspects) and start again with resume."
            ) from problem
        if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise MuarlError(f"No permission to write {path}. Choose another folder for runs.") from problem
        raise


def why_not_writable(folder: Path) -> str | None:
    """Why nothing can be written below a folder that need not be there yet; None if nothing speaks against it."""
    for place in (folder, *folder.absolute().parents):
        if place.is_dir():
            return None if os.access(place, os.W_OK | os.X_OK) else f"there is no permission to write in {place}"
        if place.exists() or place.is_symlink():
            return f"{place} is not a folder"
    return None


def check_writable(path: Path, option: str, name: str) -> None:
    """ConfigError, naming the ``option`` that says so, for a file that could not be written: better known before the
    work than after. ``name``: what such a file may be called, for the message."""
    if path.is_dir():
        raise ConfigError(f"{option}: {path} is a folder: give a file, such as {path / name}")
    if (why := why_not_writable(path.parent)) is not None:
        raise ConfigError(f"{option}: {path}: {why}: give a file elsewhere")


def plain(value: Any) -> Any:
    """The value as JSON can hold it: mappings, lists, numbers, text; paths as text, non-finite numbers as None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "item"):  # a numpy or torch scalar
        return plain(value.item())
    return str(value)


@contextmanager
def whole_file(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A text file (``binary``: one of bytes) that appears whole when the block succeeds, and not at all otherwise
    (temporary file beside it, then rename). MuarlError if the disk is full."""
    with clear_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") if binary else os.fdopen(handle, "w", encoding="utf-8") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            Path(temporary).chmod(0o644)  # mkstemp's 0600 would hide a run from colleagues
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears whole when the block succeeds, and not at all otherwise. ``path`` may be an empty folder.
    MuarlError if the disk is full."""
    with clear_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"))
        try:
            staging.chmod(0o755)
            yield staging
            os.replace(staging, path)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all. MuarlError if the disk is full."""
    with whole_file(path) as out:
        out.write(text)


def write_json(path: Path, data: Any) -> None:
    """Write JSON whole or not at all, indented, readable by eye."""
    write_text(path, in_utf8(json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False)) + "\n")


def append_line(path: Path, data: Mapping[str, Any]) -> None:
    """Append one JSON object as one whole line. If it does not fit on the disk, the file stays as it was."""
    append_bytes(path, json_line(data).encode())


def json_line(data: Mapping[str, Any]) -> str:
    """One JSON object as a line of a JSON-lines file."""
    return in_utf8(json.dumps(plain(data), ensure_ascii=False, allow_nan=False)) + "\n"


def in_utf8(text: str) -> str:
    """A JSON text whose halves of characters (lone surrogates), which a model or a log may hold and UTF-8 has not, are
    escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def append_bytes(path: Path, data: bytes) -> None:
    """Append all of ``data``, or leave the file as it was. MuarlError if the disk is full."""
    with clear_disk_errors(path):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            before = os.fstat(handle).st_size
            try:
                written = 0
                while written < len(data):
                    written += os.write(handle, data[written:])
            except BaseException:
                try:
                    os.ftruncate(handle, before)
                except OSError:  # not a regular file: nothing was kept anyway
                    pass
                raise
        finally:
            os.close(handle)


def drop_broken_tail(path: Path) -> bool:
    """Cut an unfinished last line that a killed process left behind; True if there was one."""
    if not path.is_file():
        return False
    content = path.read_bytes()
    if not content or content.endswith(b"\n"):
        return False
    with open(path, "r+b") as file:
        file.truncate(content.rfind(b"\n") + 1)
    return True


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file; an empty list if there is none, an unfinished last line is left out.

    MuarlError names file and line of anything else that is not a JSON object.
    """
    if not path.is_file():
        return []
    rows: list[dict[str, Any]] = []
    for number, line in untrusted.read_lines(path):
        if not line.strip():
            continue
        try:
            row = untrusted.parse_json(line.decode("utf-8", "replace"))
            if not isinstance(row, dict):
                raise ValueError("not an object")
        except ValueError as problem:
            if not line.endswith(b"\n"):
                break
            raise MuarlError(f"{path}, line {number}: {problem}. Fix or remove that line.") from None
        rows.append(row)
    return rows


def lock_folder(folder: Path) -> int | None:
    """A lock on a run's folder, to be closed by os.close; it ends with this process at the latest, so that none is left
    behind, and no file is made. None where the file system knows no locks. MuarlError if another process holds it."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return None
    handle = None
    try:
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if handle is not None:
            os.close(handle)
        raise MuarlError(
            f"Another process is at work in {folder}: only one at a time can continue there. Wait for it, or stop it "
            "first (status.json has its process id)."
        ) from None
    except OSError:  # a file system without locks
        if handle is not None:
            os.close(handle)
        return None
    return handle


def overwrite(path: Path, data: bytes) -> None:
    """Put JSON where a file's bytes are, which needs no room; what is left of those becomes blanks."""
    with open(path, "r+b" if path.exists() else "wb") as file:
        file.write(data.ljust(path.stat().st_size))
