"""The disk is asked for all the checkpoints that a run has at the same time, before anything begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.backends.checkpoint_names import existing_checkpoint
from muarl.backends.model_support import model_shape
from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.parts import PlannedRun
from muarl.config.sections import RunConfig
from muarl.planning.memory import checkpoint_bytes
from muarl.planning.setup import learner_setup
from muarl.runs import room


def size_of(config: RunConfig) -> int:
    run = PlannedRun.of(config)
    return checkpoint_bytes(model_shape(run.model.checkpoint), learner_setup(run, run.rl))


def needed(config: RunConfig, place: Path, monkeypatch: pytest.MonkeyPatch, *stages: room.Stage) -> int:
    """The least number of checkpoints that the disk must have room for."""
    size, run = size_of(config), PlannedRun.of(config)
    for count in range(1, 20):
        monkeypatch.setattr(room, "free_space", lambda _, free=count * size: free)
        try:
            room.check_disk(run, place, config.checkpoints, *stages)
        except ConfigError:
            continue
        return count
    raise AssertionError("no disk is large enough")


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        (["rl.steps=30", "rl.checkpoint_every=10"], 3),
        (["rl.steps=40", "rl.checkpoint_every=10"], 4),
        (["rl.steps=90", "rl.checkpoint_every=10"], 4),
        (["rl.steps=90", "rl.checkpoint_every=0"], 1),
        (["rl.steps=90", "rl.checkpoint_every=10", "checkpoints.keep_last=1"], 2),
        (["rl.steps=85", "rl.checkpoint_every=10", "checkpoints.keep_last=null"], 9),
        (["rl.steps=90", "rl.checkpoint_every=10", "checkpoints.keep_every=20"], 6),
        (["rl.steps=0"], 1),
    ],
)
def test_as_many_as_are_there_before_the_oldest_goes(
    settings: list[str], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config("cpu", settings)
    assert needed(config, tmp_path, monkeypatch, config.rl) == count


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        (["sft.steps=400"], 2 + 4),
        (["sft.steps=1000"], 3 + 4),
        (["sft.steps=0"], 4),
        (["sft.epochs=1", "sft.demonstrations=1000", "sft.batch=1"], 3 + 4),
        (["sft.epochs=1", "sft.demonstrations_file=some.jsonl"], 1 + 4),
    ],
)
def test_those_of_the_cold_start_stay_while_rl_writes_its_own(
    settings: list[str], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config("cpu", [*settings, "sft.checkpoint_every=200", "rl.steps=90", "rl.checkpoint_every=10"])
    assert needed(config, tmp_path, monkeypatch, config.sft, config.rl) == count


def test_what_a_resumed_run_has_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config("cpu", ["rl.steps=90", "rl.checkpoint_every=10"])
    for step in (10, 20):
        folder = tmp_path / "checkpoints" / "rl" / f"step-{step:06d}"
        folder.mkdir(parents=True)
        with open(folder / "trainer.safetensors", "wb") as file:
            file.truncate(size_of(config))
    assert needed(config, tmp_path, monkeypatch, config.rl) == 2
    for step in (30, 40):
        (tmp_path / "checkpoints" / "rl" / f"step-{step:06d}").mkdir()
        with open(tmp_path / "checkpoints" / "rl" / f"step-{step:06d}" / "model.safetensors", "wb") as file:
            file.truncate(size_of(config))
    assert needed(config, tmp_path, monkeypatch, config.rl) == 1, "the next one needs room"


def test_the_error_says_how_many_how_large_and_what_gets_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config("cpu", ["rl.steps=90", "rl.checkpoint_every=10"])
    monkeypatch.setattr(room, "free_space", lambda _: 3 * size_of(config))
    with pytest.raises(ConfigError) as told:
        room.check_disk(PlannedRun.of(config), tmp_path, config.checkpoints, config.rl)
    text = str(told.value)
    assert str(tmp_path) in text and "this run has 4 at the same time" in text and "checkpoints.keep_last=1" in text
    assert "runs_dir" in text


def test_a_checkpoint_s_size_is_that_of_the_plan() -> None:
    """Weights, and two moments of Adam for each, in float32."""
    config = load_config("cpu", ["model.dtype=float32", "model.checkpoint=base", "rl.optimizer=adamw"])
    shape = model_shape(existing_checkpoint("base"))
    assert size_of(config) == 3 * 4 * shape.parameters
