"""``muarl runs``: what it lists of each run, from files that may be anybody's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.observe.listing import STATUS_BYTES, TAIL_BYTES, RunSummary, list_runs
from muarl.observe.rundir import RunDirectory
from muarl.observe.status import _started, this_process


def muarl(*words: str) -> Any:
    return CliRunner().invoke(app, ["runs", *words])


def listed(folder: Path) -> dict[str, RunSummary]:
    return {run.name: run for run in list_runs(folder)}


def begin(folder: Path, name: str, status: Mapping[str, Any], **files: str) -> Path:
    """A run's folder as its files are."""
    path = folder / name
    path.mkdir()
    (path / "status.json").write_text(json.dumps(status))
    for file, text in files.items():
        (path / {"metrics": "metrics.jsonl", "spending": "spending.jsonl"}[file]).write_text(text)
    return path


@pytest.fixture(scope="module")
def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of every kind."""
    with RunDirectory(tmp_path, "trained") as run:
        run.write_config({"domain": {"name": "retail-generated"}, "rl": {"steps": 40}})
        run.log({"success": 0.25}, phase="rl", step=0)
        run.log({"success": 0.5}, phase="validation", step=0)
        run.log({"success": 0.75}, phase="rl", step=1)
        (run.path / "spending.jsonl").write_text('{"id": "a", "cost": 0.5}\n{"id": "b", "cost": 1.0}\n')
    with RunDirectory(tmp_path, "tuned") as run:
        run.write_config({"sft": {"steps": 200, "epochs": None}})
        run.log({"loss": 0.25}, phase="cold_start", step=99)
    with RunDirectory(tmp_path, "based") as run:
        run.write_config({"base": {"steps": 2500}})
        run.log({"loss": 0.25}, phase="base", step=2499)
    with RunDirectory(tmp_path, "measured") as run:
        run.write_config({"domain": {"name": "tau2-airline"}, "eval": {"tasks": None, "trials": 4}})
        (run.episodes / "eval.jsonl").write_text("")
        run.log({"episodes": 7}, phase="evaluation", step=7)
        cost = {"agent": 2.0, "user": 0.5, "judge": None, "total": None}
        run.write_summary({"evaluation": {"success": 0.5}, "planned": 8, "cost": cost})
    with RunDirectory(tmp_path, "synthesised") as run:
        run.write_config({"coldstart": {"count": 60, "scenarios": ["hotel-generated", "mcp-git"]}})
        run.log({"episodes": 12}, phase="coldstart hotel-generated", step=12)
        run.log({"episodes": 3}, phase="coldstart mcp-git", step=3)
    with RunDirectory(tmp_path, "quick") as run:
        run.write_config({"domain": {"name": "retail-generated"}, "rl": {"steps": 60}})
        run.log({"success": 0.5}, phase="rl", step=59)
        run.write_summary({"demonstrator": 0.9, "cold_start": {"success": 0.25}, "rl": {"success": 0.875}})
    (tmp_path / "empty").mkdir()
    (tmp_path / "a file").write_text("")
    return tmp_path


def test_each_run_is_told(folder: Path) -> None:
    found = listed(folder)
    assert {name: (run.kind, run.domain, run.done, run.planned) for name, run in found.items()} == {
        "trained": ("train", "retail-generated", 2, 40),
        "tuned": ("sft", "", 100, 200),
        "based": ("base", "", 2500, 2500),
        "measured": ("eval", "tau2-airline", 7, 8),
        "synthesised": ("coldstart", "hotel-generated, mcp-git", 15, 60),
        "quick": ("quickstart", "retail-generated", 60, 60),
    }
    scores = {name: (run.success, run.held_out) for name, run in found.items() if run.success is not None}
    assert scores == {"trained": (0.5, True), "measured": (0.5, True), "quick": (0.875, True)}
    assert {name: run.cost for name, run in found.items() if run.cost is not None} == {"trained": 1.5, "measured": 2.5}
    assert {run.state for run in found.values()} == {"finished"}
    assert all(run.began <= str(run.ended) for run in found.values())


def test_a_run_whose_process_is_gone_does_not_run(tmp_path: Path, gone: int) -> None:
    at = {"at": "2026-01-02T03:04:05+00:00", "seconds": 65.0}
    begin(tmp_path, "dead", {"state": "running", "pid": gone, **at}, metrics='{"phase": "rl", "step": 4}\n')
    begin(tmp_path, "alive", {"state": "running", "pid": os.getpid(), **at})
    begin(tmp_path, "stopped", {"state": "interrupted", "pid": gone, **at})
    found = listed(tmp_path)
    assert {name: run.state for name, run in found.items()} == {
        "dead": "killed",
        "alive": "running",
        "stopped": "interrupted",
    }
    assert found["alive"].ended is None and found["dead"].ended is not None
    assert (found["stopped"].began, found["stopped"].ended) == ("2026-01-02T03:03:00+00:00", at["at"])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system tells no processes that have ended")
def test_a_killed_process_that_nobody_waited_for_is_gone(tmp_path: Path) -> None:
    program = [sys.executable, "-S", "-c", "input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as process:
        status = {**this_process(), "pid": process.pid, "process": _started(process.pid)}
        begin(tmp_path, "run", {"state": "running", **status})
        assert listed(tmp_path)["run"].state == "running"
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert listed(tmp_path)["run"].state == "killed"


def test_the_newest_comes_first(tmp_path: Path) -> None:
    for day, name in ((2, "b"), (3, "a"), (1, "c")):
        begin(tmp_path, name, {"state": "finished", "at": f"2026-01-0{day}T00:00:00+00:00", "seconds": 1.0})
    assert [run.name for run in list_runs(tmp_path)] == ["a", "b", "c"]


def test_the_order_is_as_asked(folder: Path) -> None:
    assert [r.name for r in list_runs(folder, "name")] == sorted(listed(folder))
    assert next(r.name for r in list_runs(folder, "success")) == "quick"
    assert [r.name for r in list_runs(folder, "cost")][:2] == ["measured", "trained"]
    assert muarl(str(folder), "--sort", "cost").stdout.splitlines()[1].startswith("measured")


def test_success_without_any_violation_stands_beside_success(tmp_path: Path) -> None:
    share = {"value": 0.28, "interval": [0.2, 0.37], "n": 100}
    blocks = {
        "checked": {"rl": {"success": 0.82, "interval": [0.73, 0.88], "success_without_violation": share}},
        "older": {"rl": {"success": 0.82}, "audit": {"rl": {"decent": share}}},
        "unchecked": {"rl": {"success": 0.82, "success_without_violation": None}},
    }
    for name, summary in blocks.items():
        (begin(tmp_path, name, {"state": "finished"}) / "summary.json").write_text(json.dumps(summary))
    validated = '{"phase": "validation", "step": 0, "success": 0.75, "success_without_violation": 0.5}\n'
    begin(tmp_path, "trained", {"state": "finished"}, metrics=validated)
    found = listed(tmp_path)
    assert {n: r.success_without_violation for n, r in found.items()} == {
        "checked": 0.28, "older": 0.28, "unchecked": None, "trained": 0.5,
    }  # fmt: skip
    assert found["checked"].interval_without_violation == (0.2, 0.37)
    assert found["checked"].interval == (0.73, 0.88)


def test_success_in_training_is_marked_as_such(tmp_path: Path) -> None:
    begin(tmp_path, "t", {"state": "finished"}, metrics='{"phase": "rl", "step": 0, "success": 0.75}\n')
    assert (listed(tmp_path)["t"].success, listed(tmp_path)["t"].held_out) == (0.75, False)
    assert "(75.0%)" in muarl(str(tmp_path)).stdout


def test_seeds_are_listed_with_their_mean(tmp_path: Path) -> None:
    for seed, success in ((0, 0.5), (1, 0.75)):
        path = begin(tmp_path, f"dapo-seed{seed}", {"state": "finished"})
        (path / "summary.json").write_text(json.dumps({"rl": {"success": success}}))
    begin(tmp_path, "other-seed0", {"state": "finished"})
    (tmp_path / "dapo-seeds.html").write_text("")
    found = listed(tmp_path)
    assert set(found) == {"dapo-seed0", "dapo-seed1", "other-seed0", "dapo-seeds"}
    assert (found["dapo-seeds"].kind, found["dapo-seeds"].success) == ("seeds", 0.625)


def test_files_of_others_are_read_in_part_and_what_is_malformed_is_left_blank(tmp_path: Path) -> None:
    begin(tmp_path, "broken", {})
    (tmp_path / "broken" / "status.json").write_text("{")
    begin(tmp_path, "deep", {"state": "finished"})
    (tmp_path / "deep" / "summary.json").write_text('{"rl": ' * 100_000)
    (tmp_path / "deep" / "config.yaml").write_text("a: &a [x]\nb: [*a, *a]\n")
    odd = {"state": ["finished"], "at": 5, "began": {"a": 1}, "seconds": "x", "pid": -1, "command": 7, "domain": [1]}
    begin(tmp_path, "odd", odd)
    (tmp_path / "odd" / "config.yaml").write_text("- 1\n")
    (tmp_path / "odd" / "summary.json").write_text('{"rl": [1], "cost": 3, "planned": "x"}')
    begin(tmp_path, "escape", {"state": "running\x1b[2J", "command": "train\x1b]0;x\x07", "domain": "d" * 5000})
    begin(tmp_path, "account", {"state": "finished"}, spending='{"cost": "x"}\nno\n{"cost": 0.25}\n')
    os.mkfifo(begin(tmp_path, "pipe", {"state": "finished"}) / "metrics.jsonl")
    begin(tmp_path, "number", {"state": "running", "pid": 10**30})
    huge = begin(tmp_path, "huge", {"state": "finished", "padding": "x" * STATUS_BYTES})
    rows = '{"phase": "rl", "step": 0, "success": 0.25}\n' + '{"padding": "' + "x" * TAIL_BYTES + '"}\nnot json\n[1]\n'
    (huge / "metrics.jsonl").write_text(rows + '{"phase": "rl", "step": 6, "success": 0.5}\n{"phase": "rl", "st')
    found = listed(tmp_path)
    assert set(found) == {"broken", "deep", "odd", "escape", "huge", "account", "pipe", "number"}
    assert found["account"].cost == 0.25 and found["number"].state == "killed"
    assert (found["odd"].kind, found["odd"].domain, found["odd"].state) == ("", "", "finished")
    assert found["broken"].state == "unknown" and found["deep"].success is None
    assert (found["huge"].state, found["huge"].done, found["huge"].success) == ("unknown", 7, 0.5)
    shown = muarl(str(tmp_path))
    assert shown.exit_code == 0 and "\x1b" not in shown.stdout and len(found["escape"].domain) < 400
    assert len(json.loads(muarl(str(tmp_path), "--json").stdout)) == 8


def test_the_list_for_people_and_for_programs(folder: Path) -> None:
    shown = muarl(str(folder))
    assert shown.exit_code == 0, shown.output
    line = next(row for row in shown.stdout.splitlines() if row.startswith("trained"))
    assert line.split()[:8] == ["trained", "train", "retail-generated", "finished", "2", "of", "40", "50.0%"]
    assert line.split()[-1] == "$1.50"
    assert "hotel-generated, mcp-git" in shown.stdout
    rows = json.loads(muarl(str(folder), "--json").stdout)
    assert {row["name"] for row in rows} >= {"trained", "measured"}
    assert rows[0]["path"].startswith(str(folder))
    (alone,) = json.loads(muarl(str(folder / "measured"), "--json").stdout)
    assert alone["name"] == "measured", "a run's own folder will do, too"


def test_nothing_heavy_is_imported(folder: Path) -> None:
    code = (
        "import sys; from muarl.observe.listing import list_runs; from pathlib import Path;"
        f"assert list_runs(Path({str(folder)!r}));"
        "print([m for m in ('torch', 'transformers', 'openai', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
