"""Several seeds by one command: each once, in order, resumable, and nothing of another experiment."""

from __future__ import annotations

import json
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
from muarl_tools.experiments.stages import asked_of, wait_for
from support.ended import Ended


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that were run, by a stand-in that leaves a finished run as they do. ``seed 9`` fails."""
    seen: list[list[str]] = []

    def launch(given: Sequence[str], output: Any = None) -> Ended:
        words = list(given)
        seen.append(words)
        if output is not None:
            output.write(b"of a child")
        if "--resume" in words:
            folder = Path(words[words.index("--resume") + 1])
            RunDirectory(folder.parent, folder.name, existing="resume").write_status("finished")
            return Ended(0)
        seed, name = (words[words.index(option) + 1] for option in ("--seed", "--name"))
        overrides = [w for w in words[1:] if "=" in w]
        config = load_config("cpu", [*overrides, f"seed={seed}", f"name={name}"])
        made = RunDirectory(config.runs_dir, name)
        made.write_config(config.model_dump(mode="json"))
        made.log({"success": int(seed) / 10}, phase="rl", step=0)
        made.write_status("failed" if seed == "9" else "finished")
        return Ended(1 if seed == "9" else 0)

    monkeypatch.setattr("muarl_tools.experiments.stages.launch", launch)
    return seen


def seeds(*words: str) -> Any:
    return CliRunner().invoke(app, ["seeds", *words])


def told(found: Any) -> str:
    return " ".join(found.output.replace("│", " ").split())


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
    assert failed.exit_code == 2 and "x-seed9 ended with exit code 1" in failed.output
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
    assert other.exit_code == 2 and "was begun with other settings (rl.lr)" in told(other)
    assert not children


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("a,b", "train"), "must look like 0,1,2 or 0-4"),
        (("5-1", "train"), "no range"),
        (("0", "eval"), "cannot be repeated"),
        (("0", "train", "--seed", "1"), "remove --seed"),
        (("0", "train", "--seed=0"), "remove --seed"),
        (("0", "train", "--stpes", "1"), "No such option: --stpes"),
        (("0", "quickstart", "--checkpoint", "base"), "No such option: --checkpoint"),
        (("0", "train", "rl.stpes=1"), "did you mean 'rl.steps'"),
    ],
)
def test_what_cannot_be_repeated_is_told_before_any_work(
    children: list[list[str]], words: tuple[str, ...], expected: str
) -> None:
    found = seeds(*words)
    assert found.exit_code == 2
    assert expected in told(found)
    assert not children


class Stopping(Ended):
    """A process that is stopped by Ctrl-C, or by a SIGTERM to the one that waits for it, and saves before it ends."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number, self.polls, self.got = number, 0, list[int]()

    def send_signal(self, number: int) -> None:
        self.got.append(number)

    def poll(self) -> int | None:
        self.polls += 1
        if self.polls > 1:
            return self.returncode
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGTERM)
        return None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_seed_that_is_stopped_may_save_what_it_has(number: int) -> None:
    before, child = signal.getsignal(signal.SIGTERM), Stopping(number)
    assert wait_for([child]) is child  # type: ignore[list-item, comparison-overlap]
    assert child.got == ([signal.SIGTERM] if number == signal.SIGTERM else [])
    assert signal.getsignal(signal.SIGTERM) is before


def test_several_domains_of_a_repeated_run(children: list[list[str]], tmp_path: Path) -> None:
    words = ["--domain", "retail-generated", "-d", "airline-generated=2", "rl.steps=1", f"--runs-dir={tmp_path}"]
    once = asked_of("train", *words, "--seed", "4")
    assert "seed" in once.given and "config" not in once.given
    config = once.config
    assert [(d.name, d.weight) for d in config.domains] == [("retail-generated", 1.0), ("airline-generated", 2.0)]
    assert (config.seed, config.rl.steps, config.runs_dir) == (4, 1, tmp_path)


def test_settings_that_may_change_are_those_of_now_where_a_seed_is_resumed(
    children: list[list[str]], tmp_path: Path
) -> None:
    words = ("--name", "x", "9", "train", f"runs_dir={tmp_path}")
    assert seeds(*words).exit_code == 2
    assert seeds(*words, "budget.max_cost=2.5").exit_code == 0
    assert children[-1] == ["train", "--resume", str(tmp_path / "x-seed9"), "budget.max_cost=2.5"]


def test_seeds_at_once_print_to_files_of_their_own(children: list[list[str]], tmp_path: Path) -> None:
    found = seeds("--jobs", "2", "--name", "x", "1,9,2", "train", f"runs_dir={tmp_path}")
    assert found.exit_code == 2 and "x-seed9 ended with exit code 1" in found.output
    assert len(children) == 3, "one that fails takes none of the others along"
    assert (tmp_path / "x-seed2.log").read_bytes() == b"of a child"


def test_what_was_found_is_kept_as_json(children: list[list[str]], tmp_path: Path) -> None:
    assert seeds("--name", "x", "2,4", "train", f"runs_dir={tmp_path}").exit_code == 0
    found = json.loads((tmp_path / "x-seeds.json").read_text())
    row = next(one for one in found["scores"] if one["score"].startswith("Training success"))
    assert row["values"] == {"x-seed2": 0.2, "x-seed4": 0.4} and row["lowest"] == 0.2
    assert found["runs"] == ["x-seed2", "x-seed4"]
