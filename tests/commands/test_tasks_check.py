"""``muarl tasks check``: what it prints, writes and refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.domains.checking import Fix
from muarl.domains.database import Database
from muarl.environments.task_files import FiledTask, read_tasks, write_tasks
from muarl_tools.checks.tasks.fixes import fix_row
from support.checked_tasks import FIND, RIGHT, SHOP, SWAP


def check(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["tasks", "check", *arguments])


@pytest.fixture
def filed(tmp_path: Path) -> Path:
    """A file with a right task and one that changes somebody else's address."""
    world = Database(SHOP)
    address = {"address1": "1 A", "address2": "", "city": "Denver", "state": "CO", "country": "USA", "zip": "80201"}
    other = replace(SWAP, name="modify_user_address", arguments={"user_id": "bob_roy_1002", **address})
    right = replace(RIGHT, database=world, agenda={"lines": ("Hi",)})
    wrong = replace(right, id="wrong", actions=(FIND, other))
    path = tmp_path / "tasks.jsonl"
    write_tasks(path, [FiledTask(right, confirmed=True), FiledTask(wrong, confirmed=True)])
    return path


def test_a_file_of_tasks(filed: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = check(str(filed), "--domain", "retail-generated", "--page", str(page))
    assert done.exit_code == 1
    assert "gold-other-person" in done.stdout and "bob_roy_1002" in done.stdout
    assert "do-nothing          0 of 2" in done.stdout
    html = page.read_text(encoding="utf-8")
    assert "gold-other-person" in html and "<script" not in html


def test_json_and_levels(filed: Path) -> None:
    done = check(str(filed), "--json")
    shown = json.loads(done.stdout)
    assert {f["task"] for f in shown["findings"] if f["level"] == "error"} == {"wrong"}
    printed = check(str(filed), "--rule", "earned-by-nothing").stdout
    assert "gold-other-person: " not in printed


@pytest.mark.slow
def test_made_tasks_pass_and_cannot_be_mended(tmp_path: Path) -> None:
    done = check("retail-generated", "--split", "test", "--tasks", "5")
    assert done.exit_code == 0 and "5 tasks (5 test)" in done.stdout
    refused = check("retail-generated", "--fix", str(tmp_path / "out.json"))
    assert refused.exit_code == 2 and "generator" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("retail-generatd",), "did you mean retail-generated"),
        (("retail-generated", "--domain", "retail-generated"), "--domain goes with a file"),
        (("retail-generated", "--split", "dev"), "no tasks for the split"),
        (("retail-generated", "--rule", "no-such"), "no rule 'no-such'"),
        (("retail-generated", "--guesses"), "--guesses goes with --fix"),
        (("bfcl-v4",), "another than the state"),
        (("mcp-git",), "on a server"),
    ],
)
def test_refuses_clearly(arguments: tuple[str, ...], says: str) -> None:
    done = check(*arguments)
    assert done.exit_code == 2 and says in done.stderr


def test_refuses_files_that_are_no_tasks(tmp_path: Path) -> None:
    for text, says in (
        ("[1]", "a list of tasks"), ("[{}]", "neither user_scenario"), ("[", "not JSON"),
        ('[{"user_scenario": {}}]', "--domain tau2-retail"),
    ):  # fmt: skip
        path = tmp_path / "tasks.json"
        path.write_text(text, encoding="utf-8")
        done = check(str(path))
        assert done.exit_code == 2 and says in done.stderr, text


ACTIONS = [{"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {"x": 2}}]
TAU2 = {
    "id": "1",
    "user_scenario": {"instructions": {"task_instructions": "Be kind.", "domain": "retail"}},
    "evaluation_criteria": {"actions": ACTIONS, "reward_basis": ["DB", "NL_ASSERTION"]},
}
FIXES = (
    Fix("drop", index=1),
    Fix("drop", index=1),
    Fix("arguments", {"x": 5}, 0),
    Fix("basis", ("DB",)),
    Fix("say", "You pay by card."),
)


def test_mends_a_row_of_tau2() -> None:
    made = fix_row(TAU2, "tau2", FIXES)
    assert made["evaluation_criteria"] == {"actions": [{"name": "a", "arguments": {"x": 5}}], "reward_basis": ["DB"]}
    assert made["user_scenario"]["instructions"]["task_instructions"] == "Be kind.\n\nYou pay by card."
    assert TAU2["evaluation_criteria"]["actions"] == ACTIONS  # the row given is left as it was


def test_mends_rows_of_tau1_and_of_task_files() -> None:
    old = {"instruction": "Hi.", "actions": [{"name": "a", "kwargs": {"x": 1}}], "outputs": []}
    made = fix_row(old, "tau1", [Fix("arguments", {"x": 2}, 0), Fix("say", "Bye."), Fix("basis", ("DB",))])
    assert made == {"instruction": "Hi. Bye.", "actions": [{"name": "a", "kwargs": {"x": 2}}], "outputs": []}
    own = fix_row({"scenario": "Hi.", "actions": ACTIONS, "confirmed": True, "made": "x"}, "muarl", [FIXES[0]])
    assert own == {"scenario": "Hi.", "actions": ACTIONS[:1], "confirmed": False}


def test_a_mended_file_can_be_read_again(filed: Path, tmp_path: Path) -> None:
    tasks = read_tasks(filed)
    same = {"new_item_ids": ["1000000001"]}
    broken = replace(tasks[0].task, scenario=tasks[0].task.scenario.replace("and your zip code is 80201", ""))
    swap = replace(SWAP, arguments={**SWAP.arguments, **same})
    write_tasks(filed, [replace(tasks[0], task=replace(broken, actions=(FIND, swap)))])
    out = tmp_path / "fixed.jsonl"
    done = check(str(filed), "--domain", "retail-generated", "--fix", str(out))
    assert "Fixed: 1 of 1 tasks" in done.stdout and "Errors left to a person" not in done.stdout
    (again,) = read_tasks(out)
    assert "your zip code is 80201" in again.task.scenario and not again.confirmed


@pytest.mark.data
def test_known_mistakes_of_tau2(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """72 of 114 retail tasks have an assertions part and no assertion (tau2-bench issue 384); in task 105 the only gold
    action fails."""
    monkeypatch.setenv("MUARL_DATA", str(shared_data))
    shown = json.loads(check("tau2-retail", "--json").stdout)
    by_rule = {rule: {f["task"] for f in shown["findings"] if f["rule"] == rule} for rule in ("assertions-missing",)}
    assert len(by_rule["assertions-missing"]) == 72
    errors = {(f["task"], f["rule"]) for f in shown["findings"] if f["level"] == "error"}
    assert ("105", "gold-fails") in errors and ("105", "gold-no-effect") in errors


@pytest.mark.data
def test_a_file_of_tau2_is_mended_to_what_it_should_be(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bag that is free for a gold member is charged; the fixed file charges none."""
    monkeypatch.setenv("MUARL_DATA", str(shared_data))
    rows = json.loads((shared_data / "tau2/domains/airline/tasks.json").read_text(encoding="utf-8"))
    row = next(r for r in rows if r["id"] == "33")
    bags = next(a for a in row["evaluation_criteria"]["actions"] if a["name"] == "update_reservation_baggages")
    bags["arguments"]["nonfree_baggages"] = 2
    path, out = tmp_path / "tasks.json", tmp_path / "fixed.json"
    path.write_text(json.dumps([row]), encoding="utf-8")
    assert check(str(path), "--domain", "tau2-airline", "--fix", str(out)).exit_code == 1
    bags["arguments"]["nonfree_baggages"] = 0
    assert json.loads(out.read_text(encoding="utf-8")) == [row]


def test_a_task_of_somebody_else_does_not_steer_the_terminal(filed: Path) -> None:
    text = filed.read_text().replace('"wrong"', '"wrong\\u001b[2J\\u202e"').replace("1 A", "1 \\u001b]0;A\\u0007")
    filed.write_text(text)
    done = check(str(filed), "--domain", "retail-generated", "--level", "note")
    assert done.exit_code == 1 and "wrong\\u001b[2J\\u202e" in done.stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(done.output)
