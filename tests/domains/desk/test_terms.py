"""References, conditions and texts of procedures."""

from __future__ import annotations

import pytest

from muarl.domains.desk.terms import Unknown, fill, holds, join, lookup, resolve, rows

KNOWN = {
    "o": {"status": "placed", "total": 20.5, "items": [{"name": "Soup"}], "tags": ["a", "b"], "late": False,
          "eta": None},
    "amount": 30, "today": "2026-03-14",
}  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"o.status": "placed"}, True),
        ({"o.status": "PLACED"}, True),
        ({"o.status": ["placed", "preparing"]}, True),
        ({"o.status": {"not": ["placed", "x"]}}, False),
        ({"o.late": False}, True),
        ({"o.eta": None}, True),
        ({"o.total": {"at_most": 20.5, "above": "10"}}, True),
        ({"o.total": {"below": "$amount"}}, True),
        ({"o.total": {"times": 2, "below": "$amount"}}, False),
        ({"amount": {"at_least": 30}}, True),
        ({"o.status": {"above": 3}}, False),
        ({"o.eta": {"below": 3}}, False),
        ({"o.tags": {"has": "a", "lacks": "c"}}, True),
        ({"o.tags": {"empty": False}}, True),
        ({"o.missing": {"empty": True}}, True),
        ({"o.status": {"in": ["x", "placed"]}}, True),
        ({"today": {"below": "2026-04-01"}}, True),
        ({"o.status": "placed", "amount": 3}, False),
        ({}, True),
    ],
)
def test_conditions(condition, expected):
    assert holds(condition, KNOWN) is expected


def test_a_record_is_looked_at_by_its_fields_or_itself():
    assert holds({"name": "soup"}, KNOWN, KNOWN["o"]["items"][0])
    assert holds({"it": "b"}, KNOWN, "b") and not holds({"it": "c"}, KNOWN, "b")


def test_what_is_not_known_is_named():
    with pytest.raises(Unknown) as caught:
        lookup("slot.x", KNOWN)
    assert caught.value.name == "slot"
    assert lookup("o.nothing.at.all", KNOWN) is None
    assert resolve("$amount", KNOWN) == 30 and resolve("amount", KNOWN) == "amount" and resolve(3, KNOWN) == 3


def test_texts_are_filled():
    assert fill("{o.total|money} of {o.status}, {o.total|plain}", KNOWN) == "$20.50 of placed, 20.50"
    assert fill("{o.tags|list} on {today|date}, {o.status|lower}", KNOWN) == "a and b on March 14, placed"
    assert fill("{amount}", KNOWN, {"amount": "thirty dollars"}) == "thirty dollars"
    assert fill("{amount|money}", KNOWN, {"amount": "thirty dollars"}) == "$30.00"
    assert fill("{o.total}", KNOWN) == "20.50"


def test_rows_of_lists_and_mappings():
    assert rows({"a": 1, "b": 2}) == [1, 2] and rows([1]) == [1] and rows("ab") == [] and rows(None) == []
    assert join(["a"]) == "a" and join([]) == "none" and join(["a", "b", "c"], "or") == "a, b or c"
