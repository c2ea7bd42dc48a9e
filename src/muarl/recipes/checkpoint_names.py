"""What a checkpoint may be called: one that comes with muarl, a run, a folder."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from muarl.errors import CheckpointError

SHIPPED = {"base": "retail-generated", "base-airline": "airline-generated", "base-telecom": "telecom-generated"}
"""The small base checkpoints that come with muarl, and the generated domain that each was made on."""


def checkpoint_folder(spec: str) -> Path:
    """The folder that a checkpoint's name stands for.

    ``base``, ``base-airline``, ``base-telecom``: the checkpoints shipped with muarl. A checkpoint folder: itself. A
    run, RUN/checkpoints or RUN/checkpoints/last: the run's newest checkpoint of reinforcement learning
    (checkpoints/rl/step-N) if it has one, else of the cold start (checkpoints/step-N), else its base checkpoint
    (checkpoints/base).
    CheckpointError if a run has none.
    """
    if spec in SHIPPED:
        folder = Path(str(resources.files("muarl") / "assets" / spec))
        if not (folder / "config.json").is_file():
            raise CheckpointError(
                f"the checkpoint {spec} is not part of this installation: make one with `muarl base domain.name="
                f"{SHIPPED[spec]}`, then pass its folder"
            )
        return folder
    path = Path(spec).expanduser()
    if (path / "config.json").is_file():
        return path
    if path.name == "last" and not path.exists():
        root = path.parent
    elif path.name == "checkpoints":
        root = path
    else:
        root = path / "checkpoints"
    if not root.is_dir():
        return path  # whoever loads it says what is missing
    from muarl.learning.checkpoints import latest_checkpoint  # whoever only plans needs no torch

    base = root / "base"
    found = latest_checkpoint(root / "rl") or latest_checkpoint(root) or (base if base.is_dir() else None)
    if found is None:
        raise CheckpointError(f"{root}: holds no whole checkpoint: the run ended before it wrote one")
    return found
