"""From a run's failures to a file of new tasks, and training on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from muarl.accounts.metrics import is_success
from muarl.cli.main import app
from muarl.domains.tasks import kind_of
from muarl.environments.task_files import read_tasks
from muarl.observe.rundir import RunDirectory
from muarl.recipes import rl
from support.command_lines import check

Configure = Callable[..., Any]


def practise(run: Path, out: Path, *more: str) -> Any:
    return CliRunner().invoke(app, ["tasks", "practise", str(run), "--out", str(out), "--tasks", "20", *more])


def following(done: Any) -> str:
    """The command that comes next, which is taken as it stands."""
    (line,) = [line for line in done.output.splitlines() if line.startswith("Next: ")]
    check(line.removeprefix("Next: "))
    return line


def test_failures_become_new_tasks_that_are_trained_on(configure: Configure, tmp_path: Path) -> None:
    run, out = rl.run(configure("rl.steps=1", "rl.tasks_per_step=4", name="first")), tmp_path / "tasks.jsonl"
    episodes = RunDirectory.at(run).read_episodes("train-0000")
    failed = {kind_of(e.tags) for e in episodes if not is_success(e.reward)}
    done = practise(run, out)
    assert done.exit_code == 0, done.output
    assert "20 new tasks of retail-generated" in done.output
    assert f"--checkpoint {run} " in following(done)
    tasks = [f.task for f in read_tasks(out)]
    assert {kind_of(t.tags) for t in tasks} == failed and len(tasks) == 20
    assert not {t.id for t in tasks} & {e.task_id for e in episodes}
    shown = CliRunner().invoke(app, ["tasks", "show", str(out), tasks[0].id])
    assert "made again from: retail-generated:train:" in shown.output
    assert "out has 40" in practise(run, out).output.replace(str(out), "out"), "others of the same seed are added"

    second = rl.run(configure("rl.steps=2", f"domain.tasks={out}", "rl.save_episodes=all", name="second"))
    played = {e.task_id for n in range(2) for e in RunDirectory.at(second).read_episodes(f"train-{n:04d}")}
    assert played and played <= {f.task.id for f in read_tasks(out)}


def test_what_comes_next_trains_the_model_that_was_evaluated(
    muarl: Callable[..., Any], base_run: Path, tmp_path: Path
) -> None:
    done = muarl("eval", "--name", "looked", "--tasks", "4", "--runs-dir", str(tmp_path / "elsewhere"))
    assert done.exit_code == 0, done.output
    run = tmp_path / "elsewhere" / "looked"
    assert f"--checkpoint {base_run} " in following(practise(run, tmp_path / "tasks.jsonl", "--tasks", "4"))
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("agent: sampled", "agent: expert"))
    assert "--checkpoint MODEL " in following(practise(run, tmp_path / "others.jsonl", "--tasks", "4"))


def test_what_cannot_be_practised_is_refused(configure: Configure, tmp_path: Path) -> None:
    run, out = rl.run(configure("rl.steps=1", "rl.save_episodes=none")), tmp_path / "tasks.jsonl"

    def refused(said: str, *more: str) -> None:
        found = practise(run, out, *more)
        text = f"{found.output} {found.exception}".replace("\n", " ")
        assert found.exit_code != 0 and said in text, text
        assert not out.exists()

    refused("keeps no episodes of a training step or an evaluation")
    refused("has no eval; it has none", "--episodes", "eval")
    refused("has retail-generated, not airline-generated", "--domain", "airline-generated")
    config = run / "config.yaml"
    text = config.read_text()
    config.write_text(text.replace("name: retail-generated", "name: tau2-retail"))
    refused("is a benchmark, whose tasks are fixed")
    config.write_text("seed: 1\n")
    refused("config.yaml does not say which environment")
