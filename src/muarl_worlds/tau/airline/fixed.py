"""What "fixed" semantics fix in TAU2's airline: checks that TAU2 lacks, and search over midnight.

TAU2 lets a booking name one gift card or certificate twice, or one flight twice beyond its last seat, takes negative
amounts and baggage counts and empty lists, cancels and changes what is cancelled already, keeps the seats of cancelled
and changed flights taken, and finds no connection past midnight on the first eight days of May and outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date as Day
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from muarl.domains.schema import Check, compile_check
from muarl_worlds.tau.airline.records import FlightInfo, Passenger, Payment


def _check_of(model: type[BaseModel]) -> Check:
    return compile_check(model.model_json_schema(), {})


_CHECKS: Mapping[type[BaseModel], Check] = {m: _check_of(m) for m in (FlightInfo, Passenger, Payment)}
_NAMED_BY: Mapping[type[BaseModel], tuple[str, ...]] = {FlightInfo: ("flight_number", "date"), Payment: ("payment_id",)}


def objects(model: type[BaseModel], values: Iterable[Any], name: str) -> list[Any]:
    """A list argument's items as objects. ValueError if one is malformed or named twice, or if there is none."""
    found: list[Any] = []
    seen: set[tuple[Any, ...]] = set()
    for i, value in enumerate(values):
        item = value
        if not isinstance(value, model):
            problem = _CHECKS[model](value, f"{name}[{i}]")
            if problem is not None:
                raise ValueError(problem)
            item = model(**value)
        key = tuple(getattr(item, field) for field in _NAMED_BY.get(model, ()))
        if key and key in seen:
            raise ValueError(f"argument '{name}[{i}]' names {' on '.join(key)} again.")
        seen.add(key)
        found.append(item)
    if not found:
        raise ValueError(f"argument '{name}' must not be empty.")
    return found


def refuse_negative(**amounts: float) -> None:
    """ValueError if an argument is below 0."""
    for name, amount in amounts.items():
        if amount < 0:
            raise ValueError(f"argument '{name}' must be at least 0, not {amount}.")


def check_baggages(total: int, nonfree: int) -> None:
    """ValueError if a count is negative, or if more bags are paid for than there are."""
    refuse_negative(total_baggages=total, nonfree_baggages=nonfree)
    if nonfree > total:
        raise ValueError(f"argument 'nonfree_baggages' must be at most total_baggages ({total}), not {nonfree}.")


def refuse_cancelled(reservation: Mapping[str, Any]) -> None:
    """ValueError if the reservation is cancelled."""
    if reservation["status"] == "cancelled":
        raise ValueError(f"Reservation {reservation['reservation_id']} is cancelled")


def next_departure(date: str, arrival: str) -> tuple[str, str]:
    """The date of an arrival and its time on that day: ("2024-05-02", "01:30:00") for 2024-05-01 and "01:30:00+1"."""
    time, _, days = arrival.partition("+")
    return (Day.fromisoformat(date) + timedelta(int(days))).isoformat() if days else date, time
