"""What a run's other processes are told of it."""

from __future__ import annotations

from pathlib import Path

from muarl.backends.process_config import ProcessConfig
from muarl.config.load import load_config
from muarl.config.sections import RunConfig


def told(*settings: str, folder: Path | None = None, concurrency: int | None = None) -> RunConfig:
    return RunConfig.model_validate(ProcessConfig(load_config("cpu", settings)).values(folder, concurrency=concurrency))


def test_others_do_their_part_alone() -> None:
    found = told("engine.processes=3", "rollout.concurrency=12", concurrency=4)
    assert (found.engine.processes, found.cluster.address, found.rollout.concurrency) == (1, None, 4)
    clustered = told("cluster.address=local", "engine.processes=1", "resume=runs/x")
    assert (clustered.cluster.address, clustered.resume) == (None, None)
    assert clustered.domains == load_config("cpu").domains


def test_weights_are_found_by_their_name_or_folder(tmp_path: Path) -> None:
    assert told("model.checkpoint=base").model.checkpoint == "base", "each installation has those that are shipped"
    assert told("model.checkpoint=base", folder=tmp_path).model.checkpoint == str(tmp_path)
    assert Path(told(f"model.checkpoint={tmp_path}").model.checkpoint).is_absolute()
