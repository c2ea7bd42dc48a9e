"""What may change when a run is taken up again, and what a run's folder says of itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.config.load import dump_config, load_config
from muarl.config.sections import RunConfig, fields_of
from muarl.observe.rundir import RunDirectory
from muarl.runs.config_changes import LONGER, MAY_CHANGE, NUMERICS, changes, check_resume
from muarl.runs.context import open_run

Contents = dict[str, bytes]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """A run's folder as a command leaves it, without anything that takes time."""

    def made(command: str | None = "train", *overrides: str, preset: str = "quickstart") -> Path:
        options = [*overrides, f"runs_dir={tmp_path / 'runs'}", "name=r"]
        with open_run(load_config(preset, options), command) as run:
            run.log({"success": 0.5}, phase="rl", step=3)
        return run.path

    return made


def contents(run: Path) -> Contents:
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}


def muarl(*words: str) -> Any:
    return CliRunner().invoke(app, words)


def told(result: Any) -> str:
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("command", "words", "named"),
    [
        ("quickstart", ["--seed", "7"], "seed was 0, not 7"),
        ("quickstart", ["--name", "other"], "name was 'r', not 'other'"),
        ("train", ["model.max_context=900"], "model.max_context was 2048, not 900"),
        ("train", ["rl.lr=0.5", "domain.size=small"], "domain.size was 'tiny', not 'small'"),
        ("train", ["--checkpoint", "elsewhere"], "model.checkpoint was 'base', not 'elsewhere'"),
        ("sft", ["sft.demonstrations_file=x.jsonl"], "sft.demonstrations_file was None, not 'x.jsonl'"),
        ("sft-user", ["sft.error_profile.wrong_id=0.5"], "sft.error_profile.wrong_id was"),
        ("eval", ["--agent", "expert"], "eval.agent was 'sampled', not 'expert'"),
        ("eval", ["eval.temperature=0.5"], "eval.temperature was"),
        ("coldstart", ["--seed", "4"], "coldstart.seed was 0, not 4"),
        ("train", ["learner.lora.rank=8"], "learner.lora.rank was None, not 8"),
        ("sft", ["rl.steps=99"], "rl.steps was"),
    ],
)
def test_what_was_used_cannot_change(
    make: Callable[..., Path], command: str, words: list[str], named: str, tmp_path: Path
) -> None:
    run = make(command)
    before = contents(run)
    result = muarl(command, "--resume", str(run), *words)
    assert result.exit_code == 2, result.output
    assert named in told(result) and "begin a new run: --config" in told(result)
    assert contents(run) == before
    assert [p.name for p in run.parent.iterdir()] == ["r"]


def test_all_that_cannot_change_is_named_at_once(make: Callable[..., Path]) -> None:
    result = muarl("train", "--resume", str(make()), "--seed", "1", "rl.group_size=4")
    assert "seed was 0, not 1; rl.group_size was" in told(result)


@pytest.mark.parametrize("command", ["quickstart", "train", "sft", "sft-user", "eval", "coldstart"])
def test_another_configuration_is_refused(make: Callable[..., Path], command: str) -> None:
    run = make(command)
    result = muarl(command, "--resume", str(run), "--config", "cpu")
    assert result.exit_code == 2
    assert "--config: a resumed run has its own configuration" in told(result)


def test_a_run_is_resumed_by_its_own_command(make: Callable[..., Path]) -> None:
    run = make("train")
    result = muarl("sft", "--resume", str(run))
    assert result.exit_code == 2
    assert f"is a run of `muarl train`: resume it by `muarl train --resume {run}`" in told(result)


@pytest.mark.parametrize(
    ("command", "overrides"),
    [
        ("train", ["rl.steps=500", "budget.max_cost=3", "rollout.concurrency=7", "checkpoints.keep_last=null"]),
        (
            "train",
            ["rl.checkpoint_every=1", "threads=3", "model.device=cpu", "learner.restarts=0"],
        ),
        ("sft", ["sft.steps=900"]),
        ("eval", ["eval.trials=9", "eval.max_cost=2", "eval.prices={m: [1, 2]}", "eval.concurrency=3"]),
        ("coldstart", ["coldstart.count=3000", "coldstart.max_tokens=100"]),
        (None, ["rl.steps=500", "sft.steps=900"]),
    ],
)
def test_what_does_not_shape_results_may_change(
    make: Callable[..., Path], command: str | None, overrides: list[str]
) -> None:
    run = make(command)
    found = check_resume(load_config(run / "config.yaml", [*overrides, f"resume={run}"]), command)
    assert {name.partition("=")[0] for name in overrides} <= {".".join(n.split(".")[:2]) for n in found}


def test_how_a_model_is_reached_may_change_and_which_one_it_is_may_not(make: Callable[..., Path]) -> None:
    run = make("train", "user.kind=llm", "user.endpoint={model: a, base_url: 'http://127.0.0.1:1/v1'}")
    again = [f"resume={run}"]
    moved = load_config(run / "config.yaml", ["user.endpoint.base_url=http://127.0.0.1:2/v1", *again])
    assert list(check_resume(moved, "train")) == ["user.endpoint.base_url"]
    with pytest.raises(ConfigError, match=r"user\.endpoint\.model was 'a', not 'b'"):
        check_resume(load_config(run / "config.yaml", ["user.endpoint.model=b", *again]), "train")


def test_what_an_older_version_did_not_know_is_as_it_was(make: Callable[..., Path]) -> None:
    run = make()
    stored = yaml.safe_load((run / "config.yaml").read_text())
    del stored["rl"]["clip_low"], stored["checkpoints"], stored["train_on_benchmark"]
    (run / "config.yaml").write_text(yaml.safe_dump(stored))
    assert changes(run, load_config(run / "config.yaml")) == {}
    with pytest.raises(ConfigError, match=r"rl\.clip_low was 0\.2, not 0\.1"):
        check_resume(load_config(run / "config.yaml", ["rl.clip_low=0.1", f"resume={run}"]), "train")


def test_the_history_says_when_where_and_what(make: Callable[..., Path]) -> None:
    run, first = make(), load_config("quickstart").rl.steps
    for steps in (90, 99):
        config = load_config(run / "config.yaml", [f"rl.steps={steps}", f"resume={run}"])
        with open_run(config, "train") as again:
            again.log({}, phase="rl", step=steps)
    lines = [json.loads(line) for line in (run / "resumes.jsonl").read_text().splitlines()]
    assert [line["changed"] for line in lines] == [{"rl.steps": [first, 90]}, {"rl.steps": [90, 99]}]
    assert [line["after"] for line in lines] == [{"phase": "rl", "step": 3}, {"phase": "rl", "step": 90}]
    assert all(line["muarl"] and line["at"] for line in lines)
    status = json.loads((run / "status.json").read_text())
    assert status["command"] == "train" and status["began"] <= lines[0]["at"]


def test_a_program_that_resumes_is_held_to_the_same(make: Callable[..., Path]) -> None:
    run = make(None)
    with pytest.raises(ConfigError, match="seed was 0, not 5"):
        open_run(load_config(run / "config.yaml", ["seed=5", f"resume={run}"]))


def test_a_misspelt_run_is_no_preset(make: Callable[..., Path], tmp_path: Path) -> None:
    run = make()
    (tmp_path / "runs" / "quickstart").mkdir()
    (tmp_path / "runs" / "quickstart" / "config.yaml").write_text(dump_config(load_config("quickstart")))
    result = muarl("train", "--resume", str(run.parent / "quickstrat"))
    assert result.exit_code == 2
    assert f"there is no run at {run.parent}/quickstrat; did you mean {run.parent}/quickstart?" in told(result)
    assert "preset" not in told(result)
    elsewhere = muarl("train", "--resume", "nowhere-at-all")
    assert elsewhere.exit_code == 2 and "there is no run at nowhere-at-all. `muarl runs` lists" in told(elsewhere)
    assert "holds no run" in told(muarl("eval", "--resume", str(tmp_path)))


@pytest.mark.parametrize("kind", ["a file", "below a file", "read-only"])
def test_a_place_for_runs_that_cannot_be_is_named(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "runs"
    if kind == "read-only":
        place.mkdir()
        monkeypatch.setattr("muarl.basics.files.os.access", lambda path, mode: False)  # root may write anywhere
    else:
        place.write_text("")
    chosen = place / "deep" if kind == "below a file" else place
    result = muarl("train", f"runs_dir={chosen}")
    assert result.exit_code == 2
    assert f"runs_dir: no run can be kept in {chosen}: " in told(result)
    assert f"{place}" in told(result).partition(": ")[2] and "Choose another folder" in told(result)


def test_a_domain_of_a_programs_own_is_told_by_its_run(tmp_path: Path) -> None:
    config = load_config("quickstart", [f"runs_dir={tmp_path}", "name=club"])
    with open_run(config) as run:
        run.takes_place_in("club")
        assert yaml.safe_load((run.path / "config.yaml").read_text())["domain"]["name"] == "club"
    assert json.loads((run.path / "status.json").read_text())["domain"] == "club"
    for command in ("eval", "train", "quickstart"):
        result = muarl(command, "--config", str(run.path / "config.yaml"), f"runs_dir={tmp_path}")
        assert result.exit_code == 2, command
        assert "domain.name" in told(result) and "'club'" in told(result)
        assert "by the script that started it" in told(result)
    again = config.model_copy(update={"resume": run.path})
    with open_run(again) as resumed:
        resumed.takes_place_in("club")
        resumed.log({}, phase="rl", step=1)
    assert yaml.safe_load((run.path / "config.yaml").read_text())["domain"]["name"] == "club"
    assert "domain.name" not in json.loads((run.path / "resumes.jsonl").read_text())["changed"]


def test_the_lists_name_settings_that_exist_and_stand_in_the_documentation(repository: Path) -> None:
    known = {name for name, _, _ in fields_of(RunConfig)}
    listed = {*MAY_CHANGE, *NUMERICS, *(name for names in LONGER.values() for name in names)}
    assert listed <= known
    page = (repository / "docs" / "training.md").read_text()
    missing = [name for name in listed if f"`{name}`" not in page]
    assert not missing


def test_status_of_a_finished_run_names_what_made_it(make: Callable[..., Path]) -> None:
    run = RunDirectory.at(make("sft"))
    assert run.read_json("status")["domain"] == "retail-generated"
    assert run.read_json("status")["command"] == "sft"
    assert run.state == "finished"
