"""Sums that do not depend on the interpreter."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muarl_worlds.tau.calculator import compensated_sum

NUMBERS = st.lists(st.one_of(st.floats(), st.integers(-(10**20), 10**20), st.booleans()), max_size=20)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sum is compensated from Python 3.12 on")
@given(NUMBERS)
@example([1, 0.1, 0.2, 1e100, -1e100])
def test_it_is_the_sum_of_newer_pythons(values):
    ours, theirs = compensated_sum(values), sum(values)
    assert type(ours) is type(theirs)
    assert ours == theirs or (math.isnan(ours) and math.isnan(theirs))


@pytest.mark.parametrize(
    ("values", "total"),
    [([], 0), ([2, True], 3), ([0.1] * 10, 1.0), ([1, 1e100, 1.0, -1e100], 1.0), ([1e308, 1e308, -1e308], math.inf)],
)
def test_hand_computed(values, total):
    assert compensated_sum(values) == total
    assert type(compensated_sum(values)) is type(total)
