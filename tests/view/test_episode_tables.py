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

from muarl.chat import Message
from muarl.cli import app
from muarl.domains.generated import generated
from muarl.episode import Episode, StopReason, Turn, Verdict
from muarl.errors import ConfigError, MuarlError
from muarl.observe.rundir import RunDirectory
from muarl.view.episode_tables import COLUMNS, episodes_of, export_episodes

WORDS = '=HYPERLINK("http://evil"), he said\nüñ'


def small_run(folder: Path) -> RunDirectory:
    """Two episodes of a generated task and one that failed outside."""
    (task,) = generated("retail-generated").tasks("test", 1, size="tiny", seed=0)
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


def test_messages_hold_what_the_agent_was_told_where_it_can_be_made_again(tmp_path: Path) -> None:
    run, out = small_run(tmp_path), tmp_path / "messages.jsonl"
    assert export_episodes(run, "messages", out) == 3
    good, _, lost = rows_of(out)
    domain = generated("retail-generated").domain("tiny")
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
    with pytest.raises(ConfigError, match="pip install pyarrow"):
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


@pytest.mark.parametrize(("form", "suffix"), [("messages", "jsonl"), ("csv", "csv"), ("parquet", "parquet")])
def test_the_command_writes_each_form_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, suffix: str
) -> None:
    run = small_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["export", str(run.path), "--as", form]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert (tmp_path / f"r.{suffix}").stat().st_size > 100
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 2 and "exists" in again.output
    wrong = CliRunner().invoke(app, [*words, "--dtype", "bfloat16"])
    assert wrong.exit_code == 2 and "writes no weights" in wrong.output
