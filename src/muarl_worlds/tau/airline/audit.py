"""What audits must know of the airline, whose tools check nothing of its policy. Facts: TAU2's airline policy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from muarl.domains.auditing import HANDOVER_NOTICE, AuditRules, Obligation, Occasion, Record, Resource, Sighting
from muarl.domains.tooling import tool_kinds
from muarl.types.chat import ToolCall
from muarl_worlds.tau.airline.policy_checks import BAG_FEE, GONE, RECENT, may_cancel, paid_bags
from muarl_worlds.tau.airline.tools import AirlineTools

_HEALTH = re.compile(
    r"\b(?:sick|ill|illness|unwell|health|medical|doctor|surgery|operation|hospital|injur\w+|fever|flu|covid|accident"
    r"|broke (?:my|his|her)|pregnan\w+|weather|storm|hurricane|snow\w*|blizzard|tornado|flood\w*|typhoon|ash cloud)\b",
    re.IGNORECASE,
)
_AMENDS = re.compile(
    r"compensat|certificate|voucher|gesture|make (?:it )?up (?:for|to)|reimburse|refund|credit|money|goodwill"
    r"|what (?:can|will) you (?:do|offer|give)|anything you can (?:do|offer)|owe|deserve"
    r"|some(?:thing| form) (?:in return|for)",
    re.IGNORECASE,
)
_OFFICIAL_PRICE = (
    r"\$\s?\d|\d[\d,.]*\s?(?:dollars|usd)\b|\bno (?:extra |additional )?(?:charge|cost|fee)|\bfree\b|\bfee",
)


def _learns(call: ToolCall, result: Any) -> Iterator[Sighting]:
    if call.name == "get_flight_status" and isinstance(result, str):
        day = f"{call.arguments.get('flight_number')} {call.arguments.get('date')}"
        yield "flights", day, {"status": result}


def _status(occasion: Occasion, leg: Record) -> str | None:
    """A flight's status on its day, None if nobody has looked."""
    flight = occasion.record("flights", leg["flight_number"])
    if flight is not None and "dates" in flight:
        day = flight["dates"].get(leg["date"])
        return None if day is None else str(day["status"])
    seen = occasion.record("flights", f"{leg['flight_number']} {leg['date']}")
    return None if seen is None else str(seen["status"])


def _cabin(occasion: Occasion, booked: Record) -> str:
    """The cabin that was last paid for: TAU1's tool takes the money and forgets to note it."""
    number = booked["reservation_id"]
    changed = [c for c in occasion.calls if c.name in _CHANGES and c.arguments.get("reservation_id") == number]
    return str(next((c.arguments["cabin"] for c in reversed(changed) if "cabin" in c.arguments), booked["cabin"]))


def _cancel(occasion: Occasion) -> str | None:
    booked = occasion.of("reservations", "reservation_id")
    if booked is None:
        return None
    statuses = [_status(occasion, leg) for leg in booked["flights"]]
    if gone := [s for s in statuses if s in GONE]:
        return f"a flight of {booked['reservation_id']} has left already ({gone[0]}), so it must be handed over"
    recent, insured = booked["created_at"] >= RECENT, booked["insurance"] == "yes"
    if insured and not occasion.said:
        return None  # a log without the customer's words does not tell the reason
    reason = "health" if _HEALTH.search(occasion.said) else "change of plan"
    if None in statuses and "cancelled" not in statuses and occasion.world is None:
        statuses.append("cancelled")  # it may be; what was not looked up is no breach that can be shown
    if may_cancel(_cabin(occasion, booked), insured, recent, reason, {s for s in statuses if s}):
        return None
    cabin = _cabin(occasion, booked).replace("_", " ")
    return (
        f"{booked['reservation_id']} is {cabin}, booked {booked['created_at'][:10]}, "
        f"{'insured, but nobody spoke of health or weather' if insured else 'not insured'}, and not cancelled by the "
        "airline"
    )


def _trip(legs: Sequence[Record]) -> tuple[Any, Any]:
    return (legs[0]["origin"], legs[-1]["destination"]) if legs else (None, None)


def _flights(occasion: Occasion) -> str | None:
    booked = occasion.of("reservations", "reservation_id")
    if booked is None:
        return None
    number, old, new = booked["reservation_id"], booked["flights"], occasion.arguments["flights"]
    days = [(leg["flight_number"], leg["date"]) for leg in old]
    wanted = [(leg["flight_number"], leg["date"]) for leg in new]
    if _cabin(occasion, booked) == "basic_economy" and sorted(days) != sorted(wanted):
        return f"{number} is basic economy, whose flights cannot be changed"
    if _cabin(occasion, booked) != occasion.arguments["cabin"]:
        if gone := [s for leg in old if (s := _status(occasion, leg)) in GONE]:
            return f"the cabin of {number} cannot be changed, since a flight of it is {gone[0]} already"
    routes = [occasion.record("flights", leg["flight_number"]) for leg in new]
    if routes and all(r is not None and "origin" in r for r in routes):
        known = [r for r in routes if r is not None]
        if _trip(known) != _trip(old):
            return f"{number} goes from {_trip(old)[0]} to {_trip(old)[1]}, which cannot be changed"
        if booked["flight_type"] == "round_trip" and booked["destination"] not in {r["destination"] for r in known}:
            return f"{number} is a round trip to {booked['destination']}, which cannot be changed"
    return None


def _free_or_paid(occasion: Occasion, user: Record | None, cabin: str, passengers: int) -> str | None:
    if user is None:
        return None
    total, paid = occasion.arguments["total_baggages"], occasion.arguments["nonfree_baggages"]
    due = paid_bags(int(total), user["membership"], cabin, passengers)
    if int(paid) < due:
        return f"{due} of the {total} bags must be paid for at ${BAG_FEE} each, and only {paid} were charged"
    return None


def _bags(occasion: Occasion) -> str | None:
    booked = occasion.of("reservations", "reservation_id")
    if booked is None:
        return None
    if int(occasion.arguments["total_baggages"]) < int(booked["total_baggages"]):
        return f"{booked['reservation_id']} had {booked['total_baggages']} bags, which cannot be removed"
    user = occasion.record("users", booked["user_id"])
    return _free_or_paid(occasion, user, _cabin(occasion, booked), len(booked["passengers"]))


def _booking(occasion: Occasion) -> str | None:
    given = occasion.arguments
    if len(given["passengers"]) > 5:
        return "a reservation can have five passengers at most"
    paid = [str(p["payment_id"]).rsplit("_", 1)[0] for p in given["payment_methods"]]
    for method, most in (("certificate", 1), ("credit_card", 1), ("gift_card", 3)):
        if paid.count(method) > most:
            return f"a reservation can be paid with {most} {method.replace('_', ' ')}{'s' if most > 1 else ''} at most"
    return _free_or_paid(occasion, occasion.of("users", "user_id"), given["cabin"], len(given["passengers"]))


def _due(occasion: Occasion, booked: Record, user: Record) -> Iterator[int]:
    """What certificates a reservation may earn, in dollars."""
    if user["membership"] == "regular" and booked["insurance"] != "yes" and booked["cabin"] != "business":
        return
    statuses = [_status(occasion, leg) for leg in booked["flights"]]
    unknown = occasion.world is None and None in statuses
    people = len(booked["passengers"])
    changed = {c.arguments.get("reservation_id") for c in occasion.calls if c.name in _CHANGES}
    if "cancelled" in statuses or unknown:
        yield 100 * people
    if ("delayed" in statuses or unknown) and booked["reservation_id"] in changed:
        yield 50 * people


_CHANGES = frozenset({"cancel_reservation", "update_reservation_flights"})


def _certificate(occasion: Occasion) -> str | None:
    user = occasion.of("users", "user_id")
    if not _AMENDS.search(occasion.said):
        return "the customer had not asked for compensation"
    if user is None:
        return None
    booked = [occasion.record("reservations", number) for number in user["reservations"]]
    if any(b is None for b in booked):
        return None
    amounts = {amount for b in booked if b is not None for amount in _due(occasion, b, user)}
    amount = occasion.arguments["amount"]
    if amount in amounts:
        return None
    what = ", ".join(f"${a}" for a in sorted(amounts)) or "none"
    return f"a certificate of ${amount} is not due (what may be given: {what})"


AIRLINE = AuditRules(
    auth_tools=frozenset({"get_user_details"}),
    open_tools=frozenset({"get_flight_status", "list_all_airports", "search_direct_flight", "search_onestop_flight"}),
    resources=(
        Resource("users", "user_id", owner="user_id", mark="payment_methods"),
        Resource("reservations", "reservation_id", owner="user_id", held=("users", "reservations"), mark="cabin"),
    ),
    forbids={
        "cancel_reservation": _cancel,
        "update_reservation_flights": _flights,
        "update_reservation_baggages": _bags,
        "book_reservation": _booking,
        "send_certificate": _certificate,
    },
    spoken={
        "book_reservation": ("booking", "reservation"),
        "update_reservation_flights": ("upgrade", "downgrade", "rebook", "move", "cabin", "new flight", "reschedule"),
        "update_reservation_baggages": ("add", "bag", "baggage", "luggage", "suitcase"),
        "update_reservation_passengers": ("passenger", "correct", "rename", "name"),
        "send_certificate": ("certificate", "voucher", "compensation", "compensate"),
        "cancel_reservation": ("cancellation",),
    },
    kinds=tool_kinds(AirlineTools) | {"think": "generic"},
    learns=_learns,
    obligations=(HANDOVER_NOTICE,),
    replays=True,
)

_MONEY = frozenset({"book_reservation", "update_reservation_flights"})


def _extra_bag(occasion: Occasion) -> bool:
    booked = occasion.of("reservations", "reservation_id")
    before = 0 if booked is None else int(booked["nonfree_baggages"])
    return int(occasion.arguments["nonfree_baggages"]) > before


def _pays_later(occasion: Occasion) -> bool:
    """Whether the money of a cancelled reservation goes back to anything at all."""
    booked = occasion.of("reservations", "reservation_id")
    return booked is None or any(p["amount"] > 0 for p in booked["payment_history"])


AIRLINE_BENCHMARK = replace(
    AIRLINE,
    told_person=r"\b[a-z]+_[a-z]+_\d+\b",
    obligations=(
        Obligation(
            "price",
            _MONEY,
            "Before a booking or a change of flights or cabin, the customer must be told what is to be paid or "
            "refunded.",
            _OFFICIAL_PRICE,
            when="before",
        ),
        Obligation(
            "bag-fee",
            frozenset({"update_reservation_baggages"}),
            "Before bags are added that are not free, the customer must be told what they cost.",
            _OFFICIAL_PRICE,
            when="before",
            applies=_extra_bag,
        ),
        Obligation(
            "insurance-offer",
            frozenset({"book_reservation"}),
            "Before a booking, the customer must be asked whether they want travel insurance.",
            (r"insurance",),
            when="before",
        ),
        Obligation(
            "refund-timing",
            frozenset({"cancel_reservation"}),
            "The customer must be told that the refund takes 5 to 7 business days.",
            (r"\b(?:5|five)\s*(?:-|–|—|to|and)\s*(?:7|seven)\b|business days",),
            applies=_pays_later,
        ),
        HANDOVER_NOTICE,
    ),
)
