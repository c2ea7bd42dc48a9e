"""Domains on MCP servers in recipes: what is missing is told before there is a run folder, and training runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.domains.mcp import servers
from muarl.observe.rundir import RunDirectory
from support.mcp import needs_server

TRAIN = (
    "train",
    "--config",
    "quickstart",
    "rl.steps=2",
    "rl.tasks_per_step=2",
    "rl.group_size=4",
    "rollout.concurrency=8",
)


def muarl(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    "command",
    [
        ("train", "--config", "quickstart", "domain.name=mcp-sqlite"),
        ("sft", "--config", "quickstart", "domain.name=mcp-sqlite"),
        ("eval", "mcp-sqlite", "--agent", "expert", "--tasks", "4"),
        ("coldstart", "--scenario", "hotel-generated", "--scenario", "mcp-sqlite"),
    ],
    ids=lambda command: command[0],
)
def test_a_missing_server_is_told_with_the_remedy_and_leaves_no_folder(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers.Bundle, "installed", lambda bundle: False)
    result = muarl(*command, f"runs_dir={tmp_path / 'runs'}")
    assert result.exit_code == 2, result.output
    told = " ".join(result.stderr.split())
    assert "domain.name: mcp-sqlite: " in told and "`muarl mcp install sqlite`" in told, told
    assert not (tmp_path / "runs").exists()


def test_a_domain_on_a_server_is_evaluated_by_its_name_alone() -> None:
    result = muarl("eval", "mcp-sqlite", "--agent", "expert", "--dry-run")
    assert result.exit_code == 0, result.output
    config = yaml.safe_load(result.stdout)
    assert (config["domain"]["name"], config["eval"]["split"]) == ("mcp-sqlite", "test")
    assert config["eval"]["tasks"], "its tasks have no end, so that all of them cannot be meant"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mcp-sqlite", "hotel-generated"])
def test_a_small_model_of_its_own_trains_on_it_for_two_steps(name: str, tmp_path: Path) -> None:
    if name.startswith("mcp-"):
        needs_server(name)
    where = (f"domain.name={name}", "domain.size=tiny", f"runs_dir={tmp_path}", "threads=1")
    made = muarl("base", *where, "base.conversations=120", "base.steps=60", "base.batch=8", "--name", "own")
    assert made.exit_code == 0, made.output
    result = muarl(*TRAIN, *where, "--checkpoint", str(tmp_path / "own"), "rl.eval_every=0", "name=r")
    assert result.exit_code == 0, result.output
    run = RunDirectory.at(tmp_path / "r")
    rows = [row for row in run.read_metrics() if row["phase"] == "rl"]
    assert [row["step"] for row in rows] == [0, 1]
    assert all(row["episodes"] == 8 and row["excluded"] == 0 for row in rows), rows
    episodes = [e for step in (0, 1) for e in run.read_episodes(f"train-{step:04d}")]
    assert len(episodes) == 16 and all(e.verdict is not None and e.tokens is not None for e in episodes)
    assert any(m.role == "tool" for e in episodes for m in e.messages), "a policy that calls tools"
    assert json.loads((run.path / "status.json").read_text())["state"] == "finished"
    assert (run.path / "checkpoints" / "rl" / "step-000002" / "config.json").is_file()


def test_a_model_that_cannot_read_a_domain_is_told_how_to_make_one_that_can(tmp_path: Path) -> None:
    result = muarl(*TRAIN, "domain.name=hotel-generated", "domain.size=tiny", f"runs_dir={tmp_path}")
    assert result.exit_code == 2, result.output
    told = " ".join(result.stderr.split())
    assert "reads at most 2048" in told and "muarl base domain.name=hotel-generated" in told
    assert not list(tmp_path.iterdir())
