"""Who lives in generated worlds: names, places, ways to pay, and how an LLM is told to play somebody.

All of it is our own. The lists are ordered: a small world uses the front of each list, so that a tiny model's tokenizer
can hold every word and id of a tiny world as one token (see recipes/tiny.py).
"""

from __future__ import annotations

import random
from collections.abc import Mapping

FIRST_NAMES = (
    "Mia", "Noor", "Ivan", "Lena", "Omar", "Rosa", "Kofi", "Anna", "Hugo", "Yara", "Theo", "Nina", "Emil", "Zoe",
    "Marc", "Iris", "Paul", "Dina", "Otto", "Vera", "Luca", "Sara", "Adam", "Jana", "Igor", "Tara", "Finn", "Ruth",
    "Amir", "Cleo",
)  # fmt: skip
LAST_NAMES = (
    "Berg", "Okoro", "Silva", "Novak", "Haas", "Mori", "Diaz", "Lund", "Khan", "Weiss", "Costa", "Ito", "Meyer",
    "Popov", "Reyes", "Stone", "Blanc", "Nagy", "Ferri", "Osman", "Quinn", "Rossi", "Sato", "Tran", "Urban",
    "Vogel", "Wolf", "Young", "Zhou", "Adler",
)  # fmt: skip
STREETS = (
    "12 Elm Street", "7 Canal Road", "88 Mill Lane", "3 Harbor View", "41 Orchard Way", "19 Station Road",
    "56 Garden Row", "27 Bridge Street", "64 Hill Crescent", "5 Market Square", "93 Forest Drive", "31 Lake Avenue",
    "72 Church Walk", "14 Quarry Road", "48 Meadow Close", "66 Tower Street",
)  # fmt: skip
UNITS = ("Suite 1", "Suite 2", "Suite 3", "Suite 4", "Apt 5", "Apt 6", "Apt 7", "Apt 8")
CITIES = (
    ("Boston", "MA"), ("Denver", "CO"), ("Austin", "TX"), ("Seattle", "WA"), ("Chicago", "IL"), ("Phoenix", "AZ"),
    ("Portland", "OR"), ("Miami", "FL"), ("Atlanta", "GA"), ("Detroit", "MI"), ("Nashville", "TN"), ("Omaha", "NE"),
)  # fmt: skip
CARD_BRANDS = ("visa", "mastercard")

EXTRA_SYLLABLES = ("ba", "do", "ki", "lu", "me", "ra", "sen", "tor", "vi", "wen")
"""Worlds above tiny make more surnames from these, so that hundreds of people need not share thirty names."""


def number_pool(prefix: str, count: int, low: int, high: int, label: str) -> tuple[str, ...]:
    """``count`` numbers from ``low`` to below ``high``, sorted, each behind a prefix: the same for the same label."""
    rng = random.Random(f"muarl retail pool {label}")
    return tuple(f"{prefix}{number}" for number in sorted(rng.sample(range(low, high), count)))


ZIPS = number_pool("", 60, 10_000, 99_999, "zips")
"""The label is of the first domain that had them: another would give other numbers."""

PERSONA_TEXT: Mapping[str, str] = {
    "terse": "You answer in as few words as possible.",
    "chatty": "You are friendly and talk a lot, but you stay on the subject.",
    "confused": "You are unsure about details and need to be asked for them one by one.",
    "impatient": "You are in a hurry and want this done quickly.",
}
"""By persona, what a scenario tells the LLM that plays it."""
