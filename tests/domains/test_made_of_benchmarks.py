"""Made retail and airline tasks beside the benchmark's: its own tools do the same, and none of its tasks comes back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.domains.generated import SPLITS
from muarl.domains.kit import compact
from muarl.environments.registry import find
from muarl.types.chat import ToolCall
from muarl_worlds.tau.airline import generated as airline_made
from muarl_worlds.tau.airline.domain import Airline, airline_database
from muarl_worlds.tau.retail import generated as retail_made
from muarl_worlds.tau.retail.domain import Retail, retail_database
from support import kit

SHOWN = {
    "retail": {"get_user_details": "users", "get_order_details": "orders", "get_product_details": "products"},
    "airline": {"get_user_details": "users", "get_reservation_details": "reservations"},
}
both = pytest.mark.parametrize("name", ["retail", "airline"])


@both
def test_the_gold_actions_run_on_the_benchmarks_own_semantics_to_the_same_state(name):
    """But for the seats of flights, which TAU2 forgets to give back."""
    kinds = {"retail": (Retail, retail_made.GeneratedRetail), "airline": (Airline, airline_made.GeneratedAirline)}[name]
    domains = [kinds[0](database={}, policy="", semantics="official"), kinds[1](database={})]
    for task in kit.made(name, "small", "validation", 16):
        ends = []
        for world in (domain.world(task) for domain in domains):
            assert not any(world.call("assistant", ToolCall("", a.name, a.arguments)).error for a in task.actions)
            left = world.toolkit().db.to_tables()
            ends.append({table: left[table] for table in left if table != "flights"})
        assert ends[0] == ends[1]


@pytest.mark.data
@both
def test_no_generated_task_is_an_official_one(shared_data, name):
    folder, writes = shared_data / "tau2/domains" / name, kit.writes(name)
    rows = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    official = json.loads((folder / "db.json").read_text(encoding="utf-8"))

    def keys(actions: Iterable[Any]) -> set[str]:
        return {n + json.dumps(a, sort_keys=True) for n, a in actions if n in writes}

    known = set()
    for row in rows:
        actions = (row.get("evaluation_criteria") or {}).get("actions") or []
        known |= keys((a["name"], a["arguments"]) for a in actions)
    for size in find(f"{name}-generated").sizes:
        for task in (task for split in SPLITS for task in kit.made(name, size, split, 100)):
            assert not keys((a.name, dict(a.arguments)) for a in task.actions) & known, task.id
            caller = task.agenda["identity"].get("user_id")
            people = set(task.database.tables["users"]) if caller is None else {caller}
            assert people and not people & set(official["users"])


@pytest.mark.parametrize(("name", "size"), [("retail", "tiny"), ("airline", "tiny"), ("airline", "small")])
@given(st.text(max_size=8))
@settings(max_examples=15)
def test_what_worlds_show_is_read_as_plans_read_json(name, size, seed):
    module = {"retail": retail_made, "airline": airline_made}[name]
    tables, service = kit.tables(name, seed, size), kit.service(name)
    for tool, table in SHOWN[name].items():
        for record in tables[table].values():
            shown = compact.write(module.view(tool, record))
            assert service.read(tool, shown) == service.read(tool, json.dumps(record))


# worlds

DATA = ("variants", "payment_methods", "options", "dates")
"""Fields whose keys are data: ids, names of options, days."""
FILLED = {"retail": {(("cancel_reason",), "str")}, "airline": set()}
"""What TAU2's tools leave behind; its files have no such record yet."""


def shape(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every (path, type) of a record; keys that are data become *."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from shape(inner, (*path, "*" if path and path[-1] in DATA else key))
        yield path, "object"
    elif isinstance(value, list):
        for inner in value:
            yield from shape(inner, (*path, "[]"))
        yield path, "array"
    else:
        name = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
        yield path, name


@pytest.mark.data
@both
@pytest.mark.parametrize("size", ["tiny", "small", "official"])
def test_the_schema_is_tau2s(size, shared_data, name):
    raw = json.loads((shared_data / "tau2/domains" / name / "db.json").read_text(encoding="utf-8"))
    ours = kit.tables(name, "a", size)
    for table in ours:
        official = [set(shape(record)) for record in raw[table].values()]
        found = {one for record in ours[table].values() for one in shape(record)}
        more = {(path, kind) for path, kind in found - set().union(*official) if kind != "NoneType"}
        assert more <= FILLED[name], f"{table} has what TAU2's has not"
        always = set.intersection(*official)
        assert {path for path, _ in always if len(path) == 1} <= {path for path, _ in found}


@both
@pytest.mark.parametrize("size", ["tiny", "small"])
def test_tau2s_own_reading_of_the_tables_leaves_them_as_they_are(name, size):
    """Nothing is dropped, filled in or converted: the same hash and the same digest."""
    kind, read = {"retail": (Retail, retail_database), "airline": (Airline, airline_database)}[name]
    tables = kit.tables(name, "a", size)
    ends = [kind(database=d, policy="", semantics="official").world().digest() for d in (tables, read(tables))]
    assert ends[0] == ends[1] and json.dumps(read(tables).to_tables()) == json.dumps(tables)
