"""muarl generate: tasks from seeds, and what agents that do not try earn on them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from muarl.cli.generate import baselines
from muarl.cli.main import app
from muarl.environments.registry import find


def test_tasks_are_shown_counted_and_written(tmp_path: Path) -> None:
    out = tmp_path / "tasks.jsonl"
    result = CliRunner().invoke(app, ["generate", "-n", "12", "--show", "1", "--split", "train", "--out", str(out)])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 12
    assert all(row["scenario"] and row["tags"]["split"] == "train" for row in rows)
    assert rows[0]["id"] in result.stdout
    assert rows[1]["id"] not in result.stdout
    again = find("retail-generated").make_tasks("train", 12)
    assert [task.id for task in again] == [row["id"] for row in rows], "the same seed gives the same tasks"
    rewards = dict(re.findall(r"reward of (\S+) +([\d.]+)%", result.stdout))
    assert set(rewards) == {"do-nothing", "always-transfer", "expert"}


def test_not_trying_earns_little_on_the_test_split() -> None:
    rewards = baselines(find("retail-generated").make_tasks("test", 120), "retail-generated", "tiny")
    assert rewards["do-nothing"] < 0.15
    assert rewards["always-transfer"] < 0.15
    assert rewards["expert"] > 0.9


def test_an_unknown_size_or_split_is_said() -> None:
    for arguments, word in ((["--size", "huge"], "--size is huge"), (["--split", "exam"], "'exam'")):
        result = CliRunner().invoke(app, ["generate", *arguments])
        assert result.exit_code == 2
        assert word in result.stderr
