"""A hundred thousand episodes: the list is read along an index, and the first view does not take a second."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import ModuleType

import pytest

from muarl.environments.audit_rules import RulesOfRuns
from muarl.environments.recorded import replay_recorded
from muarl_tools.view.layout import ServerLinks
from muarl_tools.view.queries import PAGE, Filter, episodes
from muarl_tools.view.routes import page_of
from muarl_tools.view.runs import Library
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


@pytest.mark.slow
def test_the_first_view_of_very_many(bench: ModuleType, tmp_path: Path) -> None:
    bench.make_run(tmp_path / "run", 40_000)
    indexed(tmp_path, tmp_path / "run")
    for parts in ((), ("runs", "run", "episodes"), ("runs", "run", "tasks")):
        # nothing of it is in memory
        fresh = Library([tmp_path / "run"], index=tmp_path, replay=replay_recorded, rules=RulesOfRuns())
        started = time.process_time()
        assert page_of(ServerLinks(), fresh, parts, {})
        assert time.process_time() - started < 0.6
