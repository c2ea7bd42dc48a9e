"""A resumed run's folder: as it was until the work goes on, and after a refusal."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from muarl.basics.errors import ConfigError, InfrastructureError, MuarlError
from muarl.observe.rundir import RunDirectory
from muarl.runs.resuming import ResumedRun
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn
from support.toy_shop import toy_task

EPISODE = Episode("e", "t", "toy", [Turn(Message("user", "Hi"))], StopReason.USER_STOP)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished run."""
    with RunDirectory(tmp_path, "r") as run:
        run.write_config({"seed": 1})
        run.log({"x": 1.0}, phase="rl", step=0)
        run.write_tasks([])
    return run.path


def contents(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}


def seed(folder: Path) -> Any:
    return yaml.safe_load((folder / "config.yaml").read_text())["seed"]


def test_until_the_work_goes_on_the_folder_says_what_it_said(folder: Path) -> None:
    with ResumedRun(folder, {"seed": 2}) as run:
        run.write_tasks([toy_task()])
        run.write_episodes("demonstrations", iter([EPISODE]))
        assert seed(folder) == 1 and not run.read_tasks() and not run.read_episodes("demonstrations")
        run.log({"x": 2.0}, phase="rl", step=1)
        assert seed(folder) == 2 and run.read_tasks() and run.read_episodes("demonstrations") == [EPISODE]
        run.write_episodes("later", [EPISODE])
        assert run.read_episodes("later") == [EPISODE]
    assert json.loads((folder / "status.json").read_text())["state"] == "finished"


@pytest.mark.parametrize("refusal", [ConfigError("another seed"), MuarlError("a malformed row")])
def test_a_refusal_leaves_no_trace(folder: Path, refusal: MuarlError) -> None:
    (folder / "tensorboard" / "old").write_text("events")
    before = contents(folder)
    run = ResumedRun(folder, {"seed": 2})
    with suppress(MuarlError), run:
        run.write_tasks([toy_task()])
        (run.tensorboard / "new").write_text("events")
        raise refusal
    assert contents(folder) == before


def test_what_was_missing_is_missing_again(folder: Path) -> None:
    (folder / "versions.json").unlink()
    with pytest.raises(ConfigError), ResumedRun(folder, {"seed": 2}):
        raise ConfigError("another seed")
    assert not (folder / "versions.json").exists()


@pytest.mark.parametrize(
    ("problem", "state"),
    [
        (ValueError("bug"), "failed"),
        (KeyboardInterrupt(), "interrupted"),
        (InfrastructureError("down", boundary="user"), "failed"),
    ],
)
def test_what_is_no_refusal_is_told_by_the_status(folder: Path, problem: BaseException, state: str) -> None:
    with pytest.raises(type(problem)), ResumedRun(folder, {"seed": 2}):
        raise problem
    assert json.loads((folder / "status.json").read_text())["state"] == state
    assert seed(folder) == 1, "still to be taken up as it was"


def test_a_failure_on_the_way_is_no_refusal(folder: Path) -> None:
    run = ResumedRun(folder, {"seed": 2})
    with suppress(MuarlError), run:
        run.log({"x": 2.0}, phase="rl", step=1)
        raise MuarlError("the disk is full")
    assert json.loads((folder / "status.json").read_text())["state"] == "failed" and seed(folder) == 2


def test_a_run_with_nothing_left_to_do_has_the_configuration_it_was_given(folder: Path) -> None:
    with ResumedRun(folder, {"seed": 2}):
        pass
    assert seed(folder) == 2
