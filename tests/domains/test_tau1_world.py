"""TAU1's state hash, its answers to calls that do not fit, and what its worlds share."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import DataError
from muarl.domains.database import Database
from muarl.domains.tasks import Task
from muarl.types.chat import ToolCall
from muarl_worlds.tau.tau1.airline import Tau1Airline
from muarl_worlds.tau.tau1.retail import Tau1Retail
from muarl_worlds.tau.tau1.state import state_text

EMPTY = {"orders": {}, "products": {}, "users": {}}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def hashable(value):
    """Nested tuples, as TAU1 hashes them."""
    if isinstance(value, dict):
        return tuple((k, hashable(v)) for k, v in sorted(value.items()))
    return tuple(map(hashable, value)) if isinstance(value, list) else value


def call(world, name, /, **arguments):
    return world.call("assistant", ToolCall("1", name, arguments))


@given(values)
def test_the_text_of_a_value_is_the_str_of_its_tuples(value):
    assert state_text({"x": value}) == str(hashable({"x": value}))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.none() | values), max_size=6), st.booleans())
def test_hash_and_digest_after_changes_are_those_of_a_base_with_the_same_contents(changes, in_table):
    tables = {"orders": {"a": {"n": 1}, "b": [2]}, "products": {}, "users": {"a": 0.5}}
    world = Tau1Retail(database=tables, policy="p").world()
    table = "orders" if in_table else "users"
    for key, value in changes:
        view = world.toolkit().db[table]
        if value is None:
            tables[table].pop(key, None)
            if key in view:
                del view[key]
        else:
            tables[table][key] = view[key] = value
    wanted = hashlib.sha256(str(hashable(tables)).encode()).hexdigest()
    assert world.full_hash() == wanted and world.full_hash("user") is None
    assert world.digest() == Tau1Retail(database=tables, policy="p").world().digest()


def test_lists_and_objects_without_entries_are_alike_to_tau1_but_1_and_1_0_are_not():
    def both(value):
        world = Tau1Retail(database={**EMPTY, "users": {"u": value}}, policy="p").world()
        return world.full_hash(), world.digest()

    assert both([]) == both({})
    for one, other in ((1, 1.0), (1, True), ("1", 1), ([1], 1), (None, "None"), ([], [[]])):
        first, second = both(one), both(other)
        assert first[0] != second[0] and first[1] != second[1]


def test_a_task_may_bring_its_own_database():
    domain = Tau1Retail(database=EMPTY, policy="p")
    own = {**EMPTY, "users": {"u": {"name": "Ann"}}}
    task = Task("t", "retail", "", (), database=Database(own))
    assert domain.world(task).full_hash() == Tau1Retail(database=own, policy="p").world().full_hash()
    assert call(domain.world(task), "get_user_details", user_id="u").content == '{"name": "Ann"}'


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("nope", {}, "Unknown action nope"),
        ("base", {}, "Unknown action base"),
        ("__init__", {"x": 1}, "Unknown action __init__"),
        (
            "get_order_details",
            {},
            "Error: GetOrderDetails.invoke() missing 1 required positional argument: 'order_id'",
        ),
        (
            "cancel_pending_order",
            {},
            "Error: CancelPendingOrder.invoke() missing 2 required positional arguments: 'order_id' and 'reason'",
        ),
        (
            "find_user_id_by_name_zip",
            {},
            "Error: FindUserIdByNameZip.invoke() missing 3 required positional arguments: "
            "'first_name', 'last_name', and 'zip'",
        ),
        (
            "get_order_details",
            {"order_ids": 1, "order_id": "x"},  # Python 3.13 would add a guess at what was meant
            "Error: GetOrderDetails.invoke() got an unexpected keyword argument 'order_ids'",
        ),
        ("think", {"self": 1}, "Error: Think.invoke() got an unexpected keyword argument 'self'"),
        (
            "think",
            {"x": 1, "data": 2},
            "Error: tau_bench.envs.retail.tools.think.Think.invoke() got multiple values for keyword argument 'data'",
        ),
        ("get_order_details", {"order_id": ["a"]}, "Error: unhashable type: 'list'"),
        ("get_order_details", {"order_id": None}, "Error: order not found"),
        ("calculate", {"expression": 3}, "Error: 'int' object is not iterable"),
        ("calculate", {"expression": [3]}, "Error: 'in <string>' requires string as left operand, not int"),
        ("calculate", {"expression": ["1"]}, "Error: eval() arg 1 must be a string, bytes or code object"),
        ("calculate", {"expression": "two"}, "Error: invalid characters in expression"),
        ("calculate", {"expression": "2(*)"}, "Error: invalid syntax (<string>, line 1)"),
        ("calculate", {"expression": ""}, "Error: invalid syntax (<string>, line 0)"),
        ("calculate", {"expression": "1/0"}, "Error: division by zero"),
    ],
)
def test_calls_that_do_not_fit_meet_the_originals_words(name, arguments, text):
    world = Tau1Retail(database=EMPTY, policy="p", semantics="official").world()
    result = world.call("assistant", ToolCall("1", name, arguments))
    assert (result.content, result.error) == (text, True)
    assert world.call("user", ToolCall("1", "think", {"thought": ""})).content == "Unknown action think"


def test_fixed_semantics_check_the_arguments_first():
    world = Tau1Retail(database=EMPTY, policy="p").world()
    assert call(world, "think", thought="x").content == ""
    assert call(world, "calculate", expression="7 * 6").content == "42.0"
    assert call(world, "think").content == "Error: think: missing argument 'thought'. Arguments: thought."
    wrong = call(world, "cancel_pending_order", order_id="#1", reason="whim")
    assert "must be one of 'no longer needed', 'ordered by mistake'" in wrong.content
    assert call(world, "nope").content.startswith("Error: there is no tool 'nope'")


def test_an_unreadable_call_is_answered_in_both_semantics():
    for semantics in ("official", "fixed"):
        world = Tau1Retail(database=EMPTY, policy="p", semantics=semantics).world()
        result = world.call("assistant", ToolCall("1", "think", invalid="not valid JSON"))
        assert result.error and "could not be read: not valid JSON" in result.content


@pytest.mark.parametrize(
    ("kind", "count", "sha256"),
    [
        (Tau1Retail, 16, "670eba513010bd281a5e5acc872ca203703b1aa26e992d8f276bcf3ffe0bc603"),
        (Tau1Airline, 14, "aa4c00d2b0ae4dcb6d38642e82062aa377f827dd887a44f57ffed6e20dec1904"),
    ],
)
def test_models_are_shown_the_originals_tools_to_the_letter(kind, count, sha256):
    domain = kind(database={table: {} for table in kind.tables}, policy="p")
    shown = [spec.to_openai() for spec in domain.tool_specs()]
    assert len(shown) == count and hashlib.sha256(json.dumps(shown).encode()).hexdigest() == sha256
    assert domain.tool_names() == kind.own_tools() and list(domain.tool_names()) == sorted(domain.tool_names())


def test_options_of_a_domain(monkeypatch, tmp_path):
    domain = Tau1Retail(database=EMPTY, policy="p", tools=["think"], render=lambda name, value: name.upper())
    assert domain.tool_names() == ("think",) and call(domain.world(), "think", thought="x").content == "THINK"
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    for use in (lambda d: d.policy_text, lambda d: d.base):
        with pytest.raises(DataError, match="muarl data add tau1 --from DIR"):
            use(Tau1Airline())
    with pytest.raises(DataError, match="lacks the table 'products'"):
        Tau1Retail(database={"orders": {}}, policy="p").world()
