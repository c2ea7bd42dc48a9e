"""Which checkpoints of a run can be gone on from, and which may go.

A checkpoint is deleted under another name than its own, so that whatever has a checkpoint's name is whole.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muarl.basics.errors import CheckpointError
from muarl.learning.checkpoint_folders import list_checkpoints

PIN = "KEEP"
"""A file of this name in a checkpoint's folder, put there by hand: it is never deleted."""

DAMAGED = "damaged-"
"""How the name of a checkpoint begins that a run has gone back behind."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Which checkpoints are kept."""

    last: int | None = None
    """The newest (None: all)."""
    best: int = 0
    """The best by score."""
    every: int = 0
    """Every one whose step is a multiple of this (0: none for that)."""

    def __post_init__(self) -> None:
        if self.last is not None and self.last < 1:
            raise ValueError(f"last must be at least 1, not {self.last}: a run resumes from its newest checkpoint")

    def doomed(self, steps: Sequence[int], scores: Mapping[int, float] | None = None) -> list[int]:
        """Of these steps, those whose checkpoints may go. ``scores``: step to score, higher is better; of equal ones
        the newest counts as the best. The newest never goes."""
        if self.last is None:
            return []
        scores = scores or {}
        ranked = sorted((s for s in steps if s in scores), key=lambda s: (scores[s], s), reverse=True)
        retained = {*sorted(steps)[-self.last :], *ranked[: self.best]}
        return sorted(s for s in steps if s not in retained and not (self.every and s % self.every == 0))

    def at_once(self, steps: Sequence[int]) -> int:
        """The most checkpoints that are there at the same time while those of these steps (ascending) are written one
        after another, if none is kept for its score: the retained ones, and the newest before an older one goes."""
        recent = len(steps) if self.last is None else min(len(steps), self.last + 1)
        return recent + sum(1 for s in steps[: len(steps) - recent] if self.every and s % self.every == 0)


def newest_whole(root: Path) -> tuple[Path | None, list[CheckpointError]]:
    """The newest checkpoint under ``root`` that training can continue from, and what is wrong with those after it,
    newest first. All its files are read and compared with their sums."""
    from muarl.learning.checkpoints import check_whole  # imports torch, which deleting folders does not need

    problems = []
    for _, path in reversed(list_checkpoints(root)):
        try:
            check_whole(path)
        except CheckpointError as problem:
            problems.append(problem)
        else:
            return path, problems
    return None, problems


def prune_checkpoints(
    root: Path,
    retention: Retention,
    *,
    scores: Mapping[int, float] | None = None,
    needed: Collection[Path] = (),
) -> list[Path]:
    """Delete the checkpoints under ``root`` that need not be kept, and what killed runs left half-written; returns what
    went. To be called when the newest is whole.

    ``needed``: folders that others go by. They stay, and so do those with a file ``KEEP`` and those that a link beside
    them points to.
    """
    root = Path(root)
    if not root.is_dir():
        return []
    checkpoints = dict(list_checkpoints(root))
    pinned = {Path(p).resolve() for p in needed} | {p.resolve() for p in root.iterdir() if p.is_symlink()}
    gone = []
    for step in retention.doomed(list(checkpoints), scores):
        path = checkpoints[step]
        if path.is_symlink() or path.resolve() in pinned or (path / PIN).exists():
            continue
        aside = root / f".{path.name}.gone"
        shutil.rmtree(aside, ignore_errors=True)
        os.replace(path, aside)
        gone.append(path)
    newest = max(checkpoints, default=-1)
    for path in root.glob(f"{DAMAGED}step-*"):
        number = path.name.removeprefix(f"{DAMAGED}step-").split("-")[0]
        if number.isdecimal() and int(number) <= newest:
            gone.append(path)
            shutil.rmtree(path, ignore_errors=True)
    tidy(root)
    return gone


def tidy(root: Path) -> None:
    """Remove what killed processes left half-written or half-deleted beside checkpoints. One that was being replaced
    while its successor had not yet taken its place is put back."""
    for path in Path(root).glob(".*"):
        if path.suffix == ".old" and path.is_dir():
            place = path.with_name(path.name[1:].rsplit(".", 2)[0])
            if not place.exists() and any(path.iterdir()):
                os.replace(path, place)
                continue
        if path.suffix in (".partial", ".old", ".gone") and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def set_aside(root: Path, after: Path | None) -> list[Path]:
    """Rename the checkpoints under ``root`` that are newer than ``after`` (None: all of them), so that the run can
    write them anew; returns their new places."""
    moved = []
    for _, path in reversed(list_checkpoints(root)):
        if path == after:
            break
        place = path.with_name(f"{DAMAGED}{path.name}")
        for number in range(2, 100):
            if not place.exists():
                break
            place = path.with_name(f"{DAMAGED}{path.name}-{number}")
        os.replace(path, place)
        moved.append(place)
    return moved
