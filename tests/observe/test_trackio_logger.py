"""Logging to Trackio: a stand-in that keeps what it is told, and the package itself where it is installed."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.observe.loggers import make_logger
from muarl.observe.rundir import RunDirectory
from muarl.observe.trackio_logger import NAME_FILE, TrackioSettings
from muarl.runs.context import prepare

SETTINGS = TrackioSettings(project="agents", group="seeds")


class Run:
    def __init__(self, told: dict[str, Any], offline: bool) -> None:
        self.told = told
        self.offline = offline
        self.rows: list[dict[str, Any]] = []
        self.finished = False

    def log(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def finish(self) -> None:
        self.finished = True


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that were begun at the stand-in for the package."""
    from huggingface_hub import constants

    runs: list[Run] = []
    package = ModuleType("trackio")
    package.__spec__ = importlib.machinery.ModuleSpec("trackio", None)

    def init(**told: Any) -> Run:
        runs.append(Run(told, constants.HF_HUB_OFFLINE))
        return runs[-1]

    package.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "trackio", package)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for variable in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
        monkeypatch.delenv(variable, raising=False)
    return runs


def test_project_and_group_arrive_with_the_configuration(begun: list[Run], tmp_path: Path) -> None:
    config = {"seed": 3, "server": {"api_key": "sk-secret"}}
    make_logger(RunDirectory(tmp_path, "a"), trackio=SETTINGS, config=config).close()
    (run,) = begun
    assert (run.told["project"], run.told["group"], run.told["space_id"]) == ("agents", "seeds", None)
    assert re.fullmatch("a-[0-9a-f]{6}", run.told["name"]), "Trackio knows runs by their names alone"
    assert run.told["config"] == {"seed": 3, "server": {"api_key": "***"}}
    assert run.finished


def test_a_resumed_run_continues_its_run(begun: list[Run], tmp_path: Path) -> None:
    make_logger(RunDirectory(tmp_path, "a"), trackio=SETTINGS).close()
    kept = json.loads((tmp_path / "a" / NAME_FILE).read_text())
    again = RunDirectory(tmp_path, "a", existing="resume")
    make_logger(again, trackio=TrackioSettings(project="another")).close()
    make_logger(RunDirectory(tmp_path / "elsewhere", "a"), trackio=SETTINGS).close()
    first, second, other = begun
    assert kept == {"project": "agents", "name": first.told["name"]}
    assert (second.told["project"], second.told["name"]) == ("agents", first.told["name"])
    assert second.told["resume"] == "allow"
    assert other.told["name"] != first.told["name"], "another run of the same name is another run"


def test_figures_are_named_by_phase_and_texts_are_left_out(begun: list[Run], tmp_path: Path) -> None:
    logger = make_logger(RunDirectory(tmp_path, "a"), trackio=SETTINGS)
    logger.log({"loss": 2.0, "note": "text"}, phase="cold_start", step=10)
    logger.log({"reward": 0.5}, phase="rl", step=1)
    (run,) = begun
    assert run.rows == [{"cold_start/loss": 2.0, "cold_start/step": 10}, {"rl/reward": 0.5, "rl/step": 1}]


def test_only_a_run_that_is_sent_elsewhere_may_use_the_network(
    begun: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_logger(RunDirectory(tmp_path, "a"), trackio=SETTINGS).close()
    make_logger(RunDirectory(tmp_path, "b"), trackio=TrackioSettings(space="me/mine")).close()
    monkeypatch.setenv("TRACKIO_SPACE_ID", "me/mine")
    make_logger(RunDirectory(tmp_path, "c"), trackio=SETTINGS).close()
    assert [run.offline for run in begun] == [True, False, False]
    assert begun[1].told["space_id"] == "me/mine"


def test_a_missing_package_is_told_before_there_is_a_run_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(ConfigError, match=r"trackio.enabled needs trackio, .*: pip install 'muarl\[trackio\]'"):
        prepare(load_config("quickstart", ["trackio=true"]))


@pytest.mark.parametrize(
    ("overrides", "enabled"),
    [
        ([], False),
        (["trackio=true"], True),
        (["trackio=false"], False),
        (["trackio.project=mine"], True),
        (["trackio.project=mine", "trackio.enabled=false"], False),
    ],
)
def test_any_key_of_the_section_switches_it_on(overrides: list[str], enabled: bool) -> None:
    assert load_config("quickstart", overrides).trackio.enabled is enabled


TWO_PARTS = """
import socket, sys
from pathlib import Path
def refuse(self, address):
    print("CONNECTS", address)
    raise OSError("no network in this test")
def look_up(*asked, **_):
    print("CONNECTS", asked)
    raise OSError("no network in this test")
socket.socket.connect = refuse
socket.getaddrinfo = look_up
from muarl.observe.loggers import make_logger
from muarl.observe.rundir import RunDirectory
from muarl.observe.trackio_logger import TrackioSettings
folder = Path(sys.argv[1])
for part, existing in enumerate(("suffix", "resume")):
    logger = make_logger(RunDirectory(folder, "a", existing=existing), trackio=TrackioSettings(), config={"seed": 3})
    logger.log({"success": 0.25 + part / 2}, phase="rl", step=part)
    logger.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("trackio") is None, reason="needs the trackio extra")
def test_the_package_keeps_both_parts_of_a_run_in_one_file_and_asks_nobody(tmp_path: Path) -> None:
    own = tmp_path / "trackio"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TRACKIO_", "HF_"))}
    env |= {"TRACKIO_DIR": str(own), "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": "hf_notatoken"}
    done = subprocess.run(
        [sys.executable, "-c", TWO_PARTS, str(tmp_path)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "CONNECTS" not in done.stdout, "a token is there, and still nobody is asked whose it is"
    (file,) = own.glob("*.db")
    with sqlite3.connect(file) as database:
        rows = database.execute("SELECT run_name, step, metrics FROM metrics ORDER BY step").fetchall()
        configs = database.execute("SELECT config FROM configs").fetchall()
    assert len({name for name, _, _ in rows}) == 1
    assert [json.loads(metrics)["rl/success"] for _, _, metrics in rows] == [0.25, 0.75]
    assert all(json.loads(config)["seed"] == 3 for (config,) in configs)
