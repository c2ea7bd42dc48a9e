"""What users want done with trips (TravelAPI)."""

from __future__ import annotations

from typing import Any

from muarl.domains.generated import Infeasible
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record
from muarl_worlds.bfcl import pools
from muarl_worlds.bfcl.recipes import Scene, asked, drawn, number, one_of, recipe, slot
from muarl_worlds.bfcl.recipes_stocks import DOLLARS
from muarl_worlds.bfcl.routes import NEAREST, ROUTES

TRAVEL = "TravelAPI"
DEAREST = 11_000
"""More than any flight costs, in dollars."""
PAIRS = tuple(Record({"city": a, "to_city": b}) for a in NEAREST for b in NEAREST if (NEAREST[a], NEAREST[b]) in ROUTES)
"""The cities between which there is a flight."""


def _told(d: Any, least: float = -1) -> list[str]:
    """The cards that the user knows: not those whose numbers came about in the conversation."""
    cards = d.tables[TRAVEL].credit_card_list
    return [name for name in cards if name.startswith("card_") and cards[name].balance > least]


def _dearest(d: Any) -> float:
    return float(max(d.tables[TRAVEL].budget_limit or 0.0, DEAREST))


def _premium(scene: Scene) -> int:
    dollars = int(scene.pick(range(60, 400, 10)))
    limit = scene.tables[TRAVEL].budget_limit
    if limit is not None and limit < dollars:
        raise Infeasible
    return dollars


def _booked(d: Any) -> bool:
    return "booking" in d.user and d.user.booking in d.tables[TRAVEL].booking_record


CITY = slot("city", one_of(NEAREST), lambda d: PAIRS, "city")
TO_CITY = asked(
    slot("to_city", one_of(NEAREST), lambda d: d.city.to_city), "Where to?", "I am going to {}.",
    "The destination is {}.", guess=("New York", "Boston"),
)  # fmt: skip
DATE = asked(
    slot("date", r"\d{1,2} [A-Z]\w+ \d{4}", lambda d: f"{d.pick(range(1, 29))} {d.pick(pools.MONTHS)} 2027"),
    "On which day?", "I fly on {}.", "The day is {}.", guess=("1 January 2027", "15 June 2027"),
)  # fmt: skip
TRIP = (CITY, TO_CITY, DATE, slot("cabin", one_of(pools.CLASSES), lambda d: pools.CLASSES))
CARD = slot("card", r"card_\d+", _told)
BOOKING = slot("booking", r"\d+", lambda d: list(d.tables[TRAVEL].booking_record))
CURRENCY = slot("currency", one_of(pools.CURRENCIES.values()), lambda d: sorted(pools.CURRENCIES.values()))
PERSON = slot("person", r"[A-Z]\w+ [A-Z]\w+", lambda d: f"{d.pick(pools.PEOPLE)} {d.pick(pools.SURNAMES)}")
EXPIRY = asked(
    slot("expiry", r"\d\d/\d{4}", lambda d: f"{d.pick(range(1, 13)):02d}/20{d.pick(range(28, 34))}"),
    "When does the card expire?", "It expires in {}.", "The card is good until {}.", guess=("12/2030", "01/2028"),
)  # fmt: skip


def as_date(words: str) -> str:
    """ "7 March 2027" as "2027-03-07"."""
    day, month, year = words.split()
    return f"{year}-{pools.MONTHS.index(month) + 1:02d}-{int(day):02d}"


def _trip(it: Plan) -> dict[str, Any]:
    start = it.look("get_nearest_airport_by_city", location=it.city).nearest_airport
    end = it.look("get_nearest_airport_by_city", location=it.to_city).nearest_airport
    return {"travel_date": as_date(it.date), "travel_from": start, "travel_to": end, "travel_class": it.cabin}


@recipe(
    TRAVEL, "book a {cabin} class flight from {city} to {to_city} on {date} with card {card}",
    "book me a flight from {city} to {to_city} for {date}, {cabin} class, paid with card {card}",
    "get me from {city} to {to_city} by plane on {date} in {cabin} class and pay with card {card}",
    "book a {cabin} class flight from {city} to {to_city} with card {card}",
    "book me a flight from {city} to {to_city} in {cabin} class, paid with card {card}",
    "book a {cabin} class flight from {city} on {date} with card {card}",
    "get me out of {city} on {date} in {cabin} class, the flight is paid with card {card}",
    slots=(*TRIP, drawn(CARD, lambda d: _told(d, _dearest(d)))), needs="travel", open=True, weight=2.0,
)  # fmt: skip
def trip_book(it: Plan) -> None:
    trip = _trip(it)
    it.booking = it.do("book_flight", access_token=it.token, card_id=it.card, **trip).booking_id


@recipe(
    TRAVEL, "tell me what a {cabin} class flight from {city} to {to_city} costs on {date}",
    "look up the price of flying from {city} to {to_city} in {cabin} class on {date}", slots=TRIP, open=True,
)  # fmt: skip
def trip_cost(it: Plan) -> None:
    it.cost = number(it.look("get_flight_cost", **_trip(it)).travel_cost_list[0])
    it.answer("The flight costs ${cost}.", tell="{cost}")


@recipe(
    TRAVEL, "insure the trip you just booked with {insurance} insurance for {dollars} dollars on card {card}",
    "add {insurance} insurance for {dollars} dollars to that booking, charged to card {card}",
    slots=(CARD, drawn(DOLLARS, _premium), slot("insurance", one_of(pools.INSURANCES), lambda d: pools.INSURANCES)),
    when=_booked, narrow=True, weight=3.0,
)  # fmt: skip
def trip_insure(it: Plan) -> None:
    bought = {"insurance_type": it.insurance, "booking_id": it.booking, "insurance_cost": float(it.dollars)}
    it.do("purchase_insurance", access_token=it.token, **bought, card_id=it.card)


@recipe(TRAVEL, "cancel booking {booking}", "call off my booking {booking}", slots=(BOOKING,), needs="travel")
def trip_cancel(it: Plan) -> None:
    it.do("cancel_booking", access_token=it.token, booking_id=it.booking)


@recipe(TRAVEL, "cancel the trip you just booked", "call that booking off again", when=_booked, narrow=True, weight=1.5)
def trip_cancel_last(it: Plan) -> None:
    it.do("cancel_booking", access_token=it.token, booking_id=it.booking)


@recipe(
    TRAVEL, "tell me the transaction number on the invoice of booking {booking}",
    "get the invoice of booking {booking} and read me the transaction number", slots=(BOOKING,), needs="travel",
)  # fmt: skip
def trip_invoice(it: Plan) -> None:
    it.seen = it.look("retrieve_invoice", access_token=it.token, booking_id=it.booking)
    it.answer("The transaction is {seen.invoice.transaction_id}.", tell="{seen.invoice.transaction_id}")


@recipe(
    TRAVEL, "limit my travel budget to {money} {currency}, converted to US dollars",
    "convert {money} {currency} to US dollars and make that my travel budget",
    slots=(CURRENCY, slot("money", r"\d+", lambda d: range(15_000, 49_500, 500))), needs="travel", open=True,
)  # fmt: skip
def trip_budget(it: Plan) -> None:
    code = next(c for c, words in pools.CURRENCIES.items() if words == it.currency)
    changed = it.look("compute_exchange_rate", base_currency=code, target_currency="USD", value=float(it.money))
    it.do("set_budget_limit", access_token=it.token, budget_limit=changed.exchanged_value)


@recipe(
    TRAVEL, "register the credit card {card_number} of {person}, expiring {expiry}, with the code {code}",
    "add a credit card: number {card_number}, holder {person}, good until {expiry}, code {code}",
    "register the credit card {card_number} of {person} with the code {code}",
    slots=(
        slot("card_number", r"\d+", lambda d: range(10**15, 10**16)), slot("code", r"\d+", lambda d: range(100, 1000)),
        EXPIRY, PERSON,
    ),
    needs="travel", open=True,
)  # fmt: skip
def trip_card(it: Plan) -> None:
    card = {"card_number": it.card_number, "expiration_date": it.expiry, "cardholder_name": it.person}
    it.do("register_credit_card", access_token=it.token, **card, card_verification_number=int(it.code))


@recipe(
    TRAVEL, "use the travel access token {given}", "work with my travel access token {given}",
    slots=(slot("given", r"\w+", lambda d: [t for t in (d.tables[TRAVEL].access_token,) if t]),),
)  # fmt: skip
def travel_token(it: Plan) -> None:
    it.token = it.given
    it.answer((), tell=())  # it is only to be known


@recipe(
    TRAVEL,
    "log in to travel with client id {client}, secret {secret}, refresh token {refresh} and read_write access for "
    "{person}",
    slots=(
        slot("client", r"\w+", lambda d: f"client{d.pick(range(100, 999))}"),
        slot("secret", r"\w+", lambda d: f"sec{d.pick(range(10**5, 10**6))}"),
        slot("refresh", r"\w+", lambda d: f"ref{d.pick(range(10**5, 10**6))}"), PERSON,
    ),
)  # fmt: skip
def travel_login(it: Plan) -> None:
    first, last = it.person.split()
    given = it.do(
        "authenticate_travel", client_id=it.client, client_secret=it.secret, refresh_token=it.refresh,
        grant_type="read_write", user_first_name=first, user_last_name=last,
    )  # fmt: skip
    it.token = given.access_token
