"""What API classes share: draws that are made when they are needed, literals that stay whole, quick copies."""

from __future__ import annotations

import copy
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl_worlds.bfcl.api import Api
from muarl_worlds.bfcl.parts import Draws, Literals, copied, twin

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def containers(value):
    if isinstance(value, (dict, list)):
        yield id(value)
        for item in value.values() if isinstance(value, dict) else value:
            yield from containers(item)


@given(JSON)
def test_a_copy_is_equal_and_shares_nothing(value):
    made = copied(value)
    assert repr(made) == repr(value)
    assert not set(containers(made)) & set(containers(value))


def test_a_copy_keeps_what_is_one_thing_twice():
    api = Api()
    api.one = {"a": [1]}
    api.two = [api.one, (api.one["a"], {2})]
    api.one["self"] = api.one
    other = twin(api)
    assert other.two[0] is other.one is other.one["self"] is not api.one
    assert other.two[1][0] is other.one["a"] is not api.one["a"]
    assert other.two[1][1] == {2}


def test_copies_go_as_deep_as_need_be():
    deep = []
    for _ in range(50_000):
        deep = [deep]
    depth, made = 0, copied(deep)
    while made:
        depth, made = depth + 1, made[0]
    assert depth == 50_000


@given(seed=st.integers(), draws=st.lists(st.integers(0, 3), max_size=20))
def test_draws_and_their_copies_are_those_of_the_standard_library(seed, draws):
    ours = {0: Draws(seed)}
    theirs = {0: random.Random(seed)}
    for i, which in enumerate(draws, 1):
        which %= len(ours)
        ours[len(ours)] = ours[which].copy()
        theirs[len(theirs)] = copy.deepcopy(theirs[which])
        assert ours[which].randint(1, 10**9) == theirs[which].randint(1, 10**9)
        assert ours[i].uniform(-10, 40) == theirs[i].uniform(-10, 40)


def test_draws_are_written_by_what_comes_next():
    one, other = Draws(5), Draws(5)
    assert repr(one) == repr(other) == repr(copy.deepcopy(one))
    one.randint(1, 2)
    assert repr(one) != repr(other)
    with pytest.raises(TypeError):
        Draws([])


def test_literals_leave_only_as_copies():
    source = {"A": [1, {"b": 2}]}
    literals = Literals(source)
    literals["A"][1]["b"] = 3
    assert source == {"A": [1, {"b": 2}]}
    assert copy.deepcopy(literals) is literals
    with pytest.raises(KeyError):
        Literals(None)["A"]
