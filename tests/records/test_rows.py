"""Rows for Hugging Face datasets: nothing lost on the way through Arrow, and nothing added."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.basics.errors import DataError
from muarl.records import parquet
from muarl.types.chat import Message, to_openai, visible_to_agent
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn
from support.episodes import TOOLS, episodes
from support.other_side import DATASETS, ask

arrow = pytest.importorskip("pyarrow.parquet", reason="rows are written by pyarrow (muarl[parquet])")


def through(found: list[Episode], *, batch: int = 256) -> list[dict[str, Any]]:
    out = io.BytesIO()
    parquet.write_parquet((parquet.row_of("train-0001", e, "Be kind.", TOOLS) for e in found), out, batch=batch)
    return list(arrow.read_table(io.BytesIO(out.getvalue())).to_pylist())


@given(st.lists(episodes(), max_size=3), st.sampled_from([1, 2, 256]))
def test_rows_come_back_through_arrow(found: list[Episode], batch: int) -> None:
    back = through(found, batch=batch)
    assert len(back) == len(found)
    for row, episode in zip(back, found, strict=True):
        assert tuple(row) == parquet.COLUMNS
        seen = [{k: v for k, v in m.items() if v is not None or k == "content"} for m in row["messages"]]
        for message, original in zip(seen[1:], visible_to_agent(episode.messages), strict=True):
            assert message.pop("reasoning_content", None) == original.reasoning
            assert message == {k: v for k, v in to_openai(original).items() if v is not None or k == "content"}
        assert seen[0] == {"role": "system", "content": "Be kind."}
        assert json.loads(row["tools"]) == [t.to_openai() for t in TOOLS]
        trace = episode.tokens
        assert row["input_ids"] == (None if trace is None else trace.ids)
        assert row["assistant_masks"] == (None if trace is None else [int(m) for m in trace.loss_mask])
        assert row["logprobs"] == (None if trace is None else trace.logprobs)
        assert row["versions"] == (None if trace is None else trace.versions)
        assert row["reward"] == (None if episode.verdict is None else episode.verdict.reward)


def test_a_file_of_rows_is_read_without_what_arrow_filled_up(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    episode = Episode("e", "t", "retail", [Turn(Message("user", "Hi"))], StopReason.USER_STOP)
    with open(file, "wb") as out:
        parquet.write_parquet([parquet.row_of("eval", episode, "Be kind.")], out)
    (row,) = (row.value for row in parquet.parquet_rows(file))
    assert row["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    assert "tools" not in row


READ = """
import sys, datasets
table = datasets.Dataset.from_parquet(sys.argv[1], cache_dir=sys.argv[2])
print(table.column_names)
print([(row["id"], row["messages"][0]["role"], row["input_ids"], row["assistant_masks"]) for row in table])
"""


def test_hugging_face_datasets_read_them(tmp_path: Path) -> None:
    trace = TokenTrace()
    trace.append_given([1, 2])
    trace.append_sampled([3], [-0.5], 0)
    played = Episode("e", "t", "retail", [Turn(Message("user", "Hi"))], StopReason.USER_STOP, tokens=trace)
    with open(tmp_path / "rows.parquet", "wb") as out:
        parquet.write_parquet(
            [parquet.row_of("eval", e, "Be kind.", TOOLS) for e in (played, replace(played, tokens=None))], out
        )
    columns, read = ask(DATASETS, "-c", READ, tmp_path / "rows.parquet", tmp_path).splitlines()[-2:]
    assert columns == str(list(parquet.COLUMNS))
    assert read == str([("e", "system", [1, 2, 3], [0, 0, 1]), ("e", "system", None, None)])


ROW = {"input_ids": [1, 2, 3, 4], "assistant_masks": [0, 1, 1, 0], "logprobs": [0, -0.5, -0.5, 0], "reward": 1}


def test_a_row_of_another_program_is_an_episode() -> None:
    said = [Message("system", "Be kind."), Message("user", "Hi"), Message("assistant", "Hello")]
    episode = parquet.episode_of({**ROW, "group": 0}, said, "rows.jsonl, line 1")
    assert episode.group == "0" and episode.reward == 1.0 and [t.span for t in episode.turns] == [None, (1, 3)]
    assert episode.tokens is not None and episode.tokens.loss_mask == [False, True, True, False]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"reward": None}, "this row lacks reward"),
        ({"logprobs": [0.0]}, "differ in length"),
        ({"tags": "[1]"}, "tags must be the JSON text of an object"),
        ({"audit": "[" * 100_000}, "cannot be learned from"),
        ({"restarts": [9]}, "restarts must be ascending places"),
        ({"stop": "tired"}, "tired"),
        ({"reward": "much"}, "reward must be a finite number"),
    ],
)
def test_a_row_that_cannot_be_learned_from(change: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told) as problem:
        parquet.episode_of({**ROW, **change}, [], "rows.jsonl, line 1")
    assert str(problem.value).startswith("rows.jsonl, line 1: ")
