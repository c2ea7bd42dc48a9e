"""Files are opened for reading only, refused in one sentence, and watched."""

from __future__ import annotations

import json
import pickle
import sqlite3
import subprocess
import sys
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import ConfigError, DataError, InfrastructureError
from muarl.domains.sql.declared import SqlDatabase
from muarl.domains.tasks import Action, Task
from muarl.rewards.gold import check_tasks, gold_digest
from muarl.rewards.state_changes import run_again
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn
from support.sqlite_shop import Shop, call, change, checksum, opened, rows_read, write_shop
from support.waiting import in_threads


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_shop(tmp_path / "shop.sqlite")


def refused(path: Path, **options: Any) -> str:
    with pytest.raises((ConfigError, DataError)) as problem:
        opened(path, **options)
    text = str(problem.value)
    assert text.startswith(f"Shop.database: {path}") or isinstance(problem.value, ConfigError), text
    return text


def test_nothing_is_ever_written(path: Path) -> None:
    before, folder = checksum(path), path.parent
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        domain = Shop(database=path)
        world = domain.world()
        assert json.loads(call(world, "cancel", order_id="#B4").content)["status"] == "cancelled"
        assert json.loads(call(domain.world(), "get_order", order_id="#B4").content)["status"] == "open"
        assert [p.name for p in folder.iterdir()] == [path.name] and checksum(path) == before
    finally:
        folder.chmod(0o755)


def test_a_file_with_a_log_gets_none_beside_it(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("DELETE FROM log")
        file.commit()
    before = checksum(path)
    assert len(opened(path).view()["orders"]) == 10
    assert [p.name for p in path.parent.iterdir()] == [path.name] and checksum(path) == before
    with closing(sqlite3.connect(path)) as other:
        other.execute("INSERT INTO log VALUES ('x')")
        other.commit()
        assert "shop.sqlite-wal beside it holds changes" in refused(path)


def test_damaged_missing_and_locked_files_are_refused(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "No such file" in refused(tmp_path / "none.sqlite")
    assert "Is a directory" in refused(tmp_path)
    monkeypatch.setattr("muarl.domains.sql.files._PATIENCE", 0.05)
    (tmp_path / "text.db").write_text("no database, and longer than a header is " * 10)
    assert "is no SQLite database" in refused(tmp_path / "text.db")
    (tmp_path / "empty.db").touch()
    assert "is no SQLite database" in refused(tmp_path / "empty.db")
    data = bytearray(write_shop(tmp_path / "damaged.sqlite", 2000).read_bytes())
    data[8192:20480] = bytes(12288)
    (tmp_path / "damaged.sqlite").write_bytes(data)
    assert "is damaged" in refused(tmp_path / "damaged.sqlite")
    (tmp_path / "short.sqlite").write_bytes(data[:5000])
    assert "is damaged" in refused(tmp_path / "short.sqlite")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "is locked by another program" in refused(path)
    assert len(opened(path).view()["orders"]) == 10


def test_tables_that_are_not_there_and_views_are_refused(path: Path) -> None:
    change(path, "CREATE VIEW open_orders AS SELECT * FROM orders")
    change(path, "CREATE VIRTUAL TABLE words USING fts4(text)")
    said = refused(path, tables=("ordes",))
    assert said == "Shop.database: there is no table 'ordes'; did you mean 'orders'?; tables: customers, orders, log"
    assert "'open_orders' is a view" in refused(path, tables=("open_orders",))
    assert "'words' is a virtual table" in refused(path, tables=("words",))
    assert "compared: there is no table 'log'" in refused(path, tables=("orders",), compared=("log",))
    with pytest.raises(ConfigError, match=r"tables must be a tuple of names, such as \('orders',\)"):
        opened(path, tables="orders")
    assert list(opened(path).view()) == ["customers", "orders", "log"]


def test_keys_that_cannot_be_told_are_refused(path: Path) -> None:
    change(path, "CREATE TABLE hidden (rowid, _rowid_, oid)")
    assert "table 'hidden' has no primary key, and its columns hide its rowid" in refused(path)
    change(path, "DROP TABLE hidden")
    change(path, "INSERT INTO orders VALUES (NULL, 1, 'open', 1)")
    assert "table 'orders': 'id' is of its primary key, and is NULL in a row" in refused(path)
    assert len(opened(path, tables=["log"]).view()["log"]) == 0


def test_a_file_that_changes_ends_the_run_and_not_the_conversation(path: Path) -> None:
    domain = Shop(database=path)
    world = domain.world()
    assert not call(world, "get_order", order_id="#B1").error
    content = path.read_bytes()
    path.write_bytes(content)  # touched, and the same
    assert not call(world, "get_order", order_id="#B1").error
    change(path, "UPDATE orders SET status = 'lost'")
    with pytest.raises(InfrastructureError, match="has changed since it was opened") as problem:
        call(world, "get_order", order_id="#B1")
    assert problem.value.boundary == "world" and not problem.value.retryable
    again = Shop(database=path).world()
    assert json.loads(call(again, "get_order", order_id="#B1").content)["status"] == "lost"
    path.unlink()
    with pytest.raises(InfrastructureError, match="has changed"):
        call(again, "get_order", order_id="#B1")


def test_a_lock_during_a_run_is_no_fault_of_the_agents(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muarl.domains.sql.files._PATIENCE", 0.01)
    world = Shop(database=path).world()
    call(world, "get_order", order_id="#B1")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InfrastructureError, match="another program keeps it locked") as problem:
            call(world, "get_order", order_id="#B2")
        assert problem.value.retryable


def test_a_misspelt_column_undoes_the_call_and_is_told(path: Path) -> None:
    world = Shop(database=path).world()
    before = world.digest()
    said = call(world, "misspell", order_id="#B1")
    assert said.error and "the table 'orders' has no column 'statsu'; did you mean 'status'?" in said.content
    assert world.digest() == before and not world.writes


def test_another_process_opens_it_again_and_has_the_same_digests(path: Path, tmp_path: Path) -> None:
    base = opened(path, compared=("orders",))
    view = base.derive({"orders": {"#B2": None}}).view()
    view["orders"]["#B1"]["status"] = "lost"
    (tmp_path / "pickled").write_bytes(pickle.dumps(base))
    script = (
        "import pickle, sys; base = pickle.loads(open(sys.argv[1], 'rb').read()); print(base.view().digest());"
        "view = base.derive({'orders': {'#B2': None}}).view(); view['orders']['#B1']['status'] = 'lost';"
        "print(view.digest())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "pickled")]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout.split() == [base.view().digest(), view.digest()]
    change(path, "UPDATE orders SET status = 'lost'")
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "has other contents than where the run began" in said.stderr


def test_threads_may_read_it_at_once(tmp_path: Path) -> None:
    base = opened(write_shop(tmp_path / "shop.sqlite", 3000))
    sums: list[tuple[int, float]] = []

    def read(_) -> None:
        view = base.view()
        loop = sum(record["price"] for record in view["orders"].values())
        sums.append((len(view["orders"].where(customer_id=7)), loop))

    in_threads(read, 6)
    assert sums == [(10, sum(n % 40 / 2 for n in range(3000)))] * 6


def task(order: str, base: Any = None) -> Task:
    return Task(f"cancel-{order}", "sqlite-shop", "Cancel it.", (Action("cancel", {"order_id": order}),), database=base)


def test_gold_actions_and_the_viewer_work_on_it(path: Path) -> None:
    domain = Shop(database=path)
    tasks = [task("#B1"), task("#B2", domain.base.derive({"orders": {"#B2": {"id": "#B2", "status": "odd"}}}))]
    assert check_tasks(domain, tasks) == 0
    world = domain.world(tasks[0])
    call(world, "cancel", order_id="#B1")
    assert world.digest() == gold_digest(domain, tasks[0]) != domain.world().digest()
    assert "odd" in call(domain.world(tasks[1]), "get_order", order_id="#B2").content
    with pytest.raises(ConfigError, match=r"database\['orders'\]\['#B1'\]\['x'\] is of type set"):
        check_tasks(domain, [task("#B1", domain.base.derive({"orders": {"#B1": {"x": {1}}}}))])


def test_the_viewer_reads_only_what_calls_touch(tmp_path: Path) -> None:
    domain = Shop(
        database=write_shop(tmp_path / "shop.sqlite", 3000),
    )
    said = [Message("user", "Cancel it."), Message("assistant", None, (ToolCall("1", "cancel", {"order_id": "#B1"}),))]
    said += [Message("tool", call(domain.world(), "cancel", order_id="#B1").content, tool_call_id="1")]
    episode = Episode("e", "cancel-#B1", "sqlite-shop", [Turn(m) for m in said], StopReason.USER_STOP)
    with rows_read(domain.base) as count:
        again = run_again(domain, task("#B1"), episode)
    assert [(c.record, c.path, c.before, c.after) for c in again.calls[1, 0]] == [
        ("orders / #B1", "status", '"open"', '"cancelled"'),
        ("log / cancelled #B1", "", None, '{"text": "#B1"}'),
    ]
    assert again.differing == 0 and again.wrong == () and count[0] < 50
    compared = Shop(database=SqlDatabase(tmp_path / "shop.sqlite", compared=("log",)))
    other = run_again(compared, task("#B2"), episode)
    assert {change.record for change in other.wrong or ()} == {"log / cancelled #B1", "log / cancelled #B2"}


def test_of_40_000_rows_an_episode_reads_those_that_it_asks_for(tmp_path: Path) -> None:
    path = write_shop(tmp_path / "large.sqlite", 40_000)
    before = checksum(path)
    domain = Shop(database=path)
    base = domain.base
    with rows_read(base) as count:
        tracemalloc.start()
        try:
            tasks = [task(f"#B{n}") for n in range(100)]
            assert check_tasks(domain, tasks) == 0
            for one in tasks:
                world = domain.world(one)
                found = json.loads(call(world, "orders_of", customer_id=3210).content)
                assert found == [f"#B{n}" for n in sorted(range(3210, 40_000, 4_000), key=str)]
                assert call(world, "get_order", order_id="#B40000").error
                call(world, "cancel", order_id=one.actions[0].arguments["order_id"] if one.actions else "")
                assert world.digest() == gold_digest(domain, one)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert count[0] <= 100 * 35
    assert peak < 2_000_000
    assert len(base.view()["orders"]) == 40_000
    with rows_read(base) as count:
        view = base.view()
        assert sum(record["status"] == "shipped" for record in view["orders"].values()) == 13_334
        assert not view.taken("orders") and view.digest() == base.view().digest()
    assert count[0] == 40_000
    assert checksum(path) == before and [p.name for p in tmp_path.iterdir()] == ["large.sqlite"]
