"""A run's folder as training leaves it, as far as those look at it who use its checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from muarl.config.load import load_config


def make_run(place: Path, *overrides: str, **more: Any) -> Path:
    """A folder with the quickstart's configuration under these settings (and sections laid over it as they are), and
    a checkpoint of nothing but config.json."""
    config = load_config("quickstart", overrides).model_dump(mode="json") | more
    folder = place / "checkpoints" / "rl" / "step-000003"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3", "max_position_embeddings": 40960}))
    (place / "config.yaml").write_text(yaml.safe_dump(config))
    return place
