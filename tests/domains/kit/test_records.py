"""Records as plans read them, and texts with places for values."""

from __future__ import annotations

import pytest

from muarl.domains.kit.records import Record, fill, plain, rows, same, wrapped
from muarl.language.values import join

KNOWN = {
    "o": wrapped({"status": "Placed", "total": 20.5, "items": [{"name": "Soup"}], "tags": ["a", "b"], "eta": None}),
    "amount": 30, "today": "2026-03-14",
}  # fmt: skip
ORDER = KNOWN["o"]


def test_fields_are_attributes_whatever_they_are_called():
    assert ORDER.status == ORDER["status"] == "Placed" and ORDER.items[0].name == "Soup" and ORDER.eta is None
    keys = Record({"keys": 1, "values": [2], "get": 3, "_fields": 4})
    assert (keys.keys, keys.values, keys.get, keys["_fields"]) == (1, [2], 3, 4)
    assert "eta" in ORDER and "price" not in ORDER and list(ORDER)[:2] == ["status", "total"]
    with pytest.raises(AttributeError, match="the record has no field 'price'; it has status, total"):
        _ = ORDER.price


def test_records_are_equal_to_what_they_hold():
    assert ORDER.items[0] == {"name": "Soup"} == wrapped({"name": "Soup"}) and ORDER.items[0] != {"name": "Tea"}
    assert plain([ORDER.items[0], 3]) == [{"name": "Soup"}, 3] and plain(ORDER)["total"] == 20.5


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("Pad Thai", " pad thai", True), (2, "2.00", True), (True, "true", False), (None, None, True), ("a", "b", False)],
)
def test_what_means_the_same(one, other, expected):
    assert same(one, other) is expected


def test_texts_are_filled():
    assert fill("{o.total|money} of {o.status}, {o.total|plain}", KNOWN) == "$20.50 of Placed, 20.50"
    assert fill("{o.tags|list} on {today|date}, {o.status|lower}", KNOWN) == "a and b on March 14, placed"
    assert fill("{o.total|euro} or {o.total|pound} on {today|day_first}", KNOWN) == "€20.50 or £20.50 on 14 March"
    assert fill("{amount}", KNOWN, {"amount": "thirty dollars"}) == "thirty dollars"
    assert fill("{amount|money}", KNOWN, {"amount": "thirty dollars"}) == "$30.00"
    assert fill("{o.total}", KNOWN) == "20.50"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{slot.x}", "nothing is called 'slot'; there are o, amount, today"),
        ("{o.nothing}", "'o' has no 'nothing'"),
        ("{o.eta.hour}", "'o' has no 'eta.hour'"),
        ("{o.status|money}", "'Placed' has no form 'money'"),
        ("{o|date}", "has no form 'date'"),
        ("{amount|loud}", "there is no form 'loud'; there are money, euro, pound, plain, date, day_first, list, lower"),
    ],
)
def test_what_cannot_be_filled_is_named(text, words):
    with pytest.raises(LookupError) as caught:
        fill(text, KNOWN)
    assert words in caught.value.args[0]


def test_rows_of_lists_and_mappings():
    assert rows({"a": 1, "b": 2}) == rows(Record({"a": 1, "b": 2})) == [1, 2]
    assert rows([1]) == [1] and rows("ab") == rows(None) == []
    assert join(["a"]) == "a" and join([]) == "none" and join(["a", "b", "c"], "or") == "a, b or c"
