"""Altered answers: what is left of a list, and the new name of a field."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from muarl.domains.faults.answers import cut, field_to_rename, renamed, restored
from muarl.domains.kit import compact

ROWS = [{"id": "B-1", "nights": 2}, {"id": "B-2", "nights": 3}, {"id": "B-3", "nights": 1}]


@pytest.mark.parametrize("value", [ROWS, {"guest": "G-1", "bookings": ROWS}, {"a": {"tags": ["x", "y", "z"]}}])
def test_the_longest_list_is_cut_and_nothing_else(value: Any) -> None:
    shown, said = cut(json.dumps(value), random.Random(1), marked=False) or ("", "")
    kept = json.loads(shown)
    before, after = json.dumps(value), json.dumps(kept)
    assert len(after) < len(before) and said.endswith("of 3 entries")
    assert kept == ROWS[: len(kept)] if isinstance(value, list) else kept.keys() == value.keys()


def test_a_mark_says_how_many_there_are() -> None:
    shown, said = cut(json.dumps(ROWS), random.Random(1), marked=True) or ("", "")
    body, mark = shown.rsplit("\n", 1)
    assert mark == f"[truncated: {said}]" and len(json.loads(body)) == int(said.split()[0])


def test_compact_answers_are_cut_so_that_they_are_read_back() -> None:
    text = compact.write({"guest": "G-1", "bookings": ROWS})
    shown, _ = cut(text, random.Random(3), marked=False) or ("", "")
    kept = compact.read(shown)["bookings"]
    assert 0 < len(kept) < 3 and kept == ROWS[: len(kept)]


@pytest.mark.parametrize("text", ["done", "[]", '{"status": "open"}', '[{"id": 1}]', "status open; nights 2", ""])
def test_where_there_is_no_list_nothing_is_cut(text: str) -> None:
    assert cut(text, random.Random(0), marked=True) is None


@pytest.mark.parametrize("write", [json.dumps, compact.write])
def test_a_field_gets_another_name_and_keeps_its_value(write: Any) -> None:
    text = write({"status": "open", "nights": 2})
    name = field_to_rename(text, random.Random(0))
    assert name in ("status", "nights")
    read = compact.read(renamed(text, "status") or "")
    assert read == {"status_v2": "open", "nights": 2}
    assert restored(renamed(text, "status") or "", "status") == text


def test_all_records_of_a_list_are_renamed_and_ids_never() -> None:
    assert json.loads(renamed(json.dumps(ROWS), "nights") or "") == [
        {"id": row["id"], "nights_v2": row["nights"]} for row in ROWS
    ]
    assert field_to_rename(json.dumps({"B-17": {}, "#W1": {}}), random.Random(0)) is None
    assert renamed("done", "status") is None and renamed('{"nights": 2}', "status") is None
