"""Intervals against values worked out by hand."""

from __future__ import annotations

import pytest

from muarl.accounts.intervals import cluster_bootstrap, wilson


def test_wilson_by_hand() -> None:
    # Newcombe 1998, table I: 81/263 and 0/20.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_bootstrap_is_seeded_and_sensible() -> None:
    values = [0.0, 1.0] * 50
    assert cluster_bootstrap(values) == cluster_bootstrap(values)
    low, high = cluster_bootstrap(values)
    assert low == pytest.approx(0.4, abs=0.02) and high == pytest.approx(0.6, abs=0.02)


def test_perfect_scores_are_not_certain() -> None:
    assert cluster_bootstrap([1.0] * 10) == wilson(10, 10)
