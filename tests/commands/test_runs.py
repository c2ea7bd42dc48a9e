"""``muarl runs``: what it lists of each run, and in which order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.cli import app
from muarl.observe.listing import list_runs
from muarl.observe.rundir import RunDirectory


def muarl(*words: str) -> Any:
    return CliRunner().invoke(app, ["runs", *words])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three runs, and three folders that are none."""
    with RunDirectory(tmp_path, "trained", command="train") as run:
        run.write_config({"domain": {"name": "retail-generated"}})
        run.log({"success": 0.25, "user/cost": 0.5}, phase="rl", step=0)
        run.log({"success": 0.75, "user/cost": 1.0}, phase="rl", step=1)
    with RunDirectory(tmp_path, "measured", command="eval") as run:
        run.write_config({"domain": {"name": "tau2-airline"}})
        run.write_summary({"evaluation": {"success": 0.5}, "cost": {"agent": 2.0, "user": None, "total": None}})
    old = tmp_path / "old"  # of an older muarl: no command, no host, no beginning
    old.mkdir()
    (old / "status.json").write_text('{"state": "running", "pid": 4194305, "at": "2020-01-01T00:00:00+00:00"}')
    (old / "config.yaml").write_text("domain: {name: club}\n")
    dead = tmp_path / "dead"
    dead.mkdir()
    status = json.loads((tmp_path / "trained" / "status.json").read_text())
    (dead / "status.json").write_text(json.dumps({**status, "state": "running", "pid": 4194305}))
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "status.json").write_text("{")
    (tmp_path / "a file").write_text("")
    return tmp_path


def test_each_run_is_told(folder: Path) -> None:
    found = {run.name: run for run in list_runs(folder)}
    assert set(found) == {"trained", "measured", "old", "dead"}
    trained, measured, old = found["trained"], found["measured"], found["old"]
    assert (trained.kind, trained.domain, trained.state, trained.steps) == ("train", "retail-generated", "finished", 2)
    assert (trained.success, trained.held_out, trained.cost) == (0.75, False, 1.5)
    assert (measured.kind, measured.success, measured.held_out, measured.steps) == ("eval", 0.5, True, None)
    assert measured.cost == 2.0
    assert (old.kind, old.domain, old.when[:4]) == ("", "club", "2020")
    assert old.state == "running", "it does not say where its process was"
    assert found["dead"].state == "killed"


def test_the_order_is_as_asked(folder: Path) -> None:
    assert [r.name for r in list_runs(folder, "name")] == ["dead", "measured", "old", "trained"]
    assert list_runs(folder, "when")[-1].name == "old"
    assert [r.name for r in list_runs(folder, "success")][:2] == ["trained", "measured"]
    assert list_runs(folder, "cost")[0].name == "measured"


def test_the_list_for_people_and_for_programs(folder: Path) -> None:
    shown = muarl(str(folder), "--sort", "name")
    assert shown.exit_code == 0, shown.output
    line = next(row for row in shown.stdout.splitlines() if row.startswith("trained"))
    assert line.split()[:6] == ["trained", "train", "retail-generated", "finished", "2", "(75.0%)"]
    rows = json.loads(muarl(str(folder), "--json").stdout)
    assert {row["name"] for row in rows} == {"trained", "measured", "old", "dead"}
    assert rows[0]["path"].startswith(str(folder))


def test_a_folder_without_runs(tmp_path: Path) -> None:
    assert "There is no run in" in muarl(str(tmp_path)).stdout
    missing = muarl(str(tmp_path / "nowhere"))
    assert missing.exit_code == 2 and "there is no such folder" in missing.stderr
