"""The light core: what works where none of the extras is installed, and what is said of the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from muarl.basics import extras
from muarl.basics.errors import ConfigError
from support.fake_openai import FakeOpenAI, completion

BLOCKED = sorted({package for packages in extras.EXTRAS.values() for package in packages})
BLOCK = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
RUN = """
import json
from typer.testing import CliRunner
from muarl.cli.main import app
told = []
for line in sys.stdin.read().splitlines():
    found = CliRunner().invoke(app, line.split())
    told.append([found.exit_code, found.output])
import importlib, pkgutil, muarl, muarl_tools, muarl_worlds
TRAIN = ("muarl.learning", "muarl.models", "muarl.inference", "muarl.workers.cluster", "muarl.backends",
         "muarl.recipes", "muarl.rollouts.beginnings",
         "muarl.chat_formats", "muarl.agents.sampled", "muarl.users.sampled", "muarl_tools.experiments",
         "muarl_tools.serve_model", "muarl_tools.checks.user", "muarl_tools.export")
import muarl.chat_formats.families
imported = []
paths = [(package.__path__, f"{package.__name__}.") for package in (muarl, muarl_tools, muarl_worlds)]
for module in [module for path in paths for module in pkgutil.walk_packages(*path)]:
    if not module.name.startswith(TRAIN):
        importlib.import_module(module.name)
        imported.append(module.name)
import muarl_integrations
from muarl.basics.extras import MissingExtra
for module in pkgutil.walk_packages(muarl_integrations.__path__, "muarl_integrations."):
    try:
        importlib.import_module(module.name)
    except MissingExtra:
        continue  # the other package is not here
    imported.append(module.name)
print(json.dumps([told, imported]))
"""
"""Runs commands, and then imports all modules of the light core."""
WORK = (
    "--help",
    "version",
    "doctor",
    "presets",
    "domains list",
    "generate --count 2",
    "eval --agent expert --tasks 2 runs_dir=R",
    "eval --agent idle --tasks 2 --name idle runs_dir=R",
    "eval --agent endpoint:m@URL --tasks 1 --name asked runs_dir=R",
    "audit R/eval",
    "report R/eval",
    "view R/eval --export pages",
    "export R/eval --as csv --out episodes.csv",
    "runs R",
    "plan mua-8b",
    "coldstart coldstart.count=2 coldstart.scenarios=[hotel-generated] runs_dir=R --name cold",
    "coldstart --check R/cold/dataset",
    "data list",
    "env serve --help",
    "mcp list",
    "tasks --help",
    "replay --help",
    "score --help",
    "seeds --help",
)
NEEDS = (
    ("train", "muarl train needs torch", "train"),
    ("quickstart", "muarl quickstart needs torch", "train"),
    ("sft", "muarl sft needs torch", "train"),
    ("sft-user", "muarl sft-user needs torch", "train"),
    ("train-user --agent expert", "muarl train-user needs torch", "train"),
    ("base", "muarl base needs torch", "train"),
    ("eval --tasks 2 runs_dir=R", "muarl eval needs torch", "train"),
    ("chat base", "muarl chat needs", "train"),
    ("serve base", "muarl serve needs torch", "train"),
    ("train --dry-run", "muarl train needs", "train"),
    ("export R/eval --as parquet --out episodes.parquet", "--as parquet", "parquet"),
    ("eval --agent expert --tasks 1 wandb=true runs_dir=R", "wandb.enabled needs wandb", "wandb"),
    ("eval --agent expert --tasks 1 trackio=true runs_dir=R", "trackio.enabled needs trackio", "trackio"),
    ("mcp serve hotel-generated", "needs mcp", "mcp"),
)


def python(code: str, folder: Path, text: str = "") -> str:
    """What a fresh process prints in which no package of an extra can be imported."""
    keep = ("PATH", "PYTHONPATH", "SYSTEMROOT")
    found = subprocess.run(
        [sys.executable, "-c", BLOCK + code],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**{k: v for k, v in os.environ.items() if k in keep}, "HOME": str(folder), "OPENAI_API_KEY": "x"},
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], list[str]]:
    """What each command says and its exit code, one after another in one process; and what can be imported in it."""
    lines = [*WORK, *(line for line, _, _ in NEEDS)]
    with FakeOpenAI([completion("I can do nothing.")]) as server:
        asked = "\n".join(lines).replace("URL", server.url)
        out = python(RUN, tmp_path_factory.mktemp("light"), asked)
    told, imported = json.loads(out.splitlines()[-1])
    return told, imported


@pytest.fixture(scope="module")
def told(light: tuple[list[Any], list[str]]) -> dict[str, Any]:
    return dict(zip([*WORK, *(line for line, _, _ in NEEDS)], light[0], strict=True))


@pytest.mark.parametrize("line", WORK)
def test_what_needs_no_model_here_works_without_the_extras(told: dict[str, Any], line: str) -> None:
    code, output = told[line]
    assert code == 0, output


@pytest.mark.parametrize(("line", "words", "extra"), NEEDS)
def test_what_needs_an_extra_says_which(told: dict[str, Any], line: str, words: str, extra: str) -> None:
    code, output = told[line]
    said = " ".join(output.split())
    assert code == 2, output
    assert words in said and f"pip install 'muarl[{extra}]'" in said
    assert "Traceback" not in output


def test_the_light_modules_import_nothing_of_the_extras(light: tuple[list[Any], list[str]]) -> None:
    imported = light[1]
    expected = {
        "muarl.domains.base",
        "muarl.rollouts.conversation",
        "muarl.rewards.outcome",
        "muarl.audit",
        "muarl_tools.view.server",
    }
    expected |= {"muarl.runs.context", "muarl.environments.play", "muarl_tools.serve_environments.http"}
    expected |= {"muarl_integrations.areal", "muarl_integrations.turn_values"}  # those that need no other package
    assert expected <= set(imported)


def test_the_extras_are_those_of_the_package() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    assert set(extras.EXTRAS) == set(optional) - {"dev"}
    names = {"mcp_types": "mcp", "inspect_ai": "inspect-ai"}  # a part of the SDK, and a name with another sign
    for extra, packages in extras.EXTRAS.items():
        asked = {line.partition(">")[0].partition("[")[0].strip() for line in optional[extra]}
        assert {names.get(p, p.replace("_", "-")) for p in packages} <= asked, extra
    light = {line.partition(">")[0] for line in project["dependencies"]}
    assert not light & set(BLOCKED)


def test_a_missing_extra_is_an_import_error_and_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ImportError, match=r"learner.lora needs peft, .*: pip install 'muarl\[lora\]'"):
        extras.require("lora", "learner.lora")
    with pytest.raises(ConfigError):
        extras.require("lora", "learner.lora")


def test_other_failed_imports_are_nobodys_extra() -> None:
    assert extras.missing_extra(ModuleNotFoundError("x", name="nosuch"), "this") is None
    assert extras.missing_extra(ModuleNotFoundError("x", name="json.nosuch"), "this") is None
    assert extras.missing_extra(ValueError("x"), "this") is None
