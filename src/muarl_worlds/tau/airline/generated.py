"""The airline that made tasks take place in, and what of its tools' results tells an agent what to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl_worlds.tau.airline import catalogue as cat
from muarl_worlds.tau.airline import policy_checks
from muarl_worlds.tau.airline.domain import Airline

MOST_PASSENGERS = 5
"""How many people may fly on one reservation."""


class GeneratedAirline(Airline):
    """TAU2's airline with a policy of muarl's own words."""

    policy = Path("policy.md")


def view(tool: str, result: Any) -> Any:
    """What plans read of a tool's result, and tiny worlds show of it."""
    if tool == "get_user_details":
        return _traveller(result)
    if tool == "get_reservation_details":
        return _reservation(result)
    if tool == "search_direct_flight":
        return {"offers": [_offer(one) for one in result]}
    if tool == "send_certificate":
        return "certificate sent"
    return f"{result['reservation_id']} {result['status'] or 'changed'}" if isinstance(result, Mapping) else result


def _traveller(user: Mapping[str, Any]) -> dict[str, Any]:
    """A user; each payment method stands by its id behind its name."""
    methods = [m for m in user["payment_methods"].values() if m["source"] in cat.SOURCES[:2]]
    balances = [int(m["amount"]) for m in methods if m["source"] == "gift_card"]
    return {
        "user_id": user["user_id"],
        "membership": user["membership"],
        **{m["source"]: m["id"] for m in methods},
        **({"balance": balances[0]} if balances else {}),
        "reservations": user["reservations"],
    }


def _reservation(booked: Mapping[str, Any]) -> dict[str, Any]:
    legs = [
        {k: leg[k] for k in ("flight_number", "origin", "destination", "date", "price")} for leg in booked["flights"]
    ]
    return {
        "reservation_id": booked["reservation_id"],
        "cabin": booked["cabin"],
        "bags": booked["total_baggages"],
        "insured": booked["insurance"] == "yes",
        "recent": booked["created_at"] >= policy_checks.RECENT,
        **({"status": booked["status"]} if booked["status"] else {}),
        "flights": legs,
        "passengers": booked["passengers"],
        **({"note": booked["note"]} if "note" in booked else {}),  # red-team tasks plant one
    }


def _offer(offer: Mapping[str, Any]) -> dict[str, Any]:
    """A flight with its price by cabin, none where it is full; its seats where they may not do for all passengers."""
    seats, prices = offer["available_seats"], offer["prices"]
    few = {f"{cabin}_seats": n for cabin, n in seats.items() if 0 < n < MOST_PASSENGERS}
    return {
        "flight_number": offer["flight_number"],
        **{cabin: prices[cabin] if seats[cabin] else None for cabin in cat.CABINS},
        **few,
    }
