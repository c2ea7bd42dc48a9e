"""Small training runs of the shipped model, in this process or on a cluster, and what they leave."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

SMALL = [
    "threads=1",
    "model.device=cpu",
    "rollout.max_turns=5",
    "rollout.tokens_per_turn=24",
    "rl.tasks_per_step=2",
    "rl.group_size=4",
    "rl.steps=2",
    "rl.warmup=0",
    "rl.practice.repeat=0",
    "rl.epochs=1",
    "rl.minibatches=1",
    "rl.eval_every=0",
    "rl.checkpoint_every=1",
    "checkpoints.keep_last=null",
    "rl.drop_zero_variance=false",
]


@pytest.fixture
def train(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """``train("name", "rl.steps=3")``: a run's folder once it has ended."""
    from muarl.config.load import load_config
    from muarl.recipes import rl

    def run(name: str, *overrides: str) -> Path:
        return rl.run(load_config("quickstart", [*SMALL, f"runs_dir={tmp_path}", f"name={name}", *overrides]))

    yield run
    import ray

    if ray.is_initialized():
        ray.shutdown()


class FinishedRun:
    """What a run has left. ``episodes``: of each step that kept them, in order."""

    def __init__(self, folder: Path) -> None:
        from muarl.types.episode import Episode, read_episodes

        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        self.rows: list[dict[str, Any]] = [r for r in rows if r["phase"] == "rl"]
        files = sorted((folder / "episodes").glob("train-*.jsonl"))
        self.episodes: list[list[Episode]] = [list(read_episodes(f)) for f in files]
        self.folder = folder
        last = sorted((folder / "checkpoints" / "rl").glob("step-*"))[-1]
        self.checkpoint = last
        self.state: dict[str, Any] = json.loads((last / "trainer.json").read_text())

    @property
    def temperature(self) -> float:
        """At which its tokens were sampled."""
        return float(yaml.safe_load((self.folder / "config.yaml").read_text())["rl"]["temperature"])

    def checkpoint_of(self, version: int) -> Path:
        """The policy after so many updates."""
        from muarl.backends.checkpoint_names import checkpoint_folder

        return self.checkpoint.parent / f"step-{version:06d}" if version else checkpoint_folder("base")
