"""``muarl coldstart``: what its options set, and what it refuses, before any work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.stages import SCENARIOS

Muarl = Callable[..., Any]


def settings(muarl: Muarl, *args: str) -> dict[str, Any]:
    """The configuration that these options lead to."""
    found: dict[str, Any] = yaml.safe_load(muarl("coldstart", "--dry-run", *args, ok=True).stdout)
    return found


def test_without_options_experts_make_two_thousand_conversations_of_nine_scenarios(muarl: Muarl) -> None:
    found = settings(muarl)
    wanted = found["coldstart"]
    assert (wanted["teacher"], wanted["tools"], found["user"]["kind"]) == ("expert", "world", "agenda")
    assert (wanted["count"], tuple(wanted["scenarios"])) == (2000, SCENARIOS) and len(SCENARIOS) == 9
    assert wanted["max_cost"] is wanted["max_tokens"] is wanted["judge"] is None
    assert found["resume"] is None


def test_every_option_has_its_place(muarl: Muarl) -> None:
    found = settings(
        muarl,
        *("-n", "12", "--scenario", "retail-generated", "--scenario", "telecom-generated"),
        *("--judge", "endpoint:j", "--max-cost", "1.5", "--max-tokens", "1000", "--name", "mine", "--seed", "7"),
        *("--teacher", "endpoint:t@http://t/v1", "--user", "endpoint:u", "--tools", "endpoint:w@http://w/v1"),
        "coldstart.min_turns=3",
    )
    wanted = found["coldstart"]
    assert wanted["scenarios"] == ["retail-generated", "telecom-generated"]
    assert (wanted["count"], wanted["judge"], wanted["min_turns"]) == (12, "endpoint:j", 3)
    assert (wanted["max_cost"], wanted["max_tokens"]) == (1.5, 1000)
    assert (found["name"], found["seed"], wanted["seed"]) == ("mine", 7, 7)
    assert wanted["teacher"] == "endpoint" and found["user"]["kind"] == "llm" and wanted["tools"] == "imagined"
    named = [wanted["endpoint"], found["user"]["endpoint"], wanted["tools_endpoint"]]
    assert [(e["model"], e["base_url"]) for e in named] == [("t", "http://t/v1"), ("u", None), ("w", "http://w/v1")]


def test_options_may_take_back_what_a_preset_says(muarl: Muarl, tmp_path: Path) -> None:
    preset = tmp_path / "mine.yaml"
    preset.write_text(
        "extends: teacher\nuser: {kind: llm, endpoint: {model: u}}\n"
        "coldstart: {teacher: endpoint, endpoint: {model: t}, tools: imagined, tools_endpoint: {model: w}}\n"
    )
    plain = settings(muarl, "-c", str(preset))
    assert (plain["coldstart"]["teacher"], plain["coldstart"]["concurrency"]) == ("endpoint", 64)
    ours = ("--teacher", "expert", "--user", "agenda", "--tools", "world")
    found = settings(muarl, "-c", str(preset), *ours)
    parts = found["coldstart"]["teacher"], found["user"]["kind"], found["coldstart"]["tools"]
    assert parts == ("expert", "agenda", "world")


def test_a_models_other_settings_stay_as_the_preset_has_them(muarl: Muarl, tmp_path: Path) -> None:
    preset = tmp_path / "mine.yaml"
    preset.write_text("extends: teacher\ncoldstart: {endpoint: {model: t, temperature: 0.7, prompt_price: 2}}\n")
    endpoint = settings(muarl, "-c", str(preset), "--teacher", "endpoint:other")["coldstart"]["endpoint"]
    assert (endpoint["model"], endpoint["temperature"], endpoint["prompt_price"]) == ("other", 0.7, 2)


def test_options_win_over_settings(muarl: Muarl) -> None:
    found = settings(muarl, "coldstart.count=5", "coldstart.attempts=9", "-n", "6")
    assert (found["coldstart"]["count"], found["coldstart"]["attempts"]) == (6, 9)


def test_a_run_to_go_on_with_brings_its_own_settings(muarl: Muarl, tmp_path: Path) -> None:
    run = tmp_path / "cs"
    run.mkdir()
    (run / "config.yaml").write_text("extends: offline\nname: cs\ncoldstart: {count: 9, max_tokens: 10}\n")
    found = settings(muarl, "--resume", str(run), "--max-tokens", "20")
    assert (found["coldstart"]["count"], found["coldstart"]["max_tokens"]) == (9, 20)
    assert found["resume"] == str(run)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--teacher", "gpt-5"), ("--teacher", "'gpt-5'", "endpoint:MODEL", "expert")),
        (("--user", "llm"), ("--user", "'llm'", "agenda")),
        (("--tools", "imagined"), ("--tools", "'imagined'", "world")),
        (("--teacher", "endpoint:"), ("endpoint:",)),
        (("-n", "0"), ("coldstart.count", "greater than or equal to 1")),
        (("--max-cost", "0"), ("coldstart.max_cost", "greater than 0")),
        (("--max-tokens", "-1"), ("coldstart.max_tokens",)),
        (("--scenario", "retail-generated", "--scenario", "retail-generated"), ("scenarios", "none twice")),
        (("coldstart.teacher=endpoint",), ("coldstart", "endpoint.model", "serves")),
        (("coldstart.tools=imagined",), ("coldstart", "tools_endpoint.model", "plays")),
        (("user.kind=llm",), ("user", "endpoint.model")),
        (("coldstart.scenario=[x]",), ("did you mean 'coldstart.scenarios'?",)),
        (("-c", "ofline"), ("no preset 'ofline'", "did you mean 'offline'?")),
    ],
)
def test_what_makes_no_sense_is_named(muarl: Muarl, args: tuple[str, ...], words: tuple[str, ...]) -> None:
    result = muarl("coldstart", "--dry-run", *args)
    assert result.exit_code == 2, result.output
    told = " ".join(result.stderr.split())
    assert all(word in told for word in words), told


def test_the_presets_are_those_that_the_help_names() -> None:
    assert load_config("offline").coldstart.teacher == "expert"
    assert load_config("teacher").name == "coldstart-teacher"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["coldstart.size=huge"], "coldstart.size is huge; the sizes of the scenarios are tiny, small, medium"),
        (["coldstart.scenarios=[hotl-generated]"], "coldstart.scenarios: there is no environment 'hotl-generated'"),
        (["coldstart.scenarios=[hotl-generated]"], "did you mean hotel-generated?"),
        (["coldstart.scenarios=[hotel-generated, tau2-telecom]"], "coldstart.scenarios: tau2-telecom is a benchmark"),
        (["coldstart.scenarios=[tau2-telecom]"], "set train_on_benchmark=true if this is what you want"),
    ],
)
def test_sizes_and_scenarios_are_checked_against_the_environments(
    settings: list[str], says: str, tmp_path: Path
) -> None:
    found = CliRunner().invoke(app, ["coldstart", *settings, f"runs_dir={tmp_path}"], env={"COLUMNS": "200"})
    assert found.exit_code == 2, found.output
    assert says in " ".join(found.output.split())
    assert not list(tmp_path.iterdir()), "before any work"
