"""docs/files.md names every field of an episode and every column of a table (metrics: recipes/test_metrics_page.py)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Verdict
from muarl_tools.export.episode_tables import COLUMNS


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "files.md").read_text(encoding="utf-8")


def section(page: str, title: str) -> str:
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def codes(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def test_every_field_of_an_episode_stands_there(page: str) -> None:
    call = ToolCall("1", "look", {}, "user", invalid="broken", raw="{")
    said = Message("tool", "x", (call,), "because", "1", "look", "user", True)
    episode = Episode(
        "a", "t", "d", [Turn(said, 1.0, (0, 1), 3)], StopReason.USER_STOP,
        tokens=TokenTrace([1], [True], [0.0], [0]), verdict=Verdict(1.0), system="be kind", tools=(),
    )  # fmt: skip
    row = episode.to_json(context=True)
    listed = codes(section(page, "episodes.jsonl"))
    fields = {*row, *row["tokens"], *row["verdict"], *row["agent_usage"], *row["turns"][0]["message"]}
    fields |= set(row["turns"][0]["message"]["tool_calls"][0]) | {f"turns[].{name}" for name in row["turns"][0]}
    assert fields - {"turns"} <= listed
    assert {reason.value for reason in StopReason} <= listed


def test_the_columns_of_tables_are_these(page: str) -> None:
    listed = section(page, "Episodes elsewhere").partition("these columns:")[2].partition(".\n")[0]
    assert tuple(re.findall(r"`([^`]+)`", listed)) == COLUMNS
