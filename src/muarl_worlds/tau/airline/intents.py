"""What an airline's customers want, how they say it, and how each request is served by the policy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from muarl.domains.kit.declaration import intent
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import plain
from muarl.domains.kit.service import Service, WorldSize
from muarl_worlds.tau.airline import catalogue as cat
from muarl_worlds.tau.airline import policy_checks
from muarl_worlds.tau.airline.generated import MOST_PASSENGERS, GeneratedAirline, view
from muarl_worlds.tau.airline.network import SIZES, make_tables
from muarl_worlds.tau.airline.slots import (
    BAGS,
    CABIN,
    DATE,
    DESTINATION,
    FLIGHT,
    IDENTITY,
    INSURANCE,
    ORIGIN,
    PASSENGER,
    PASSENGERS,
    PAYMENT,
    REASON,
    RESERVATION,
    WHO,
    say_person,
)
from muarl_worlds.tau.airline.tiny_vocabulary import PIECES

# steps that requests share


def _mine(it: Plan) -> Any:
    """The reservation a request is about, which must be the user's."""
    it.trip = f"reservation {it.reservation_id}"
    it.refuse_unless(it.reservation_id in it.user.reservations, "{trip} is not yours")
    return it.look("get_reservation_details", reservation_id=it.reservation_id)


def _statuses(it: Plan, legs: Iterable[Any]) -> set[str]:
    """The status of flights on their days, as far as they are flown yet or were cancelled."""
    return {it.look("get_flight_status", flight_number=leg.flight_number, date=leg.date) for leg in legs}


def _begun(booked: Any) -> list[Any]:
    """The flights of a reservation whose day has come."""
    return [leg for leg in booked.flights if leg.date <= cat.TODAY]


def _meant(it: Plan, booked: Any) -> Any:
    """The flight of a reservation that is meant; it is asked for where there are several."""
    if len(booked.flights) == 1:
        return booked.flights[0]
    numbers = [leg.flight_number for leg in booked.flights]
    return it.pick(booked.flights, flight_number=it.flight) or it.unavailable(FLIGHT, numbers)


def _offers(it: Plan, origin: str, destination: str, day: str, cabin: str, seats: int) -> list[Any]:
    """The direct flights on a day that have so many seats in a cabin, the cheapest first."""
    found = it.look("search_direct_flight", origin=origin, destination=destination, date=day)
    few = f"{cabin}_seats"
    fit = [o for o in found.offers if o[cabin] is not None and (few not in o or o[few] >= seats)]
    return sorted(fit, key=lambda offer: int(offer[cabin]))


def _method(it: Plan, cost: int) -> str:
    """The id of the payment method that the user wants; a gift card must have enough left."""
    there = [s for s in cat.SOURCES[:2] if s in it.user and (s != "gift_card" or it.user.balance >= cost)]
    if it.payment not in there:
        it.unavailable(PAYMENT, there)
    return str(it.user[it.payment])


def _said(cabin: str) -> str:
    return cabin.replace("_", " ")


def _listed(legs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"flight_number": number, "date": day} for number, day in legs]


# requests about a reservation


@intent(
    says=("cancel {reservation_id}, {reason}", "cancel {reservation_id}", "cancel my reservation"),
    slots=(RESERVATION, REASON),
    share=1.6,
    heard=r"\bcancel\b",
)
def cancel(it: Plan) -> None:
    booked = _mine(it)
    statuses = _statuses(it, _begun(booked))
    it.transfer_if(statuses & policy_checks.GONE, "The customer wants to cancel a trip that has begun.")
    if it.reason == "cancelled flight":
        statuses |= _statuses(it, booked.flights)
    allowed = policy_checks.may_cancel(booked.cabin, booked.insured, booked.recent, it.reason, statuses)
    it.refuse_unless(allowed, "this reservation cannot be cancelled")
    it.write(
        "cancel_reservation",
        reservation_id=it.reservation_id,
        propose="cancel {trip}",
        done="Done.",
    )


@intent(
    says=(
        "change the passenger of my reservation",
        "change the passenger of {reservation_id}",
        "change {who} of {reservation_id}",
        "change the passenger of {reservation_id} to {passenger}",
        "change {who} of {reservation_id} to {passenger}",
    ),
    slots=(RESERVATION, WHO, PASSENGER),
    heard=r"\bchange (?:the )?passenger\b",
)
def passenger(it: Plan) -> None:
    booked = _mine(it)
    names = [f"{p.first_name} {p.last_name}" for p in booked.passengers]
    if len(names) > 1:
        if it.who not in names:
            it.unavailable(WHO, names)
    at = names.index(it.who) if len(names) > 1 else 0
    it.write(
        "update_reservation_passengers",
        reservation_id=it.reservation_id,
        passengers=[it.passenger if n == at else plain(p) for n, p in enumerate(booked.passengers)],
        propose="change the passenger of {trip} to {passenger}",
        done="Done.",
    )


@intent(
    says=(
        "change the day of my reservation",
        "move {reservation_id} to another day",
        "move {reservation_id} to {date}",
        "change {reservation_id} to {date}, pay with {payment}",
        "change {flight} of {reservation_id} to {date}, pay with {payment}",
        "move {flight} of {reservation_id} to {date}, pay with {payment}",
    ),
    told=(
        "move {flight} of {reservation_id} to {date}, with the cheapest direct flight in the same cabin, paying or "
        "being refunded with {payment}"
    ),
    slots=(RESERVATION, FLIGHT, DATE, PAYMENT),
    share=2.0,
    heard=r"\b(?:change|move)\b(?!.*\bpassenger)(?=.*(?:\bflight\b|\b20\d\d-\d\d-\d\d|\banother day\b|\bthe day\b))",
)
def flights(it: Plan) -> None:
    booked = _mine(it)
    it.refuse_if(booked.cabin == "basic_economy", "flights in basic economy cannot be changed")
    leg = _meant(it, booked)
    it.refuse_if(leg in _begun(booked), "the day of this flight has come")
    found = _offers(it, leg.origin, leg.destination, it.date, booked.cabin, len(booked.passengers))
    it.unavailable_if(not found, DATE)
    it.new, it.price, it.booked_cabin = found[0], int(found[0][booked.cabin]), _said(booked.cabin)
    it.method = _method(it, (it.price - leg.price) * len(booked.passengers))
    kept = [(g.flight_number, g.date) for g in booked.flights]
    it.write(
        "update_reservation_flights",
        reservation_id=it.reservation_id,
        cabin=booked.cabin,
        flights=_listed((it.new.flight_number, it.date) if n == (leg.flight_number, leg.date) else n for n in kept),
        payment_id=it.method,
        propose=(
            "change {trip} to flight {new.flight_number} on {date} in {booked_cabin} at ${price} "
            "pay with {payment} {method}"
        ),
        done="Done.",
    )


@intent(
    says=(
        "change the cabin of my reservation",
        "change the cabin of {reservation_id}",
        "change {reservation_id} to {cabin}",
        "change {reservation_id} to {cabin}, pay with {payment}",
        "switch {reservation_id} to {cabin}, pay with {payment}",
    ),
    told="change {reservation_id} to {cabin} on the same flights, paying or being refunded with {payment}",
    slots=(RESERVATION, CABIN, PAYMENT),
    share=1.3,
    heard=r"\b(?:change|switch)\b(?!.*\bpassenger)(?=.*\b(?:cabin|economy|business)\b)",
)
def cabin(it: Plan) -> None:
    booked = _mine(it)
    it.refuse_if(_begun(booked), "the trip has begun")
    it.refuse_if(it.cabin == booked.cabin, "{trip} is in {cabin} already")
    seats, fits = len(booked.passengers), []
    for leg in booked.flights:
        found = _offers(it, leg.origin, leg.destination, leg.date, it.cabin, seats)
        fits += [o for o in found if o.flight_number == leg.flight_number][:1]
    it.unavailable_if(len(fits) < len(booked.flights), CABIN)
    days = [leg.date for leg in booked.flights]
    it.method = _method(it, seats * (sum(o[it.cabin] for o in fits) - sum(leg.price for leg in booked.flights)))
    it.all = " and ".join(
        f"flight {o.flight_number} on {day} in {_said(it.cabin)} at ${o[it.cabin]}"
        for o, day in zip(fits, days, strict=False)
    )
    it.write(
        "update_reservation_flights",
        reservation_id=it.reservation_id,
        cabin=it.cabin,
        flights=_listed((leg.flight_number, leg.date) for leg in booked.flights),
        payment_id=it.method,
        propose="change {trip} to {all} pay with {payment} {method}",
        done="Done.",
    )


@intent(
    says=(
        "add bags to my reservation",
        "add bags to {reservation_id}",
        "have {bags} on {reservation_id}",
        "have {bags} on {reservation_id}, pay with {payment}",
    ),
    told="have {bags} in total on {reservation_id}, paying with {payment}",
    slots=(RESERVATION, BAGS, PAYMENT),
    heard=r"^(?!.*\bbook\b).*\b(?:have|add|update)\b.*\bbags\b",
)
def bags(it: Plan) -> None:
    booked = _mine(it)
    it.refuse_if(it.bags < booked.bags, "bags cannot be removed")
    it.paid = policy_checks.paid_bags(it.bags, it.user.membership, booked.cabin, len(booked.passengers))
    it.method = _method(it, policy_checks.BAG_FEE * it.paid)
    it.write(
        "update_reservation_baggages",
        reservation_id=it.reservation_id,
        total_baggages=it.bags,
        nonfree_baggages=it.paid,
        payment_id=it.method,
        propose="update {trip} to {bags} with {paid} paid pay with {payment} {method}",
        done="Done.",
    )


@intent(
    says=(
        "get compensation for {reservation_id}, its flight was cancelled",
        "get compensation for my reservation, its flight was cancelled",
    ),
    slots=(RESERVATION,),
    share=0.5,
    heard=r"\bcompensat|\bcertificate\b",
)
def compensation(it: Plan) -> None:
    booked = _mine(it)
    cancelled = "cancelled" in _statuses(it, booked.flights)
    it.amount = policy_checks.compensation(it.user.membership, booked.cabin, booked.insured, len(booked.passengers))
    it.refuse_unless(cancelled and it.amount, "no compensation is due for this")
    it.amount = it.amount or 100 * len(booked.passengers)  # what one gives who passes over the rule
    it.write(
        "send_certificate",
        user_id=it.user.user_id,
        amount=it.amount,
        propose="send a certificate of ${amount} for {trip}",
        done="Done.",
    )


@intent(
    says=("know the price of the flight in {reservation_id}", "know the price of {flight} of {reservation_id}"),
    told="know the price of {flight} of {reservation_id}, for one passenger",
    slots=(RESERVATION, FLIGHT),
    share=0.5,
    heard=r"\bprice of (?:the )?flight\b",
)
def question(it: Plan) -> None:
    it.leg = _meant(it, _mine(it))
    it.answer("That is flight {leg.flight_number} on {leg.date} at ${leg.price}.", tell="{leg.price}")


@intent(
    says="add a passenger to {reservation_id}",
    slots=(RESERVATION,),
    forbidden=True,
    heard=r"\badd a(?:nother)? passenger\b",
)
def more_passengers(it: Plan) -> None:
    _mine(it)
    it.refuse("the number of passengers cannot be changed")


@intent(
    says="add insurance to {reservation_id}",
    slots=(RESERVATION,),
    forbidden=True,
    heard=r"\badd (?:travel )?insurance\b",
)
def insurance(it: Plan) -> None:
    _mine(it)
    it.refuse("insurance cannot be added after booking")


# other requests


@intent(
    says=(
        "book a flight",
        "book a flight {origin} {destination}",
        "book a flight {origin} {destination} on {date} in {cabin}",
        "book a flight {origin} {destination} on {date} in {cabin} for {passengers}, with {bags}, {insurance}, pay "
        "with {payment}",
    ),
    told=(
        "book the cheapest direct one-way flight {origin} {destination} on {date} in {cabin} for {passengers}, with "
        "{bags}, {insurance}, paid with {payment}"
    ),
    slots=(ORIGIN, DESTINATION, DATE, CABIN, PASSENGERS, BAGS, INSURANCE, PAYMENT),
    share=1.4,
    heard=r"\bbook\b",
)
def book(it: Plan) -> None:
    count = len(it.passengers)
    it.refuse_if(count > MOST_PASSENGERS, "a reservation can have five passengers at most")
    found = _offers(it, it.origin, it.destination, it.date, it.cabin, count)
    it.unavailable_if(not found, DATE)
    it.new, each = found[0], int(found[0][it.cabin])
    it.paid = policy_checks.paid_bags(it.bags, it.user.membership, it.cabin, count)
    insured = it.insurance == "with insurance"
    it.total = (each + insured * policy_checks.INSURANCE_FEE) * count + it.paid * policy_checks.BAG_FEE
    it.method = _method(it, it.total)
    it.people = " and ".join(map(say_person, it.passengers))
    it.write(
        "book_reservation",
        user_id=it.user.user_id,
        origin=it.origin,
        destination=it.destination,
        flight_type="one_way",
        cabin=it.cabin,
        flights=_listed([(it.new.flight_number, it.date)]),
        passengers=it.passengers,
        payment_methods=[{"payment_id": it.method, "amount": it.total}],
        total_baggages=it.bags,
        nonfree_baggages=it.paid,
        insurance="yes" if insured else "no",
        propose=(
            "book flight {new.flight_number} from {origin} to {destination} on {date} in {cabin} for {people}, {bags} "
            "with {paid} paid, {insurance}, ${total} in all pay with {payment} {method}"
        ),
        done="Done.",
    )


@intent(
    says=(
        "know the price of the cheapest flight",
        "know the price of the cheapest flight {origin} {destination}",
        "know the price of the cheapest {cabin} flight {origin} {destination} on {date}",
    ),
    told="know what the cheapest direct {cabin} flight {origin} {destination} on {date} costs",
    slots=(ORIGIN, DESTINATION, DATE, CABIN),
    share=0.2,
    heard=r"\bcheapest\b",
)
def fare(it: Plan) -> None:
    found = _offers(it, it.origin, it.destination, it.date, it.cabin, 1)
    it.unavailable_if(not found, DATE)
    it.price = found[0][it.cabin]
    it.answer("The cheapest one is ${price}.", tell="{price}")


@intent(says="know the balance of my gift card", share=0.2, heard=r"\bbalance\b")
def balance(it: Plan) -> None:
    it.now = it.look("get_user_details", user_id=it.user.user_id)
    it.refuse_if("balance" not in it.now, "you have no gift card")
    it.left = it.now.balance
    it.answer("The balance of your gift card is ${left}.", tell="{left}")


TINY = (
    cancel, passenger, flights, cabin, bags, compensation, question, more_passengers, insurance,
)  # fmt: skip
SERVICE = Service(
    domain=GeneratedAirline,
    about="airline",
    today=cat.TODAY,
    identity=IDENTITY,
    intents=(*TINY, book, fare, balance),
    tables=make_tables,
    outside=cat.TOPICS,
    open_tools=("get_flight_status", "list_all_airports", "search_direct_flight", "search_onestop_flight"),
    policy_compact=Path("policy_compact.md"),
    tiny_tools=(
        "cancel_reservation", "get_flight_status", "get_reservation_details", "get_user_details",
        "search_direct_flight", "send_certificate", "transfer_to_human_agents", "update_reservation_baggages",
        "update_reservation_flights", "update_reservation_passengers",
    ),
    tiny_intents=tuple(one.name for one in TINY),
    sizes=tuple(WorldSize(s.name, s.users, s.tasks_per_network, tiny=s.pooled) for s in SIZES.values()),
    view=view,
    texts=("send_certificate",),
    heard_in_proposals=True,
    vocabulary=PIECES,
)  # fmt: skip
