"""Interrupted runs: what they leave, and that a resumed run goes where an uninterrupted one would have gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.learning.learner import TorchLearner
from muarl.observe.rundir import RunDirectory
from muarl.recipes import quickstart, rl, sft
from support import coin as coins
from support.killing import at_call, ctrl_c, sending

pytestmark = pytest.mark.usefixtures("coin")

Configure = Callable[..., Any]
Litter = Callable[[Path], list[Path]]


@pytest.fixture(scope="module")
def uncut(configure_in: Configure, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of three steps that nothing interrupts."""
    coins.allow()
    options = ["rl.steps=3", "rl.minibatches=2", "rl.checkpoint_every=0"]
    return rl.run(configure_in(tmp_path_factory.mktemp("uncut"), coins.SETTING, *options))


@pytest.fixture(scope="module")
def uncut_sft(configure_in: Configure, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fine-tuning that nothing interrupts."""
    coins.allow()
    options = ["sft.steps=5", "sft.checkpoint_every=0"]
    return sft.run(configure_in(tmp_path_factory.mktemp("uncut"), coins.SETTING, *options))


def rows(run: Path, phase: str) -> list[dict[str, Any]]:
    kept = [r for r in RunDirectory.at(run).read_metrics() if r["phase"] == phase]
    slow = ("seconds", "time/", "per_second")
    return [{k: v for k, v in r.items() if not any(s in k for s in slow)} for r in kept]


def status(run: Path) -> dict[str, Any]:
    return json.loads((run / "status.json").read_text())


def seconds_of(run: Path) -> float:
    return json.loads((run / "summary.json").read_text())["seconds"]


def contents(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}


def test_sft_goes_on_where_it_stopped(
    muarl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, litter: Litter, uncut_sft: Path
) -> None:
    mend = at_call(monkeypatch, TorchLearner, "sft_step", 4, ctrl_c)
    stopped = muarl("sft", "sft.steps=5", "sft.checkpoint_every=2", "--name", "cut")
    mend()
    assert stopped.exit_code == 130
    assert "Traceback" not in stopped.output
    run = tmp_path / "runs" / "cut"
    assert str(run) in stopped.stderr.replace("\n", "")
    assert status(run)["state"] == "interrupted"
    assert not litter(run)
    assert checkpoint_folder(str(run)).name == "step-000002"
    assert [r["step"] for r in rows(run, "cold_start")] == [0, 1, 2]
    resumed = muarl("sft", "--resume", str(run))
    assert resumed.exit_code == 0, resumed.output
    assert rows(run, "cold_start") == rows(uncut_sft, "cold_start")
    assert status(run)["state"] == "finished"
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {"cut"}


def test_training_goes_on_where_it_stopped(
    muarl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, litter: Litter, uncut: Path
) -> None:
    mend = at_call(monkeypatch, TorchLearner, "policy_step", 3, ctrl_c)
    stopped = muarl("train", "rl.steps=3", "rl.minibatches=2", "rl.checkpoint_every=2", "--name", "cut")
    mend()
    assert stopped.exit_code == 130
    run = tmp_path / "runs" / "cut"
    assert status(run)["state"] == "interrupted"
    assert not litter(run)
    assert checkpoint_folder(str(run)).name == "step-000002"
    resumed = muarl("train", "--resume", f"{run}{os.sep}")
    assert resumed.exit_code == 0, resumed.output
    assert rows(run, "rl") == rows(uncut, "rl")
    assert checkpoint_folder(str(run)).name == "step-000003"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "figure"),
    [
        ("adaptive=true", "practice/kinds"),
        ("adaptive=true first_look=2", "practice/groups_filled"),
        ("repeat=0.5", "practice/repeated"),
    ],
)
def test_training_on_chosen_tasks_goes_on_id_for_id(
    chosen: str,
    figure: str,
    configure: Configure,
    muarl: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = ["rl.steps=4", "rl.checkpoint_every=2", "rl.save_episodes=all"]
    options += [f"rl.practice.{setting}" for setting in chosen.split()]
    whole = rl.run(configure(*options, name="whole"))
    mend = at_call(monkeypatch, TorchLearner, "policy_step", 4, ctrl_c)
    assert muarl("train", *options, "--name", "cut").exit_code == 130
    mend()
    run = tmp_path / "runs" / "cut"
    assert checkpoint_folder(str(run)).name == "step-000002"
    refused = muarl("train", "--resume", str(run), "rl.practice.floor=0.5")
    assert refused.exit_code == 2 and "rl.practice.floor was 0.25, not 0.5" in refused.stderr.replace("\n", " ")
    assert muarl("train", "--resume", str(run)).exit_code == 0
    assert rows(run, "rl") == rows(whole, "rl") and figure in rows(run, "rl")[0]
    for step in range(4):
        first, again = (RunDirectory.at(r).read_episodes(f"train-{step:04d}") for r in (whole, run))
        assert first and [(e.id, e.tokens) for e in first] == [(e.id, e.tokens) for e in again]


def test_a_resumed_run_may_be_longer_and_says_so(configure: Configure, muarl: Callable[..., Any]) -> None:
    run = rl.run(configure("rl.steps=1"))
    assert muarl("train", "rl.steps=2", "--resume", str(run)).exit_code == 0
    assert [r["step"] for r in rows(run, "rl")] == [0, 1]
    history = [json.loads(line) for line in (run / "resumes.jsonl").read_text().splitlines()]
    assert [(h["after"], h["changed"]) for h in history] == [({"phase": "rl", "step": 0}, {"rl.steps": [1, 2]})]
    config = yaml.safe_load((run / "config.yaml").read_text())
    assert config["rl"]["steps"] == 2
    assert config["resume"] is None


def test_a_run_is_resumed_from_the_model_that_it_began_with(
    configure: Configure, muarl: Callable[..., Any], base_run: Path, tmp_path: Path, uncut: Path
) -> None:
    start = tmp_path / "start"
    shutil.copytree(checkpoint_folder(str(base_run)), start)
    run = rl.run(configure("rl.steps=1", f"model.checkpoint={start}", "rl.kl_coef=0.001"))
    before = contents(run)
    named = muarl("train", f"model.checkpoint={uncut}", "rl.steps=2", "--resume", str(run))
    assert named.exit_code == 2 and "model.checkpoint was" in named.stderr
    shutil.rmtree(start)
    shutil.copytree(checkpoint_folder(str(uncut)), start)
    result = muarl("train", "rl.steps=2", "--resume", str(run))
    assert result.exit_code == 2
    assert "resume from the same start checkpoint" in result.stderr
    assert contents(run) == before, "a run that was refused is as it was"
    assert status(run)["state"] == "finished"


def test_a_run_cannot_become_shorter(muarl: Callable[..., Any], uncut: Path) -> None:
    before = contents(uncut)
    result = muarl("train", "rl.steps=2", "--resume", str(uncut))
    assert result.exit_code == 2 and "this run has made 3 steps already" in result.stderr.replace("\n", " ")
    assert contents(uncut) == before


@pytest.mark.slow
def test_the_quickstart_goes_on_where_it_stopped(
    configure: Configure, muarl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    whole = quickstart.run(configure("rl.checkpoint_every=2", name="whole"))
    assert seconds_of(whole) <= round(time.monotonic() - began, 1), "what a program did before is not the run's"
    mend = at_call(monkeypatch, TorchLearner, "policy_step", 3, ctrl_c)
    stopped = muarl("quickstart", "rl.checkpoint_every=2", "--name", "cut")
    mend()
    assert stopped.exit_code == 130
    run = tmp_path / "runs" / "cut"
    wrong = muarl("train", "--resume", str(run))
    assert wrong.exit_code == 2
    assert "muarl quickstart --resume" in wrong.stderr
    (run / "status.json").write_text(json.dumps(status(run) | {"seconds": 50_000.0}))
    resumed = muarl("quickstart", "--resume", str(run))
    assert resumed.exit_code == 0, resumed.output
    for phase in ("cold_start", "rl", "evaluation"):
        assert rows(run, phase) == rows(whole, phase), phase
    assert (run / "report.html").is_file()
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {"whole", "cut"}
    assert seconds_of(run) > 50_000, "what the interrupted process took counts"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_middle_of_a_rollout(
    base_run: Path, tmp_path: Path, litter: Litter, number: signal.Signals, code: int
) -> None:
    options = ["-c", "quickstart", f"runs_dir={tmp_path}", "name=r", f"model.checkpoint={base_run}", "threads=1"]
    options += ["rl.steps=1000", "rl.tasks_per_step=8", "rl.eval_every=0", "rl.checkpoint_every=0"]
    command = [sys.executable, "-c", "from muarl.cli.main import main; main()", "train", *options]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run = tmp_path / "r"
    try:
        deadline = time.monotonic() + 120
        while job.poll() is None and time.monotonic() < deadline and not (run / "metrics.jsonl").is_file():
            time.sleep(0.1)
        time.sleep(0.5)
        job.send_signal(number)
        _, errors = job.communicate(timeout=60)
    finally:
        job.kill()
    assert job.returncode == code, errors
    assert "Traceback" not in errors
    assert errors.count("Interrupted") == 1
    assert f"Run folder: {run}" in errors and f"Resume: muarl train --resume {run}" in errors
    assert status(run)["state"] == "interrupted"
    assert not litter(run)
    made = len([json.loads(row) for row in (run / "metrics.jsonl").read_text().splitlines()])
    assert checkpoint_folder(str(run)).name == f"step-{made:06d}", "as many steps as there are rows"


@pytest.mark.parametrize(
    ("number", "code", "asynchrony"),
    [
        (signal.SIGINT, 130, "synchronous"),
        pytest.param(signal.SIGTERM, 143, "synchronous", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 143, "bounded", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 130, "one_step_off", marks=pytest.mark.slow),
    ],
)
def test_a_signal_in_an_update_lets_it_end_and_saves(
    muarl: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    litter: Litter,
    uncut: Path,
    number: signal.Signals,
    code: int,
    asynchrony: str,
) -> None:
    options = ["rl.steps=3", "rl.minibatches=2", "rl.checkpoint_every=0", f"rl.asynchrony={asynchrony}"]
    mend = at_call(monkeypatch, TorchLearner, "policy_step", 2, sending(number))
    stopped = muarl("train", *options, "--name", "cut")
    mend()
    run = tmp_path / "runs" / "cut"
    assert stopped.exit_code == code, stopped.output
    assert stopped.stderr.count("Interrupted") == 1 and "Interrupted; progress saved." in stopped.stderr
    assert f"Resume: muarl train --resume {run}" in stopped.stderr.replace("\n", "")
    assert status(run)["state"] == "interrupted"
    assert status(run)["message"] == f"Interrupted ({number.name}). Saved state is consistent; use --resume."
    assert checkpoint_folder(str(run)).name == "step-000002", "the update that was under way is in it"
    assert [r["step"] for r in rows(run, "rl")] == [0, 1]
    assert not litter(run)
    assert muarl("train", "--resume", str(run)).exit_code == 0
    assert [r["step"] for r in rows(run, "rl")] == [0, 1, 2]
    if asynchrony == "synchronous":
        assert rows(run, "rl") == rows(uncut, "rl")


@pytest.mark.slow
def test_a_signal_in_a_rollout_cuts_it_off_and_saves(
    muarl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uncut: Path
) -> None:
    options = ["rl.steps=3", "rl.minibatches=2", "rl.checkpoint_every=0"]
    mend = at_call(monkeypatch, coins.Customer, "reply", 8 * 2 * 4 + 3, sending(signal.SIGTERM))
    stopped = muarl("train", *options, "--name", "cut")
    mend()
    run = tmp_path / "runs" / "cut"
    assert stopped.exit_code == 143, stopped.output
    assert checkpoint_folder(str(run)).name == "step-000002"
    assert muarl("train", "--resume", str(run)).exit_code == 0
    assert rows(run, "rl") == rows(uncut, "rl")
    assert json.loads((run / "summary.json").read_text())["training"]["steps"] == 3


def test_a_signal_in_fine_tuning_saves_too(
    muarl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uncut_sft: Path
) -> None:
    options = ["sft.steps=5", "sft.checkpoint_every=0"]
    mend = at_call(monkeypatch, TorchLearner, "sft_step", 3, sending(signal.SIGINT))
    stopped = muarl("sft", *options, "--name", "cut")
    mend()
    run = tmp_path / "runs" / "cut"
    assert stopped.exit_code == 130 and f"Resume: muarl sft --resume {run}" in stopped.stderr.replace("\n", "")
    assert checkpoint_folder(str(run)).name == "step-000003"
    assert muarl("sft", "--resume", str(run)).exit_code == 0
    assert rows(run, "cold_start") == rows(uncut_sft, "cold_start")


def test_a_run_that_learns_nothing_says_so(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    run = rl.run(configure("rl.steps=4", "rollout.max_turns=1"))  # nobody comes to toss the coin
    said = " ".join(capsys.readouterr().err.split())
    assert "done" in said and "no update: 0 of 2 groups had differing rewards" in said
    assert "The last 3 steps updated nothing" in said
    assert "No step of the training updated the weights (0 of 8 groups had differing rewards)" in said
    assert [r["groups_equal"] for r in rows(run, "rl")] == [2.0] * 4
    training = json.loads((run / "summary.json").read_text())["training"]
    assert [sign["name"] for sign in training.pop("signs")] == ["no-signal"]
    assert training == {"steps": 4, "steps_without_update": 4, "groups": 8, "groups_equal": 8}
