"""Databases and their views: the digest says exactly what the contents are, and worlds never touch each other."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.domains.database import Database, View

KEYS = st.sampled_from(["a", "b", "c", "é"])
TABLES = st.sampled_from(["x", "y"])
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.text(max_size=3)
RECORDS = st.dictionaries(st.text(max_size=2), LEAVES | st.lists(LEAVES, max_size=2), max_size=3)
CONTENTS = st.fixed_dictionaries({"x": st.dictionaries(KEYS, RECORDS), "y": st.dictionaries(KEYS, RECORDS)})
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "change", "read", "remove", "begin", "commit", "rollback"]), TABLES, KEYS, RECORDS
    ),
    max_size=20,
)


def text(tables: object) -> str:
    return json.dumps(tables, sort_keys=True)


def run(view: View, tables: dict, operations: list) -> dict:
    """Play operations on a view and on plain dicts; returns the plain dicts at the end."""
    saved = None
    for what, table, key, record in operations:
        if what == "put":
            view[table][key] = copy.deepcopy(record)
            tables[table][key] = copy.deepcopy(record)
        elif what == "change" and key in tables[table]:
            view[table][key]["new"] = [record]
            tables[table][key]["new"] = [copy.deepcopy(record)]
        elif what == "read" and key in tables[table]:
            assert view[table][key] == tables[table][key]
        elif what == "remove" and key in tables[table]:
            del view[table][key]
            del tables[table][key]
        elif what == "begin" and saved is None:
            view.begin()
            saved = copy.deepcopy(tables)
        elif what == "commit" and saved is not None:
            view.commit()
            saved = None
        elif what == "rollback" and saved is not None:
            view.rollback()
            tables, saved = saved, None
        assert (key in view[table]) == (key in tables[table])
        assert len(view[table]) == len(tables[table])
    return tables


@given(CONTENTS, OPERATIONS)
@settings(max_examples=150)
def test_a_view_is_a_private_copy_and_its_digest_and_hash_are_those_of_its_contents(contents, operations):
    base = Database(contents)
    untouched, view = base.view(), base.view()
    expected = run(view, copy.deepcopy(contents), operations)
    assert text(view.to_tables()) == text(expected)
    assert view.digest() == Database(expected).view().digest()
    assert view.full_hash() == hashlib.sha256(text(expected).encode()).hexdigest()
    assert text(untouched.to_tables()) == text(contents) == text(base.to_tables())
    assert (view.digest() == untouched.digest()) == (text(expected) == text(contents))


@given(CONTENTS, OPERATIONS, OPERATIONS)
@settings(max_examples=60)
def test_two_worlds_of_one_base_never_meet(contents, first, second):
    base = Database(contents)
    one, two = base.view(), base.view()
    expected_one = run(one, copy.deepcopy(contents), first)
    expected_two = run(two, copy.deepcopy(contents), second)
    assert text(one.to_tables()) == text(expected_one)
    assert text(two.to_tables()) == text(expected_two)
    assert (one.digest() == two.digest()) == (text(expected_one) == text(expected_two))


@given(CONTENTS, st.dictionaries(KEYS, RECORDS | st.none(), max_size=3), st.booleans())
@settings(max_examples=60)
def test_a_derived_base_equals_one_built_anew(contents, changes, digest_first):
    base = Database(contents)
    if digest_first:
        base.digest()
    derived = base.derive({"x": changes})
    expected = {"x": {**contents["x"], **changes}, "y": contents["y"]}
    expected["x"] = {k: v for k, v in expected["x"].items() if v is not None}
    assert derived.digest() == Database(expected).digest()
    assert derived.view().full_hash() == Database(expected).view().full_hash()
    assert base.digest() == Database(contents).digest()


def test_a_table_that_is_added_is_seen_and_does_not_count_as_state():
    base = Database({"t": {"k": {"v": 1}}})
    derived = base.derive({"more": {"m": {"v": 2}}})
    assert derived.view().more["m"] == {"v": 2} and list(derived.view()) == ["t", "more"]
    assert derived.digest() == base.digest() and derived.view().digest() == base.view().digest()
    assert "more" not in base.tables and "more" not in base.view()
    assert derived.derive({"more": {"m": None}}).to_tables() == {"t": {"k": {"v": 1}}, "more": {}}


def test_integers_floats_and_booleans_are_different_states():
    digests = {Database({"t": {"k": {"v": value}}}).view().digest() for value in (1, 1.0, True, "1", None)}
    assert len(digests) == 5


def test_scanning_copies_nothing_and_shared_records_refuse_changes():
    view = Database({"t": {"a": {"list": [1], "more": {}}}}).view()
    (_, record), *_ = view.t.scan()
    for change in (
        lambda: record.update(x=1),
        lambda: record["list"].append(2),
        lambda: record["more"].setdefault("x", 1),
        lambda: record.__setitem__("x", 1),
        lambda: view.t.peek("a").clear(),
    ):
        with pytest.raises(TypeError, match="read-only"):
            change()
    copied = copy.deepcopy(record)
    copied["list"].append(2)
    assert view.t.peek("a") == {"list": [1], "more": {}}
    assert pickle.loads(pickle.dumps(record)) == record


def test_a_change_after_commit_and_rollback_of_the_next_call_is_kept():
    view = Database({"t": {"a": {"n": 1}}}).view()
    view.begin()
    view.t["a"]["n"] = 2
    view.commit()
    view.begin()
    view.t["a"]["n"] = 3
    del view.t["a"]
    assert "a" not in view.t
    view.rollback()
    assert view.t["a"] == {"n": 2}


def test_tables_must_be_mappings_and_unknown_ones_are_named():
    with pytest.raises(TypeError, match="'books' must map keys"):
        Database({"books": [1, 2]})  # type: ignore[dict-item]
    view = Database({"books": {}}).view()
    with pytest.raises(AttributeError, match="no table 'shelves'"):
        _ = view.shelves
    with pytest.raises(KeyError):
        _ = view.books["b"]
    with pytest.raises(KeyError):
        del view.books["b"]
