"""Several seeds by one command: each once, in order, resumable, and nothing of another experiment."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.observe.rundir import RunDirectory
from muarl_tools.commands.seeds import wait_for


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that were run, by a stand-in that leaves a finished run as they do. ``seed 9`` fails."""
    seen: list[list[str]] = []

    def launch(given: Sequence[str]) -> int:
        words = list(given)
        seen.append(words)
        if "--resume" in words:
            RunDirectory(Path(words[-1]).parent, Path(words[-1]).name, existing="resume").write_status("finished")
            return 0
        seed, name = (words[words.index(option) + 1] for option in ("--seed", "--name"))
        overrides = [w for w in words[1:] if "=" in w]
        config = load_config("cpu", [*overrides, f"seed={seed}", f"name={name}"])
        made = RunDirectory(config.runs_dir, name)
        made.write_config(config.model_dump(mode="json"))
        made.log({"success": int(seed) / 10}, phase="rl", step=0)
        made.write_status("failed" if seed == "9" else "finished")
        return 1 if seed == "9" else 0

    monkeypatch.setattr("muarl_tools.commands.seeds.launch", launch)
    return seen


def seeds(*words: str) -> Any:
    return CliRunner().invoke(app, ["seeds", *words])


def test_each_seed_is_run_once_and_all_are_summed_up(children: list[list[str]], tmp_path: Path) -> None:
    runs = f"runs_dir={tmp_path}"
    found = seeds("--name", "x", "2,4-5", "train", "--config", "cpu", "rl.steps=1", runs)
    assert found.exit_code == 0, found.output
    common = ["train", "--config", "cpu", "rl.steps=1", runs]
    assert children == [[*common, "--seed", s, "--name", f"x-seed{s}"] for s in "245"]
    assert "36.7%" in found.output and "20.0%" in found.output and "50.0%" in found.output
    assert (tmp_path / "x-seeds.html").is_file()


def test_the_same_command_goes_on_where_it_stopped(children: list[list[str]], tmp_path: Path) -> None:
    words = ("--name", "x", "1,9,2", "train", f"runs_dir={tmp_path}")
    failed = seeds(*words)
    assert failed.exit_code == 2 and "seed 9 ended with exit code 1" in failed.output
    children.clear()
    assert seeds(*words).exit_code == 0
    assert children == [
        ["train", "--resume", str(tmp_path / "x-seed9")],
        ["train", f"runs_dir={tmp_path}", "--seed", "2", "--name", "x-seed2"],
    ]


def test_runs_of_another_experiment_are_left_alone(children: list[list[str]], tmp_path: Path) -> None:
    assert seeds("--name", "x", "1", "train", f"runs_dir={tmp_path}").exit_code == 0
    children.clear()
    other = seeds("--name", "x", "1,2", "train", f"runs_dir={tmp_path}", "rl.lr=0.1")
    assert other.exit_code == 2 and "holds a run with other settings" in other.output
    assert not children


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("a,b", "train"), "must look like 0,1,2 or 0-4"),
        (("5-1", "train"), "no range"),
        (("0", "eval"), "cannot be repeated"),
        (("0", "train", "--seed", "1"), "remove --seed"),
        (("0", "train", "rl.stpes=1"), "did you mean 'rl.steps'"),
    ],
)
def test_what_cannot_be_repeated_is_told_before_any_work(
    children: list[list[str]], words: tuple[str, ...], told: str
) -> None:
    found = seeds(*words)
    assert found.exit_code == 2
    assert told in " ".join(found.output.split())
    assert not children


class Stopping:
    """A process that is stopped by Ctrl-C, or by a SIGTERM to the one that waits for it, and saves before it ends."""

    def __init__(self, number: int) -> None:
        self.number, self.waits, self.got = number, 0, list[int]()

    def send_signal(self, number: int) -> None:
        self.got.append(number)

    def wait(self) -> int:
        self.waits += 1
        if self.waits == 1 and self.number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number == signal.SIGTERM:
            os.kill(os.getpid(), signal.SIGTERM)
        return 128 + self.number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_seed_that_is_stopped_may_save_what_it_has(number: int) -> None:
    before, child = signal.getsignal(signal.SIGTERM), Stopping(number)
    assert wait_for(child) == 128 + number  # type: ignore[arg-type]
    assert child.got == ([signal.SIGTERM] if number == signal.SIGTERM else [])
    assert signal.getsignal(signal.SIGTERM) is before


def test_several_domains_of_a_repeated_run() -> None:
    from muarl_tools.commands.seeds import _config

    source, overrides = _config("train", ["--domain", "retail-generated", "-d", "airline-generated=2", "rl.steps=1"])
    assert source == "cpu"
    assert overrides == ["rl.steps=1", 'domain.name=["retail-generated", {"name": "airline-generated", "weight": 2.0}]']
