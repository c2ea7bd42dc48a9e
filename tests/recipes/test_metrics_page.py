"""docs/files.md names every metric that a run writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from muarl.observe.rundir import RunDirectory
from muarl.recipes import quickstart
from muarl.rollouts.episode_runner import EpisodeRunner
from muarl.types.episode import Episode, Verdict


def test_every_metric_of_a_run_stands_on_the_page(
    configure: Callable[..., Any], repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def toss(self: EpisodeRunner, task: Any, world: Any, episode: Episode) -> Verdict:
        verdict = await original(self, task, world, episode)
        return replace(verdict, reward=float(episode.seed % 2))  # so that every step moves the weights

    original = EpisodeRunner._verdict
    monkeypatch.setattr(EpisodeRunner, "_verdict", toss)
    page = (repository / "docs" / "files.md").read_text(encoding="utf-8")
    rows = page.partition("\n## metrics.jsonl\n")[2].partition("\n## ")[0].splitlines()
    named = [code for row in rows if row.startswith("| `") for code in re.findall(r"`([^`]+)`", row.split("|")[1])]
    patterns = [re.sub(r"\b(WHO|REASON|TOOL|NAME)\b", "*", name) for name in named]
    options = ("rl.steps=2", "rl.eval_every=1", "rl.correction=token", "rl.kl_coef=0.001")
    run = RunDirectory.at(quickstart.run(configure(*options)))
    written = {name for row in run.read_metrics() for name in row} - {"phase", "step", "seconds"}
    assert written >= {"nll", "success", "update/kl", "update/correction_mean"}
    for name in sorted(written):
        whole = name.removeprefix("update/")  # these stand without it
        assert any(fnmatchcase(whole, p) for p in patterns if p != "update/*"), name
