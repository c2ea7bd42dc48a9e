"""Writing a published folder whole, and over nothing but an unchanged one of this command's own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.files import clear_disk_errors
from muarl.basics.untrusted import read_json_object

RECORD = "muarl-export.json"
"""The file that says what a folder was made of and by what, and what the sums of its files are."""

WHEELS = "wheels"
"""The folder of the vendored wheel, whose bytes another build may change."""

LEFT_BEHIND = ("__pycache__", ".pytest_cache", "build", "dist")
"""Folders that trying an export leaves in it, besides ``*.egg-info``; they are replaced with it."""

Content = str | bytes | Path
"""A file's text or bytes, or the file that it is copied from."""


def check_place(out: Path) -> None:
    """ConfigError if something is at ``out`` that this command did not write, or that was changed since."""
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir():
        raise ConfigError(f"--out: {out} is a file: name a folder")
    if not any(out.iterdir()):
        return
    sums = _recorded_sums(out)
    if sums is None:
        raise ConfigError(f"--out: {out} was not written by muarl env export: name another folder, or remove it")
    there = {name: path for name, path in _files(out) if name != RECORD}
    changed = sorted(n for n, p in there.items() if not n.startswith(f"{WHEELS}/") and sums.get(n) != _sum(p))
    if changed:
        raise ConfigError(
            f"--out: {out} has files that were changed or added since it was written ({', '.join(changed[:3])}): name "
            "another folder, or remove it"
        )


def write_folder(out: Path, contents: Mapping[str, Content], about: Mapping[str, Any]) -> None:
    """Write a folder with these files, by their relative paths, and ``RECORD`` with what it is ``about``; in the place
    of an earlier export if there is one (``check_place``). It appears whole or not at all."""
    check_place(out)
    with clear_disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.", suffix=".tmp") as staging:
            made, old = Path(staging) / "new", Path(staging) / "old"
            _fill(made, contents)
            sums = {n: _sum(p) for n, p in sorted(_files(made)) if not n.startswith(f"{WHEELS}/")}
            text = json.dumps({**about, "files": sums}, indent=2, ensure_ascii=False)
            (made / RECORD).write_text(text + "\n", encoding="utf-8")
            if out.exists():
                os.replace(out, old)
            try:
                os.replace(made, out)
            except BaseException:
                if old.exists():
                    os.replace(old, out)
                raise


def _fill(folder: Path, contents: Mapping[str, Content]) -> None:
    for name, content in contents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copyfile(content, file)
        else:
            file.write_bytes(content.encode() if isinstance(content, str) else content)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder by their relative paths, but for what is left behind by trying it."""
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        passing = any(part in LEFT_BEHIND or part.endswith(".egg-info") for part in parts)
        if not passing and (path.is_symlink() or not path.is_dir()):
            yield "/".join(parts), path


def _recorded_sums(folder: Path) -> Mapping[str, str] | None:
    """The sums that a folder's record has; None where there is no such record."""
    try:
        sums = read_json_object(folder / RECORD).get("files")
    except DataError:
        return None
    return sums if isinstance(sums, dict) else None


def _sum(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return "no file"
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
