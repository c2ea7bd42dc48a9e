"""Going on: from the newest whole checkpoint, with the rows that belong to it, one process at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.learning.checkpoint_files import MANIFEST
from muarl.learning.checkpoint_folders import checkpoint_path, list_checkpoints
from muarl.learning.learner import TorchLearner
from muarl.observe.loggers import make_logger
from muarl.observe.rundir import RunDirectory
from muarl.recipes import quickstart, rl, sft
from muarl.recipes.training import loop
from muarl.runs.resuming import ResumedRun
from muarl.types.episode import Episode
from support.killing import at_call, ctrl_c, episodes, litter, rows

pytestmark = pytest.mark.usefixtures("coin")

Configure = Callable[..., Any]
Muarl = Callable[..., Any]


def contents(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}


def steps(root: Path) -> list[int]:
    return [step for step, _ in list_checkpoints(root)]


def spoil(folder: Path, name: str = "trainer.safetensors") -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def test_a_damaged_checkpoint_is_passed_over(configure: Configure, muarl: Muarl, tmp_path: Path) -> None:
    options = ["rl.checkpoint_every=1", "rl.save_episodes=all", "rl.schedule=constant"]
    whole = rl.run(configure(*options, "rl.steps=3", name="whole"))
    cut = rl.run(configure(*options, "rl.steps=2", name="cut"))
    root = cut / "checkpoints" / "rl"
    spoil(checkpoint_path(root, 2))
    (checkpoint_path(root, 1) / MANIFEST).unlink()  # as an older version wrote them
    used = muarl("eval", "--checkpoint", str(cut), "--name", "e", "eval.tasks=1", "eval.baseline=false")
    assert used.exit_code == 0, "its weights are whole"
    result = muarl("train", "--resume", str(cut), "rl.steps=3")
    assert result.exit_code == 0, result.output
    said = result.stderr.replace("\n", " ")
    assert "step-000002/trainer.safetensors: its contents have changed" in said
    assert f"Continuing from {checkpoint_path(root, 1)}" in said
    assert rows(cut) == rows(whole) and steps(root) == [1, 2, 3]
    assert episodes(cut)["train-0002.jsonl"] == episodes(whole)["train-0002.jsonl"]
    assert not litter(cut), "what was set aside has gone, since it was made up for"


def test_a_run_without_a_whole_checkpoint_is_left_as_it_is(configure: Configure, muarl: Muarl, tmp_path: Path) -> None:
    run = rl.run(configure("rl.steps=1"))
    spoil(checkpoint_path(run / "checkpoints" / "rl", 1), "model.safetensors")
    before = contents(run)
    result = muarl("train", "--resume", str(run), "rl.steps=2")
    assert result.exit_code == 2
    assert "No checkpoint in" in result.stderr and "remove those folders" in result.stderr.replace("\n", " ")
    assert contents(run) == before
    evaluated = muarl("eval", "--checkpoint", str(run))
    assert evaluated.exit_code == 2 and "model.safetensors: its contents have changed" in evaluated.stderr.replace(
        "\n", ""
    )


@pytest.mark.slow
def test_only_what_the_rule_keeps_stays(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ["checkpoints.keep_last=2", "checkpoints.keep_best=1", "checkpoints.keep_every=4"]
    seen = iter([0.25, 0.75, 0.5, 0.25, 0.25, 0.25, 0.25])
    original = loop.episode_metrics
    asked = []

    def metrics(found: list[Episode]) -> dict[str, float]:
        out = original(found)
        if found[0].group is not None and found[0].group.startswith("evaluation"):
            asked.append(True)
            # Success alone would keep another one: it is success without any violation that chooses.
            out["success_without_violation"] = next(seen)
            out["success"] = 1 - out["success_without_violation"]
        return out

    monkeypatch.setattr(loop, "episode_metrics", metrics)
    run = rl.run(
        configure(
            "rl.steps=8",
            "rl.group_size=2",
            "rl.tasks_per_step=1",
            "rl.min_group=2",
            "rl.checkpoint_every=1",
            "rl.eval_every=1",
            "eval.tasks=1",
            *kept,
        )
    )
    assert len(asked) == 7
    assert steps(run / "checkpoints" / "rl") == [2, 4, 7, 8], "the best, a multiple of four, and the last two"
    cold = sft.run(configure("sft.steps=3", "sft.checkpoint_every=1", "checkpoints.keep_last=2", name="cold"))
    assert steps(cold / "checkpoints") == [2, 3]
    all_of_them = sft.run(configure("sft.steps=3", "sft.checkpoint_every=1", "checkpoints.keep_last=null", name="all"))
    assert steps(all_of_them / "checkpoints") == [1, 2, 3]


@pytest.mark.slow
def test_rows_and_episodes_after_the_checkpoint_are_written_anew(
    configure: Configure, muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["rl.steps=5", "rl.checkpoint_every=2", "rl.save_episodes=all"]
    whole = rl.run(configure(*options, name="whole"))
    mend = at_call(monkeypatch, TorchLearner, "policy_step", 4, ctrl_c)
    assert muarl("train", *options, "--name", "cut").exit_code == 130
    mend()
    cut = tmp_path / "runs" / "cut"
    assert [r["step"] for r in rows(cut)] == [0, 1, 2] and "train-0002.jsonl" in episodes(cut)
    with open(cut / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"phase": "rl", "st')  # as a killed process leaves it
    (cut / "episodes" / ".train-0003.jsonl.x.tmp").write_text("half")
    partial = cut / "checkpoints" / "rl" / ".step-000004.x.partial"
    partial.mkdir()
    mend = at_call(monkeypatch, TorchLearner, "policy_step", 2, ctrl_c)
    assert muarl("train", "--resume", str(cut)).exit_code == 130, "and once more"
    mend()
    assert [r["step"] for r in rows(cut)] == [0, 1, 2]
    assert not partial.exists()
    assert muarl("train", "--resume", str(cut)).exit_code == 0
    assert rows(cut) == rows(whole), "line by line"
    assert episodes(cut) == episodes(whole)
    assert not litter(cut)


@pytest.mark.slow
def test_a_validation_that_was_cut_off_is_made_up_for(
    configure: Configure, muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["rl.steps=3", "rl.checkpoint_every=2", "rl.eval_every=2"]
    whole = rl.run(configure(*options, name="whole"))
    mend = at_call(monkeypatch, rl, "evaluate", 1, ctrl_c)
    assert muarl("train", *options, "--name", "cut").exit_code == 130
    mend()
    cut = tmp_path / "runs" / "cut"
    assert [(r["phase"], r["step"]) for r in rows(cut)] == [("rl", 0), ("rl", 1)]
    assert muarl("train", "--resume", str(cut)).exit_code == 0
    assert rows(cut) == rows(whole) and "validation" in {r["phase"] for r in rows(cut)}


@pytest.mark.slow
def test_a_finished_evaluation_of_the_quickstart_is_not_played_again(
    configure: Configure, muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = quickstart.run(configure("rl.checkpoint_every=1", name="whole"))
    mend = at_call(monkeypatch, TorchLearner, "policy_step", 3, ctrl_c)
    assert muarl("quickstart", "rl.checkpoint_every=1", "--name", "cut").exit_code == 130
    mend()
    cut = tmp_path / "runs" / "cut"
    played: list[str] = []
    original = quickstart.evaluate

    def evaluate(*args: Any, label: str, **more: Any) -> Any:
        played.append(label)
        return original(*args, label=label, **more)

    monkeypatch.setattr(quickstart, "evaluate", evaluate)
    assert muarl("quickstart", "--resume", str(cut)).exit_code == 0
    assert played == ["evaluation after RL", "greedy evaluation"]
    assert rows(cut) == rows(whole) and episodes(cut) == episodes(whole)
    played.clear()
    assert muarl("quickstart", "--resume", str(cut), "rl.steps=4").exit_code == 0
    assert played == ["evaluation after RL", "greedy evaluation"], "before RL all is as it was"


def test_one_process_at_a_time(configure: Configure, muarl: Muarl) -> None:
    run = rl.run(configure("rl.steps=1"))
    before = contents(run)
    other = RunDirectory.at(run)
    other.hold()
    result = muarl("train", "--resume", str(run), "rl.steps=2")
    assert result.exit_code == 2 and "Another process is at work" in result.stderr
    assert contents(run) == before
    other.let_go()
    assert muarl("train", "--resume", str(run), "rl.steps=2").exit_code == 0


def test_events_are_made_anew_where_figures_were_rewound(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def scalars() -> list[tuple[int, float]]:
        events = EventAccumulator(str(tmp_path / "r" / "tensorboard"))
        events.Reload()
        return [(e.step, e.value) for e in events.Scalars("rl/x")]

    with RunDirectory(tmp_path, "r") as run:
        run.write_config({})
        logger = make_logger(run)
        for step in range(4):
            logger.log({"x": float(step), "y": None}, phase="rl", step=step)
        logger.log({"x": 9.0}, phase="evaluation", step=4)
        logger.close()
    with ResumedRun(tmp_path / "r", {}) as run:
        logger = make_logger(run)
        run.rewind({"rl": 2})
        assert len(run.read_metrics()) == 5, "not before it goes on"
        logger.log({"x": 20.0}, phase="rl", step=2)
        logger.log({"x": 30.0}, phase="rl", step=3)
        logger.close()
    assert scalars() == [(0, 0.0), (1, 1.0), (2, 20.0), (3, 30.0)]
    assert [json.loads(line)["step"] for line in run.metrics.read_text().splitlines()] == [0, 1, 4, 2, 3]
    assert len(list(run.tensorboard.iterdir())) == 1
