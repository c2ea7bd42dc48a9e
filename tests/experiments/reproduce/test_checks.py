"""What would stop a later stage of a reproduction is told before the first one begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.observe.rundir import RunDirectory
from muarl_tools.experiments.reproduce.checks import check_stages
from muarl_tools.experiments.reproduce.plan import stages

USER = "reproduce.user_model=base"
THEIRS = [
    "reproduce.pretrained=true", "reproduce.cold_start=[retail-generated]", "reproduce.rl=[retail-generated]",
    "reproduce.unseen=[]", "reproduce.kept_out=null",
]  # fmt: skip


@pytest.mark.parametrize("preset", ["reproduce", "reproduce-smoke", "reproduce-cancel"])
def test_the_presets_can_be_run(preset: str, tmp_path: Path) -> None:
    config = load_config(preset, [f"runs_dir={tmp_path}"])
    check_stages(stages(config, [0]))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ["reproduce.unseen=[nowhere]"],
            ["stage eval-base, in the environments of reproduce.rl, unseen and kept_out", "no environment 'nowhere'"],
        ),
        ([USER, "reproduce.user_model_in=[nowhere]"], ["reproduce.user_model_in:", "no environment 'nowhere'"]),
        (
            ["reproduce.user_model=runs/none"],
            ["stage eval-base-model, reproduce.user_model: runs/none", "no such checkpoint"],
        ),
        ([*THEIRS, "model.checkpoint=runs/none"], ["stage cold-0, model.checkpoint: runs/none", "no such checkpoint"]),
        (
            [USER, "reproduce.user_model_in=[telecom-generated]"],
            ["stage eval-base-model, in the environments of reproduce.user_model_in", "tools of their own"],
        ),
        ([*THEIRS, "reproduce.rl=[tau1-retail]"], ["stage rl-0", "reproduce.rl:", "train_on_benchmark=true"]),
        (
            [*THEIRS, "reproduce.cold_start=[tau2-retail]"],
            ["stage cold-0", "reproduce.cold_start:", "train_on_benchmark=true"],
        ),
        (
            [*THEIRS, "reproduce.cold_start=[tau2-retail]", "train_on_benchmark=true"],
            ["stage cold-0", "reproduce.cold_start:", "tau2-retail has no scripted expert"],
        ),
        (
            [*THEIRS, "eval.tasks=null"],
            ["stage eval-base, in the environments of reproduce.rl, unseen and kept_out", "eval.tasks is null"],
        ),
    ],
)
def test_what_a_stage_would_be_refused_for(tmp_path: Path, settings: list[str], words: list[str]) -> None:
    for more in ([], ["--dry-run"]):
        given = ["--seeds", "0", "--runs-dir", str(tmp_path / "runs"), *settings, *more]
        result = CliRunner().invoke(app, ["reproduce", *given])
        assert result.exit_code == 2, result.output
        for word in words:
            assert word in " ".join(result.stderr.split()), word
        assert not (tmp_path / "runs").exists()


def test_a_finished_stage_is_not_asked_again(tmp_path: Path) -> None:
    """Its page can be made again when what it needed is gone."""
    config = load_config(
        "reproduce", [*THEIRS, "model.checkpoint=runs/none", "eval.tasks=null", f"runs_dir={tmp_path}"]
    )
    found = stages(config, [0])
    for stage in found:
        run = RunDirectory(stage.folder.parent, stage.folder.name)
        run.write_config(stage.config.model_dump(mode="json"))
        run.write_status("finished")
    check_stages(found)
