"""The command line: help that teaches, one clear message for what goes wrong, and exit codes."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from muarl.basics.errors import DataError
from muarl.cli.main import app, subcommands
from muarl.environments import registry

COMMANDS = [name for name, command in subcommands().items() if not isinstance(command.run, typer.Typer)]
RECIPES = {"quickstart": "quickstart", "base": "pretraining", "sft": "sft", "train": "rl", "eval": "evaluate"}


def muarl(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[Any], Path]], None]:
    """Puts a function in the place of a recipe's ``run``."""

    def put(name: str, run: Callable[[Any], Path]) -> None:
        module = ModuleType(f"muarl.recipes.{name}")
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, f"muarl.recipes.{name}", module)

    return put


def test_help_lists_every_command_and_where_to_begin() -> None:
    output = muarl("--help").output
    for name in [*COMMANDS, "data", "muarl doctor"]:
        assert name in output
    assert set(COMMANDS) >= {*RECIPES, "chat", "replay", "score", "report", "generate", "doctor", "version"}


@pytest.mark.parametrize("name", [*COMMANDS, "data add", "data fetch"])
def test_help_of_each_command_teaches_by_example(name: str) -> None:
    result = muarl(*name.split(), "--help")
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"muarl {name}" in " ".join(result.output.replace("Usage", "").split())


def test_without_arguments_the_help_is_shown() -> None:
    result = muarl()
    assert result.exit_code == 0
    assert "quickstart" in result.output


def test_the_command_line_itself_imports_nothing_heavy() -> None:
    heavy = ("torch", "transformers", "openai", "numpy")
    script = f"import sys, muarl.cli.main; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"


def test_version_names_muarl_and_torch() -> None:
    lines = dict(line.split(maxsplit=1) for line in muarl("version").output.splitlines())
    assert lines["muarl"]
    assert lines["torch"][0].isdigit()


def test_the_version_option_answers_with_one_line() -> None:
    from muarl import __version__

    result = muarl("--version")
    assert (result.exit_code, result.output) == (0, f"muarl {__version__}\n")


@pytest.mark.parametrize("name", RECIPES)
def test_dry_run_prints_the_resolved_config_and_runs_nothing(name: str) -> None:
    result = muarl(name, "--dry-run", "--seed", "7", "rl.steps=3", "--name", "1")
    assert result.exit_code == 0, result.output
    config = yaml.safe_load(result.stdout)
    assert (config["seed"], config["rl"]["steps"], config["name"]) == (7, 3, "1")


def test_options_of_eval_reach_the_config() -> None:
    arguments = ["--agent", "expert", "--tasks", "5", "--trials", "2", "--checkpoint", "some/where"]  # of no use here
    config = yaml.safe_load(muarl("eval", "--dry-run", *arguments).stdout)
    assert config["name"] == "eval"
    assert (config["eval"]["agent"], config["eval"]["tasks"], config["eval"]["trials"]) == ("expert", 5, 2)
    assert config["model"]["checkpoint"] == "some/where"


@pytest.mark.parametrize("name", [*RECIPES, "coldstart", "sft-user"])
def test_runs_may_lie_elsewhere(name: str, recipe: Callable[..., None], tmp_path: Path) -> None:
    seen: list[Any] = []
    recipe({**RECIPES, "sft-user": "user_model"}.get(name, name), lambda config: seen.append(config) or tmp_path)
    result = muarl(name, "--runs-dir", str(tmp_path / "mine"), "--name", "one")
    assert result.exit_code == 0, result.output
    assert seen[0].run_dir == tmp_path / "mine" / "one"


def test_greedy_means_no_temperature() -> None:
    found = yaml.safe_load(muarl("eval", "--dry-run", "--greedy", "-n", "3").stdout)["eval"]
    assert (found["temperature"], found["tasks"]) == (0.0, 3)


def test_an_argument_may_rename_an_evaluation() -> None:
    assert yaml.safe_load(muarl("eval", "--dry-run", "name=other").stdout)["name"] == "other"


@pytest.mark.parametrize("name", RECIPES)
def test_a_command_runs_its_recipe_and_says_where_the_run_is(
    name: str, recipe: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "report.html").touch()
    seen = []
    recipe(RECIPES[name], lambda config: seen.append(config) or tmp_path)
    result = muarl(name, "seed=5")
    assert result.exit_code == 0, result.output
    assert seen[0].seed == 5
    assert str(tmp_path / "report.html") in result.output


def test_resume_takes_the_config_of_the_run(recipe: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: mine\nrl: {steps: 4}\n")
    seen = []
    recipe("rl", lambda config: seen.append(config) or tmp_path)
    assert muarl("train", "--resume", str(tmp_path)).exit_code == 0
    assert (seen[0].name, seen[0].rl.steps, seen[0].resume) == ("mine", 4, tmp_path)


def test_resuming_what_is_no_run_is_said(tmp_path: Path) -> None:
    result = muarl("train", "--resume", str(tmp_path))
    assert result.exit_code == 2
    assert f"{tmp_path}" in result.stderr.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "--config", "quikstart"], ["no preset 'quikstart'", "did you mean 'quickstart'?"]),
        (["train", "rl.stpes=3"], ["no key 'rl.stpes'", "did you mean 'rl.steps'?"]),
        (["quickstart", "rl.steps"], ["key=value"]),
        (["train", "--config", "missing.yaml"], ["missing.yaml", "no such file"]),
        (
            ["train", "domain.name=tau2-retail", "eval_user.kind=llm", "eval_user.endpoint.model=m"],
            ["train_on_benchmark=true"],
        ),
    ],
)
def test_a_mistake_gets_one_clear_message(arguments: list[str], words: list[str]) -> None:
    result = muarl(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


NAMES = (
    (["eval", "--agent", "runs/quikstart"], "did you mean runs/quickstart?"),
    (["eval", "-m", "gpt-4o", "--dry-run"], "endpoint:gpt-4o"),
    (["chat", "gpt-4o"], "endpoint:gpt-4o"),
    (["chat", "exprt"], "did you mean expert?"),
    (["eval", "--agent", "exprt"], "did you mean expert?"),
    (["user", "check", "agnda"], "did you mean agenda?"),
    (["chat", "runs/quikstart"], "did you mean runs/quickstart?"),
    (["serve", "runs/quikstart"], "did you mean runs/quickstart?"),
    (["train", "--checkpoint", "runs/quikstart"], "did you mean runs/quickstart?"),
    (["eval", "tau2-retial", "--agent", "endpoint:m", "--user", "endpoint:m"], "did you mean tau2-retail?"),
)


def test_misspelt_names_are_told_before_torch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "runs" / "quickstart" / "checkpoints" / "step-000060").mkdir(parents=True)
    (tmp_path / "runs" / "quikstar" / "checkpoints").mkdir(parents=True)  # none in it: no help
    script = """
import json, sys
from typer.testing import CliRunner
from muarl.cli.main import app
for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(app, arguments)
    print(json.dumps([result.exit_code, " ".join(result.stderr.split()), "torch" in sys.modules]))
"""
    given = json.dumps([arguments for arguments, _ in NAMES])
    run = subprocess.run(
        [sys.executable, "-c", script, given], capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path
    )
    for line, (arguments, hint) in zip(run.stdout.splitlines(), NAMES, strict=True):
        code, said, torch = json.loads(line)
        assert (code, torch) == (2, False), arguments
        assert hint in said and "Traceback" not in said


def test_an_unknown_option_or_command_is_a_usage_error() -> None:
    for arguments in (["train", "--stpes", "3"], ["trian"]):
        result = muarl(*arguments)
        assert result.exit_code == 2
        assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["train", "--steps", "3"], "rl.steps=VALUE or"),
        (["train", "--rl.steps=3"], "Settings have no dashes: rl.steps=VALUE."),
        (["sft", "--lr", "1e-3"], "Settings have no dashes: sft.lr=VALUE or"),
    ],
)
def test_a_setting_given_as_an_option_is_told_how_it_is_written(arguments: list[str], hint: str) -> None:
    result = muarl(*arguments)
    assert result.exit_code == 2
    assert hint in " ".join(result.output.replace("│", " ").split())
    assert "Settings have" not in muarl("view", "--steps", "3").output, "it takes no settings"


def raising(problem: BaseException, note: str = "") -> Callable[[Any], Path]:
    def run(config: Any) -> Path:
        if note:
            problem.add_note(note)
        raise problem

    return run


@pytest.mark.parametrize(
    ("problem", "code", "words"),
    [
        (DataError("tasks.json, line 3: no field 'id'. Install the data again."), 2, ["tasks.json, line 3"]),
        (KeyboardInterrupt(), 130, ["Interrupted"]),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/x/m.json"), 1, ["disk is full", "runs/x/m.json"]),
        (PermissionError(errno.EACCES, os.strerror(errno.EACCES), "runs/x"), 1, ["no permission", "runs/x"]),
        (FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "a.txt"), 1, ["no file or folder a.txt"]),
        (MemoryError(), 1, ["not enough memory"]),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory."), 1, ["GPU's memory", "recompute=true"]),
    ],
)
def test_failures_of_a_run_are_told_without_a_trace(
    recipe: Callable[..., None], problem: BaseException, code: int, words: list[str]
) -> None:
    recipe("rl", raising(problem, "Run folder: runs/mine"))
    result = muarl("train")
    assert result.exit_code == code
    assert "Traceback" not in result.output
    for word in [*words, "Run folder: runs/mine"]:
        assert word in result.stderr


def test_an_interrupted_run_says_where_it_is_even_out_of_a_coroutine(recipe: Callable[..., None]) -> None:
    async def main() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(10)
        except asyncio.CancelledError as stop:
            stop.add_note("Run folder: runs/mine")
            raise

    recipe("rl", lambda config: asyncio.run(main()))
    result = muarl("train")
    assert result.exit_code == 130
    assert "Run folder: runs/mine" in result.stderr


def test_a_defect_is_called_one_before_its_trace(
    recipe: Callable[..., None], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_foreign", [])  # environments that tests beside this file have loaded
    recipe("rl", raising(ZeroDivisionError("division by zero")))
    result = muarl("train")
    assert result.exit_code == 1
    text = result.stderr + capfd.readouterr().err
    assert text.index("defect of muarl") < text.index("Traceback")


def test_debug_shows_the_trace_of_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUARL_DEBUG", raising=False)
    monkeypatch.setenv("MUARL_DEBUG", "1")
    assert "Traceback" in muarl("train", "rl.stpes=3").stderr


def test_the_console_script_exits_with_the_code_and_no_trace() -> None:
    command = [sys.executable, "-c", "from muarl.cli.main import main; main()", "train", "rl.stpes=3"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1
