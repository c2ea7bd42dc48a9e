"""Many episodes: the list is read along an index, and a first view reads no episode."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection
from types import ModuleType

import pytest

from muarl.environments.audit_rules import RulesOfRuns
from muarl.environments.recorded_episodes import replay_recorded
from muarl_tools.view.layout import ServerLinks
from muarl_tools.view.queries import PAGE, Filter, episodes
from muarl_tools.view.routes import page_of
from muarl_tools.view.runs import Library
from muarl_tools.view.store import Store
from support.viewing import indexed


@pytest.fixture(scope="module")
def bench(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_view", repository / "benches" / "view.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_page_of_the_list_is_read_along_the_index(bench: ModuleType, tmp_path: Path) -> None:
    bench.make_run(tmp_path / "run", 600)
    library = indexed(tmp_path, tmp_path / "run")
    with library.runs[0].store.reading() as db:
        asked: list[str] = []
        db.set_trace_callback(asked.append)
        assert len(episodes(db, Filter())) == PAGE
        db.set_trace_callback(None)
        plan = " ".join(str(row) for row in db.execute(f"EXPLAIN QUERY PLAN {asked[-1]}"))
    assert "by_moment" in plan and "TEMP B-TREE" not in plan
    assert "600 episodes" in str(page_of(ServerLinks(), library, ("runs", "run", "episodes"), {}))


def test_a_first_view_asks_the_index_alone_and_each_question_once(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what SQLite computes, since seconds depend on the machine; they are in docs/benchmarks.md."""
    opened = Store.reading
    steps = {600: 0, 2_400: 0}
    for count in steps:
        folder = tmp_path / str(count)
        bench.make_run(folder / "run", count)
        indexed(folder, folder / "run")
        asked: list[str] = []

        def more(count: int = count) -> None:
            steps[count] += 1

        @contextmanager
        def watched(self: Store, asked: list[str] = asked, more: Callable[[], None] = more) -> Iterator[Connection]:
            with opened(self) as db:
                db.set_progress_handler(more, 100)
                db.set_trace_callback(asked.append)
                yield db

        with monkeypatch.context() as patch:
            patch.setattr(Store, "reading", watched)
            patch.setattr(Store, "line", None)  # no page reads an episode's file
            for parts in ((), ("runs", "run", "episodes"), ("runs", "run", "tasks")):
                # nothing of it is in memory
                fresh = Library([folder / "run"], index=folder, replay=replay_recorded, rules=RulesOfRuns())
                asked.clear()
                assert page_of(ServerLinks(), fresh, parts, {})
                long = [text for text in asked if "FROM episodes" in text or "FROM findings" in text]
                assert long and max(Counter(long).values()) == 1
    assert steps[600] > 100 and steps[2_400] < 5 * steps[600], "in proportion to the episodes"
