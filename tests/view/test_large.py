"""Run folders with lines, texts and numbers that no run of ours writes: bounded pages, and the rest on request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.observe.rundir import RunDirectory
from muarl_tools.view import metrics, store
from muarl_tools.view.export import write_pages
from muarl_tools.view.metrics import RunMetrics
from muarl_tools.view.rows import key_text
from muarl_tools.view.runs import Run
from support.viewing import indexed, make_run
from support.viewing_pages import look

Row = dict[str, Any]
WORDS = "the quick brown fox " * 40_000
MOST = 400_000
"""Characters of a page that shows a long episode in part."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return make_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def run(made: RunDirectory, tmp_path: Path) -> RunDirectory:
    """A run of few episodes."""
    folder = tmp_path / "mine"
    (folder / "episodes").mkdir(parents=True)
    for name in ("config.yaml", "tasks.jsonl", "status.json", "metrics.jsonl"):
        (folder / name).write_bytes((made.path / name).read_bytes())
    lines = (made.path / "episodes" / "train-0011.jsonl").read_text().splitlines(keepends=True)
    (folder / "episodes" / "train-0011.jsonl").write_text("".join(lines[:2]))
    return RunDirectory.at(folder)


def one(run: RunDirectory) -> Row:
    """An episode of it, to be changed, under another name."""
    row: Row = json.loads((run.episodes / "train-0011.jsonl").read_text().splitlines()[0])
    return {**row, "id": "hostile"}


def add(path: Path, *rows: Row | str) -> None:
    with open(path, "a") as out:
        out.writelines((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def key_of(run: Run, name: str = "hostile") -> str:
    with run.store.reading() as db:
        return key_text(db.execute("SELECT key FROM episodes WHERE name = ?", (name,)).fetchone()[0])


def first(row: Row, role: str) -> Row:
    found: Row = next(t["message"] for t in row["turns"] if t["message"]["role"] == role)
    return found


def caller(row: Row) -> Row:
    found: Row = next(t["message"] for t in row["turns"] if t["message"].get("tool_calls"))
    return found


def long_text(row: Row) -> None:
    first(row, "user")["content"] = WORDS


def long_result(row: Row) -> None:
    first(row, "tool")["content"] = WORDS


def many_messages(row: Row) -> None:
    row["turns"] += [row["turns"][1]] * 2000


def many_calls(row: Row) -> None:
    message = caller(row)
    message["tool_calls"] *= 2000


def long_arguments(row: Row) -> None:
    caller(row)["tool_calls"][0]["arguments"] = {"numbers": list(range(150_000))}


def many_tags(row: Row) -> None:
    row["tags"] |= {f"tag{n}": "x" for n in range(50_000)}
    row["tags"]["user_errors"] = [{"rule": "invents", "turn": 1, "detail": WORDS[:1000]}] * 3000


def long_names(row: Row) -> None:
    row["agent"] = row["user"] = caller(row)["tool_calls"][0]["name"] = WORDS


def long_error(row: Row) -> None:
    row |= {"error": WORDS, "stop": "infrastructure", "verdict": None}


def many_parts(row: Row) -> None:
    row["verdict"]["breakdown"] = {f"part{n}": 1.0 for n in range(50_000)}


@pytest.mark.parametrize(
    "change",
    [
        long_text, many_messages, many_calls, long_names,
        pytest.param(long_result, marks=pytest.mark.slow), pytest.param(long_arguments, marks=pytest.mark.slow),
        pytest.param(many_tags, marks=pytest.mark.slow), pytest.param(long_error, marks=pytest.mark.slow),
        pytest.param(many_parts, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_long_episode_is_shown_in_part_and_whole_on_request(
    run: RunDirectory, tmp_path: Path, change: Callable[[Row], None]
) -> None:
    row = one(run)
    change(row)
    add(run.episodes / "train-0011.jsonl", row)
    library = indexed(tmp_path, run.path)
    key = key_of(library.runs[0])
    at = ("runs", "mine", "episodes", key)
    page = look(library, *at)
    assert len(page.shown) < MOST and "This episode is long" in page.shown
    assert "too long" in page.shown, "why its calls were not run again"
    assert any("whole=1" in link for link in page.links)
    whole = look(library, *at, whole="1")
    assert len(whole.shown) > len(page.shown) and "This episode is long" not in whole.shown
    for parts in ((), ("runs", "mine", "episodes"), ("runs", "mine", "tasks")):
        assert len(look(library, *parts).shown) < MOST
    assert len(look(library, "runs", "mine", "tasks", row["task_id"]).shown) < MOST
    assert write_pages(library, tmp_path / "pages") > 5
    written = (tmp_path / "pages" / "mine" / "episodes" / f"{key}.html").read_text()
    assert len(written) < MOST and "All of it is in the run’s folder." in written


def test_an_episode_of_an_ordinary_length_is_shown_whole(run: RunDirectory, tmp_path: Path) -> None:
    row = one(run)
    row["turns"] += [row["turns"][1]] * 200
    add(run.episodes / "train-0011.jsonl", row)
    library = indexed(tmp_path, run.path)
    page = look(library, "runs", "mine", "episodes", key_of(library.runs[0]))
    assert page.shown.count("I want to change an order.") >= 201 and "This episode is long" not in page.shown


@pytest.mark.parametrize("field", ["id", "task_id", "group"])
def test_names_too_long_for_a_list_are_left_out_and_said(run: RunDirectory, tmp_path: Path, field: str) -> None:
    add(run.episodes / "train-0011.jsonl", {**one(run), field: "n" * 3_000_000})
    page = look(indexed(tmp_path, run.path), "runs", "mine", "episodes")
    assert "2 episodes" in page.shown and len(page.shown) < MOST
    assert f"{field} has 3,000,000 characters, more than 1000" in page.shown


def test_lines_too_long_to_be_read_are_passed_over(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LONGEST", 2 << 20)
    for name in ("episodes/train-0011.jsonl", "tasks.jsonl", "findings.jsonl"):
        add(run.path / name, "x" * (3 << 20), "y" * (5 << 20))
    add(run.episodes / "train-0011.jsonl", one(run))
    library = indexed(tmp_path, run.path)
    page = look(library, "runs", "mine", "episodes")
    assert "3 episodes" in page.shown
    assert "4 lines cannot be read" in page.shown and "a line of 3.0 MiB, more than 2.0 MiB" in page.shown
    with open(run.episodes / "train-0011.jsonl", "a") as file:  # one that has no end yet
        file.write("z" * (3 << 20))
    library.runs[0].store.refresh()
    assert "3 episodes" in look(library, "runs", "mine", "episodes").shown


def test_rows_of_figures_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.jsonl"
    good = {"phase": "rl", "step": 0, "reward": 0.25}
    add(path, good, {**good, "step": 1, **{f"calls/{n}": 1.0 for n in range(5000)}}, "x" * (3 << 20))
    add(path, {**good, "step": 2, "note": "n" * 5000})
    found = RunMetrics(path)
    assert [(r["step"], "note" in r) for r in found.rows()] == [(0, False), (2, False)]
    assert found.broken == 2
    monkeypatch.setattr(metrics, "MOST_ROWS", 100)
    add(path, *({**good, "step": n} for n in range(3, 1000)))
    steps = [r["step"] for r in found.rows()]
    assert 50 <= len(steps) <= 101 and steps[0] == 0 and steps[-1] == 999 and steps == sorted(steps)
    assert found.thinned


@pytest.mark.parametrize("name", ["status", "summary"])
def test_huge_and_deep_small_files_hide_nothing(run: RunDirectory, tmp_path: Path, name: str) -> None:
    huge = json.dumps({"state": WORDS, "message": WORDS, "rl": {"success": 10**400}, "seconds": 10**400})
    for text in (huge, "[" * 100_000, '{"a":' * 900 + "1" + "}" * 900, '{"state": [[[]]], "message": {"a": 1}}'):
        (run.path / f"{name}.json").write_text(text)
        for parts in ((), ("runs", "mine", "episodes")):
            assert len(look(indexed(tmp_path, run.path), *parts).shown) < MOST


DEEP = "[" * 5000 + "]" * 5000


def test_deep_lines_are_passed_over(run: RunDirectory, tmp_path: Path) -> None:
    line = json.dumps(one(run))
    add(run.episodes / "train-0011.jsonl", f'{line[:-1]}, "more": {DEEP}}}', f'{{"id": {DEEP}}}')
    add(run.path / "tasks.jsonl", f'{{"id": "x", "scenario": {DEEP}}}')
    add(run.path / "findings.jsonl", f'{{"episode": {DEEP}}}')
    add(run.metrics, f'{{"phase": "rl", "step": 99, "reward": {DEEP}}}')
    library = indexed(tmp_path, run.path)
    page = look(library, "runs", "mine", "episodes")
    assert "2 episodes" in page.shown and "nested deeper than 100 levels" in page.shown
    assert look(library).text


def test_numbers_beyond_what_databases_and_floats_hold(run: RunDirectory, tmp_path: Path) -> None:
    for n, value in enumerate((10**30, 10**400, -(10**400), 1e308)):
        row = one(run)
        row |= {"id": f"n{n}", "seed": value, "timings": {"total": value}, "tokens": None}
        row["agent_usage"] |= {"completion_tokens": value}
        add(run.episodes / "train-0011.jsonl", row, {**row, "id": f"m{n}", "verdict": {"reward": value}})
        add(run.metrics, {"phase": "rl", "step": value, "reward": value, "seconds": value, "user/cost": value})
    library = indexed(tmp_path, run.path)
    assert look(library).text
    for episode in library.runs[0].ask(everything):
        assert look(library, "runs", "mine", "episodes", key_text(episode)).text


def everything(db: Any) -> list[int]:
    return [key for (key,) in db.execute("SELECT key FROM episodes")]
