"""What the scripted expert reads: observations (JSON or compact) into records, and callers' sentences into slots."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.airline import catalogue as cat
from muarl.domains.airline import rules
from muarl.domains.airline.phrases import cabins_in, dates_in, reservations_in, sources_in

Person = dict[str, str]


@dataclass(frozen=True, slots=True)
class Leg:
    """One flight of a reservation. ``price``: dollars for one passenger."""

    number: str
    origin: str
    destination: str
    date: str
    price: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation as an observation shows it. ``recent``: booked within 24 hours."""

    reservation_id: str
    origin: str
    destination: str
    cabin: str
    bags: int
    insured: bool
    recent: bool
    legs: tuple[Leg, ...]
    passengers: tuple[Person, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A user: membership, payment methods (source to id), gift card balance in dollars if shown, reservations."""

    user_id: str
    membership: str
    payments: Mapping[str, str]
    balance: str
    reservations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """A flight that can be booked: price and seats by cabin. A compact observation leaves out full cabins."""

    number: str
    prices: Mapping[str, int]
    seats: Mapping[str, int]


_PERSON = re.compile(r"first name ([A-Z]\w+),? last name ([A-Z]\w+),? born (\d{4}-\d\d-\d\d)")


def read_people(text: str) -> tuple[Person, ...]:
    """All passengers that a text spells out."""
    return tuple({"first_name": f, "last_name": n, "dob": dob} for f, n, dob in _PERSON.findall(text))


def read_reservation(text: str) -> Reservation:
    """An observation of get_reservation_details; ValueError or KeyError if it is none."""
    if text.startswith("{"):
        data = json.loads(text)
        legs = tuple(
            Leg(g["flight_number"], g["origin"], g["destination"], g["date"], int(g["price"])) for g in data["flights"]
        )
        return Reservation(
            data["reservation_id"],
            data["origin"],
            data["destination"],
            data["cabin"],
            int(data["total_baggages"]),
            data["insurance"] == "yes",
            data["created_at"] >= rules.RECENT,
            legs,
            tuple(data["passengers"]),
        )
    text = text.split("\nnote ")[0]  # what others wrote is no fact
    head = re.match(r"(\w+) origin (\w+) destination (\w+)\ncabin (\w+), (\d+) bags? with \d+ paid, ", text)
    if head is None:
        raise ValueError("this is no reservation")
    legs = tuple(
        Leg(number, head[2], head[3], day, int(price))
        for number, day, price in re.findall(r"flight (\w+) on ([\d-]+) at \$(\d+)", text)
    )
    insured, recent = "not insured" not in text, "booked within 24 hours" in text
    return Reservation(head[1], head[2], head[3], head[4], int(head[5]), insured, recent, legs, read_people(text))


def read_profile(user_id: str, text: str) -> Profile:
    """An observation of get_user_details; ValueError or KeyError if it is none."""
    if text.startswith("{"):
        data = json.loads(text)
        methods = data["payment_methods"].values()
        balance = next((f"{m['amount']:.0f}" for m in methods if m["source"] == "gift_card"), "")
        payments = {m["source"]: m["id"] for m in methods}
        return Profile(data["user_id"], data["membership"], payments, balance, tuple(data["reservations"]))
    head = re.match(r"(\w+) member, ", text)
    if head is None:
        raise ValueError("this is no profile")
    ids = re.findall(r"\b(?:credit_card|gift_card|certificate)_\d+", text)
    payments = {i.rsplit("_", 1)[0]: i for i in ids}
    return Profile(user_id, head[1], payments, "", tuple(reservations_in(text)))


def read_offers(text: str) -> tuple[Offer, ...]:
    """An observation of search_direct_flight."""
    if text.startswith("["):
        return tuple(Offer(o["flight_number"], o["prices"], o["available_seats"]) for o in json.loads(text))
    found = []
    for line in text.split("\n"):
        number = re.match(r"flight (\w+) in ", line)
        if number is not None:
            prices = {c: int(p) for c, p in re.findall(r"in (\w+) at \$(\d+)", line)}
            found.append(Offer(number[1], prices, dict.fromkeys(prices, 9)))
    return tuple(found)


@dataclass(slots=True)
class Frame:
    """One request as the expert understands it: its kind and the slots that are known."""

    kind: str
    slots: dict[str, Any] = field(default_factory=dict)


_REASONS = {
    "change of plan": r"change of plan|plans? (have |has )?changed",
    "health": r"health|\bill\b|\bsick\b",
    "weather": r"weather|storm",
    "cancelled flight": r"airline (has )?cancell?ed",
}
_BAGS = re.compile(r"\b(?:have|with|make it|want) (\d+)(?: checked)? bags?\b")


def read_identity(text: str) -> str | None:
    """The user id that a sentence gives."""
    found = re.search(r"\b[a-z]+_[a-z]+_\d+\b", text)
    return found[0] if found else None


def read_slots(text: str) -> dict[str, Any]:
    """Everything in a sentence that can fill a slot. ``described`` is the destination that names a reservation."""
    slots: dict[str, Any] = {}
    described = re.search(r"\bmy trip to ([A-Z]{3})\b", text)
    if described:
        slots["described"] = described[1]
        text = text.replace(described[0], " ")
    who = re.search(r"\bpassenger ([A-Z][a-z]+ [A-Z][a-z]+)\b", text)
    if who:
        slots["who"] = who[1]
    people = read_people(text)
    if people:
        slots["passenger"], slots["passengers"] = people[-1], list(people)
        text = _PERSON.sub(" ", text)  # birthdays are no travel dates
    for name, found in (
        ("reservation_id", reservations_in(text)),
        ("flight", re.findall(r"\bHAT\d{3}\b", text)),
        ("date", dates_in(text)),
        ("cabin", cabins_in(text)),
        ("payment", [s for s in cat.SOURCES if s in sources_in(text)]),
        ("bags", [int(n) for n in _BAGS.findall(text)]),
        ("origin", re.findall(r"\b[Ff]rom ([A-Z]{3})\b", text)),
        ("destination", re.findall(r"\b[Tt]o ([A-Z]{3})\b", text)),
        ("reason", [reason for reason, pattern in _REASONS.items() if re.search(pattern, text.lower())]),
    ):
        if found:
            slots[name] = found[0]
    insured = re.search(r"\b(with|without) insurance\b", text.lower())
    if insured:
        slots["insurance"] = insured[1] == "with"
    return slots


def kind_of(text: str) -> str | None:
    """The kind of request that a caller's sentence brings up, None if none."""
    lower = text.lower().replace("change of plan", "")
    for kind, pattern in (
        ("outside", r"\btalk about\b"),
        ("book", r"\bbook\b"),
        ("fare", r"\bprice of the cheapest\b"),
        ("balance", r"\bbalance\b"),
        ("question", r"\bpric|\bcosts?\b|\bhow much\b"),
        ("compensation", r"\bcompensat"),
        ("more_passengers", r"\badd (a|another) passenger"),
        ("fewer_bags", r"\bremove\b.*\bbags?\b"),
        ("insurance", r"\badd insurance\b"),
        ("cancel", r"\bcancel\b"),
        ("passenger", r"\bchange (the )?passenger\b"),
        ("bags", r"\b(have|add)\b.*\bbags\b"),
    ):
        if re.search(pattern, lower):
            return kind
    if re.search(r"\b(change|move|switch|upgrade)\b", lower):
        return "cabin" if "cabin" in lower or (cabins_in(text) and not dates_in(text)) else "flights"
    return None


def read_requests(text: str) -> list[Frame]:
    """The requests that a caller's message brings up, in order."""
    frames = []
    for part in re.split(r"(?:I also|Also, I|I still|You forgot that I)(?= )", text):
        kind = kind_of(part)
        if kind == "outside":
            frames.append(Frame("outside", {"topic": part.split("talk about", 1)[1].split(".")[0].strip()}))
        elif kind is not None:
            frames.append(Frame(kind, read_slots(part)))
    return frames
