"""The command ``muarl runs``; tests/observe/test_listing.py tests what it lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from muarl.cli import app


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
