"""Evaluations by local servers: their options, what they leave behind, and a Ctrl-C in their midst."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muarl.runs import results_store as results
from muarl.types.episode import Episode
from support.eval_servers import without
from support.fake_openai import FakeOpenAI

GENERATED = ["domain.size=tiny", "eval_user.guidelines=muarl", "eval.baseline=false"]


def models(server: FakeOpenAI) -> list[str]:
    url = f"@{server.url}"
    once = ["eval.endpoint.attempts=1", "eval_user.endpoint.attempts=1"]
    return ["--agent", f"endpoint:agent{url}", "--user", f"endpoint:user{url}", *GENERATED, *once, "-j", "2"]


def summary(run: Path) -> dict[str, Any]:
    return json.loads((run / "summary.json").read_text())


def rows(run: Path) -> list[dict[str, Any]]:
    """The run's episodes, without what a clock or a retry leaves in them."""
    out = []
    for line in (run / "episodes" / "eval.jsonl").read_text().splitlines():
        row = without(json.loads(line), "timings")
        row["turns"] = [t["message"] for t in row["turns"]]
        row["tags"].pop("resumed", None)
        out.append(row)
    return out


def lasting(found: dict[str, Any]) -> dict[str, Any]:
    return without(found, "seconds")


class Stop:
    """Ctrl-C in place of keeping episode number ``at``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.kept, original = 0, results.ResultsStore.keep

        def keep(this: Any, episode: Episode, judged: Any) -> None:
            self.kept += 1
            if self.kept == at:
                raise KeyboardInterrupt
            original(this, episode, judged)

        monkeypatch.setattr(results.ResultsStore, "keep", keep)
        self.mend = lambda: monkeypatch.setattr(results.ResultsStore, "keep", original)
