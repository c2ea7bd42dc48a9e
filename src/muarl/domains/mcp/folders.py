"""An episode's folder: paths within it, and what is in it at the end."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError


def inside(folder: Path, path: str) -> Path:
    """A relative path inside a folder. ConfigError if it leads out of it."""
    target = (folder / path).resolve()
    if folder.resolve() not in target.parents:
        raise ConfigError(f"the path {path!r} of a task's files leads out of the episode's folder")
    return target


def folder_state(folder: Path) -> dict[str, Any]:
    """All files (path to text) and folders under a folder; bytes that are no text as their hash."""
    state: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            state[name] = {"link": str(path.readlink())}
        elif path.is_dir():
            state[f"{name}/"] = {}
        else:
            data = path.read_bytes()
            try:
                state[name] = {"text": data.decode()}
            except UnicodeDecodeError:
                state[name] = {"sha256": hashlib.sha256(data).hexdigest()}
    return state
