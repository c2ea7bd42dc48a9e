"""What the scripted expert reads: observations (JSON or compact) into records, and callers' sentences into slots."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.acebench import catalogue as cat
from muarl.domains.acebench.phrases import DISHES, MERCHANTS, cabins_in, dates_in, payments_in, reservations_in


@dataclass(frozen=True, slots=True)
class Flight:
    """A flight as an observation shows it. ``fares``: yuan by cabin. ``free``: whether there is a seat to be had."""

    number: str
    origin: str
    destination: str
    day: str
    free: bool
    status: str
    fares: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation with its flight."""

    reservation_id: str
    flight: Flight
    cabin: str
    bags: int


@dataclass(frozen=True, slots=True)
class Reminder:
    """A reminder. ``number``: by which it is deleted."""

    number: int
    title: str
    note: str


@dataclass(frozen=True, slots=True)
class Traveller:
    """A traveller's profile. Balances in yuan."""

    level: str
    bank: str


_REFUSALS = (
    ("device", r"device (is )?not logged in|device not logged in"),
    ("account", r"not logged in to the food platform"),
    ("known", r"already logged in"),
    ("wifi", r"wi-fi is"),
    ("full", r"inbox capacity is full"),
    ("password", r"incorrect|authentication failed"),
    ("balance", r"insufficient"),
    ("missing", r"does not exist|not found|no (reminder found|related|messages|message records|direct|connecting)"),
    ("other", r"invalid|has been used|unable|\bfull\b|failed|no available flight|no seats|no cabin"),
)  # fmt: skip


def _json(text: str) -> Any:
    return json.loads(text) if text.startswith(("{", "[")) else None


def refusal(text: str, *, error: bool = False) -> str | None:
    """What kept a tool from doing what it was asked: a word of ``_REFUSALS``; None if it did it.

    ``error``: the call itself failed.
    """
    data = _json(text)
    if isinstance(data, Mapping) and data.get("status") in (False, "error"):
        text = str(data.get("message", ""))
    elif data is not None or '"' in text:
        return "other" if error else None
    lower = text.lower()
    found = next((name for name, pattern in _REFUSALS if re.search(pattern, lower)), None)
    return found or ("other" if error else None)


def read_messages(text: str) -> list[tuple[int, str]]:
    """Number and text of the messages that an observation shows."""
    data = _json(text)
    if data is not None:
        return [(int(m["id"]), str(m["message"])) for m in data["messages"]]
    return [(int(n), said) for n, said in re.findall(r'message from \w+ number (\d+) says "(.*?)"(?:\n|$)', text)]


def read_number(text: str) -> int:
    """The number of the message that get_earliest_message_id or get_latest_message_id tells."""
    data = _json(text)
    return int(data["message_id"]) if data is not None else int(re.findall(r"\d+", text)[-1])


def read_menu(text: str) -> dict[str, str]:
    """Price by dish."""
    data = _json(text)
    if data is not None:
        return {d["product"]: str(d["price"]) for d in data}
    return dict(re.findall(r"(?:^|, )(.+?) at ([\d.]+) yuan", text))


def read_total(text: str) -> str:
    """What an order costs."""
    found = re.findall(r"([\d.]+) yuan", text)
    return str(found[-1]) if found else ""


def read_reminder(text: str) -> Reminder:
    """An observation of view_reminder_by_title."""
    data = _json(text)
    if data is not None:
        found = data["reminder"]
        return Reminder(int(found["reminder_id"]), found["title"], found["description"])
    m = re.match(r'reminder "(.*?)" (\d+) says "(.*)"', text)
    if m is None:
        raise ValueError("this is no reminder")
    return Reminder(int(m[2]), m[1], m[3])


def read_traveller(text: str) -> Traveller:
    """An observation of get_user_details."""
    data = _json(text)
    if data is not None:
        return Traveller(data["membership_level"], f"{data['bank_balance']:g}")
    m = re.match(r"\w+, (\w+) member", text)
    if m is None:
        raise ValueError("this is no profile")
    return Traveller(m[1], "")


def _flight(data: Mapping[str, Any]) -> Flight:
    fares = {cat.CABINS[0]: int(data["economy_price"]), cat.CABINS[1]: int(data["business_price"])}
    free = data["status"] == "available" and data["seats_available"] > 0
    ends = data["origin"], data["destination"]
    return Flight(data["flight_no"], *ends, data["depart_time"][:10], free, data["status"], fares)


def read_flights(text: str, origin: str, destination: str) -> tuple[Flight, ...]:
    """An observation of get_flight_details for two cities."""
    data = _json(text)
    if data is not None:
        return tuple(_flight(f) for f in data)
    found = []
    for day, number, rest in re.findall(r"on ([\d-]+) (\w+)(.*)", text):
        fares = {c: int(p) for c, p in re.findall(r"in (\w+ Class) at (\d+) yuan", rest)}
        found.append(Flight(number, origin, destination, day, bool(fares), "available", fares))
    return tuple(found)


def read_pairs(text: str) -> tuple[tuple[Flight, Flight], ...]:
    """An observation of find_transfer_flights, which tiny worlds do not have."""
    return tuple((_flight(p["first_leg"]), _flight(p["second_leg"])) for p in _json(text) or ())


def read_reservations(text: str) -> tuple[Reservation, ...]:
    """An observation of get_reservation_details."""
    data = _json(text)
    if data is not None:
        return tuple(
            Reservation(r["reservation_id"], _flight(r["flight_info"]), r["cabin"], int(r["baggage"]))
            for r in data
            if r["flight_info"]
        )
    found: list[Reservation] = []
    pattern = r"trip to \w+ is (res_\d+) flight (\w+) from (\w+) to (\w+) on ([\d-]+) in (\w+ Class), (\d+) bags?"
    for number, flight, origin, destination, day, cabin, bags in re.findall(pattern, text):
        on = Flight(flight, origin, destination, day, True, "available", {})
        found.append(Reservation(number, on, cabin, int(bags)))
    return tuple(found)


# what callers say


@dataclass(slots=True)
class Frame:
    """One request as the expert understands it: its kind and the slots that are known."""

    kind: str
    slots: dict[str, Any] = field(default_factory=dict)

    def settle(self) -> None:
        """A quoted text is what a message or a reminder is to say."""
        if "said" in self.slots:
            self.slots["note" if self.kind == "remind" else "text"] = self.slots.pop("said")


_NAMES = "|".join(cat.PEOPLE)
_CITIES = "|".join(cat.CITIES)
_KINDS = (
    ("outside", r"\btalk about\b"),
    ("note", r"\bwhat my reminder\b.*\bsays\b"),
    ("forget", r"\bdelete my reminder\b"),
    ("todo", r"\btasks in my reminder\b"),
    ("remind", r"\breminder\b"),
    ("read", r"\bwrote to\b"),
    ("balance", r"\bbalance of my food\b"),
    ("funds", r"\bbalance of my bank\b"),
    ("fare", r"\bprice of\b"),
    ("question", r"\bflight number of\b"),
    ("compensation", r"\bcompensation\b"),
    ("destination", r"\bchange the destination\b"),
    ("fewer_bags", r"\bremove a bag\b"),
    ("send", r"\bsend\b.*\bmessage\b"),
    ("delete", r"\bdelete\b"),
    ("order", r"\border\b"),
    ("connect", r"\bbook flights\b"),
    ("book", r"\bbook\b"),
    ("cancel", r"\bcancel\b"),
    ("bags", r"\badd\b.*\bbags?\b"),
    ("cabin", r"\b(change|switch)\b.*(\bcabin\b|\bclass\b)"),
    ("move", r"\b(change|move)\b.*\bto\b"),
)
PHONE_KINDS = frozenset(
    {"note", "forget", "todo", "remind", "read", "snoop", "balance", "send", "delete", "order", "lend"}
)
"""Kinds of request that are about a phone."""


def read_identity(text: str) -> dict[str, str]:
    """What a sentence tells of who the caller is: "name", "user_id", "password"."""
    found: dict[str, str] = {}
    for slot, pattern in (
        ("name", rf"(?:\bI am|[Mm]y name is) ({_NAMES})\b"),
        ("user_id", r"\b(user\d+)\b"),
        ("password", r"password (?:is )?(\w*[a-z]\d+)\b"),
    ):
        m = re.search(pattern, text)
        if m:
            found[slot] = m[1]
    return found


def _quoted(text: str) -> str:
    """The text without what stands in quotes."""
    return re.sub(r'"[^"]*"', '""', text)


def read_slots(text: str) -> dict[str, Any]:
    """Everything in a sentence that can fill a slot. ``described`` is the destination that names a reservation, and
    ``said`` a quoted text (a message's, a reminder's)."""
    slots: dict[str, Any] = {}
    for name, pattern in (
        ("title", r'(?:reminder|title is) "([^"]*)"'),
        ("said", r'(?:the message|saying|should say) "([^"]*)"'),
    ):
        m = re.search(pattern, text)
        if m:
            slots[name] = m[1]
    time = re.search(r"\b20\d\d-\d\d-\d\d \d\d:\d\d\b", text)
    if time or "at the current time" in text.lower():
        slots["time"] = time[0] if time else cat.PHONE_NOW
    plain = _quoted(text)
    for name, pattern in (
        ("which", r"\b(the (?:oldest|latest) message|the message (?:from \w+|about [\w ]+?))(?= please|[.,]|$)"),
        ("source", rf"\b(?:with the message from|in the message from|food that) ({_NAMES})\b"),
        ("from", rf"\bwhat ({_NAMES}) wrote|\bI mean ({_NAMES})\b"),
        ("reader", rf"\bwrote to ({_NAMES})\b"),
        ("to", rf"\b[Ss]end ({_NAMES})\b|message to ({_NAMES})\b|[Ii]t is for ({_NAMES})\b|({_NAMES}) should get it"),
        ("account", rf"\bon the account of ({_NAMES})\b"),
        ("described", rf"\bmy trip to ({_CITIES})\b"),
        ("topic", r"\btalk about (.+?)\."),
        ("reason", "(" + "|".join((*cat.REASONS, cat.AIRLINE_REASON)) + ")"),
    ):
        m = re.search(pattern, plain, re.IGNORECASE if name in ("reason", "which") else 0)
        if m:
            slots[name] = next(g for g in m.groups() if g)
    if "described" in slots:
        plain = plain.replace(f"my trip to {slots['described']}", " ")
    lower = plain.lower()
    dishes = [d for d in DISHES if re.search(rf"\b{re.escape(d)}\b", lower)]
    number = re.search(r"\border (\d)\b|\bwant (\d) of\b", plain)
    if number:
        slots["quantity"] = int(number[1] or number[2])
    if "cheapest dish" in lower:
        slots["cheapest"] = True
    for name, found in (
        ("product", dishes),
        ("merchant", [m for m in MERCHANTS if m in plain]),
        ("reservation_id", reservations_in(plain)),
        ("date", [] if time else dates_in(plain)),
        ("cabin", cabins_in(plain)),
        ("payment", payments_in(plain)),
        ("bags", [int(n) for n in re.findall(r"\b(\d) bags?\b", plain)]),
        ("origin", re.findall(rf"\b[Ff]rom ({_CITIES})\b", plain)),
        ("via", re.findall(rf"\bway of ({_CITIES})\b", plain)),
        ("destination", re.findall(rf"\b[Tt]o ({_CITIES})\b", plain)),
    ):
        if found:
            slots[name] = found[0]
    return slots


def kind_of(text: str) -> str | None:
    """The kind of request that a caller's sentence brings up, None if none."""
    lower = re.sub(r"\b(message|talk) about [\w ]+", r"\1 about", _quoted(text).lower())
    return next((kind for kind, pattern in _KINDS if re.search(pattern, lower)), None)


def read_requests(text: str) -> list[Frame]:
    """The requests that a caller's message brings up, in order."""
    frames = []
    for part in re.split(r"(?:I also|Also, I|I still|You forgot that I)(?= )", text):
        kind = kind_of(part)
        if kind is None:
            continue
        slots = read_slots(part)
        if kind == "read" and "reader" in slots:
            kind = "snoop"
        elif kind == "order" and "account" in slots:
            kind = "lend"
        frames.append(Frame(kind, slots))
        frames[-1].settle()
    return frames
