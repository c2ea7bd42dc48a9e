"""What generated carriers are made of: ids, numbers, plans, phones, and what users talk about.

People and places: ``domains.people``. A tiny world takes everything from the fixed pools here, so that a
tiny model's tokenizer can hold every id, name, number and price as one token (recipes/tiny.py). No id and no number is
one of TAU2's own: those stand in the blocks from 1001 on and in the exchange 555-123.
"""

from __future__ import annotations

import random

from muarl_worlds.tau.people import CITIES, EXTRA_SYLLABLES, FIRST_NAMES, LAST_NAMES, STREETS, ZIPS

__all__ = [
    "ABROAD", "AMOUNTS", "BILL_IDS", "BIRTHDAYS", "CITIES", "CUSTOMER_IDS", "EXTRA_SYLLABLES", "FIRST_NAMES",
    "LAST_NAMES", "LINE_IDS", "MODELS", "MOST_REFUEL", "PHONES", "PLANS", "REASONS", "STREETS", "TOO_MUCH", "TOPICS",
    "USED", "ZIPS",
]  # fmt: skip


def _sample(count: int, low: int, high: int, label: str) -> tuple[int, ...]:
    return tuple(sorted(random.Random(f"muarl telecom pool {label}").sample(range(low, high), count)))


CUSTOMER_IDS = tuple(f"C{n}" for n in _sample(60, 2000, 9999, "customers"))
LINE_IDS = tuple(f"L{n}" for n in _sample(80, 2000, 9999, "lines"))
BILL_IDS = tuple(f"B{n}" for n in _sample(100, 2000, 9999, "bills"))
PHONES = tuple(f"555-{n // 10_000}-{n % 10_000:04d}" for n in _sample(100, 2_010_000, 9_990_000, "phones"))
BIRTHDAYS = tuple(
    f"{year}-{month:02d}-{day:02d}"
    for year, month, day in zip(
        _sample(40, 1950, 2006, "years"),
        random.Random("muarl telecom months").choices(range(1, 13), k=40),
        random.Random("muarl telecom days").choices(range(1, 29), k=40),
        strict=True,
    )
)

PLANS = (
    ("P2011", "Pebble", 3.0, 25.0, 4.0),
    ("P2024", "Brook", 6.0, 38.0, 3.5),
    ("P2037", "River", 12.0, 52.0, 2.5),
    ("P2049", "Lake", 20.0, 67.0, 2.0),
    ("P2058", "Ocean", 40.0, 83.0, 1.5),
    ("P2063", "Harbor", 15.0, 59.0, 3.0),
    ("P2076", "Delta", 9.0, 45.0, 2.75),
    ("P2082", "Summit", 30.0, 74.0, 1.25),
)
"""Id, name, GB a month, dollars a month, dollars for a further GB."""

USED = tuple(n / 10 for n in _sample(20, 4, 29, "used"))
"""GB used in a month by those who have data left: less than any plan gives."""
MOST_REFUEL = 2.0
"""GB that may be added to a line (a fact of TAU2's policy)."""
AMOUNTS = (0.5, 1.0, 1.5, 2.0)
TOO_MUCH = (3.5, 4.0, 5.0, 8.0)
MODELS = ("Pocket One", "Pocket Two", "Slate Mini", "Slate Max", "Nova 3", "Nova 4")
REASONS = ("lost phone", "long trip", "not needed now")
"""Why people have a line suspended."""
ABROAD = ("France", "Japan", "Peru", "Kenya")
TOPICS = ("a price match", "a job in your store", "a broken screen", "a new number")
"""What no tool can help with."""
