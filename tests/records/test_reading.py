"""Conversations of any format, each with its place; rows with theirs; formats that packages bring."""

from __future__ import annotations

import codecs
import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl.records import reading
from muarl.records.atif import trajectory_of
from muarl.records.chat import ChatConversation
from muarl.records.conversation import Format, LeftOutCounts
from muarl.records.reading import read
from muarl.records.rows import LineRules, PlacedRow, json_lines
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl_worlds.tau.tau1_trajectories import Tau1Files
from muarl_worlds.tau.tau2_results import Tau2Files
from support.logged import export as spans
from support.logged import items_of, spans_of

SAID: list[dict[str, Any]] = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
EPISODE = Episode(
    "e", "t", "d", [Turn(Message(m["role"], m["content"])) for m in SAID], StopReason.MAX_TURNS, seed=7,
    verdict=Verdict(0.5, {}),
)  # fmt: skip
TAU1 = {"task_id": 3, "trial": 2, "reward": 1, "traj": [*SAID, {"role": "user", "content": "###STOP###"}]}
TAU2 = {
    "info": {"environment_info": {"domain_name": "mock"}},
    "tasks": [],
    "simulations": [
        {"id": "s", "task_id": "t", "trial": 1, "seed": 7, "termination_reason": "max_steps", "messages": SAID,
         "reward_info": {"reward": 0.5}},
    ],
}  # fmt: skip
CHAT = {"id": "c", "task_id": "t", "trial": 1, "seed": 7, "domain": "d", "reward": 1, "messages": SAID, "stop": "x"}


@pytest.fixture(autouse=True)
def _worlds_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the entry points of pyproject.toml bring them, whatever is installed."""
    _bring(monkeypatch, Tau1Files, Tau2Files)


def _bring(monkeypatch: pytest.MonkeyPatch, *formats: type[Format]) -> None:
    class Point:
        def __init__(self, made: type[Format]) -> None:
            self.load = lambda: made

    monkeypatch.setattr(reading.metadata, "entry_points", lambda group: [Point(f) for f in formats])


def written(folder: Path, *values: Any) -> Path:
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps(value) + "\n" for value in values))
    return file


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (CHAT, ("chat", "c", "t", 1, 7, "d", 1.0, StopReason.USER_STOP)),
        (EPISODE.to_json(), ("episode", "e", "t", None, 7, "d", 0.5, StopReason.MAX_TURNS)),
        (trajectory_of(EPISODE), ("episode", "e", "t", None, 7, "d", 0.5, StopReason.MAX_TURNS)),
        (TAU1, ("tau1", "3#2", "3", 2, None, None, 1.0, StopReason.USER_STOP)),
        (TAU2, ("tau2", "s", "t", 1, 7, "mock", 0.5, StopReason.MAX_TURNS)),
    ],
)
def test_every_format_tells_the_same_things(tmp_path: Path, value: dict[str, Any], told: tuple[Any, ...]) -> None:
    (one,) = read(written(tmp_path, value))
    found = (one.format, one.id, one.task_id, one.trial, one.seed, one.domain, one.reward, one.stop)
    assert found == told and [m.content for m in one.messages][:2] == ["hi", "ho"]
    assert one.place.startswith(f"{tmp_path}/log.jsonl")


def test_rows_of_several_formats_stand_in_one_file(tmp_path: Path) -> None:
    exported = [spans([s]) for s in spans_of(SAID)]
    file = written(tmp_path, *exported, CHAT, {"id": "r", "input": items_of(SAID)}, EPISODE.to_json())
    found = list(read(file))
    assert [one.id for one in found[:3]] == ["c", "e", "r"] and len(found) == 4
    assert [one.row.number for one in found] == [2, 4, 5, 6]  # what several rows make up is counted on
    assert all([m.content for m in one.messages] == ["hi", "ho"] for one in found)


def test_what_is_wrong_in_one_field_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    (one,) = read(written(tmp_path, {**CHAT, "domain": 3, "messages": [{"role": "pope"}]}))
    assert (one.id, one.reward) == ("c", 1.0)
    with pytest.raises(DataError, match="line 1: domain must be a string"):
        _ = one.domain
    with pytest.raises(DataError, match=r"line 1, messages\[0\]\.role: 'pope'"):
        _ = one.messages


class Tickets(Format):
    """A format of somebody else."""

    def of_row(self, row: PlacedRow) -> list[ChatConversation] | None:
        if "talk" not in row.value:
            return None
        self.left_out.lost["moods"] += 1
        value = {"id": row.value["ticket"], "messages": [{"role": "user", "content": t} for t in row.value["talk"]]}
        return [ChatConversation(PlacedRow(value, row.place, row.number, row.path), self.left_out)]


def test_a_package_brings_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, left_out = written(tmp_path, {"ticket": "7", "talk": ["hi"]}, CHAT), LeftOutCounts()
    with pytest.raises(DataError, match="line 1: it lacks the field messages"):
        _ = [one.messages for one in read(file)]
    _bring(monkeypatch, Tickets)
    assert [one.id for one in read(file, left_out)] == ["7", "c"]
    assert str(left_out) == "Left out, as a conversation has no place for it: 1 moods"


def test_a_format_that_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("tickets", "no_such_package:Tickets", reading.GROUP)]
    monkeypatch.setattr(reading.metadata, "entry_points", lambda group: points)
    with pytest.raises(ConfigError, match=r"the format tickets \(no_such_package:Tickets\) cannot be imported"):
        list(read(written(tmp_path, CHAT)))


def test_the_benchmarks_formats_come_in_by_the_same_door() -> None:
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    for format_ in (Tau1Files, Tau2Files):
        assert f'"{format_.__module__}:{format_.__name__}"' in pyproject


@pytest.mark.parametrize(
    ("content", "rules", "problem"),
    [
        (b'{"a": 1}\n{"a":', LineRules(), "line 2: not JSON: "),
        (b'{"a": 1}\n{"a":', LineRules(unfinished_ok=True), None),
        (b'{"a": 1}\n[1]\n', LineRules(expected="must be a row"), "line 2: must be a row"),
        (b'{"a": 1}\n{"b": "' + b"x" * 90 + b'"}\n', LineRules(most=64), "line 2: is longer than 0 MiB"),
        (b'{"a": 1}\n\n{"b": "\xe9"}\n', LineRules(), "is not UTF-8 text: invalid continuation byte at byte 17"),
        (b'\n{"a": 1}\n{"b": "\xe9"}\n', LineRules(errors="surrogateescape"), None),
        (codecs.BOM_UTF8 + b'{"a": 1}\r\n', LineRules(), None),
    ],
)
def test_lines_are_read_one_by_one(tmp_path: Path, content: bytes, rules: LineRules, problem: str | None) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(content)
    found = json_lines(file, rules)
    first = next(found)
    assert first.value == {"a": 1} and first.line and first.path == file
    assert first.place == f"{file}, line {first.number}"
    if problem is None:
        list(found)
    else:
        with pytest.raises(DataError, match=problem):
            list(found)
