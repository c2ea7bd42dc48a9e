"""``muarl user check`` as a person uses it: figures, page, logs, exit codes, refusals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from muarl.basics.errors import DataError, MuarlError
from muarl.cli.main import app
from support.fake_openai import FakeOpenAI, status, text

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


def refused(*words: str) -> Result:
    """A check that plays nothing: its model is not even asked whether it is there more than once."""
    with FakeOpenAI(text("###STOP###")) as server:
        result = CliRunner().invoke(app, ["user", "check", f"endpoint:m@{server.url}", *QUICK, *words])
        assert len(server.bodies) <= 1, "nothing is played"
    assert result.exit_code == 2, result.output
    return result


def test_a_page_that_cannot_be_written_is_told_before_anything_is_played(tmp_path: Path) -> None:
    assert f"--page: {tmp_path} is a folder" in refused("--page", str(tmp_path)).stderr.replace("\n", " ")
    (tmp_path / "file").touch()
    said = refused("--page", str(tmp_path / "file" / "user.html")).stderr
    assert "--page" in said and "is not a folder" in said.replace("\n", " ")


def test_every_domain_is_made_before_the_first_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = (
        "from dataclasses import replace",
        "from muarl.environments.registry import find",
        'SHOP = find("retail-generated")',
        'OWN = replace(SHOP, name="own-shop", tasks={"train": SHOP.make_tasks("train", 2)})',
    )
    Path("own_shop.py").write_text("\n".join(lines) + "\n")
    assert "own-shop has no tasks for the split 'test'" in refused("--domain", "./own_shop.py:OWN").stderr


def test_the_verdict_is_told_even_if_its_page_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise MuarlError("The disk is full")

    monkeypatch.setattr("muarl.basics.files.write_text", full)
    code, out = run("agenda", *QUICK, "--page", str(tmp_path / "user.html"))
    assert code == 2 and "Verdict: fit with reservations" in out and "Page:" not in out


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_was_played_is_told_if_a_later_agent_breaks_off(tmp_path: Path, form: Sequence[str]) -> None:
    page = tmp_path / "user.html"
    with FakeOpenAI(status(401)) as server:
        words = ["agenda", *QUICK, "--agent", f"endpoint:gone@{server.url}", "--page", str(page), *form]
        result = CliRunner().invoke(app, ["user", "check", *words])
    assert result.exit_code == 2
    assert "the check broke off" in result.stderr.replace("\n", " ") and "endpoint:gone" in result.stderr
    assert "Incomplete: the check broke off" in page.read_text()
    if form:
        figures = json.loads(result.stdout)
        assert figures["conversations"] == 4 and figures["broke_off"].startswith("endpoint:gone in retail-generated: ")
        assert figures["by_agent"].keys() == {"refusing", "claiming"} and figures["lost"]["conversations"]
    else:
        assert "Incomplete: the check broke off" in result.stdout and "Verdict: fit with" in result.stdout


def test_a_check_that_breaks_off_at_once_has_no_verdict() -> None:
    with FakeOpenAI([text("ready"), status(401)]) as server:
        result = CliRunner().invoke(app, ["user", "check", f"endpoint:m@{server.url}", *QUICK])
    assert result.exit_code == 2 and "Verdict" not in result.stdout
    assert "refusing in retail-generated: " in result.stderr.replace("\n", " ")


@pytest.mark.parametrize("words", [["nobody-of-this-name"], ["agenda", "--fail-on", "bad"]])
def test_unknown_names_are_refused(words: list[str]) -> None:
    assert run(*words, "--tasks", "1")[0] == 2
