"""What airline users tell, and how they say it: kinds of values, and the details of their requests."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muarl.domains.kit.declaration import (
    DrawContext,
    Fact,
    Identity,
    RecordDescription,
    Slot,
    of,
    own,
    pattern,
    rows,
    words,
)
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record, plain
from muarl.domains.kit.records import rows as records_of
from muarl.language.values import NUMBER_WORDS, Mention, ValueKind, find_dates
from muarl_worlds.tau.airline import catalogue as cat
from muarl_worlds.tau.airline.network import make_person, size_for

_PERSON = re.compile(r"first name ([A-Z]\w+),? last name ([A-Z]\w+),? born (\d{4}-\d\d-\d\d)")
_PASSENGER = re.compile(r"\bpassenger ([A-Z]\w+ [A-Z]\w+)")
_BAGS = re.compile(rf"\b(\d{{1,2}}|{'|'.join(NUMBER_WORDS)})(?: checked)? bags?\b", re.IGNORECASE)


def say_person(person: Mapping[str, str]) -> str:
    """A passenger, spelled out as one does on the telephone."""
    return f"first name {person['first_name']}, last name {person['last_name']}, born {person['dob']}"


def _people(text: str) -> list[Mention]:
    return [
        Mention({"first_name": m[1], "last_name": m[2], "dob": m[3]}, m.start(), m.end())
        for m in _PERSON.finditer(text)
    ]


def _all_people(text: str) -> list[Mention]:
    """Everybody that a text spells out, as one value."""
    found = _people(text)
    return [Mention([m.value for m in found], found[0].start, found[-1].end)] if found else []


def _names(text: str) -> list[Mention]:
    return [Mention(m[1], m.start(), m.end()) for m in _PASSENGER.finditer(text)]


def _bags(text: str) -> list[Mention]:
    return [
        Mention(int(m[1]) if m[1].isdigit() else NUMBER_WORDS.index(m[1].lower()), m.start(), m.end())
        for m in _BAGS.finditer(text)
    ]


def _days(text: str) -> list[Mention]:
    return [m for m in find_dates(text, cat.TODAY[:4]) if m.value[:4] == cat.TODAY[:4]]


AIRPORT_KIND = pattern("|".join(cat.CODES), exact=True)
CABIN_KIND = words({"basic_economy": "basic economy", "economy": "economy", "business": "business"})
DAY_KIND = ValueKind("day", lambda value, rng: str(value), _days, 1)
BAGS_KIND = ValueKind("bags", lambda value, rng: f"{value} bags", _bags, 1)
PERSON_KIND = ValueKind("passenger", lambda value, rng: say_person(value), _people, 0)
PEOPLE_KIND = ValueKind("passengers", lambda value, rng: " and ".join(map(say_person, value)), _all_people, 0)
NAME_KIND = ValueKind("name of a passenger", lambda value, rng: f"passenger {value}", _names, 2)
PAYMENT_KIND = words({"credit_card": "credit card", "gift_card": "gift card"})
INSURANCE_KIND = words({"with insurance": (), "without insurance": ()})
REASON_KIND = words(
    {
        "change of plan": "it is a change of plan",
        "health": "it is for health reasons",
        "weather": "it is because of the weather",
        "cancelled flight": "the airline cancelled the flight",
    }
)


IDENTITY = Identity(
    tool="get_user_details",
    table="users",
    key="user_id",
    facts=(
        Fact(
            "user_id",
            pattern(r"[a-z]+_[a-z]+_\d+", exact=True),
            tells="My user id is {user_id}.",
            wrong=True,
            asked=r"user.?id|(?<!passenger['’]s )(?:first|last|full|your) name|e-?mail|who am i speaking",
        ),
    ),
    ask="May I have your user id?",
    retry="I could not find you. Please check your user id.",
    say=("My user id is {user_id}.", "It is user id {user_id}.", "User id {user_id}."),
)


# what may be wished for


def _trip_to(it: Plan, airport: str) -> Sequence[str]:
    """The user's reservation that goes to an airport, by looking through them."""
    for number in it.user.reservations:
        if it.look("get_reservation_details", reservation_id=number).flights[0].destination == airport:
            return [number]
    return []


def _other_days(drawn: DrawContext) -> Iterable[str]:
    """Days to come; where a flight is to be changed, those on which the others stay before and behind it."""
    leg = drawn.slots.get("flight")
    if not isinstance(leg, Record):
        return cat.FUTURE
    before = [o.date for o in drawn.reservation_id.flights if o.date < leg.date]
    behind = [o.date for o in drawn.reservation_id.flights if o.date > leg.date]
    return [d for d in cat.FUTURE if d != leg.date and all(d > o for o in before) and all(d < o for o in behind)]


def _cabins(drawn: DrawContext) -> Iterable[str]:
    booked = drawn.slots.get("reservation_id")
    return cat.CABINS if booked is None else cat.CABINS[1:]


def _counts(drawn: DrawContext) -> Iterable[int]:
    booked = drawn.slots.get("reservation_id")
    had = -1 if booked is None else booked.total_baggages
    return [n for n in range(max(0, had - 1), had + 4) if n != had]


def _strangers(drawn: DrawContext, count: int) -> list[dict[str, str]]:
    """People whom no profile knows, with different first names, none of them the user's."""
    size, taken = size_for(len(records_of(drawn.tables.users))), drawn.user.name.first_name
    rng = random.Random(f"passengers {drawn.user.user_id} {drawn.slots.get('reservation_id')}")
    found: dict[str, dict[str, str]] = {}
    while len(found) < count:
        person = make_person(rng, size)
        found.setdefault(person["first_name"], person)
        found.pop(taken, None)
    return list(found.values())


def _replacements(drawn: DrawContext) -> Iterable[Any]:
    there = {p.first_name for p in drawn.reservation_id.passengers}
    return [p for p in _strangers(drawn, 8) if p["first_name"] not in there]


def _parties(drawn: DrawContext) -> Iterable[Any]:
    user = {**plain(drawn.user.name), "dob": drawn.user.dob}
    one, other, third, *more = _strangers(drawn, 5)
    too_many = [user, one, other, third, *more]
    return [[user], [user], [user], [user, one], [other], [user, other, third], too_many]


def _sources(drawn: DrawContext) -> Iterable[str]:
    there = {method.source for method in records_of(drawn.user.payment_methods)}
    return [source for source in cat.SOURCES[:2] if source in there]


def _named(drawn: DrawContext) -> Iterable[str]:
    return [f"{p.first_name} {p.last_name}" for p in drawn.reservation_id.passengers]


def _reached(drawn: DrawContext) -> Iterable[Record]:
    return [flight for flight in records_of(drawn.tables.flights) if flight.origin == drawn.origin.origin]


_CHANGES = ("Actually, make it {}.", "Wait, I changed my mind. Make it {}.", "Sorry, no. Make it {}.")

RESERVATION = Slot(
    "reservation_id",
    pattern(r"(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])(?!HAT\d{3})[A-Z0-9]{6}", exact=True),
    ask="Which reservation is it?",
    phrase="reservation {}",
    say=("It is reservation {}.", "I mean reservation {}."),
    change=("Actually, I mean reservation {}.", "Wait, I mean reservation {}."),
    draw=own("reservations", "reservation_id", mark="cabin"),
    described=RecordDescription(
        kind=AIRPORT_KIND,
        match="destination",
        phrase="my trip to {}",
        say="I do not remember. It is my trip to {}.",
        find=_trip_to,
        cue=r"\b(?:trip|flight|reservation|booking) to",
    ),
    asked=r"which (?:reservation|booking|trip)|(?:reservation|booking|confirmation) (?:id|number|code)",
)
FLIGHT = Slot(
    "flight",
    pattern(r"HAT\d{3}", exact=True),
    ask="Which flight is it?",
    phrase="flight {}",
    say="I mean flight {}.",
    draw=of(lambda drawn: drawn.reservation_id.flights, "flight_number"),
    asked="(?:which|what) flight",
    weighed=False,
)
DATE = Slot(
    "date",
    DAY_KIND,
    ask="Which date would you like?",
    say=("Make it {} please.", "I want {} please."),
    change=_CHANGES,
    draw=of(_other_days),
    asked=(r"(?:which|what)(?: other| new| travel)? (?:date|day)|new date\?|when would you|(?:date|day) would you"),
)
CABIN = Slot(
    "cabin",
    CABIN_KIND,
    ask="Which cabin would you like?",
    say=("Make it {} please.", "I want {} please."),
    change=_CHANGES,
    draw=of(_cabins),
    asked=r"(?:which|what)(?: other| new)? (?:cabin|class)",
)
BAGS = Slot(
    "bags",
    BAGS_KIND,
    ask="How many bags in total?",
    say=("{} in total please.", "It is {} please."),
    change=_CHANGES,
    draw=of(_counts),
    asked=r"how many[^?]{0,30}(?:bags?|suitcases|pieces|baggage)",
)
WHO = Slot(
    "who",
    NAME_KIND,
    ask="Which passenger is it?",
    say="I mean {}.",
    draw=of(_named),
    asked=r"which (?:of the )?passengers?",
    weighed=False,
)
PASSENGER = Slot(
    "passenger",
    PERSON_KIND,
    ask="Who is the new passenger?",
    say="It is {}.",
    change=_CHANGES,
    draw=of(_replacements),
    asked=(
        r"who is the new|passenger['’]?s?[^?.]{0,40}(?:name|birth|details)|name of the (?:new )?passenger"
        r"|(?:names?|details|birth)[^?.]{0,30}passengers?"
    ),
)
PASSENGERS = Slot(
    "passengers",
    PEOPLE_KIND,
    ask="Who is flying? Please give me the names and dates of birth of all passengers.",
    say="It is for {}.",
    draw=of(_parties),
    asked=(
        r"(?:who|how many (?:people|passengers))[^?]{0,30}(?:fly|travel|going)"
        r"|passengers?[^?.]{0,40}(?:name|birth)|(?:names?|details|birth)[^?.]{0,30}passengers?"
    ),
)
REASON = Slot(
    "reason",
    REASON_KIND,
    ask="What is the reason?",
    say="{}.",
    asked=r"(?:what|which|your|the).{0,20} reason\b|\bwhy\b",
    guess=("change of plan",),
)
PAYMENT = Slot(
    "payment",
    PAYMENT_KIND,
    ask="Which payment method should I use?",
    say=("Use my {} please.", "With my {} please."),
    draw=of(_sources),
    asked=(
        r"(?:which|what) payment|payment method (?:should|would|do)|pay(?:ing)? with\?"
        r"|how would you like to pay|(?:credit|gift) card or"
    ),
    guess=("credit_card",),
)
ORIGIN = Slot(
    "origin",
    AIRPORT_KIND,
    ask="From where do you fly?",
    phrase="from {}",
    say="From {} please.",
    draw=rows("flights", "origin"),
    asked=r"from where|where[^?]{0,20} from|(?:which|what)[^?]{0,20}(?:airport|city|cities)|\borigin\b[^.]*\?",
    cue=r"\bfrom",
)
DESTINATION = Slot(
    "destination",
    AIRPORT_KIND,
    ask="Where do you fly to?",
    phrase="to {}",
    say="To {} please.",
    draw=of(_reached, "destination"),
    asked=r"to where|where[^?]{0,20} to\b|(?:which|what)[^?]{0,20}(?:airport|city|cities)|destination[^.]*\?",
    cue=r"\bto",
)
INSURANCE = Slot(
    "insurance",
    INSURANCE_KIND,
    ask="Would you like insurance?",
    say="{} please.",
    change=_CHANGES,
    asked=r"(?:like|want|need|add)[^.?]{0,30}insurance[^.]*\?|insurance\?",
    guess=("without insurance",),
)
