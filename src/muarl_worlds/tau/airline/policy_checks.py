"""TAU2's airline policy as far as it can be computed: bags, cancellation, compensation.

The generator decides by these functions what is right, the scripted expert what to do. Facts: TAU2's airline policy.
"""

from __future__ import annotations

from collections.abc import Collection

BAG_FEE = 50
INSURANCE_FEE = 30
"""Dollars for every bag that is not free, and for every passenger's insurance."""
RECENT = "2024-05-14T15:00:00"
"""Bookings from this moment on can be cancelled for any reason: 24 hours before the policy's present."""
GONE = frozenset({"landed", "flying"})
"""A flight's status once it has left."""

_FREE = {"basic_economy": 0, "economy": 1, "business": 2}
_MORE = {"regular": 0, "silver": 1, "gold": 2}


def free_bags(membership: str, cabin: str, passengers: int) -> int:
    """How many checked bags a reservation includes, by the membership of who booked it."""
    return (_FREE[cabin] + _MORE[membership]) * passengers


def paid_bags(total: int, membership: str, cabin: str, passengers: int) -> int:
    """How many of a reservation's bags must be paid for."""
    return max(0, total - free_bags(membership, cabin, passengers))


def may_cancel(cabin: str, insured: bool, recent: bool, reason: str, statuses: Collection[str]) -> bool:
    """Whether a reservation of which nothing was flown may be cancelled.

    ``reason``: one of catalogue.REASONS, as the user gives it. ``statuses``: of the flights, as far as looked up; the
    user's word that the airline cancelled one is not enough.
    """
    covered = insured and reason in ("health", "weather")
    return recent or cabin == "business" or covered or "cancelled" in statuses


def compensation(membership: str, cabin: str, insured: bool, passengers: int) -> int:
    """The certificate due for a flight that the airline cancelled, in dollars; 0 if none is due."""
    due = membership != "regular" or insured or cabin == "business"
    return 100 * passengers if due else 0
