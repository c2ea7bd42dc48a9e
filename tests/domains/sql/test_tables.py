"""A database in a SQLite file is like one of plain dicts, whatever is done to it."""

from __future__ import annotations

import copy
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.database import Database, View
from muarl.domains.sql.declared import SqlDatabase
from support.sqlite_shop import opened, write_shop

KEYS = st.sampled_from(["a", "A", "01", "1", "ff", "é/%2F"])
VALUES = st.none() | st.integers(-3, 3) | st.floats(-3, 3).map(lambda x: x + 0.0) | st.sampled_from(["", "1", "x", "X"])
ROWS = st.fixed_dictionaries({"v": VALUES, "done": st.none() | st.booleans(), "more": st.lists(VALUES, max_size=2)})
ONE = st.dictionaries(KEYS, ROWS, max_size=4)
TWO = st.dictionaries(st.tuples(KEYS, st.integers(1, 3)), ROWS, max_size=4)
STEPS = ("put", "change", "read", "remove", "where", "begin", "commit", "rollback")
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(STEPS), st.sampled_from(["one", "two"]), KEYS, st.integers(1, 3), ROWS), max_size=15
)
MODULUS = 1 << 256


def key_in(table: str, key: str, number: int) -> str:
    return key if table == "one" else SqlDatabase.key(key, number)


def plain(one: dict[str, Any], two: dict[tuple[str, int], Any]) -> dict[str, dict[str, Any]]:
    """The same rows as tables of plain dicts, in the order in which they are entered."""
    return {
        "one": {k: {"id": k, **row} for k, row in one.items()},
        "two": {SqlDatabase.key(*k): {"a": k[0], "n": k[1], **row} for k, row in two.items()},
    }


def write(path: Path, one: dict[str, Any], two: dict[tuple[str, int], Any]) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA synchronous = OFF")
        file.execute("CREATE TABLE one (id TEXT PRIMARY KEY, v, done BOOLEAN, more JSON)")
        file.execute("CREATE TABLE two (a TEXT, n INTEGER, v, done BOOLEAN, more JSON, PRIMARY KEY (a, n))")
        for table, keys in (("one", [[k] for k in one]), ("two", [list(k) for k in two])):
            for key, row in zip(keys, (one if table == "one" else two).values(), strict=True):
                values = [*key, row["v"], row["done"], json.dumps(row["more"])]
                file.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        file.commit()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def play(view: View, operations: list[Any]) -> list[Any]:
    """What operations on a database answer."""
    answers: list[Any] = []
    is_open = False
    for what, table, name, number, row in operations:
        key, rows = key_in(table, name, number), view[table]
        if what == "put":
            rows[key] = copy.deepcopy(row)
        elif what == "change" and key in rows:
            rows[key]["v"] = "changed"
            rows[key]["more"].append(number)
        elif what == "read" and key in rows:
            answers.append(copy.deepcopy(rows[key]))
        elif what == "remove" and key in rows:
            del rows[key]
        elif what == "where":
            answers.append(copy.deepcopy(rows.where(v=row["v"], done=row["done"])))
        elif what == "begin" and not is_open:
            view.begin()
            is_open = True
        elif what in ("commit", "rollback") and is_open:
            getattr(view, what)()
            is_open = False
        answers.append((key in rows, len(rows), list(rows), [k for k, _ in rows.scan()]))
    answers.append([dict(record) for record in view["one"].values()])
    return answers


def same(first: object, second: object) -> bool:
    """Whether two values are the same in JSON, where 1, 1.0 and true differ."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


@given(ONE, TWO, OPERATIONS, OPERATIONS)
@settings(max_examples=40, deadline=None)
def test_it_answers_as_plain_dicts_do_and_digests_tell_the_same_apart(folder, one, two, first, second):
    path = folder / "any.sqlite"
    path.unlink(missing_ok=True)
    write(path, one, two)
    before = path.read_bytes()
    tables = plain(one, two)
    lazy, dicts = opened(path), Database(tables)
    views = [(lazy.view(), dicts.view()) for _ in range(2)]
    for (view, expected), operations in zip(views, (first, second), strict=True):
        assert same(play(view, operations), play(expected, operations))
        assert same(view.to_tables(), expected.to_tables())
        assert view.full_hash() == expected.full_hash()
        moved = int(view.digest(), 16) - int(lazy.view().digest(), 16)
        assert moved % MODULUS == (int(expected.digest(), 16) - dicts.digest()) % MODULUS
    (a, expected_a), (b, expected_b) = views
    assert (a.digest() == b.digest()) == (expected_a.digest() == expected_b.digest())
    assert same(lazy.to_tables(), tables) and path.read_bytes() == before


@given(ONE, st.dictionaries(KEYS, ROWS | st.none(), max_size=3), st.dictionaries(KEYS, ROWS | st.none(), max_size=3))
@settings(max_examples=25, deadline=None)
def test_a_base_derived_from_it_is_one_with_other_records(folder, one, changes, more):
    path = folder / "derived.sqlite"
    path.unlink(missing_ok=True)
    write(path, one, {})
    lazy, dicts = opened(path), Database(plain(one, {}))
    start = lazy.digest() - dicts.digest()
    for step in (changes, more):
        lazy, dicts = lazy.derive({"one": step}), dicts.derive({"one": step})
        assert same(lazy.view().to_tables(), dicts.view().to_tables()) and len(lazy.tables["one"]) == len(
            dicts.tables["one"]
        )
        assert (lazy.digest() - dicts.digest()) % MODULUS == start % MODULUS
        for row in step.values():
            wanted = {"v": None if row is None else row["v"]}
            assert same(lazy.view()["one"].where(**wanted), dicts.view()["one"].where(**wanted))
        for key in step:
            assert (key in lazy.tables["one"]) == (key in dicts.tables["one"])
    changed = {k: r for k, r in {**changes, **more}.items() if r is not None}
    assert same(lazy.to_check(), {"one": changed})


TYPES = """
CREATE TABLE things (
    id INTEGER PRIMARY KEY, flag BOOL, price DECIMAL(8, 2), amount NUMERIC, day DATE, raw BLOB, data JSON,
    twice GENERATED ALWAYS AS (id * 2) VIRTUAL
);
INSERT INTO things VALUES (7, 1, 12, 12, '2026-03-14', x'00ff', '{"a": [1, null]}'), (8, 0, 2.5, 2.5, NULL, NULL, NULL),
    (9, 'yes', 'free', '1e2', 20260314, 'text', '5');
"""


def made(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "made.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.executescript(script)
    return path


def test_values_become_json(tmp_path: Path) -> None:
    things = opened(made(tmp_path, TYPES)).view()["things"]
    assert same(
        [things["7"], things["8"], things["9"]],
        [
            dict(id=7, flag=True, price=12.0, amount=12, day="2026-03-14", raw="00ff", data={"a": [1, None]}),
            dict(id=8, flag=False, price=2.5, amount=2.5, day=None, raw=None, data=None),
            dict(id=9, flag="yes", price="free", amount=100, day=20260314, raw="text", data=5),
        ],
    )
    for asked, found in (
        ({"flag": True}, [7]),
        ({"raw": "00ff"}, [7]),
        ({"raw": "text"}, [9]),
        ({"data": {"a": [1, None]}}, [7]),
        ({"data": None}, [8]),
        ({"price": 12}, [7]),
        ({"amount": "100"}, []),
        ({"id": 1 << 70}, []),
        ({"day": "2026-03-14", "price": 12.0}, [7]),
        ({}, [7, 8, 9]),
    ):
        assert [row["id"] for row in things.where(**asked)] == found, asked


def test_a_value_that_json_has_no_form_for_is_named(tmp_path: Path) -> None:
    bad = made(tmp_path, "CREATE TABLE t (id TEXT PRIMARY KEY, x REAL, d JSON); INSERT INTO t VALUES ('a', 9e999, '{')")
    with pytest.raises(InfrastructureError, match=r"made.sqlite: table 't', record 'a': column 'x' is inf"):
        opened(bad).view()["t"]["a"]
    bad.unlink()
    bad = made(tmp_path, "CREATE TABLE t (id TEXT PRIMARY KEY, d JSON); INSERT INTO t VALUES ('a', '{')")
    with pytest.raises(InfrastructureError, match="column 'd' is declared as JSON and is none"):
        list(opened(bad).view()["t"].scan())


KEYED = """
CREATE TABLE whole (id INTEGER PRIMARY KEY, x TEXT);
INSERT INTO whole VALUES (1, 'a'), (-5, 'b'), (12, 'c');
CREATE TABLE bytes (id BLOB PRIMARY KEY, x TEXT) WITHOUT ROWID;
INSERT INTO bytes VALUES (x'00ff', 'a');
CREATE TABLE any (id PRIMARY KEY, x TEXT);
INSERT INTO any VALUES (1, 'int'), ('a', 'text'), (2.5, 'float'), (x'ab', 'bytes');
CREATE TABLE caseless (id TEXT PRIMARY KEY COLLATE NOCASE, x TEXT);
INSERT INTO caseless VALUES ('Emma', 'a');
CREATE TABLE pairs (b TEXT, a INTEGER, x TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
INSERT INTO pairs VALUES ('x/y%', 2, 'slash'), ('z', 1, 'plain');
CREATE TABLE none (rowid TEXT, x TEXT);
INSERT INTO none VALUES ('r', 'first'), ('r', 'second');
"""


def test_records_are_known_by_their_primary_key_as_text(tmp_path: Path) -> None:
    view = opened(made(tmp_path, KEYED)).view()
    assert list(view["whole"]) == ["-5", "1", "12"] and view["whole"]["-5"]["x"] == "b"
    assert all(key not in view["whole"] for key in ("01", "1.0", " 1", "+1", "", "x", "1/2"))
    assert view["bytes"]["00ff"] == {"id": "00ff", "x": "a"} and "00FF" not in view["bytes"]
    assert {key: view["any"][key]["x"] for key in view["any"]} == {
        "1": "int",
        "a": "text",
        "2.5": "float",
        "ab": "bytes",
    }
    assert "Emma" in view["caseless"] and "emma" not in view["caseless"]
    assert list(view["pairs"]) == ["1/z", "2/x%2Fy%25"] == ["1/z", SqlDatabase.key(2, "x/y%")]
    assert view["pairs"]["2/x%2Fy%25"]["x"] == "slash" and "1" not in view["pairs"] and "1/z/" not in view["pairs"]
    assert list(view["none"]) == ["1", "2"] and view["none"]["2"] == {"rowid": "r", "x": "second"}


def test_keys_that_are_no_text_and_columns_that_there_are_not_are_refused(tmp_path: Path) -> None:
    view = opened(write_shop(tmp_path / "shop.sqlite")).view()
    with pytest.raises(TypeError, match="'customers' are known by text, not 0: write '0'"):
        _ = 0 in view["customers"]
    with pytest.raises(KeyError) as wrong:
        view["orders"].where(statsu="open")
    assert str(wrong.value) == "the table 'orders' has no column 'statsu'; did you mean 'status'?"
    view.begin()
    view["orders"]["#B1"]["statsu"] = "x"
    with pytest.raises(KeyError, match="did you mean 'status'"):
        view.check_columns()
    view.rollback()
    view.begin()
    view["customers"][5] = {"id": 5}  # type: ignore[index]
    with pytest.raises(TypeError, match="known by text"):
        view.check_columns()


def test_records_met_in_a_loop_are_read_only_unless_the_world_has_its_own(tmp_path: Path) -> None:
    view = opened(write_shop(tmp_path / "shop.sqlite")).view()
    view["orders"]["#B1"]["status"] = "mine"
    for record in view["orders"].values():
        if record["id"] == "#B1":
            record["status"] += "!"
        else:
            with pytest.raises(TypeError, match=r"take it with db.table\[key\]"):
                record["status"] = "x"
    assert view["orders"]["#B1"]["status"] == "mine!" and view.taken("orders").keys() == {"#B1"}
    assert dict(view["orders"].items())["#B2"]["price"] == 1.0


def test_only_the_tables_named_are_read_and_compared(tmp_path: Path) -> None:
    path = write_shop(tmp_path / "shop.sqlite")
    base = opened(path, tables=("orders", "log"), compared=("orders",))
    assert list(base.view()) == ["orders", "log"]
    one, two = base.view(), base.view()
    one["log"]["x"] = {"text": "x"}
    assert one.digest() == two.digest()
    one["orders"]["#B1"]["status"] = "lost"
    assert one.digest() != two.digest() != opened(path).view().digest()
    plain = Database({"a": {"1": {}}, "b": {}}, compared=("a",))
    other = plain.derive({"b": {"1": {"x": 1}}})
    assert plain.digest() == other.digest() != plain.derive({"a": {"1": None}}).digest()
    with pytest.raises(ConfigError, match=r"compared: must be a tuple of tables, such as \('a',\)"):
        Database({"a": {}}, compared="a")
    assert Database({"a": {"1": {}}, "b": {"2": {}}}, compared=["a"]).digest() == plain.digest()


def test_names_may_be_any_text(tmp_path: Path) -> None:
    path = tmp_path / "my shop #1?%41.db"
    with closing(sqlite3.connect(path)) as file:
        file.executescript(
            'CREATE TABLE "Order ""Details""" ("group" TEXT, "Unit Price" REAL, "é" TEXT, "a""b" INT, '
            'PRIMARY KEY ("group")) STRICT; INSERT INTO "Order ""Details""" VALUES (\'x\', 1.5, \'y\', 3);'
            'CREATE TABLE "select" ("1" TEXT); INSERT INTO "select" VALUES (\'z\');'
        )
    view = opened(path, compared=("select",)).view()
    details = view['Order "Details"']
    assert details["x"] == {"group": "x", "Unit Price": 1.5, "é": "y", 'a"b': 3}
    assert details.where(**{"Unit Price": 1.5, 'a"b': 3}) == [details["x"]] and not details.where(é="z")
    assert view["select"]["1"] == {"1": "z"} and len(details) == 1
