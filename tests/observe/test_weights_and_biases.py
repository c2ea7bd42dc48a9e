"""Logging to Weights & Biases: the service is a stand-in that keeps what it is told."""

from __future__ import annotations

import importlib.machinery
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.observe.loggers import ID_FILE, WandbSettings, make_logger
from muarl.observe.rundir import RunDirectory
from muarl.runs.context import prepare


class Run:
    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.id = told["id"] or "abc123"
        self.project, self.entity = told["project"], told["entity"] or ""
        self.rows: list[dict[str, Any]] = []
        self.axes: dict[str, str] = {}
        self.finished = False

    def define_metric(self, name: str, step_metric: str | None = None, hidden: bool = False) -> None:
        if step_metric is not None:
            self.axes[name] = step_metric

    def log(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def finish(self) -> None:
        self.finished = True


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that were begun at the stand-in for the service."""
    runs: list[Run] = []
    service = ModuleType("wandb")
    service.__spec__ = importlib.machinery.ModuleSpec("wandb", None)

    def init(**told: Any) -> Run:
        runs.append(Run(told))
        return runs[-1]

    service.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", service)
    return runs


SETTINGS = WandbSettings(project="agents", entity="team", group="seeds", tags=("a", "b"), mode="offline")


def test_project_entity_group_tags_and_mode_arrive_with_the_configuration(begun: list[Run], tmp_path: Path) -> None:
    config = {"seed": 3, "server": {"api_key": "sk-secret"}}
    make_logger(RunDirectory(tmp_path, "a"), wandb=SETTINGS, config=config).close()
    (run,) = begun
    assert {k: run.told[k] for k in ("project", "entity", "group", "tags", "mode", "name")} == {
        "project": "agents", "entity": "team", "group": "seeds", "tags": ["a", "b"], "mode": "offline", "name": "a",
    }  # fmt: skip
    assert run.told["config"] == {"seed": 3, "server": {"api_key": "***"}}
    assert run.finished


def test_a_resumed_run_continues_its_run_at_the_service(begun: list[Run], tmp_path: Path) -> None:
    make_logger(RunDirectory(tmp_path, "a"), wandb=SETTINGS).close()
    kept = json.loads((tmp_path / "a" / ID_FILE).read_text())
    assert kept == {"id": "abc123", "project": "agents", "entity": "team"}
    again = RunDirectory(tmp_path, "a", existing="resume")
    make_logger(again, wandb=WandbSettings(project="another")).close()
    first, second = begun
    assert first.told["id"] is None
    assert (second.told["id"], second.told["project"], second.told["resume"]) == ("abc123", "agents", "allow")


def test_each_phase_has_its_own_steps(begun: list[Run], tmp_path: Path) -> None:
    logger = make_logger(RunDirectory(tmp_path, "a"), wandb=SETTINGS)
    logger.log({"loss": 2.0, "note": "text"}, phase="cold_start", step=10)
    logger.log({"reward": 0.5}, phase="rl", step=1)
    logger.log({"reward": 0.6}, phase="rl", step=2)
    (run,) = begun
    assert run.axes == {"cold_start/*": "cold_start/step", "rl/*": "rl/step"}
    assert run.rows == [
        {"cold_start/loss": 2.0, "cold_start/step": 10},
        {"rl/reward": 0.5, "rl/step": 1},
        {"rl/reward": 0.6, "rl/step": 2},
    ]


def test_a_missing_package_is_told_before_there_is_a_run_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigError, match=r"wandb.enabled needs wandb, .*: pip install 'muarl\[wandb\]'"):
        prepare(load_config("quickstart", ["wandb=true"]))


@pytest.mark.parametrize(
    ("overrides", "enabled"),
    [
        ([], False),
        (["wandb=true"], True),
        (["wandb=false"], False),
        (["wandb.project=mine", "wandb.tags=[a]"], True),
        (["wandb.project=mine", "wandb.enabled=false"], False),
    ],
)
def test_any_key_of_the_section_switches_it_on(overrides: list[str], enabled: bool) -> None:
    assert load_config("quickstart", overrides).wandb.enabled is enabled
