"""Evaluations by local servers: their options, what they leave behind, and a Ctrl-C in their midst."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.runs import results_store as results
from support.eval_servers import without
from support.fake_openai import FakeOpenAI
from support.killing import at_call, ctrl_c

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


def stop(monkeypatch: pytest.MonkeyPatch, at: int) -> Callable[[], None]:
    """Ctrl-C in place of keeping episode number ``at``; returns what takes that back."""
    return at_call(monkeypatch, results.ResultsStore, "keep", at, ctrl_c)
