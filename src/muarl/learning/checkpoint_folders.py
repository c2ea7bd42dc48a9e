"""Where a run's checkpoints are, by their folders' names, and which can be used at all. Light: looked at before torch
is imported.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from muarl.basics.errors import CheckpointError, DataError
from muarl.basics.untrusted import read_json_object
from muarl.models.support import Support, support_of

STEP = re.compile(r"step-(\d+)")


def checkpoint_path(root: Path, step: int) -> Path:
    """``root/step-000012``."""
    return Path(root) / f"step-{step:06d}"


def list_checkpoints(root: Path) -> list[tuple[int, Path]]:
    """(step, folder) of the checkpoints under ``root``, oldest first; folders of other names are ignored."""
    if not Path(root).is_dir():
        return []
    checkpoints = [(int(m[1]), p) for p in Path(root).iterdir() if p.is_dir() and (m := STEP.fullmatch(p.name))]
    return sorted(checkpoints)


def latest_checkpoint(root: Path) -> Path | None:
    """The newest checkpoint under ``root``, or None."""
    checkpoints = list_checkpoints(root)
    return checkpoints[-1][1] if checkpoints else None


ADAPTER = "adapter_config.json"


def check_kind(path: Path) -> Support | None:
    """What can be done with the model in a folder. CheckpointError, with the remedy, if its config.json describes none
    that can be used, its weights are quantised, or it holds an adapter alone. None for a folder without config.json,
    which is left to those who read it."""
    config = path / "config.json"
    if config.is_file():
        return support_of(_read(config), config)
    if (path / ADAPTER).is_file():
        raise CheckpointError(_adapter_alone(path))
    return None


def _adapter_alone(path: Path) -> str:
    """What is missing beside an adapter, and how to get it."""
    try:
        base = _read(path / ADAPTER).get("base_model_name_or_path")
    except CheckpointError:
        base = None
    above = path.absolute().parent
    if (above / "config.json").is_file():
        return f"{path}: is a LoRA adapter alone. The model that it is merged into is the folder above, {above}"
    named = f" {_short(base)}" if base else ""
    return (
        f"{path}: is a LoRA adapter alone: config.json, weights and tokenizer of its base model are missing. Merge it "
        f"into its base{named} first (peft: PeftModel.from_pretrained(base, adapter).merge_and_unload(), then "
        "save_pretrained of model and tokenizer), and give that folder"
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json_object(path)
    except DataError as problem:
        raise CheckpointError(str(problem).rstrip(".")) from None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:80]}..."
