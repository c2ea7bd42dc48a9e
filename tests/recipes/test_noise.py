"""Repeats of a grid of seeds: who meets whom, and that the same seeds are the same conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.environments.configure import places_of
from muarl.observe.rundir import RunDirectory
from muarl.recipes.evaluation.noise import NoiseGrid, noise_requests


def muarl(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "160"})


@pytest.mark.parametrize("text", ["3", "1x1", "0x3", "x", "3x3x3x3", "1x1x1"])
def test_a_grid_is_several_attempts(text: str) -> None:
    with pytest.raises(ConfigError, match=r"eval\.noise: .* must look like 3x3"):
        NoiseGrid.of(text)


def test_every_seed_of_the_agent_meets_every_seed_of_the_user() -> None:
    places = places_of(load_config("cpu", ["domain.name=retail-generated", "domain.size=tiny"]))
    tasks = places.draw("test", 2, 0, 0)
    grid = NoiseGrid.of("2x3x2")
    made = noise_requests(places, tasks, grid, 5, "evaluation")
    assert (grid.attempts, len(made), len({r.episode_id for r in made})) == (12, 24, 24)
    trials = places.requests(tasks, 3, 5, "evaluation")
    for task in tasks:
        own = [r for r in made if r.task is task]
        usual = [r for r in trials if r.task is task]
        assert {(r.seed, r.user_seed) for r in own} == {(a.seed, u.seed) for a in usual[:2] for u in usual}
        same = [r for r in own if r.seed == usual[1].seed and r.user_seed == usual[1].seed]
        assert len(same) == 2, "the ordinary trial is among them, twice"


def test_a_run_with_a_grid_says_where_its_noise_comes_from(tmp_path: Path) -> None:
    given = ["--agent", "expert", "--tasks", "4", "domain.size=tiny", "eval.baseline=false", f"runs_dir={tmp_path}"]
    found = muarl("eval", "retail-generated", *given, "--noise", "2x2x2", "--name", "n")
    assert found.exit_code == 0, found.output
    run = RunDirectory.at(tmp_path / "n")
    episodes = run.read_episodes("eval")
    assert len(episodes) == 32
    by_cell: dict[Any, list[Any]] = {}
    for episode in episodes:
        tag = episode.tags["noise"]
        said = [m.content for m in episode.messages]
        by_cell.setdefault((episode.task_id, episode.seed, tag["user_seed"]), []).append((tag["repeat"], said))
    assert len(by_cell) == 16
    for played in by_cell.values():
        (first, one), (second, other) = sorted(played)
        assert (first, second, one) == (0, 1, other), "the same seeds say the same"
    usual = muarl("eval", "retail-generated", *given, "--trials", "2", "--name", "t")
    assert usual.exit_code == 0, usual.output
    for episode in RunDirectory.at(tmp_path / "t").read_episodes("eval"):
        ((_, said), _) = by_cell[episode.task_id, episode.seed, episode.seed]
        assert said == [m.content for m in episode.messages], "seeds that belong together are the ordinary trial"
        assert "noise" not in episode.tags
    (told,) = json.loads(muarl("compare", tmp_path / "n", "--json").stdout)["runs"]
    assert told["components"]["design"] == "2 seeds of the agent with 2 of the user, each 2 times"
    assert told["components"]["components"]["repeat"]["variance"] == 0.0
    assert told["pass_hat"] == {}, "attempts that share seeds are no independent trials"
    before = (tmp_path / "n" / "episodes" / "eval.jsonl").read_text()
    assert muarl("eval", "--resume", tmp_path / "n").exit_code == 0
    assert (tmp_path / "n" / "episodes" / "eval.jsonl").read_text() == before
    refused = muarl("eval", "retail-generated", *given, "--noise", "2x2", "--red-team", "all")
    assert refused.exit_code == 2 and "leave out one of the two" in refused.output
