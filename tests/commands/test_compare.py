"""``muarl compare`` from the command line: what is said, printed as JSON and drawn."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from muarl.cli.main import app


def muarl(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "160"})


def rows(path: Path, table: Sequence[Sequence[bool]], **more: Any) -> Path:
    """One line an attempt: tasks by trials."""
    lines = [
        {"task_id": f"t{t}", "trial": n, "success": good, **more}
        for t, own in enumerate(table)
        for n, good in enumerate(own)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Three runs on 40 tasks: "good" solves 36, "fair" 33 of the same, "bad" 8."""
    solved = {"good": 36, "fair": 33, "bad": 8}
    return {name: rows(tmp_path / f"{name}.jsonl", [[t < n] for t in range(40)]) for name, n in solved.items()}


def test_what_can_be_told_apart_is_and_what_cannot_is_not_ranked(files: dict[str, Path]) -> None:
    found = muarl("compare", *files.values())
    assert found.exit_code == 0, found.output
    said = " ".join(found.output.split())
    assert "Of 3 runs, the best is one of good and fair: which cannot be told." in said
    assert "Cannot be told apart: good, fair." in said
    assert re.search(r"good − fair.*\+7\.5.*0\.250.*cannot be told apart", found.output)
    assert re.search(r"good − bad.*\+70\.0.*good is better", found.output)
    assert "How many trials it takes cannot be said from one trial a task" in said


def test_the_same_as_json(files: dict[str, Path]) -> None:
    found = json.loads(muarl("compare", *files.values(), "--json").stdout)
    assert found["groups"] == [["good", "fair"], ["bad"]]
    by_name = {run["name"]: run for run in found["runs"]}
    assert [by_name[n]["rank"] for n in ("good", "fair", "bad")] == [[1, 2], [1, 2], [3, 3]]
    assert by_name["good"]["success"] == {"value": 0.9, "interval": pytest.approx([0.7695, 0.9604], abs=1e-3), "n": 40}
    pairs = {(p["first"], p["second"]): p for p in found["pairs"]}
    assert pairs["good", "fair"]["p"] == pytest.approx(0.25)  # 3 tasks, all one way: 2 * 2^-3
    assert pairs["good", "fair"]["p_holm"] == pytest.approx(0.25)
    assert pairs["good", "bad"]["better"] == "good"
    assert pairs["good", "bad"]["p"] == pytest.approx(2 * 2.0**-28)
    assert pairs["good", "bad"]["p_holm"] == pytest.approx(6 * 2.0**-28)
    assert (pairs["good", "fair"]["tasks_first_ahead"], pairs["good", "fair"]["tasks_second_ahead"]) == (3, 0)


def test_a_run_and_itself(files: dict[str, Path]) -> None:
    found = json.loads(muarl("compare", f"a={files['good']}", f"b={files['good']}", "--json").stdout)
    (pair,) = found["pairs"]
    assert (pair["difference"], pair["p"], pair["better"]) == (0.0, 1.0, None)
    low, high = pair["interval"]
    assert -0.1 < low < 0 < high < 0.1
    assert found["verdict"] == (
        "a and b cannot be told apart. Success without any violation was not checked in a and b."
    )


def audited(path: Path, outcomes: Sequence[tuple[bool, bool | None]]) -> Path:
    """One attempt a task: whether it succeeded, and without any violation."""
    lines = [
        {"task_id": f"t{t}", "success": good, "success_without_violation": clean}
        for t, (good, clean) in enumerate(outcomes)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_agents_that_succeed_alike_and_do_not_obey_alike_are_told_apart(tmp_path: Path) -> None:
    rude = audited(tmp_path / "rude.jsonl", [(t < 82, t < 28) for t in range(100)])
    kind = audited(tmp_path / "kind.jsonl", [(t < 81, t < 81) for t in range(100)])
    found = json.loads(muarl("compare", rude, kind, "--json").stdout)
    assert found["verdict"] == (
        "In success, rude and kind cannot be told apart; in success without any violation, kind is better than rude."
    )
    (pair,) = found["pairs"]
    beside = pair["success_without_violation"]
    assert (pair["better"], beside["better"], beside["difference"]) == (None, "kind", pytest.approx(-0.53))
    assert beside["interval"][1] < 0 and beside["p"] == pytest.approx(2 * 2.0**-53)
    assert [run["success_without_violation"]["value"] for run in found["runs"]] == [0.28, 0.81]
    said = " ".join(muarl("compare", rude, kind).output.split())
    assert "Differences in points of success without any violation" in said and "kind is better" in said


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ([(t < 90, t < 20) for t in range(100)], [(t < 60, t < 60) for t in range(100)],
         "In success, a is better than b; in success without any violation, b is better than a."),
        ([(t < 90, t < 90) for t in range(100)], [(t < 60, t < 60) for t in range(100)],
         "a is better than b, in success and in success without any violation."),
        ([(t < 90, t < 60) for t in range(100)], [(t < 60, t < 60) for t in range(100)],
         "In success, a is better than b; in success without any violation, they cannot be told apart."),
        ([(t < 60, t < 40) for t in range(100)], [(t < 60, t < 40) for t in range(100)],
         "a and b cannot be told apart, neither in success nor in success without any violation."),
        ([(t < 90, t < 60) for t in range(100)], [(t < 60, None) for t in range(100)],
         "a is better than b. Success without any violation was not checked in b."),
    ],
)  # fmt: skip
def test_the_verdict_speaks_of_both(
    tmp_path: Path, first: list[tuple[bool, bool]], second: list[tuple[bool, bool | None]], verdict: str
) -> None:
    files = audited(tmp_path / "a.jsonl", first), audited(tmp_path / "b.jsonl", second)
    assert json.loads(muarl("compare", *files, "--json").stdout)["verdict"] == verdict
    assert verdict in " ".join(muarl("compare", *files).output.split())


def test_several_runs_are_ranked_in_both(tmp_path: Path) -> None:
    made = {"a": (90, 20), "b": (88, 85), "c": (30, 30)}
    files = [
        audited(tmp_path / f"{name}.jsonl", [(t < good, t < clean) for t in range(100)])
        for name, (good, clean) in made.items()
    ]
    found = json.loads(muarl("compare", *files, "--json").stdout)
    assert found["verdict"] == (
        "Of 3 runs, the best in success is one of a and b: which cannot be told. "
        "b is the best of 3 runs in success without any violation."
    )
    assert found["groups_without_violation"] == [["b"], ["c"], ["a"]]
    said = " ".join(muarl("compare", *files, "--page", tmp_path / "page.html").output.split())
    assert "Cannot be told apart in success: a, b." in said
    page = _Page()
    page.feed((tmp_path / "page.html").read_text())
    assert "Differences in points of success without any violation" in page.text and not page.open


def test_what_was_checked_in_part_is_compared_in_that_part(tmp_path: Path) -> None:
    one = audited(tmp_path / "one.jsonl", [(True, True if t < 30 else None) for t in range(50)])
    other = audited(tmp_path / "other.jsonl", [(True, False) for t in range(50)])
    (pair,) = json.loads(muarl("compare", one, other, "--json").stdout)["pairs"]
    assert (pair["success_without_violation"]["tasks"], pair["success_without_violation"]["better"]) == (30, "one")
    said = " ".join(muarl("compare", one, other).output.split())
    assert "one: success without any violation was checked in 30 of 50 attempts" in said
    alone = " ".join(muarl("compare", rows(tmp_path / "old.jsonl", [[True]] * 5)).output.split())
    assert "Success without any violation was not checked in old." in alone


def test_interval_and_test_at_odds_are_explained(tmp_path: Path) -> None:
    # 5 tasks to 0: the interval leaves 0 out, McNemar's test has p = 2/32.
    a = rows(tmp_path / "a.jsonl", [[t < 25] for t in range(50)])
    b = rows(tmp_path / "b.jsonl", [[t < 20] for t in range(50)])
    said = " ".join(muarl("compare", a, b).output.split())
    assert "a and b cannot be told apart." in said
    assert "the interval leaves 0 out, but the exact test decides, and it cannot tell them apart with 5 tasks" in said


def test_trials_on_these_very_tasks(tmp_path: Path) -> None:
    a = rows(tmp_path / "a.jsonl", [[True, True, True, t % 2 == 0] for t in range(30)])
    b = rows(tmp_path / "b.jsonl", [[True, t % 3 == 0, False, False] for t in range(30)])
    found = json.loads(muarl("compare", a, b, "--these-tasks", "--json", "--points", "5").stdout)
    (pair,) = found["pairs"]
    assert (found["about"], pair["test"], pair["better"]) == ("these tasks", "exact within tasks", "a")
    assert pair["needed"]["trials_same_tasks"] > 4
    assert set(pair["pass_hat"]) == {"2", "3", "4"}
    assert found["runs"][0]["components"]["components"]["trial"]["share"] > 0
    single = rows(tmp_path / "c.jsonl", [[True]] * 30)
    refused = muarl("compare", a, single, "--these-tasks")
    assert refused.exit_code == 2 and "--trials 2 or more" in refused.output


def test_one_run_alone_says_what_its_score_is_worth(tmp_path: Path) -> None:
    a = rows(tmp_path / "a.jsonl", [[t % 4 > 0, t % 3 > 0] for t in range(48)])
    said = " ".join(muarl("compare", a).output.split())
    assert "1 run on 48 tasks" in said
    assert re.search(r"For 3\.0 points on these very tasks \(--these-tasks\): [\d,]+ trials of each", said)
    assert "which trial it is" in said


def test_the_judges_part(tmp_path: Path) -> None:
    lines = [
        {"task_id": f"t{t}", "trial": n, "reward": float(t % 2 == 0 or (t + v) % 3 == 0), "verdict": v}
        for t in range(20)
        for n in range(2)
        for v in range(3)
    ]
    file = tmp_path / "scores.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = json.loads(muarl("compare", file, "--json").stdout)
    parts = found["runs"][0]["judge_components"]["components"]
    assert set(parts) == {"task", "judge", "trial"}
    # Half of the tasks are judged right once in three: variance 1/3 of them, mean 1/6.
    assert parts["judge"]["variance"] == pytest.approx(1 / 6)
    assert parts["trial"]["variance"] == pytest.approx(-1 / 18)
    assert "The judge's part: scores" in muarl("compare", file).output


class _Page(HTMLParser):
    """Tags that are open, and everything that a browser would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "hr", "link", "input"):
            self.open.append(tag)
        if tag in ("script", "link", "img", "iframe"):
            self.fetched.append(tag)
        self.fetched += [f"{name}={value}" for name, value in attrs if name in ("src", "href", "onload")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data


def test_the_page_is_whole_and_asks_for_nothing(files: dict[str, Path], tmp_path: Path) -> None:
    files["bad"].rename(tmp_path / "<b>bad.jsonl")
    out = tmp_path / "page.html"
    found = muarl("compare", files["good"], files["fair"], tmp_path / "<b>bad.jsonl", "--page", out)
    assert found.exit_code == 0, found.output
    page = _Page()
    page.feed(out.read_text())
    assert (page.open, page.fetched) == ([], [])
    for words in ("Of 3 runs, the best is one of good and fair", "<b>bad", "+7.5", "cannot be told apart", "Holm"):
        assert words in page.text
    assert "How much for a difference of 3.0 points" in page.text


def test_what_is_left_out_is_named(files: dict[str, Path], tmp_path: Path) -> None:
    few = rows(tmp_path / "few.jsonl", [[True]] * 38)
    with open(few, "a") as out:
        out.write('{"task_id": "t38", "trial": 0, "reward": null, "error": "the endpoint was gone"}\n')
    said = " ".join(muarl("compare", files["good"], few).output.split())
    assert "few lacks 2 tasks (t38, t39), which others have: left out." in said
    assert "few: 1 attempts failed outside the agent and are left out: the endpoint was gone (1)." in said


def test_runs_that_agree_everywhere_say_that_nothing_can_be_planned(tmp_path: Path) -> None:
    a, b = (rows(tmp_path / f"{name}.jsonl", [[False]] * 2) for name in "ab")
    said = " ".join(muarl("compare", a, b).output.split())
    assert (
        "The runs' difference is the same on every task, so that what a difference of 3.0 points takes cannot" in said
    )
    assert "0.0 points would be seen" not in said and "1 tasks" not in said
    alone = " ".join(muarl("compare", rows(tmp_path / "c.jsonl", [[True, True]] * 4)).output.split())
    assert "All trials of each task ended alike, so that what a difference" in alone


def test_what_stands_beside_the_figures_is_told_with_the_runs_name(tmp_path: Path) -> None:
    lines = [{"task_id": t, "success": True, "reward": 0.0, "verdict": v} for t in range(4) for v in range(2)]
    file = tmp_path / "scores.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = tmp_path / "page.html"
    said = " ".join(muarl("compare", f"mine={file}", "--page", page).output.split())
    assert "mine: 4 of 4 lines say one thing as success and another as reward" in said
    assert "mine: 4 lines are further verdicts on conversations that count once, by the first." in said
    assert "4 of 4 lines" in page.read_text() and "4 lines are further verdicts" in page.read_text()
    found = json.loads(muarl("compare", f"mine={file}", "--json").stdout)
    assert len(found["warnings"]) == len(found["runs"][0]["left_out"]) == 1


@pytest.mark.parametrize(("option", "says"), [("--alpha=0.9", "--alpha: must be above 0 and below 0.5"),
                                              ("--points=0", "--points: must be above 0 and below 100")])  # fmt: skip
def test_options_out_of_range(files: dict[str, Path], option: str, says: str) -> None:
    found = muarl("compare", *files.values(), option)
    assert found.exit_code == 2 and says in found.output
