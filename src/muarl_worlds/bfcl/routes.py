"""TravelAPI's facts and what follows from them alone: fares, exchange rates, who may travel (BFCL travel_booking)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from muarl_worlds.bfcl.parts import facts

_FACTS = facts("travel")

AIRPORTS: tuple[str, ...] = tuple(_FACTS["airports"])
"""The codes of all airports."""

NEAREST: Mapping[str, str] = _FACTS["nearest"]
"""The airport of each city."""

ROUTES: Mapping[tuple[str, str], int] = {(a, b): cost for a, b, cost in _FACTS["routes"]}
"""What a flight between two airports costs at the least, in dollars."""

_RATES: Mapping[tuple[str, str], float] = {(a, b): rate for a, b, rate in _FACTS["rates"]}
_FACTORS = {"economy": 1, "business": 2, "first": 5}
_CLASSES = frozenset(_FACTORS)
_CLASSES_SHOWN = "{'first', 'business', 'economy'}"
"""Upstream writes a set, whose order its hash seed decides; this is that of PYTHONHASHSEED=0."""
_LONGEST = 100_000
"""How long a text or list may get that is given as a sum of money, which Python repeats instead of multiplying."""


def fare(travel_from: Any, travel_to: Any, travel_date: Any, travel_class: Any) -> tuple[int, int]:
    """A route's cost in dollars and what class and date multiply it with. ValueError if there is no such flight."""
    base = ROUTES.get((travel_from, travel_to))
    if base is None:
        raise ValueError("No available route for the given airports.")
    if not isinstance(travel_class, str) or travel_class not in _FACTORS:
        raise ValueError("Invalid travel class. Options are: economy, business, first.")
    digits = sum([int(char) for char in travel_date if char.isdigit()])
    return base, _FACTORS[travel_class] * (2 if digits % 2 == 0 else 1)


def booking_cost(travel_from: Any, travel_to: Any, travel_date: Any, travel_class: Any) -> tuple[str | None, float]:
    """Why there is no such flight to book, or None, and what it costs, in dollars."""
    if travel_from not in AIRPORTS:
        return f"Invalid departure airport code: {travel_from}", 0
    if travel_to not in AIRPORTS:
        return f"Invalid destination airport code: {travel_to}", 0
    try:
        datetime.strptime(travel_date, "%Y-%m-%d")
    except ValueError:
        return "Invalid date format. Use YYYY-MM-DD.", 0
    if travel_class not in _CLASSES:
        return f"Invalid travel class. Must be one of {_CLASSES_SHOWN}", 0
    try:
        base, factor = fare(travel_from, travel_to, travel_date, travel_class)
    except ValueError as error:
        return str(error), 0
    return None, float(base * factor)


def exchanged(base: Any, target: Any, value: Any) -> tuple[Any, bool]:
    """Money in another currency, and whether it was multiplied (and not rounded). ValueError for an unknown pair."""
    if isinstance(base, str) and isinstance(target, str):
        rate = _RATES.get((base, target))
        if rate is not None:
            if isinstance(value, (str, bytes, list, tuple)) and len(value) * rate > _LONGEST:
                raise ValueError("The value to convert must be a number.")
            return value * rate, True
        rate = _RATES.get((target, base))
        if rate is not None:
            return round(value / rate, 2), False
    raise ValueError("No available exchange rate for the given currencies.")


def unverified(known: tuple[Any, Any], given: tuple[Any, Any], date_of_birth: Any, passport_number: Any) -> str | None:
    """Why a traveller is not verified, or None. ``known``, ``given``: first and last names. It depends on the day."""
    if known[0] != given[0] or known[1] != given[1]:
        return (
            f"Cannot book flight information for another user.Expected {known[0]} {known[1]}, got {given[0]} {given[1]}"
        )
    try:
        born = datetime.strptime(date_of_birth, "%Y-%m-%d")
    except ValueError:
        return "Invalid date of birth format. Please use YYYY-MM-DD."
    today = datetime.today()
    if today.year - born.year - ((today.month, today.day) < (born.month, born.day)) < 18:
        return "Traveler must be at least 18 years old."
    if not passport_number.startswith("US"):
        return "Passport must be issued by the United States."
    return None
