"""Episodes for other tools: nothing lost, nothing made up, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import ConfigError, MuarlError
from muarl.cli.main import app
from muarl.environments.registry import find
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl_tools.export.episode_tables import COLUMNS, episodes_of, export_episodes
from support.viewing import make_run

WORDS = '=HYPERLINK("http://evil"), he said\nüñ'


def small_run(folder: Path) -> RunDirectory:
    """Two episodes of a generated task and one that failed outside."""
    (task,) = find("retail-generated").make_tasks("test", 1, size="tiny", seed=0)
    turns = [Turn(Message("user", "Hi"), 0.5), Turn(Message("assistant", WORDS), 1.0)]
    good = Episode("a", task.id, task.domain, turns, StopReason.USER_STOP, verdict=Verdict(1.0, {"DB": 1.0}))
    poor = replace(good, id="b", verdict=Verdict(0.0, {"DB": 0.0}), agent=WORDS)
    lost = Episode("c", "own-task", "own", turns[:1], StopReason.INFRASTRUCTURE, error="no answer")
    run = RunDirectory(folder, "r")
    run.write_config({"domain": {"name": "retail-generated", "size": "tiny"}})
    run.write_episodes("eval", [good, poor])
    run.write_episodes("train-0001", [lost])
    return run


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A finished run that tests only read."""
    return make_run(tmp_path_factory.mktemp("runs"))


def test_messages_hold_what_the_agent_was_told_where_it_can_be_made_again(tmp_path: Path) -> None:
    run, out = small_run(tmp_path), tmp_path / "messages.jsonl"
    assert export_episodes(run, "messages", out) == 3
    good, _, lost = rows_of(out)
    domain = find("retail-generated").make_domain("tiny")
    assert good["messages"] == [
        {"role": "system", "content": domain.policy_text},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": WORDS},
    ]
    assert [t["function"]["name"] for t in good["tools"]] == [t.name for t in domain.tool_specs()]
    assert (good["reward"], lost["reward"]) == (1.0, None)
    assert lost["tools"] is None and lost["messages"] == [{"role": "user", "content": "Hi"}]


def test_a_table_has_one_row_an_episode(tmp_path: Path) -> None:
    run, out = small_run(tmp_path), tmp_path / "episodes.csv"
    assert export_episodes(run, "csv", out) == 3
    with open(out, encoding="utf-8", newline="") as file:
        good, poor, lost = csv.DictReader(file)
    assert tuple(good) == COLUMNS
    assert (good["file"], good["reward"], good["success"], good["seconds"]) == ("eval", "1.0", "True", "1.5")
    assert json.loads(good["messages"])[1]["content"] == WORDS
    assert poor["agent"] == f"'{WORDS}", "no formula, whatever a model calls itself"
    assert (lost["file"], lost["reward"], lost["success"], lost["error"]) == ("train-0001", "", "", "no answer")


def test_parquet_holds_the_same_with_types(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run, out = small_run(tmp_path), tmp_path / "episodes.parquet"
    export_episodes(run, "parquet", out)
    good, poor, lost = parquet.read_table(out).to_pylist()
    assert (good["reward"], good["success"], good["turns"], good["agent"]) == (1.0, True, 1, "")
    assert poor["agent"] == WORDS
    assert lost["reward"] is None and lost["success"] is None


def test_parquet_without_its_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"pip install 'muarl\[parquet\]'"):
        export_episodes(small_run(tmp_path), "parquet", tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()


def test_what_cannot_be_exported_is_told(tmp_path: Path) -> None:
    empty = RunDirectory(tmp_path, "empty")
    with pytest.raises(MuarlError, match="the run has no episodes"):
        export_episodes(empty, "csv", tmp_path / "x.csv")
    with pytest.raises(ConfigError, match="messages, csv, parquet"):
        export_episodes(empty, "xml", tmp_path / "x.xml")


def test_a_whole_run_goes_out(finished: RunDirectory, tmp_path: Path) -> None:
    count = sum(1 for _ in episodes_of(finished))
    for form in ("messages", "csv"):
        assert export_episodes(finished, form, tmp_path / form) == count > 0


def test_rows_and_trajectories_hold_what_the_agent_was_told(tmp_path: Path) -> None:
    run, domain = small_run(tmp_path), find("retail-generated").make_domain("tiny")
    assert export_episodes(run, "rows", tmp_path / "rows.jsonl") == 3
    good, _, lost = rows_of(tmp_path / "rows.jsonl")
    assert good["messages"][0] == {"role": "system", "content": domain.policy_text}
    assert [t["function"]["name"] for t in json.loads(good["tools"])] == [t.name for t in domain.tool_specs()]
    assert lost["tools"] is None
    assert export_episodes(run, "atif", tmp_path / "atif", ["eval"]) == 2
    assert sorted(p.name for p in (tmp_path / "atif").iterdir()) == ["eval-000001.json", "eval-000002.json"]
    made = json.loads((tmp_path / "atif" / "eval-000001.json").read_text())
    assert made["steps"][0]["message"] == domain.policy_text
    assert len(made["agent"]["tool_definitions"]) == len(domain.tool_specs())


def test_a_file_of_episodes_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no 'train'; it has eval, train-0001"):
        export_episodes(small_run(tmp_path), "csv", tmp_path / "x.csv", ["train"])
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("messages", "r.jsonl"),
        ("csv", "r.csv"),
        ("parquet", "r.parquet"),
        ("rows", "r-rows.parquet"),
        ("atif", "r-atif"),
    ],
)
def test_the_command_writes_each_form_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, name: str
) -> None:
    run = small_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["export", str(run.path), "--as", form]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert (tmp_path / name).stat().st_size > 100
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 2 and "exists" in again.output
    wrong = CliRunner().invoke(app, [*words, "--dtype", "bfloat16"])
    assert wrong.exit_code == 2 and "writes no weights" in wrong.output
