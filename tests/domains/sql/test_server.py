"""A server's tables are copied once, in one transaction; nothing secret of its URL is ever said.

SQLAlchemy's own driver for SQLite stands for a server: "sqlite+pysqlite" goes the same way as "postgresql+psycopg".
"""

from __future__ import annotations

import gc
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import ConfigError, DataError, MuarlError
from muarl.basics.extras import MissingExtra
from muarl.domains.database import Database
from muarl.domains.sql import server
from muarl.domains.sql.declared import SqlDatabase
from support.sqlite_shop import Shop, call, change, checksum, write_shop

sqlalchemy = pytest.importorskip("sqlalchemy")

SECRET = "s3cr%2Fet"
URL = f"postgresql+psycopg://shop:{SECRET}@127.0.0.1:1/shop?sslpassword=hush&application_name=muarl"


def url(path: Path) -> str:
    return f"sqlite+pysqlite:///{path}"


def read(source: str, **options: Any) -> Database:
    return SqlDatabase(source, **options).open("Shop.database", lambda p: p)


def test_it_equals_the_file_that_it_was_copied_from(tmp_path: Path) -> None:
    path = write_shop(tmp_path / "shop.sqlite", 2000)
    before = checksum(path)
    tables = ("customers", "orders")
    copy, file = read(url(path), tables=tables), SqlDatabase(path, tables).open("Shop.database", lambda p: p)
    assert copy.view().full_hash() == file.view().full_hash()
    assert copy.columns == file.columns and checksum(path) == before
    assert read(f"sqlite:///{path}", tables=tables).digest() == file.digest()
    world = Shop(database=url(path).replace("shop.sqlite", "keyed.sqlite"))
    with closing(sqlite3.connect(tmp_path / "keyed.sqlite")) as other:
        other.executescript(
            "CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT); INSERT INTO orders VALUES ('a', 'open')"
        )
    assert "open" in call(world.world(), "get_order", order_id="a").content


def test_a_process_copies_once_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = write_shop(tmp_path / "shop.sqlite")
    first = read(url(path), tables=["orders"])
    pickled = pickle.dumps(first)
    change(path, "UPDATE orders SET status = 'lost'")
    again = read(url(path), tables=["orders"])
    assert again.digest() == first.digest() and again.view()["orders"]["#B1"]["status"] == "open"
    assert pickle.loads(pickled).digest() == first.digest()
    del first, again
    gc.collect()  # worlds and their tables refer to each other
    with pytest.raises(DataError, match="has changed since the run began"):
        pickle.loads(pickled)
    assert read(url(path), tables=["orders"]).view()["orders"]["#B1"]["status"] == "lost"


TYPES = """
CREATE TABLE things (
    id INTEGER PRIMARY KEY, flag BOOLEAN, price NUMERIC(8, 2), count NUMERIC(8, 0), day DATE, at DATETIME, raw BLOB,
    data JSON, name VARCHAR(20), share FLOAT
);
INSERT INTO things VALUES (7, 1, 12, 3, '2026-03-14', '2026-03-14 10:30:00', x'00ff', '{"a": [1, "é"]}', 'Emma', 1),
    (8, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE loose (x TEXT);
CREATE VIEW seen AS SELECT * FROM things;
"""


def typed(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "typed.sqlite")) as file:
        file.executescript(TYPES)
    return url(tmp_path / "typed.sqlite")


def test_values_become_json(tmp_path: Path) -> None:
    things = read(typed(tmp_path), tables=["things"]).view()["things"]
    assert repr(things["7"]) == repr(
        dict(
            id=7, flag=True, price=12.0, count=3, day="2026-03-14", at="2026-03-14T10:30:00", raw="00ff",
            data={"a": [1, "é"]}, name="Emma", share=1.0,
        )
    )  # fmt: skip
    assert set(things["8"].values()) == {8, None}
    assert [row["id"] for row in things.where(flag=True, price=12)] == [7]


def test_tables_without_key_unknown_ones_and_views_are_refused(tmp_path: Path) -> None:
    source = typed(tmp_path)
    with pytest.raises(ConfigError, match="'loose' has no primary key"):
        read(source)
    with pytest.raises(ConfigError, match=r"no table 'thing'; did you mean 'things'\?"):
        read(source, tables=["thing"])
    with pytest.raises(ConfigError, match="'seen' is a view"):
        read(source, tables=["seen"])
    with pytest.raises(ConfigError, match=r"no table 'sales.things'"):
        read(source, tables=["sales.things"])
    assert list(read(source, tables=["main.things"]).view()) == ["main.things"]


def test_values_that_have_no_form_are_named(tmp_path: Path) -> None:
    change(write_shop(tmp_path / "shop.sqlite"), "CREATE TABLE t (id INTEGER PRIMARY KEY, x FLOAT)")
    change(tmp_path / "shop.sqlite", "INSERT INTO t VALUES (1, 9e999)")
    with pytest.raises(DataError, match="Shop.database: table 't', column 'x': inf has no form in JSON"):
        read(url(tmp_path / "shop.sqlite"), tables=["t"])
    with pytest.raises(OverflowError, match="more than 64 bits"):
        server._value(1 << 64, "INTEGER")


def hidden(problem: pytest.ExceptionInfo[MuarlError]) -> str:
    text = str(problem.value) + repr(problem.value)
    assert not any(secret in text for secret in (SECRET, "s3cr/et", "hush", "shop:"))
    assert problem.value.__suppress_context__ or problem.value.__context__ is None
    return str(problem.value)


def test_no_error_shows_user_password_or_query(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        orig = ConnectionError("no entry for shop, password s3cr/et (s3cr%2Fet, hush) is wrong\nDETAIL: hush")
        raise sqlalchemy.exc.OperationalError("SELECT 1", {}, orig)

    assert repr(SqlDatabase(URL, ["orders"])) == (
        "SqlDatabase('postgresql+psycopg://127.0.0.1/shop', tables=('orders',), compared=None)"
    )
    with monkeypatch.context() as patched:
        patched.setattr(sqlalchemy, "create_engine", fails)
        with pytest.raises(DataError) as problem:
            read(URL)
    assert "password *** (***, ***) is wrong" in hidden(problem) and "DETAIL" not in hidden(problem)
    with pytest.raises(MuarlError) as problem:
        read(URL)  # without the driver, or with it and nobody there
    hidden(problem)
    with pytest.raises(ConfigError, match="knows no database 'nosql'") as problem:
        read(URL.replace("postgresql+psycopg", "nosql"))
    hidden(problem)
    with pytest.raises(ConfigError, match="is no database URL") as problem:
        read(f"://shop:{SECRET}@host")
    hidden(problem)
    with pytest.raises(ConfigError, match="is a text: give tables of records") as problem:
        _ = Shop(database=f"host=db user=shop password={SECRET}").base
    hidden(problem)


def test_a_missing_driver_or_sqlalchemy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")

    with monkeypatch.context() as patched:
        patched.setattr(sqlalchemy, "create_engine", fails)
        with pytest.raises(ConfigError, match="needs the driver psycopg"):
            read(URL)
    monkeypatch.setattr("muarl.basics.extras.is_installed", lambda package: package != "sqlalchemy")
    monkeypatch.setattr(server, "is_installed", lambda package: package != "sqlalchemy")
    with pytest.raises(MissingExtra, match=r"Shop.database needs sqlalchemy.*pip install 'muarl\[sql\]'") as problem:
        read(URL)
    assert SECRET not in str(problem.value) and "127.0.0.1" not in repr(SqlDatabase(URL))
