"""How a run stands: what its process wrote, and whether that process is still there."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from muarl.basics import stopping
from muarl.basics.errors import ConfigError, MuarlError
from muarl.observe import status
from muarl.observe.rundir import RunDirectory
from muarl.report.report_story import notice


def test_a_run_of_this_process_is_running(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, "r", command="train") as run:
        told = run.read_json("status")
        assert (told["pid"], told["host"]) == (os.getpid(), platform.node())
        assert run.state == "running"
    assert run.state == "finished"


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, "running"),
        ({"process": "another start"}, "killed"),
        ({"pid": 2**22 + 1}, "killed"),
        ({"host": "elsewhere", "pid": 2**22 + 1}, "running"),
        ({"host": None, "pid": 2**22 + 1}, "running"),
        ({"pid": "x"}, "running"),
        ({"state": "finished", "pid": 2**22 + 1}, "finished"),
        ({"state": None}, "unknown"),
    ],
)
def test_who_is_gone_was_killed(change: dict[str, object], state: str) -> None:
    told = {"state": "running", **status.this_process(), **change}
    assert status.state_of(told) == state


def test_kill_9_is_seen(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom muarl.observe.rundir import RunDirectory\n"
        f"with RunDirectory({str(tmp_path)!r}, 'r', command='train') as run:\n"
        "    print('ready', flush=True)\n    time.sleep(600)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    run = RunDirectory.at(tmp_path / "r")
    assert run.state == "running"
    child.send_signal(signal.SIGKILL)
    child.wait(60)
    assert run.state == "killed"
    assert run.read_json("status")["state"] == "running", "nobody rewrote it"
    assert "This run was killed" in str(notice(run.read_json("status"), False))


def test_what_stops_a_run_says_how_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stopping, "_by", signal.SIGINT)  # what another test's signal has left

    def notes(problem: BaseException, command: str | None, name: str) -> list[str]:
        with pytest.raises(type(problem)), RunDirectory("runs", name, command=command):
            raise problem
        return problem.__notes__

    assert notes(KeyboardInterrupt(), "train", "a b")[-1] == "Resume: muarl train --resume 'runs/a b'"
    assert notes(MuarlError("the disk is full"), "sft", "c")[-1] == "Resume: muarl sft --resume runs/c"
    own = RunDirectory("runs", "own", command="eval")
    own.write_config({"domain": [{"name": "./my shop.py:SHOP"}, {"name": "retail-generated"}]})
    resumed = "muarl eval --resume runs/own --domain './my shop.py:SHOP'"
    assert own.resume_command == resumed, "a run's folder may not name code by itself"
    assert len(notes(ConfigError("another seed"), "train", "d")) == 1, "what was refused is not taken up again"
    assert len(notes(KeyboardInterrupt(), None, "e")) == 1
    told = json.loads((tmp_path / "runs" / "a b" / "status.json").read_text())
    assert told["message"] == "Interrupted (SIGINT). Saved state is consistent; use --resume."
    assert told["command"] == "train" and told["began"] <= told["at"]
