"""What users want done with trips (TravelAPI)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from muarl.domains.bfcl import pools
from muarl.domains.bfcl.recipes import NOTHING, Draw, Memory, Missing, Plan, Recipe, Slots, Step, number
from muarl.domains.bfcl.routes import NEAREST, ROUTES
from muarl.domains.drawing import Infeasible

TRAVEL = "TravelAPI"
DEAREST = 11_000
"""More than any flight costs, in dollars."""


def _draw_trip(draw: Draw) -> Slots:
    start, end = draw.pick([(a, b) for a in NEAREST for b in NEAREST if (NEAREST[a], NEAREST[b]) in ROUTES])
    day = f"{draw.rng.randint(1, 28)} {draw.pick(pools.MONTHS)} 2027"
    return {"city": start, "to_city": end, "date": day, "cabin": draw.pick(pools.CLASSES)}


def _told(draw: Draw) -> list[str]:
    """The cards that the user knows: not those whose numbers came about in the conversation."""
    return [card for card in draw.state[TRAVEL]["credit_card_list"] if card.startswith("card_")]


def _draw_booking(draw: Draw) -> Slots:
    cards = draw.state[TRAVEL]["credit_card_list"]
    least = max(draw.state[TRAVEL]["budget_limit"] or 0.0, DEAREST)
    return {**_draw_trip(draw), "card": draw.pick([n for n in _told(draw) if cards[n]["balance"] > least])}


def as_date(words: str) -> str:
    """ "7 March 2027" as "2027-03-07"."""
    day, month, year = words.split()
    return f"{year}-{pools.MONTHS.index(month) + 1:02d}-{int(day):02d}"


def _route(slots: Slots) -> Generator[Step, Any, dict[str, Any]]:
    start = yield "get_nearest_airport_by_city", {"location": slots["city"]}
    end = yield "get_nearest_airport_by_city", {"location": slots["to_city"]}
    return {
        "travel_date": as_date(slots["date"]), "travel_from": start["nearest_airport"],
        "travel_to": end["nearest_airport"], "travel_class": slots["cabin"],
    }  # fmt: skip


def _book(slots: Slots, memory: Memory) -> Plan:
    trip = yield from _route(slots)
    booked = yield "book_flight", {"access_token": memory["token"], "card_id": slots["card"], **trip}
    memory["booking"] = booked["booking_id"]
    return NOTHING


def _cost(slots: Slots, memory: Memory) -> Plan:
    trip = yield from _route(slots)
    found = yield "get_flight_cost", trip
    (cost,) = found["travel_cost_list"]
    return f"The flight costs ${number(cost)}.", number(cost)


def _draw_insurance(draw: Draw) -> Slots:
    draw.pick([b for b in draw.state[TRAVEL]["booking_record"] if b == draw.memory.get("booking")])
    card = draw.pick(_told(draw))
    dollars = str(draw.rng.randrange(6, 40) * 10)
    limit = draw.state[TRAVEL]["budget_limit"]
    if limit is not None and limit < float(dollars):
        raise Infeasible
    return {"insurance": draw.pick(pools.INSURANCES), "dollars": dollars, "card": card}


def _insure(slots: Slots, memory: Memory) -> Plan:
    yield (
        "purchase_insurance",
        {
            "access_token": memory["token"], "insurance_type": slots["insurance"], "booking_id": memory["booking"],
            "insurance_cost": float(slots["dollars"]), "card_id": slots["card"],
        },
    )  # fmt: skip
    return NOTHING


def _draw_old_booking(draw: Draw) -> Slots:
    return {"booking": draw.pick(list(draw.state[TRAVEL]["booking_record"]))}


def _cancel_booking(slots: Slots, memory: Memory) -> Plan:
    yield "cancel_booking", {"access_token": memory["token"], "booking_id": slots["booking"]}
    return NOTHING


def _draw_last_booking(draw: Draw) -> Slots:
    draw.pick([b for b in draw.state[TRAVEL]["booking_record"] if b == draw.memory.get("booking")])
    return {}


def _cancel_last_booking(slots: Slots, memory: Memory) -> Plan:
    yield "cancel_booking", {"access_token": memory["token"], "booking_id": memory["booking"]}
    return NOTHING


def _invoice(slots: Slots, memory: Memory) -> Plan:
    seen = yield "retrieve_invoice", {"access_token": memory["token"], "booking_id": slots["booking"]}
    transaction = str(seen["invoice"]["transaction_id"])
    return f"The transaction is {transaction}.", transaction


def _draw_budget(draw: Draw) -> Slots:
    currency = draw.pick(sorted(pools.CURRENCIES.values()))
    return {"money": str(draw.rng.randrange(30, 99) * 500), "currency": currency}


def _budget(slots: Slots, memory: Memory) -> Plan:
    code = next(c for c, words in pools.CURRENCIES.items() if words == slots["currency"])
    changed = yield (
        "compute_exchange_rate",
        {"base_currency": code, "target_currency": "USD", "value": float(slots["money"])},
    )
    yield "set_budget_limit", {"access_token": memory["token"], "budget_limit": changed["exchanged_value"]}
    return NOTHING


def _draw_card(draw: Draw) -> Slots:
    rng = draw.rng
    return {
        "card_number": str(rng.randrange(10**15, 10**16)), "code": str(rng.randrange(100, 1000)),
        "expiry": f"{rng.randint(1, 12):02d}/20{rng.randint(28, 33)}",
        "person": f"{draw.pick(pools.PEOPLE)} {draw.pick(pools.SURNAMES)}",
    }  # fmt: skip


def _register(slots: Slots, memory: Memory) -> Plan:
    yield (
        "register_credit_card",
        {
            "access_token": memory["token"], "card_number": slots["card_number"], "expiration_date": slots["expiry"],
            "cardholder_name": slots["person"], "card_verification_number": int(slots["code"]),
        },
    )  # fmt: skip
    return NOTHING


def _draw_token(draw: Draw) -> Slots:
    return {"token": draw.pick([t for t in (draw.state[TRAVEL]["access_token"],) if t])}


def _token(slots: Slots, memory: Memory) -> Plan:
    memory["token"] = slots["token"]
    return NOTHING
    yield  # it needs no call, but is a plan like the others


def _draw_travel_login(draw: Draw) -> Slots:
    rng = draw.rng
    return {
        "client": f"client{rng.randrange(100, 999)}", "secret": f"sec{rng.randrange(10**5, 10**6)}",
        "refresh": f"ref{rng.randrange(10**5, 10**6)}",
        "person": f"{draw.pick(pools.PEOPLE)} {draw.pick(pools.SURNAMES)}",
    }  # fmt: skip


def _travel_login(slots: Slots, memory: Memory) -> Plan:
    first, last = slots["person"].split()
    given = yield (
        "authenticate_travel",
        {
            "client_id": slots["client"], "client_secret": slots["secret"], "refresh_token": slots["refresh"],
            "grant_type": "read_write", "user_first_name": first, "user_last_name": last,
        },
    )  # fmt: skip
    memory["token"] = given["access_token"]
    return NOTHING


_NO_DATE = Missing(
    (
        "book a {cabin} class flight from {city} to {to_city} with card {card}",
        "book me a flight from {city} to {to_city} in {cabin} class, paid with card {card}",
    ),
    "On which day?",
    ("I fly on {date}.", "The day is {date}."),
    ("1 January 2027", "15 June 2027"),
)
_NO_GOAL = Missing(
    (
        "book a {cabin} class flight from {city} on {date} with card {card}",
        "get me out of {city} on {date} in {cabin} class, the flight is paid with card {card}",
    ),
    "Where to?",
    ("I am going to {to_city}.", "The destination is {to_city}."),
    ("New York", "Boston"),
)
_NO_EXPIRY = Missing(
    ("register the credit card {card_number} of {person} with the code {code}",),
    "When does the card expire?",
    ("It expires in {expiry}.", "The card is good until {expiry}."),
    ("12/2030", "01/2028"),
)

RECIPES = (
    Recipe(
        "trip_book", (TRAVEL,), _draw_booking, _book,
        (
            "book a {cabin} class flight from {city} to {to_city} on {date} with card {card}",
            "book me a flight from {city} to {to_city} for {date}, {cabin} class, paid with card {card}",
            "get me from {city} to {to_city} by plane on {date} in {cabin} class and pay with card {card}",
        ),
        needs="travel", open=True, weight=2.0, missing={"date": _NO_DATE, "to_city": _NO_GOAL},
    ),
    Recipe(
        "trip_cost", (TRAVEL,), _draw_trip, _cost,
        (
            "tell me what a {cabin} class flight from {city} to {to_city} costs on {date}",
            "look up the price of flying from {city} to {to_city} in {cabin} class on {date}",
        ),
        open=True,
    ),
    Recipe(
        "trip_insure", (TRAVEL,), _draw_insurance, _insure,
        (
            "insure the trip you just booked with {insurance} insurance for {dollars} dollars on card {card}",
            "add {insurance} insurance for {dollars} dollars to that booking, charged to card {card}",
        ),
        narrow=True, weight=3.0,
    ),
    Recipe(
        "trip_cancel", (TRAVEL,), _draw_old_booking, _cancel_booking,
        ("cancel booking {booking}", "call off my booking {booking}"),
        needs="travel",
    ),
    Recipe(
        "trip_cancel_last", (TRAVEL,), _draw_last_booking, _cancel_last_booking,
        ("cancel the trip you just booked", "call that booking off again"),
        narrow=True, weight=1.5,
    ),
    Recipe(
        "trip_invoice", (TRAVEL,), _draw_old_booking, _invoice,
        (
            "tell me the transaction number on the invoice of booking {booking}",
            "get the invoice of booking {booking} and read me the transaction number",
        ),
        needs="travel",
    ),
    Recipe(
        "trip_budget", (TRAVEL,), _draw_budget, _budget,
        (
            "limit my travel budget to {money} {currency}, converted to US dollars",
            "convert {money} {currency} to US dollars and make that my travel budget",
        ),
        needs="travel", open=True,
    ),
    Recipe(
        "trip_card", (TRAVEL,), _draw_card, _register,
        (
            "register the credit card {card_number} of {person}, expiring {expiry}, with the code {code}",
            "add a credit card: number {card_number}, holder {person}, good until {expiry}, code {code}",
        ),
        needs="travel", open=True, missing={"expiry": _NO_EXPIRY},
    ),
)  # fmt: skip

LOGINS = (
    Recipe(
        "travel_token", (TRAVEL,), _draw_token, _token,
        ("use the travel access token {token}", "work with my travel access token {token}"),
    ),
    Recipe(
        "travel_login", (TRAVEL,), _draw_travel_login, _travel_login,
        (
            "log in to travel with client id {client}, secret {secret}, refresh token {refresh} and read_write access "
            "for {person}",
        ),
    ),
)  # fmt: skip
