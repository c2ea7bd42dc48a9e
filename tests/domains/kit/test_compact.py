"""Compact observations: written in few words, and read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.domains.kit import compact
from muarl.domains.kit.gold import call
from muarl.language.values import normal
from support.kit import SERVICES, env, made


def equal(left, right):
    if isinstance(left, dict):
        kept = {k: v for k, v in left.items() if k in right}
        return set(right) <= set(left) and all(equal(kept[k], right[k]) for k in right)
    if isinstance(left, list):
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    return normal(left) == normal(right) or (left == "none" and right is None)


@pytest.mark.parametrize("name", SERVICES)
def test_every_observation_is_read_back(name):
    domain = env(name).make_domain("small")
    for task in made(name, "tiny", count=25):
        world = domain.world(task)
        for action in task.actions:
            result = call(world, action.name, action.arguments)
            text = compact.write(result)
            assert equal(result, compact.read(text)) or not isinstance(result, dict), text
            assert compact.read(text) == text or isinstance(result, dict)


@pytest.mark.parametrize("text", ["", "Error: nothing", "Transfer successful", "{broken", "a\nb", "[1,"])
def test_what_is_no_record_stays_text(text):
    assert compact.read(text) == text


def test_values_and_keys():
    record = {
        "order_id": "F-1", "late": True, "eta": None, "fee": 2.5, "tags": ["a b", "c"], "n": 3,
        "who": {"name": "Mia Berg"}, "items": [{"name": "Pad Thai", "ids": []}, {"name": "Soup", "ids": ["x"]}],
    }  # fmt: skip
    text = compact.write(record)
    assert text == (
        "order_id F-1; late yes; eta none; fee 2.50; tags [a b, c]; n 3\nwho> name Mia Berg\n"
        "items: name Pad Thai; ids []\nitems: name Soup; ids [x]"
    )
    assert compact.read(text) == record
    assert compact.read('{"a": [1]}') == {"a": [1]} and compact.read("order placed") == {"order": "placed"}


# values of JSON, the treacherous ones among them

_TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["no", "yes", "none", "0042", "42", "-5", "12.50", "[a, b]", '"', '"a"', "a; b 1", "a, b", "a\nb",
                     "k v", "- x 1", "{", "[", "true", "null", "NaN", "1e5", "", " ", "k: x 1", "k> x 1", "a;",
                     '"a"; b 2', '["x", "y"]', "é", "92058", "1" * 16]),
)  # fmt: skip
_SCALARS = st.one_of(
    _TEXTS,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda amount: round(amount, 2)),
)
_KEYS = st.one_of(st.sampled_from(["a", "b_1", "card", "x.y"]), _TEXTS)
JSON_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=12,
)


def exact(left, right):
    """Equal in value and in type."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@given(JSON_VALUES, st.sampled_from([(), ("a", "card")]))
def test_every_value_is_read_back_as_what_it_was(value, texts):
    text = compact.write(value, texts)
    assert exact(value, compact.read(text, texts)), text


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"reserved": "no", "b": "0042", "f": "12.50"}, 'reserved "no"; b "0042"; f "12.50"'),
        ({"card": "92058", "n": 92058}, 'card "92058"; n 92058'),
        ({"note": "yes; n 9", "of": ["7", 7, "a; b"]}, 'note "yes; n 9"; of ["7", 7, "a;\\u0020b"]'),
        ({"saldo": -5, "fee": -12.5, "as": "said"}, "saldo -5; fee -12.50; as said"),
        ([{"isbn": "9780140328721"}], '- isbn "9780140328721"'),
        ("92058", '"92058"'),
    ],
)
def test_only_texts_that_would_be_read_as_something_else_are_quoted(record, text):
    assert compact.write(record) == text
    assert exact(compact.read(text), record)


def test_fields_that_always_hold_texts_need_no_quotation_marks():
    record = {"card": "92058", "n": "3", "loans": [{"card": "no"}]}
    text = compact.write(record, ("card",))
    assert text == 'card 92058; n "3"\nloans: card no'
    assert exact(compact.read(text, ("card",)), record)
