"""What generated airlines are made of: ids, days, prices, cabins, and what users talk about.

People and places: ``domains.people``. A tiny world takes everything from the fixed pools here, so that a
tiny model's tokenizer can hold every id, name, day and price as one token (recipes/tiny.py).
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from muarl_worlds.tau.airline.lookups import AIRPORTS
from muarl_worlds.tau.airline.tools import NOW
from muarl_worlds.tau.people import CARD_BRANDS, CITIES, EXTRA_SYLLABLES, FIRST_NAMES, LAST_NAMES, STREETS, UNITS, ZIPS

__all__ = [
    "BIRTHDAYS", "CABINS", "CARD_BRANDS", "CITIES", "CODES", "DAYS", "EXTRA_SYLLABLES", "FIRST_NAMES", "FLIGHTS",
    "FUTURE", "LAST_NAMES", "MEMBERSHIPS", "NUMBERS", "PAST", "PAYMENT_IDS", "PRICES", "REASONS", "RESERVATIONS",
    "SOURCES", "STREETS", "TODAY", "TOPICS", "UNITS", "ZIPS", "reservation_id",
]  # fmt: skip

TODAY = NOW[:10]
DAYS = tuple(f"2024-05-{day:02d}" for day in range(1, 31))
"""The days that an airline's flights know of, as in TAU2's."""
PAST = DAYS[3:14]
FUTURE = DAYS[16:]
"""Days that are safely over, and safely ahead (today and tomorrow are in neither)."""

CODES = tuple(code for code, _ in AIRPORTS)
CABINS = ("basic_economy", "economy", "business")
MEMBERSHIPS = ("regular", "silver", "gold")
SOURCES = ("credit_card", "gift_card", "certificate")
REASONS = ("change of plan", "health", "weather", "cancelled flight")
"""Why people cancel; insurance covers the second and third, and the last is the airline's own doing."""
TOPICS = ("a lost suitcase", "a job as a pilot", "a pet in the cabin", "a flight for a school class")
"""What no tool can help with."""


def reservation_id(rng: random.Random) -> str:
    """A reservation id: six characters, letters and digits by turns."""
    return "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") + rng.choice("0123456789") for _ in range(3))


def _distinct(count: int, label: str) -> tuple[str, ...]:
    rng = random.Random(f"muarl airline pool {label}")
    found: dict[str, None] = {}
    while len(found) < count:
        found[reservation_id(rng)] = None
    return tuple(found)


def _sample(count: int, low: int, high: int, label: str) -> tuple[int, ...]:
    return tuple(sorted(random.Random(f"muarl airline pool {label}").sample(range(low, high), count)))


RESERVATIONS = _distinct(120, "reservations")
FLIGHTS = tuple(f"HAT{number:03d}" for number in _sample(48, 1, 300, "flights"))
NUMBERS = tuple(str(n) for n in range(1000, 1040))
"""What tiny worlds' user ids end with."""
BIRTHDAYS = tuple(
    f"{year}-{month:02d}-{day:02d}"
    for year, month, day in zip(
        _sample(40, 1950, 2006, "years"),
        random.Random("muarl airline months").choices(range(1, 13), k=40),
        random.Random("muarl airline days").choices(range(1, 29), k=40),
        strict=True,
    )
)
PRICES: Mapping[str, tuple[int, ...]] = {
    "basic_economy": _sample(20, 101, 160, "basic economy prices"),
    "economy": _sample(20, 165, 260, "economy prices"),
    "business": _sample(20, 301, 560, "business prices"),
}
"""Dollars; no price is in two cabins."""
PAYMENT_IDS: Mapping[str, tuple[str, ...]] = {
    source: tuple(f"{source}_{n}" for n in _sample(24, 1_000_000, 9_999_999, source)) for source in SOURCES
}
