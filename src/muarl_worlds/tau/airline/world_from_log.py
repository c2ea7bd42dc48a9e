"""What an airline's tools show of its records, for worlds put together from logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from muarl.domains.database import Database
from muarl.domains.world_from_log import Observer, Sighting, Tables, merged
from muarl_worlds.tau.airline.domain import airline_database
from muarl_worlds.tau.airline.records import CabinClass

_FLIGHT: dict[str, Any] = {
    "origin": "",
    "destination": "",
    "scheduled_departure_time_est": "00:00:00",
    "scheduled_arrival_time_est": "00:00:00",
    "dates": {},
}
_TIMES = {
    "landed": ("actual_departure_time_est", "actual_arrival_time_est"),
    "delayed": ("estimated_departure_time_est", "estimated_arrival_time_est"),
    "on time": ("estimated_departure_time_est", "estimated_arrival_time_est"),
    "flying": ("actual_departure_time_est", "estimated_arrival_time_est"),
}
_OF_FLIGHT = (
    "flight_number", "origin", "destination", "scheduled_departure_time_est", "scheduled_arrival_time_est",
)  # fmt: skip
_OF_DAY = ("status", "available_seats", "prices")


def seen(tool: str, arguments: Mapping[str, Any], result: Any) -> Iterable[Sighting]:
    """The users, reservations and flights that a read shows."""
    if tool == "get_user_details" and isinstance(result, Mapping):
        yield "users", str(result.get("user_id", "")), result
    elif tool == "get_reservation_details" and isinstance(result, Mapping):
        yield "reservations", str(result.get("reservation_id", "")), result
    elif tool == "get_flight_status" and isinstance(result, str):
        number = str(arguments.get("flight_number", ""))
        day = {str(arguments.get("date", "")): {"status": result}}
        yield "flights", number, {"flight_number": number, "dates": day}
    elif tool == "search_direct_flight" and isinstance(result, list):
        for offer in result:
            yield from _offer(offer, str(arguments.get("date", "")))
    elif tool == "search_onestop_flight" and isinstance(result, list):
        for pair in result:
            for offer in pair if isinstance(pair, list) else ():
                yield from _offer(offer, str(arguments.get("date", "")))


def _offer(offer: Any, date: str) -> Iterable[Sighting]:
    if isinstance(offer, Mapping) and isinstance(offer.get("flight_number"), str):
        day = {k: offer[k] for k in _OF_DAY if k in offer}
        flight = {k: offer[k] for k in _OF_FLIGHT if k in offer}
        yield "flights", offer["flight_number"], {**flight, "dates": {str(offer.get("date") or date): day}}


def implied(tool: str, arguments: Mapping[str, Any], result: Any) -> Iterable[Sighting]:
    """Nothing: an airline's reads show all that its writes need."""
    return ()


def complete(tables: Tables) -> Database:
    """An airline's database of what was seen."""
    flights = {}
    for number, flight in tables["flights"].items():
        whole = merged(flight, _FLIGHT)
        whole["dates"] = {date: _day(day) for date, day in whole["dates"].items()}
        flights[number] = whole
    return airline_database({"flights": flights, "users": tables["users"], "reservations": tables["reservations"]})


def _day(day: Mapping[str, Any]) -> dict[str, Any]:
    """A day of which only the status may be known."""
    if day["status"] == "available":
        nothing = dict.fromkeys(get_args(CabinClass), 0)
        return {**day, "available_seats": day.get("available_seats") or nothing, "prices": day.get("prices") or nothing}
    return {**dict.fromkeys(_TIMES.get(str(day["status"]), ()), ""), **day}


OBSERVER = Observer(("flights", "users", "reservations"), seen, implied, complete)
