"""The airline domain for generated networks: a size's tools and policy, and the tiny world's compact observations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from muarl.domains.airline import generator, rules, words
from muarl.domains.airline.domain import Airline
from muarl.domains.airline.expert import AirlineExpert
from muarl.domains.airline.network import SIZES
from muarl.domains.airline.observed import OBSERVER
from muarl.domains.airline.phrases import say_person
from muarl.domains.generated import Generated

TINY_TOOLS = (
    "cancel_reservation", "get_flight_status", "get_reservation_details", "get_user_details", "search_direct_flight",
    "send_certificate", "transfer_to_human_agents", "update_reservation_baggages", "update_reservation_flights",
    "update_reservation_passengers",
)  # fmt: skip


@lru_cache(maxsize=8)
def generated_airline(size: str = "tiny") -> Airline:
    """The domain that tasks of ``generator`` run in. Tiny: ten tools, a compact policy and compact observations.

    What a tool takes and does to the database is the same at every size. ValueError for an unknown size.
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
    folder = Path(__file__).parent
    if size == "tiny":
        policy = (folder / "policy_compact.md").read_text(encoding="utf-8").strip()
        return Airline(database={}, policy=policy, tools=TINY_TOOLS, render=compact, semantics="fixed")
    return Airline(database={}, policy=(folder / "policy.md").read_text(encoding="utf-8"), semantics="fixed")


def compact(tool_name: str, value: Any) -> str:
    """A tool's result in a few words. A thing's name stands right before its id, day or price: so a tiny model can
    learn to copy them."""
    if tool_name == "search_direct_flight":
        return "\n".join(_offer(o) for o in value) or "none"
    if tool_name == "send_certificate":
        return "certificate sent"
    if not isinstance(value, Mapping):
        return str(value)
    if tool_name == "get_user_details":
        methods = ", ".join(f"{m['source'].replace('_', ' ')} {m['id']}" for m in value["payment_methods"].values())
        return f"{value['membership']} member, {methods}, reservations {', '.join(value['reservations'])}"
    if tool_name == "get_reservation_details":
        return _reservation(value)
    return f"{value['reservation_id']} {value['status'] or 'changed'}"


def _offer(offer: Mapping[str, Any]) -> str:
    cabins = [
        f"in {cabin} at ${offer['prices'][cabin]}" if seats else f"in {cabin} sold out"
        for cabin, seats in offer["available_seats"].items()
    ]
    return f"flight {offer['flight_number']} {', '.join(cabins)}"


def _reservation(value: Mapping[str, Any]) -> str:
    details = [
        f"cabin {value['cabin']}",
        f"{value['total_baggages']} bags with {value['nonfree_baggages']} paid",
        "insured" if value["insurance"] == "yes" else "not insured",
        "booked within 24 hours" if value["created_at"] >= rules.RECENT else "booked earlier",
        *(["cancelled"] if value["status"] else []),
    ]
    return "\n".join(
        [
            f"{value['reservation_id']} origin {value['origin']} destination {value['destination']}",
            ", ".join(details),
            *(f"flight {g['flight_number']} on {g['date']} at ${g['price']}" for g in value["flights"]),
            *(f"passenger {say_person(p)}" for p in value["passengers"]),
            *([f"note {value['note']}"] if "note" in value else []),  # red-team tasks plant one
        ]
    )


GENERATED = Generated(
    name="airline-generated",
    sizes=tuple(SIZES),
    domain=generated_airline,
    iter_tasks=generator.iter_tasks,
    expert=AirlineExpert,
    entities=words.entities,
    phrases=words.phrases,
    observer=OBSERVER,
)
