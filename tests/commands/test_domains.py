"""``muarl domains``: what an agent is told, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from muarl.cli import app
from muarl.config import load_config
from muarl.config.sections import DomainConfig
from muarl.domains.generated import NAMES, generated
from muarl.recipes.setting import make_setting


def domains(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["domains", *arguments])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ["tiny", "official"])
def test_policy_and_tools_are_those_of_a_run(name: str, size: str) -> None:

    if size not in generated(name).sizes:
        assert "--size" in domains("show", name, "--size", size).stderr
        return
    setting = make_setting(load_config("cpu", [f"domain.name={name}", f"domain.size={size}"]), measuring=True)
    task = setting.some_task("test")
    tools = [spec.to_openai() for spec in setting.tools(task)]
    assert domains("show", name, "--size", size, "--policy").stdout == setting.told(task)
    assert json.loads(domains("show", name, "--size", size, "--tools").stdout) == tools
    both = json.loads(domains("show", name, "--size", size, "--json").stdout)
    assert both == {"policy": setting.told(task), "tools": tools}
    shown = domains("show", name, "--size", size).stdout
    assert setting.told(task) in shown and all(tool["function"]["name"] in shown for tool in tools)


@pytest.mark.data
def test_a_benchmarks_policy(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from muarl.data import add

    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    add("tau2", shared_data / "tau2")
    result = domains("show", "tau2-retail", "--policy")
    assert result.exit_code == 0, result.output
    assert "<policy>" in result.stdout
    assert len(json.loads(domains("show", "tau2-retail", "--tools").stdout)) > 10


def test_the_list_has_every_domain() -> None:
    shown = domains("list").stdout
    for name in get_args(DomainConfig.model_fields["name"].annotation):
        assert name in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retial-generated"], "did you mean retail-generated?"),
        (["retail-generated", "--size", "huge"], "--size: 'huge' is unknown; retail-generated has tiny"),
        (["tau2-retail", "--size", "tiny"], "one size"),
        (["retail-generated", "--policy", "--tools"], "one of them at a time"),
    ],
)
def test_what_is_refused(arguments: list[str], said: str) -> None:
    result = domains("show", *arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
