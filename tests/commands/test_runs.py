"""The command ``muarl runs``; tests/observe/test_listing.py tests what it lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from muarl.cli.main import app


def muarl(*words: str) -> Any:
    return CliRunner().invoke(app, ["runs", *words])


def test_a_folder_without_runs(tmp_path: Path) -> None:
    assert "There is no run in" in muarl(str(tmp_path)).stdout
    missing = muarl(str(tmp_path / "nowhere"))
    assert missing.exit_code == 2 and "no such folder" in missing.stderr


def test_the_domains_of_a_cold_start_do_not_fill_the_line(tmp_path: Path) -> None:
    path = tmp_path / "made"
    path.mkdir()
    (path / "status.json").write_text('{"state": "finished", "domain": "hotel-generated, mcp-git, mcp-sqlite"}')
    assert "hotel-generated and 2 more" in muarl(str(tmp_path)).stdout
    assert "hotel-generated, mcp-git, mcp-sqlite" in muarl(str(tmp_path), "--json").stdout


def test_success_without_any_violation_has_a_column(tmp_path: Path) -> None:
    block = '{"success": 0.82, "interval": [0.73, 0.88], "success_without_violation": %s}'
    for name, share in (("a", '{"value": 0.28, "interval": [0.2, 0.37], "n": 100}'), ("b", "null")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text('{"rl": %s}' % (block % share))
    said = CliRunner().invoke(app, ["runs", str(tmp_path)]).output
    assert "without" in said and "violation" in said
    assert "82.0% (73–88)" in said and "28.0% (20–37)" in said and "not checked" in said


def test_a_score_on_tasks_that_were_trained_on_says_so(tmp_path: Path) -> None:
    for name, trained in (("a", True), ("b", False), ("c", "yes")):
        (tmp_path / name).mkdir()
        summary = {"evaluation": {"success": 0.82}, "trained_on_benchmark": trained}
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
    said = " ".join(CliRunner().invoke(app, ["runs", str(tmp_path)]).output.split())
    assert said.count("82.0%") == 3 and said.count("82.0%, trained on it") == 1
    listed = json.loads(muarl(str(tmp_path), "--json").stdout)
    assert {run["name"]: run["trained_on_benchmark"] for run in listed} == {"a": True, "b": False, "c": False}


def test_success_with_harder_users_has_a_column(tmp_path: Path) -> None:
    harder = {"harder_users": {"typical": {"success": 0.75}, "hard": {"success": 0.5}}}
    for name, more in (("a", harder), ("b", {})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps({"rl": {"success": 0.82}} | more))
    said = muarl(str(tmp_path)).stdout
    assert "harder users" in said and said.count("typical 75.0%, hard 50.0%") == 1
    assert '"harder_users": null' in muarl(str(tmp_path), "--json").stdout


def test_success_is_listed_by_domain(tmp_path: Path) -> None:
    path = tmp_path / "mixed"
    path.mkdir()
    (path / "status.json").write_text('{"state": "finished", "domain": "a, b"}')
    scores = '{"rl": {"success": 0.5}, "by_domain": {"a": {"rl": 0.75}, "b": {"rl": 0.25, "do_nothing": 0.1}}}'
    (path / "summary.json").write_text(scores)
    shown = muarl(str(tmp_path)).stdout
    assert all(text in shown for text in ("several:", "50.0%", "75.0%", "25.0%"))
    assert '"by_domain": {\n      "a": 0.75,' in muarl(str(tmp_path), "--json").stdout
