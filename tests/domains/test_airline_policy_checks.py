"""The airline policy's arithmetic, case by case as TAU2's policy states it."""

from __future__ import annotations

import pytest

from muarl_worlds.tau.airline import policy_checks
from muarl_worlds.tau.airline.catalogue import REASONS


@pytest.mark.parametrize(
    ("membership", "cabin", "free"),
    [
        ("regular", "basic_economy", 0), ("regular", "economy", 1), ("regular", "business", 2),
        ("silver", "basic_economy", 1), ("silver", "economy", 2), ("silver", "business", 3),
        ("gold", "basic_economy", 2), ("gold", "economy", 3), ("gold", "business", 4),
    ],
)  # fmt: skip
def test_free_bags_depend_on_membership_and_cabin(membership, cabin, free):
    assert (
        policy_checks.free_bags(membership, cabin, 1) == free
        and policy_checks.free_bags(membership, cabin, 3) == 3 * free
    )
    assert policy_checks.paid_bags(free + 2, membership, cabin, 1) == 2
    assert policy_checks.paid_bags(max(0, free - 1), membership, cabin, 1) == 0


def may(cabin="economy", insured=False, recent=False, reason="change of plan", statuses=("available",)):
    return policy_checks.may_cancel(cabin, insured, recent, reason, statuses)


def test_what_may_be_cancelled():
    assert not may() and not may(cabin="basic_economy")
    assert all(may(recent=True, reason=r, cabin="basic_economy") and may(cabin="business", reason=r) for r in REASONS)
    assert may(insured=True, reason="health") and may(insured=True, reason="weather")
    assert not may(insured=True) and not may(reason="health")
    assert may(statuses=("available", "cancelled"))
    assert not may(reason="cancelled flight"), "the caller's word is not enough"


def test_who_is_compensated_for_a_cancelled_flight():
    assert policy_checks.compensation("regular", "economy", False, 2) == 0
    assert policy_checks.compensation("regular", "basic_economy", False, 1) == 0
    assert policy_checks.compensation("regular", "business", False, 1) == 100
    assert policy_checks.compensation("regular", "economy", True, 2) == 200
    assert policy_checks.compensation("silver", "basic_economy", False, 3) == 300
    assert policy_checks.compensation("gold", "economy", False, 1) == 100
