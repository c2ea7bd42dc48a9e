"""Runs and results to be compared, as small as can be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict, write_episodes
from muarl_tools.compare.attempts import Results


def episode(task: str, trial: int, reward: float | None, *, seed: int | None = None, **more: Any) -> Episode:
    lost = reward is None
    return Episode(
        f"evaluation/{task}#{trial}",
        task,
        "retail",
        [Turn(Message("user", "Hi"))],
        StopReason.INFRASTRUCTURE if lost else StopReason.USER_STOP,
        1000 + trial if seed is None else seed,
        agent="m",
        user="agenda(seed=0)",
        verdict=None if lost else Verdict(reward or 0.0),
        error="the endpoint did not answer" if lost else None,
        **more,
    )


def run_folder(path: Path, episodes: list[Episode], *, stage: str = "eval", **summary: Any) -> Path:
    (path / "episodes").mkdir(parents=True, exist_ok=True)
    write_episodes(path / "episodes" / f"{stage}.jsonl", episodes)
    (path / "summary.json").write_text(json.dumps(summary))
    (path / "status.json").write_text("{}")
    told = {e.task_id: {"id": e.task_id, "scenario": "Help", "actions": []} for e in episodes}
    (path / "tasks.jsonl").write_text("".join(json.dumps(t) + "\n" for t in told.values()))
    return path


def outcomes(found: Results) -> list[tuple[str, int, bool]]:
    return [(a.task, a.trial, a.success) for a in found.attempts]
