"""``muarl user check`` as a person uses it: figures, page, logs, exit codes, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import DataError
from muarl.cli.main import app
from support.fake_openai import FakeOpenAI, text

QUICK = ["--tasks", "2", "--agents", "refusing,claiming", "--domain", "retail-generated"]


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["user", "check", *words])
    return result.exit_code, result.stdout


def test_the_agenda_user_has_no_fault_and_the_page_says_how_many_conversations(tmp_path: Path) -> None:
    logs = tmp_path / "people.jsonl"
    rows = [[{"role": "user", "content": f"hey um can you help me with order {n}"}] for n in range(4)]
    logs.write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows))
    page = tmp_path / "user.html"
    code, out = run("agenda", *QUICK, "--json", "--logs", str(logs), "--page", str(page))
    assert code == 0, out
    figures = json.loads(out)
    assert figures["conversations"] == 4
    assert figures["grave"]["findings"] == 0
    assert figures["verdict"]["name"] == "fit with reservations"  # four conversations cannot show more
    assert "too few" in figures["verdict"]["reasons"][0]
    assert figures["logs"]["features"]["small_letter"]["logs"] == 1.0
    assert figures["logs"]["features"]["small_letter"]["differs"]
    html = page.read_text()
    assert "4 conversations on 2 tasks" in html
    assert "<script" not in html


def test_a_model_that_leaks_is_unfit_and_fails_a_script() -> None:
    with FakeOpenAI(text("As an AI language model I want nothing. ###STOP###")) as server:
        code, out = run(f"endpoint:m@{server.url}", *QUICK, "--trials", "5", "--fail-on", "unfit", "--json")
    assert code == 3
    figures = json.loads(out[out.index("{") :])
    assert figures["rules"]["leaks"]["conversations"]["value"] == 1.0
    assert figures["by_agent"].keys() == {"refusing", "claiming"}
    assert figures["verdict"]["name"] == "unfit"
    assert figures["cost"]["requests"] == 1.0


@pytest.mark.parametrize(("solved", "name"), [(0.0, "unfit"), (0.6, "fit with reservations")])
def test_a_user_with_whom_the_expert_fails_is_not_fit(
    solved: float, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muarl_tools.checks.user.figures.FIT", 0.5)  # so that ten conversations are enough
    marks = iter([n < 10 * solved for n in range(10)] * 2)
    monkeypatch.setattr("muarl_tools.checks.user.figures.is_success", lambda reward: next(marks))
    code, out = run("agenda", "--tasks", "10", "--agents", "expert", "--domain", "retail-generated", "--json")
    verdict = json.loads(out)["verdict"]
    assert code == 0 and verdict["name"] == name
    assert f"solves {solved:.1%} of its tasks" in verdict["reasons"][0]


def test_what_cannot_be_done_is_told_before_anything_is_played(tmp_path: Path) -> None:
    empty = tmp_path / "none.jsonl"
    empty.write_text(json.dumps({"messages": []}) + "\n")
    result = CliRunner().invoke(app, ["user", "check", "agenda", *QUICK, "--logs", str(empty)])
    assert isinstance(result.exception, (SystemExit, DataError))
    assert result.exit_code == 2
    code, _ = run("agenda", "--agents", "polite", "--tasks", "1")
    assert code == 2


@pytest.mark.parametrize("words", [["nobody-of-this-name"], ["agenda", "--fail-on", "bad"]])
def test_unknown_names_are_refused(words: list[str]) -> None:
    assert run(*words, "--tasks", "1")[0] == 2
