"""A real training that goes wrong says so while it does, and stops where it is told to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.learning.checkpoint_folders import checkpoint_path
from support.fake_openai import FakeOpenAI, text

Muarl = Callable[..., Any]
FAST = ("rl.optimizer=adamw", "rl.lr=0.5", "rl.shaping.format=1", "rl.steps=8", "rl.checkpoint_every=0")


def status(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "status.json").read_text())
    return found


@pytest.mark.slow
def test_a_training_that_runs_away_stops_with_a_checkpoint_and_goes_on(muarl: Muarl, tmp_path: Path) -> None:
    ended = muarl("train", "--name", "run", *FAST, "rl.stop_on=[kl-runs-away]")
    assert ended.exit_code == 3, ended.output
    run = tmp_path / "runs" / "run"
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    made = len(rows)
    assert made < 8 and rows[0]["kl"] == pytest.approx(0, abs=1e-4) and rows[0]["update/kl_tokens"] > 0
    told = f"Stopped after {made} of 8 steps by rl.stop_on: kl-runs-away."
    assert told in ended.output and "lower rl.lr" in ended.output and "--resume" in ended.output
    assert f"Step {made - 1}: kl-runs-away." in ended.output
    assert status(run)["state"] == "interrupted" and told in status(run)["message"]
    assert status(run)["signs"][0]["name"] == "kl-runs-away"
    assert json.loads((run / "summary.json").read_text())["training"]["signs"][0]["since"] == made - 1
    assert checkpoint_path(run / "checkpoints" / "rl", made).is_dir()
    on = muarl("train", "--resume", str(run))
    assert on.exit_code == 0, on.output
    assert "Stopped after" not in on.output, "what has begun before stops no training that was taken up again"
    assert status(run)["state"] == "finished" and status(run)["signs"]
    page = CliRunner().invoke(app, ["report", str(run)])
    assert page.exit_code == 0, page.output
    assert "kl-runs-away (since step" in (run / "report.html").read_text()


def test_a_sign_that_there_is_none_of_is_refused() -> None:
    from muarl.config.load import load_config

    assert load_config("quickstart", ["rl.stop_on=no-signal"]).rl.stop_on == ("no-signal",)
    assert load_config("quickstart", ["rl.stop_on=[no-signal,user-breaks-down]"]).rl.stop_on[1] == "user-breaks-down"
    with pytest.raises(ConfigError, match=r"rl\.stop_on.*kl-runs-away"):
        load_config("quickstart", ["rl.stop_on=[kl]"])


@pytest.mark.slow
def test_a_user_that_breaks_character_is_named_and_not_the_tasks(
    muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
    with FakeOpenAI([text("As an AI customer service agent, how may I assist you today?")], key="sk-any") as server:
        endpoint = ["model=fake", f"base_url={server.url}", "attempts=1", "prompt_price=0", "completion_price=0"]
        options = ["user.kind=llm", "user.guidelines=muarl", *(f"user.endpoint.{one}" for one in endpoint)]
        ended = muarl("train", "--name", "run", "rl.steps=4", *options)
    assert ended.exit_code == 0, ended.output
    run = tmp_path / "runs" / "run"
    assert "Step 1: user-breaks-down. In 100% of the conversations" in ended.output
    assert "choose tasks" not in ended.output, "the tasks are not what is wrong"
    told = json.loads((run / "summary.json").read_text())["training"]["signs"]
    assert told[0]["name"] == "user-breaks-down" and told[0]["since"] == 1
    assert {sign["follows"] for sign in told[1:]} <= {"user-breaks-down"}
    assert status(run)["signs"][0]["name"] == "user-breaks-down"
