"""``muarl domains``: what an agent is told, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.environments import registry
from muarl.environments.configure import place_of
from muarl.environments.registry import find
from support.environments import MADE


def domains(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["domains", *arguments])


FAST = ("retail-generated", "airline-generated", "hotel-generated", "bank-knowledge-generated", "bfcl-generated")
"""Of each kind one: sizes of a benchmark and without, documents, and tools by the task."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in MADE])
@pytest.mark.parametrize("size", ["tiny", "official"])
def test_policy_and_tools_are_those_of_a_run(name: str, size: str) -> None:

    if size not in find(name).sizes:
        assert "--size" in domains("show", name, "--size", size).stderr
        return
    place = place_of(load_config("cpu", [f"domain.name={name}", f"domain.size={size}"]), measuring=True)
    task = place.example_task("test")
    tools = [spec.to_openai() for spec in place.tools(task)]
    assert domains("show", name, "--size", size, "--policy").stdout == place.system_prompt(task)
    assert json.loads(domains("show", name, "--size", size, "--tools").stdout) == tools
    both = json.loads(domains("show", name, "--size", size, "--json").stdout)
    assert both == {"policy": place.system_prompt(task), "tools": tools}
    shown = domains("show", name, "--size", size).stdout
    assert place.system_prompt(task) in shown and all(tool["function"]["name"] in shown for tool in tools)


@pytest.mark.data
def test_a_benchmarks_policy(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from muarl_worlds.install import add

    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    add("tau2", shared_data / "tau2")
    result = domains("show", "tau2-retail", "--policy")
    assert result.exit_code == 0, result.output
    assert "<policy>" in result.stdout
    assert len(json.loads(domains("show", "tau2-retail", "--tools").stdout)) > 10


def test_the_list_says_whose_data_are_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    result = domains()
    assert "data not installed" in result.stdout and "muarl data add areal-tau2" in result.stderr
    assert "cannot be imported" not in result.stdout


@pytest.mark.parametrize("arguments", [(), ("list",)])
def test_the_list_says_what_each_environment_offers(arguments: tuple[str, ...]) -> None:
    lines = {line.split()[0]: line for line in domains(*arguments).stdout.splitlines()}
    assert set(registry.names()) < set(lines)
    head = lines["name"]

    def cell(name: str, column: str) -> str:
        return lines[name][head.index(column) :].split("  ")[0].strip()

    assert cell("retail-generated", "sizes") == "tiny, small, medium, official"
    assert cell("retail-generated", "checkpoint") == "base"
    for name, offers in (
        ("retail-generated", ("yes", "yes", "yes")),
        ("hotel-generated", ("yes", "yes", "yes")),
        ("bfcl-generated", ("yes", "yes", "")),
        ("tau2-telecom", ("yes", "yes", "")),
        ("tau2-retail", ("", "", "")),
    ):
        assert tuple(cell(name, column) for column in ("rule-based user", "expert", "red team")) == offers, name
    assert cell("mcp-git", "kind") == "on an MCP server" and cell("tau2-retail", "kind") == "benchmark"
    assert cell("mcp-git", "from") == cell("tau2-retail", "from") == "muarl"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retial-generated"], "did you mean retail-generated?"),
        (["retail-generated", "--size", "huge"], "--size is huge; the sizes of retail-generated are tiny"),
        (["tau2-retail", "--size", "tiny"], "one size"),
        (["retail-generated", "--policy", "--tools"], "one of them at a time"),
    ],
)
def test_what_is_refused(arguments: list[str], said: str) -> None:
    result = domains("show", *arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
