"""Compact observations: written in few words, and read back."""

from __future__ import annotations

import pytest

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
