"""Updates of recorded steps, without playing: the same to the last bit; and the other half, rollouts alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.recipes.training.recorded_steps import Recording

SMALL = (
    "rl.steps=3", "rl.tasks_per_step=3", "rl.group_size=4", "rl.save_episodes=all", "rl.checkpoint_every=1",
    "rl.eval_every=0", "threads=1", "engine.processes=1", "rl.temperature=1.5",
)  # fmt: skip


def muarl(*words: str, fails: bool = False) -> str:
    found = CliRunner().invoke(app, [*words])
    assert bool(found.exit_code) == fails, found.output
    return found.output


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with one of three steps."""
    folder = tmp_path_factory.mktemp("runs")
    trained(folder, "flat")
    return folder


def trained(runs: Path, name: str, *more: str) -> None:
    muarl("train", "-c", "quickstart", "--runs-dir", str(runs), "--name", name, *SMALL, *more)


def replayed(runs: Path, what: str, *more: str, fails: bool = False) -> str:
    return muarl("train", "--replay", f"{runs}/{what}", "--runs-dir", str(runs), *more, fails=fails)


def same_weights(runs: Path, one: str, other: str, step: int) -> bool:
    where = [runs / name / "checkpoints" / "rl" / f"step-{step:06d}" for name in (one, other)]
    files = ["model.safetensors", "trainer.safetensors"]
    return all((where[0] / f).read_bytes() == (where[1] / f).read_bytes() for f in files)


def rows(runs: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (runs / name / "metrics.jsonl").read_text().splitlines()]


def test_all_steps_give_the_weights_of_then_to_the_last_bit(runs: Path) -> None:
    told = replayed(runs, "flat")
    assert told.count("to the last bit") == 3
    assert same_weights(runs, "flat", "flat-replay", 3)


def test_one_step_begins_with_the_checkpoint_before_it(runs: Path) -> None:
    assert replayed(runs, "flat:1").count("to the last bit") == 1
    assert [row["step"] for row in rows(runs, "flat-replay-1")] == [1]
    assert same_weights(runs, "flat", "flat-replay-1", 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        ("rl.branch.stems=2",),
        ("rl.credit=state",),
        ("rl.branch.stems=2", "rl.credit=state"),
        ("rl.asynchrony=bounded", "rl.practice.repeat=0"),
        ("rl.practice.first_look=2", "rl.practice.repeat=0"),
        ("rl.dynamic_sampling=true",),
    ],
)
def test_however_a_step_was_played_it_is_learned_again(runs: Path, more: tuple[str, ...]) -> None:
    name = "-".join(option.rpartition(".")[2].replace("=", "-") for option in more)
    trained(runs, name, *more)
    assert replayed(runs, name).count("to the last bit") == 3
    assert same_weights(runs, name, f"{name}-replay", 3)
    assert replayed(runs, f"{name}:2").count("to the last bit") == 1


def test_other_settings_say_what_becomes_of_the_same_episodes(runs: Path) -> None:
    told = replayed(runs, "flat:0", "--name", "slower", "rl.lr=1e-4")
    assert "of 26 figures of the update differ: update/" in " ".join(told.split())
    assert not same_weights(runs, "flat", "slower", 1)


def test_a_checkpoint_that_is_gone_is_led_up_to(runs: Path) -> None:
    trained(runs, "sparse", "rl.checkpoint_every=0")
    assert replayed(runs, "sparse:1").count("to the last bit") == 2
    assert [row["step"] for row in rows(runs, "sparse-replay-1")] == [0, 1]


def test_rollouts_only_and_learning_later_is_the_same_as_both(runs: Path) -> None:
    before = muarl(
        "train", "-c", "quickstart", "--runs-dir", str(runs), "--name", "half", *SMALL, "rl.steps=1", "--rollouts-only"
    )
    assert "No step of the training updated" not in before and "no update" not in before
    assert not any(name.startswith("update/") for name in rows(runs, "half")[0])
    replayed(runs, "half", "rl.steps=3")
    assert same_weights(runs, "flat", "half-replay", 1)


def test_rollouts_for_credit_by_turn_note_the_progress(runs: Path) -> None:
    state = ("rl.credit=state", "rl.steps=1")
    trained(runs, "progress", *state, "--rollouts-only")
    replayed(runs, "progress")
    trained(runs, "at-once", *state)
    assert same_weights(runs, "at-once", "progress-replay", 1)
    assert "record with the same rl.credit" in " ".join(replayed(runs, "flat:0", "rl.credit=state", fails=True).split())


@pytest.mark.parametrize("form", ["rows", "atif"])
def test_from_the_files_of_other_programs(runs: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / ("rows.jsonl" if form == "rows" else "trajectories")
    muarl("export", str(runs / "flat"), "--as", form, "--episodes", "train-0000", "--out", str(out))
    muarl("train", "-c", "quickstart", "--replay", str(out), "--runs-dir", str(runs), "--name", form, *SMALL)
    assert same_weights(runs, "flat", form, 1)


def test_groups_that_are_too_small_are_named(runs: Path) -> None:
    told = " ".join(replayed(runs, "flat:0", "--name", "larger", "rl.group_size=8").split())
    assert "Step 0: 3 of its groups have fewer than 6 episodes that count" in told
    assert "learned from 0 episodes" in told


def shortened(runs: Path) -> None:
    path = runs / "cut" / "episodes" / "train-0000.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))


def without_tokens(runs: Path) -> None:
    path = runs / "cut" / "episodes" / "train-0000.jsonl"
    lines = [json.loads(line) | {"tokens": None} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def foreign(runs: Path) -> None:
    path = runs / "cut" / "episodes" / "train-0000.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["tokens"]["ids"][0] = 100_000
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (shortened, "holds 5 of the step's 12 episodes: record with rl.save_episodes=all"),
        (without_tokens, "episode 1: has no sampled token ids"),
        (foreign, "another model sampled them"),
    ],
)
def test_a_record_that_cannot_be_learned_from(runs: Path, damage: Callable[[Path], None], told: str) -> None:
    if not (runs / "cut").exists():
        trained(runs, "cut", "rl.steps=1")
    path = runs / "cut" / "episodes" / "train-0000.jsonl"
    whole = path.read_text()
    try:
        damage(runs)
        assert told in " ".join(replayed(runs, "cut:0", fails=True).split())
    finally:
        path.write_text(whole)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("flat:7", "has not recorded step 3 (it has 0, 1, 2)"),
        ("flat:x", "there is no run or file"),
        ("nobody", "there is no run or file"),
    ],
)
def test_what_is_not_there(runs: Path, what: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told.replace("(", r"\(").replace(")", r"\)")):
        Recording.of(f"{runs}/{what}")


def test_rows_without_a_reward_name_it(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "Hi"}], "input_ids": [1]}) + "\n")
    told = muarl(
        "train", "-c", "quickstart", "--replay", str(path), "--runs-dir", str(runs), "--name", "no", *SMALL, fails=True
    )
    assert "line 1: this row lacks assistant_masks, logprobs, reward" in " ".join(told.split())
