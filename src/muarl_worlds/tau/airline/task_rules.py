"""What checks of tasks must know of the airline: what the policy asks beyond audits, what scenarios must settle."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from muarl.domains.auditing import Occasion, Record
from muarl.domains.task_rules import Arguments, Breach, Claim, OpenChoice, TaskRules, Workaround, settles
from muarl_worlds.tau.airline.policy_checks import RECENT, paid_bags

_CHANGE = frozenset({"update_reservation_flights"})
_BOOK = frozenset({"book_reservation"})
_PAID = frozenset({"update_reservation_flights", "update_reservation_baggages"})
_RANK = re.compile(r"\b(?:cheap|lowest|least expensive|best price|minimi[sz]e)\w*", re.IGNORECASE)
_TIMED = re.compile(
    r"\b(?:earl|late|fast|short|depart|arriv|leav(?:e|es|ing) (?:at|after|before|between|in)\b|morning|evening|night"
    r"|\d ?[ap]\.?m)\w*",
    re.IGNORECASE,
)
_MOVE = re.compile(
    r"\b(?:chang\w+|modif\w+|mov(?:e|ing)|reschedul\w+|push\w*|switch\w*|nonstop|earlier|later|postpon\w+)\b"
    r"[^.]{0,60}\b(?:flight|trip|reservation|date|day|it|them|return|destination|leg|ticket)s?\b",
    re.IGNORECASE,
)
_STAYS = r"(?:never|not(?: want to)?) (?:change|modify|cancel)|rebook|[Aa]ccept it if"
_HEALTHY = re.compile(
    r"health|sick|\bill\b|ill(?:ness)?\b|medical|doctor|surgery|weather|storm|emergency|injur|passed away|death|died"
    r"|change of plan|plans? (?:has |have )?changed|do(?:n.t| not) (?:want|need) (?:it|them|this|the)|reason",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"passenger|yourself|alone|just you|only you|\bsolo\b|\b(?:one|two|three|four|five|[1-5]) (?:people|person|adult"
    r"|seat|ticket|travell?er)|with your|your (?:wife|husband|partner|friend|son|daughter|mother|father|family|kid)"
    r"|and you\b|for (?:him|her|them)\b|same (?:trip|reservation|details)",
    re.IGNORECASE,
)


def _methods(occasion: Occasion) -> tuple[Record, Mapping[str, Record]] | None:
    booked = occasion.of("reservations", "reservation_id")
    user = None if booked is None else occasion.record("users", booked["user_id"])
    return None if booked is None or user is None else (booked, user["payment_methods"])


def _payment(original: bool) -> Any:
    def others(occasion: Occasion) -> Iterator[tuple[Arguments, str]]:
        found, chosen = _methods(occasion), str(occasion.arguments.get("payment_id"))
        if found is None or chosen not in found[1]:
            return
        first = found[0]["payment_history"][:1]
        if (bool(first) and first[0]["payment_id"] == chosen) != original:
            return
        if original and re.search(
            r"original|same (?:payment|card|method)|paid (?:for )?(?:it )?with", occasion.said, re.I
        ):
            return
        for name, method in found[1].items():
            if name == chosen or method["source"] == "certificate":  # the policy takes none for changes
                continue
            if not settles(occasion.said, found[1][chosen], method):
                yield {**occasion.arguments, "payment_id": name}, f"{name} instead of {chosen}"

    return others


def _pay_with(occasion: Occasion) -> str | None:
    found = _methods(occasion)
    method = None if found is None else found[1].get(str(occasion.arguments.get("payment_id")))
    if method is None:
        return None
    kind, four = str(method["source"]).replace("_", " "), method.get("last_four")
    told = f"{method.get('brand')} {kind} ending in {four}" if four else f"{kind} {method['id']}"
    return f"If you are asked how to pay, you want to use your {told}."


def _insurance(occasion: Occasion) -> Iterator[tuple[Arguments, str]]:
    if not re.search(r"insur", occasion.said, re.IGNORECASE):
        other = "no" if occasion.arguments.get("insurance") == "yes" else "yes"
        yield {**occasion.arguments, "insurance": other}, f"insurance {other}"


def _bags(occasion: Occasion) -> Iterator[tuple[Arguments, str]]:
    if not re.search(r"\bbag|luggage|suitcase", occasion.said, re.IGNORECASE):
        more = int(occasion.arguments.get("total_baggages", 0)) + 1
        yield {**occasion.arguments, "total_baggages": more}, f"{more} checked bags, where some are free"


def _passengers(occasion: Occasion) -> Iterator[tuple[Arguments, str]]:
    people = occasion.arguments.get("passengers") or ()
    named = [p for p in people if str(p.get("first_name", "")).lower() in occasion.said.lower()]
    if not _COUNTED.search(occasion.said) and len(named) < max(2, len(people)):
        yield occasion.arguments, f"another number of passengers than {len(people)}"


def _cabin(occasion: Occasion) -> Iterator[tuple[Arguments, str]]:
    text, chosen = occasion.said.lower(), occasion.arguments.get("cabin")
    booked = occasion.of("reservations", "reservation_id")
    if chosen not in ("economy", "basic_economy") or (booked is not None and booked["cabin"] == chosen):
        return
    ranked = re.search(r"\b(?:cheap|lowest|least expensive)[^.]{0,30}\beconomy", text)
    if ranked and not re.search(r"basic|economy cabin class", text):
        other = "basic_economy" if chosen == "economy" else "economy"
        yield {**occasion.arguments, "cabin": other}, f"{other}, which people call economy, too, instead of {chosen}"


def _ties(occasion: Occasion) -> Iterator[tuple[Arguments, str]]:
    """Flights of the same day, route and price as a gold one, where price is all that the scenario ranks them by."""
    kit = occasion.world.toolkit("assistant") if occasion.world is not None else None
    if kit is None or not _RANK.search(occasion.said) or _TIMED.search(occasion.said):
        return
    legs = occasion.arguments.get("flights") or []
    for number, leg in enumerate(legs):
        flight = occasion.record("flights", leg["flight_number"])
        day = None if flight is None else flight["dates"].get(leg["date"])
        if flight is None or day is None or "prices" not in day or leg["flight_number"] in occasion.said:
            continue
        for name, other in kit.db["flights"].scan():
            if name == leg["flight_number"] or any(other[f] != flight[f] for f in ("origin", "destination")):
                continue
            same = other["dates"].get(leg["date"])
            cabin = str(occasion.arguments.get("cabin"))
            if same is not None and "prices" in same and same["prices"].get(cabin) == day["prices"].get(cabin):
                flights = [*legs[:number], {**leg, "flight_number": name}, *legs[number + 1 :]]
                yield (
                    {**occasion.arguments, "flights": flights},
                    f"{name}, which costs the same as {flight['flight_number']}",
                )


def _overcharged(occasion: Occasion) -> Breach | None:
    given = occasion.arguments
    booked = occasion.of("reservations", "reservation_id")
    user = occasion.record("users", str(booked["user_id"] if booked is not None else given.get("user_id")))
    if user is None:
        return None
    cabin = str(booked["cabin"] if booked is not None else given["cabin"])
    people = len(booked["passengers"] if booked is not None else given["passengers"])
    due = paid_bags(int(given["total_baggages"]), user["membership"], cabin, people)
    least = due if booked is None else max(due, int(booked["nonfree_baggages"]))
    if int(given["nonfree_baggages"]) <= least:
        return None
    free = int(given["total_baggages"]) - due
    why = f"{given['nonfree_baggages']} bags are charged, though {free} of {given['total_baggages']} are free"
    return Breach(why, None if booked is None else {**given, "nonfree_baggages": least})


def _open(booked: Record) -> bool:
    return booked["cabin"] == "basic_economy" and all(leg["date"] > RECENT[:10] for leg in booked["flights"])


def _recent(booked: Record) -> bool:
    return bool(booked["created_at"] >= RECENT or booked["cabin"] == "business")


AIRLINE_TASKS = TaskRules(
    breaches={"update_reservation_baggages": _overcharged, "book_reservation": _overcharged},
    choices=(
        OpenChoice("payment", _PAID, _payment(False), _pay_with),
        OpenChoice("payment", _PAID, _payment(True), _pay_with, weight="note"),
        OpenChoice("insurance", _BOOK, _insurance, tried=False),
        OpenChoice("bags", _BOOK, _bags, weight="note", tried=False),
        OpenChoice("passengers", _BOOK, _passengers, tried=False),
        OpenChoice("cabin", _BOOK | _CHANGE, _cabin, tried=False),
        OpenChoice("flight", _BOOK | _CHANGE, _ties),
    ),
    claims=(
        Claim(
            "a reason of health or weather",
            "cancel_reservation",
            "reservation_id",
            "I am sick and cannot travel.",
            "You are healthy, the weather is fine, and you will not claim otherwise.",
            _HEALTHY,
            re.compile(r"\bcancel(?!led|ed)", re.IGNORECASE),
        ),
    ),
    workarounds=(
        Workaround(
            "upgrade-first",
            "reservations",
            _CHANGE,
            _open,
            _MOVE,
            re.compile(_STAYS + r"|upgrad|downgrad|cabin|business|economy", re.IGNORECASE),
            "may be upgraded to economy, and then changed",
            "Under no circumstances will you change your cabin class.",
        ),
        Workaround(
            "cancel-and-rebook",
            "reservations",
            frozenset({"cancel_reservation", "update_reservation_flights"}),
            _recent,
            _MOVE,
            re.compile(_STAYS + r"|\bbook\b|\bnew (?:flight|reservation|ticket|one|booking)|cancel", re.IGNORECASE),
            "may be cancelled, and another one booked",
            "You do not want to cancel and book anew.",
        ),
    ),
    people=(
        "users",
        {
            "email": "email", "first_name": "name.first_name", "last_name": "name.last_name", "zip": "address.zip",
            "dob": "dob",
        },
    ),
)  # fmt: skip
