"""What a travel desk must be told: who travels, from where to where, when, how, and about which reservation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.domains.kit.declaration import (
    DrawContext,
    Fact,
    Identity,
    RecordDescription,
    Slot,
    names,
    of,
    one_of,
    own,
    pattern,
    words,
)
from muarl.domains.kit.records import Record
from muarl.domains.kit.records import rows as records_of
from muarl_worlds.acebench import catalogue as cat

CITY_KIND = names(cat.CITIES)
CABIN_KIND = words({cabin: [cabin, cabin.split(" ")[0].lower()] for cabin in cat.CABINS})
BAGS_KIND = words(
    {"0": ["no bags", "0 bags"], "1": ["1 bag", "one bag"], "2": ["2 bags", "two bags"], "3": ["3 bags", "three bags"]}
)
PAYMENT_KIND = words({"cash": ["cash"], "bank": ["bank"]})
REASON_KIND = words(
    {
        "my plans have changed": ["my plans have changed", "there is a change of plans"],
        "I am ill": ["I am ill"],
        "the weather is bad": ["the weather is bad"],
    }
)

IDENTITY = Identity(
    tool="get_user_details",
    table="users",
    key="user_id",
    facts=(
        Fact("user_id", pattern("user[0-9]{3}"), tells="My user id is {user_id}.", asked="user.?id|verify|identif"),
        Fact(
            "password",
            pattern(r"(?!user)[a-z]{5,8}[0-9]{3,4}"),
            tells="My password is {password}.",
            wrong=True,
            asked=r"\bpassword\b",
        ),
    ),
    ask=("May I have your user id and password?", "Could you give me your user id and your password, please?"),
    retry=("I could not find you. Could you check your user id and password?",),
    say=("My user id is {user_id} and my password is {password}.", "User id {user_id}, password {password}."),
)


def day_of(flight: Any) -> str:
    """The day on which a flight leaves."""
    return str(flight.depart_time)[:10]


def fare(flight: Any, cabin: str) -> int:
    """What a seat costs, in yuan."""
    return int(flight.economy_price if cabin == cat.CABINS[0] else flight.business_price)


def bookable(flights: Sequence[Any]) -> list[Any]:
    """Those that are to come, take place and are not sold out."""
    return [f for f in flights if day_of(f) > cat.TODAY and f.status == "available" and f.seats_available > 0]


def cheapest(flights: Sequence[Any], day: str, cabin: str) -> Any:
    """The cheapest flight of a day that can be booked, None if there is none."""
    fit = [f for f in bookable(flights) if day_of(f) == day]
    return min(fit, key=lambda f: fare(f, cabin)) if fit else None


def _flights(drawn: DrawContext, *, coming: bool = True) -> list[Record]:
    """The flights of a made world; ``coming``: those that have not left."""
    return [f for f in records_of(drawn.tables.flights) if not coming or day_of(f) > cat.TODAY]


def _route(drawn: DrawContext, ends: Record) -> list[Record]:
    return [f for f in _flights(drawn) if (f.origin, f.destination) == (ends.origin, ends.destination)]


def _pairs(drawn: DrawContext) -> list[Record]:
    """Pairs of flights with a change in between."""
    coming = _flights(drawn)
    return [
        Record({"start": one.origin, "via": one.destination, "goal": two.destination, "day": day_of(one)})
        for one in coming
        for two in coming
        if one.destination == two.origin and one.arrival_time < two.depart_time
    ]


RESERVATION = Slot(
    "reservation",
    pattern("res_[0-9]{3}"),
    ask=["Which reservation is it?", "What is the number of the reservation?"],
    phrase="reservation {}",
    say=["It is reservation {}.", "Reservation {}."],
    change=["Actually, I mean reservation {}.", "Wait, it is {} that I mean."],
    draw=own("reservations", "reservation_id", mark="baggage"),
    described=RecordDescription(
        kind=CITY_KIND,
        match="destination",
        id="reservation_id",
        look="get_reservation_details",
        records="",
        given={"user_id": "user_id"},
        phrase="my trip to {}",
        say=["I do not remember. It is my trip to {}.", "The one for my trip to {}."],
        cue="trip to",
    ),
    asked=r"which (?:of your )?(?:reservation|booking|trip)|(?:reservation|booking) (?:id|number|code)"
    "|number of the reservation",
)
ORIGIN = Slot(
    "origin",
    CITY_KIND,
    ask=["From where do you fly?", "Where do you fly from?"],
    say=["From {}, please.", "From {}."],
    draw=of(_flights, "origin"),
    cue=r"\bfrom",
    asked=r"from where|where[^?]{0,30} from|\borigin\b|departure (?:city|location|place)|departure and",
)
DESTINATION = Slot(
    "destination",
    CITY_KIND,
    ask=["Where do you fly to?", "To which city?"],
    say=["To {}, please.", "To {}."],
    draw=of(lambda drawn: [drawn.origin], "destination"),
    cue=r"(?<!trip )\bto",
    asked=r"to where|where[^?]{0,20} to\b|destination|arrival (?:city|location)|to which city",
)
DATE = Slot(
    "date",
    "date",
    ask=["Which date would you like?", "On which day do you want to fly?"],
    phrase="on {}",
    say=["On {}.", "{}, please."],
    change=["Actually, make it {}.", "Wait, {} is better."],
    draw=of(lambda drawn: sorted({day_of(f) for f in _route(drawn, drawn.origin)})),
    asked=r"(?:which|what)(?: other| new| travel| departure)? (?:date|day)|new date\?|\bwhen\b|(?:date|day) would you",
)
CABIN = Slot(
    "cabin",
    CABIN_KIND,
    ask=["Which cabin would you like?", "Economy Class or Business Class?"],
    phrase="in {}",
    say=["{}, please.", "In {}."],
    change=["Actually, {}, please.", "Wait, I would rather fly {}."],
    asked=r"(?:which|what)(?: other| new)? (?:cabin|class|seat)|(?:cabin|class)(?: class)? would you"
    r"|economy[^?.]{0,20} or business|business[^?.]{0,20} or economy",
)
BAGS = Slot(
    "bags",
    BAGS_KIND,
    ask=["How many bags do you have?", "How many bags do you want to check in?"],
    phrase="with {}",
    say=["{}.", "I have {}."],
    change=["Actually, make it {}.", "Wait, I have {}."],
    draw=one_of("0", "1", "2", "3"),
    asked=r"how (?:many|much)[^?]{0,40}(?:bags?|suitcases|pieces|baggage|luggage)|(?:number|count) of[^?.]{0,20}bag",
)
PAYMENT = Slot(
    "payment",
    PAYMENT_KIND,
    ask=["Cash or bank?", "Would you like to use cash or bank?"],
    phrase="paying with {}",
    say=["Use {}, please.", "With {}."],
    change=["Actually, I pay with {}.", "Wait, use {}."],
    asked=r"cash or|bank or|(?:which|what|your|preferred) payment|payment method|pay(?:ing)? (?:with|by)\?"
    r"|how would you like to pay|refund method",
)
NEW_DATE = Slot(
    "new_date",
    "date",
    ask=["Which date would you like?", "To which day shall I move it?"],
    phrase="to {}",
    say=["To {}, please.", "{}."],
    change=["Actually, make it {}.", "Wait, {} is better."],
    draw=of(lambda drawn: sorted({day_of(f) for f in _route(drawn, drawn.reservation)})),
    asked=r"(?:which|what)(?: other| new)? (?:date|day)|new date\?|\bwhen\b|(?:date|day) would you",
)
NEW_CABIN = Slot(
    "new_cabin",
    CABIN_KIND,
    ask=["Which cabin would you like?"],
    phrase="to {}",
    say=["{}, please.", "To {}."],
    asked=r"(?:which|what)(?: other| new)? (?:cabin|class|seat)|(?:cabin|class)(?: class)? would you",
)
MORE_BAGS = Slot(
    "more_bags",
    BAGS_KIND,
    ask=["How many bags shall I add?"],
    say=["{}.", "Add {}, please."],
    change=["Actually, make it {}.", "Wait, {}, please."],
    draw=one_of("1", "2", "3"),
    asked=r"how (?:many|much)[^?]{0,40}(?:bags?|suitcases|pieces|baggage|luggage)|(?:number|count) of[^?.]{0,20}bag",
)
REASON = Slot(
    "reason",
    REASON_KIND,
    ask=["What is the reason?", "Why do you want to cancel it?"],
    phrase="because {}",
    say=["{}.", "Well, {}."],
    asked=r"(?:what|which|your|the).{0,20} reason\b|\bwhy\b|reason for",
)
NEW_CITY = Slot(
    "new_city",
    CITY_KIND,
    ask="To which other city?",
    say="To {}.",
    draw=of(
        lambda drawn: [c for c in cat.CITIES if c not in (drawn.reservation.origin, drawn.reservation.destination)]
    ),
    cue=r"(?<!trip )\bto",
    asked="which other city",
)
START = Slot(
    "start",
    CITY_KIND,
    ask="From where do you fly?",
    say="From {}.",
    draw=of(_pairs, "start"),
    cue=r"\bfrom",
    asked=r"from where|where[^?]{0,30} from|\borigin\b|departure (?:city|location|place)",
)
VIA = Slot(
    "via",
    CITY_KIND,
    ask="In which city would you like to change?",
    say=["By way of {}, please.", "In {}."],
    draw=of(lambda drawn: [drawn.start], "via"),
    cue=r"\b(?:by way of|via|in)",
    asked=r"(?:which|what)[^?]{0,20}(?:city|airport)[^?]{0,20}(?:change|stop|transfer)|layover|transfer city|stopover"
    "|by way of which|which city would you like to change",
)
GOAL = Slot(
    "goal",
    CITY_KIND,
    ask="Where do you fly to?",
    say="To {}.",
    draw=of(lambda drawn: [drawn.start], "goal"),
    cue=r"\bto",
    asked=r"to where|where[^?]{0,20} to\b|destination|arrival (?:city|location)",
)
DAY = Slot(
    "day",
    "date",
    ask="On which day do you want to fly?",
    phrase="on {}",
    say=["On {}.", "{}, please."],
    draw=of(lambda drawn: [drawn.start], "day"),
    asked=r"(?:which|what)(?: other| new| travel| departure)? (?:date|day)|\bwhen\b",
)
