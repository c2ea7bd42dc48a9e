"""Where a run's checkpoints are, by their folders' names. Light: nothing of torch is imported to look."""

from __future__ import annotations

import re
from pathlib import Path

STEP = re.compile(r"step-(\d+)")


def checkpoint_path(root: Path, step: int) -> Path:
    """``root/step-000012``."""
    return Path(root) / f"step-{step:06d}"


def list_checkpoints(root: Path) -> list[tuple[int, Path]]:
    """(step, folder) of the checkpoints under ``root``, oldest first; folders of other names are ignored."""
    if not Path(root).is_dir():
        return []
    found = [(int(m[1]), p) for p in Path(root).iterdir() if p.is_dir() and (m := STEP.fullmatch(p.name))]
    return sorted(found)


def latest_checkpoint(root: Path) -> Path | None:
    """The newest checkpoint under ``root``, or None."""
    found = list_checkpoints(root)
    return found[-1][1] if found else None
