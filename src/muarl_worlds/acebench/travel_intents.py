"""What travellers want of the travel desk, and how each request is served by the policy."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.declaration import intent
from muarl.domains.kit.plan import Plan
from muarl_worlds.acebench import catalogue as cat
from muarl_worlds.acebench import travel_slots as slots
from muarl_worlds.acebench.texts import TEXTS
from muarl_worlds.acebench.travel_slots import bookable, cheapest, day_of, fare


def _mine(it: Plan) -> Any:
    """The reservation that is meant."""
    found = it.look("get_reservation_details", user_id=it.user.user_id)
    return it.pick(found, reservation_id=it.reservation) or it.missing(slots.RESERVATION)


def _other(payment: str) -> list[str]:
    return [other for other in cat.PAYMENTS if other != payment]


def _bag_fee(it: Plan, cabin: str, bags: int) -> int:
    level = it.user.membership_level
    return int(it.look("calculate_baggage_fee", membership_level=level, cabin_class=cabin, baggage_count=bags))


def _reserve(it: Plan, flight: Any) -> dict[str, Any]:
    """The arguments with which a flight is booked."""
    return {
        "user_id": it.user.user_id,
        "password": it.user.password,
        "flight_no": flight.flight_no,
        "cabin": it.cabin,
        "payment_method": it.payment,
        "baggage_count": int(it.bags),
    }


@intent(
    says=[
        "know what the cheapest flight from {origin} to {destination} {date} {cabin} costs",
        "know the price of the cheapest flight from {origin} to {destination} {date} {cabin}",
    ],
    slots=[slots.ORIGIN, slots.DESTINATION, slots.DATE, slots.CABIN],
    share=0.5,
    heard=r"\bthe cheapest flight\b.*\bcosts\b|\bthe price of the cheapest flight\b",
)
def ask_fare(it: Plan) -> None:
    it.flights = it.look("get_flight_details", origin=it.origin, destination=it.destination)
    it.flight = cheapest(it.flights, it.date, it.cabin)
    it.unavailable_if(it.flight is None, slots.DATE, [day_of(f) for f in bookable(it.flights)])
    it.price = fare(it.flight, it.cabin)
    it.answer("Flight {flight.flight_no} is the cheapest one: it costs {price} yuan.", tell="{price}")


@intent(
    says=[
        "book flights from {start} by way of {via} to {goal} {day} {cabin}, {bags} on each, {payment}",
        "book flights from {start} by way of {via} to {goal} {day} {cabin}",
        "book flights from {start} by way of {via} to {goal} {day}",
    ],
    slots=[slots.START, slots.VIA, slots.GOAL, slots.DAY, slots.CABIN, slots.BAGS, slots.PAYMENT],
    share=1.0,
    because=["There is no direct one.", "I like to stretch my legs in between."],
    heard=r"\bbook (?:two )?(?:connecting )?flights\b",
)
def book_connection(it: Plan) -> None:
    it.pairs = it.look("find_transfer_flights", origin_city=it.start, transfer_city=it.via, destination_city=it.goal)
    free = [pair for pair in it.pairs if len(bookable([pair.first_leg, pair.second_leg])) == 2]
    fit = [pair for pair in free if day_of(pair.first_leg) == it.day]
    it.unavailable_if(not fit, slots.DAY, [day_of(pair.first_leg) for pair in free])
    best = min(fit, key=lambda pair: fare(pair.first_leg, it.cabin) + fare(pair.second_leg, it.cabin))
    it.one, it.two = best.first_leg, best.second_leg
    it.price = fare(it.one, it.cabin) + fare(it.two, it.cabin)
    balance = it.user.cash_balance if it.payment == "cash" else it.user.bank_balance
    it.unavailable_if(it.price + 2 * _bag_fee(it, it.cabin, int(it.bags)) > balance, slots.PAYMENT, _other(it.payment))
    about = "on {day} in {cabin} at {price} yuan, with {bags} on each, paying with {payment}"
    route = "from {start} to {goal} by way of {via}"
    propose = f"book flights {{one.flight_no}} and {{two.flight_no}} {route} {about}"
    done = "Flights {one.flight_no} and {two.flight_no} are booked."
    it.write("reserve_flight", **_reserve(it, it.one), propose=propose, done=done)
    it.then("reserve_flight", **_reserve(it, it.two))


@intent(
    says=[
        "book a flight from {origin} to {destination} {date} {cabin}, {bags}, {payment}",
        "book a flight from {origin} to {destination} {date} {cabin}",
        "book a flight from {origin} to {destination} {date}",
        "book a flight from {origin} to {destination}",
        "book a flight",
    ],
    slots=[slots.ORIGIN, slots.DESTINATION, slots.DATE, slots.CABIN, slots.BAGS, slots.PAYMENT],
    share=2.6,
    because=["I have never been there.", "My sister lives there."],
    heard=r"\bbook (?:a )?flight\b",
)
def book_flight(it: Plan) -> None:
    it.flights = it.look("get_flight_details", origin=it.origin, destination=it.destination)
    it.flight = cheapest(it.flights, it.date, it.cabin)
    it.unavailable_if(it.flight is None, slots.DATE, [day_of(f) for f in bookable(it.flights)])
    it.price = fare(it.flight, it.cabin)
    about = "from {origin} to {destination} on {date} in {cabin} at {price} yuan, with {bags}, paying with {payment}"
    booked = it.write(
        "reserve_flight",
        **_reserve(it, it.flight),
        propose=f"book flight {{flight.flight_no}} {about}",
        done="Flight {flight.flight_no} is booked.",
        fails="insufficient",
    )
    if not booked:
        it.unavailable(slots.PAYMENT, _other(it.payment))


@intent(
    says=["change the destination of {reservation} to {new_city}"],
    slots=[slots.RESERVATION, slots.NEW_CITY],
    share=2.0,
    forbidden=True,
    heard=r"\bchange the destination\b",
)
def change_destination(it: Plan) -> None:
    it.r = _mine(it)
    it.refuse("the destination of {reservation} cannot be changed")


@intent(
    says=["take a bag off {reservation}", "remove a bag from {reservation}"],
    slots=[slots.RESERVATION],
    share=2.0,
    forbidden=True,
    heard=r"\b(?:take|remove) a bag\b",
)
def remove_bag(it: Plan) -> None:
    it.r = _mine(it)
    it.refuse("bags can be added to {reservation}, not removed")


def _modify(it: Plan, propose: str, done: str, **change: Any) -> None:
    changed = it.write(
        "modify_flight", user_id=it.user.user_id, reservation_id=it.reservation, **change, propose=propose, done=done,
        fails="insufficient",
    )  # fmt: skip
    if not changed:
        it.unavailable(slots.PAYMENT, _other(it.payment))


@intent(
    says=["move {reservation} {new_date}", "change {reservation} {new_date}", "move {reservation} to another day"],
    slots=[slots.RESERVATION, slots.NEW_DATE],
    share=1.8,
    because=["A meeting has been moved.", "The hotel is full on that day."],
    heard=r"\b(?:move|change) (?:reservation|my trip)\b(?!.*\b(?:class|economy|business|cabin)\b)|\bto another day\b",
)
def move_flight(it: Plan) -> None:
    it.r = _mine(it)
    it.refuse_if(it.r.flight_info.depart_time[:10] < cat.TODAY, "the flight of {reservation} has left")
    it.flights = it.look("get_flight_details", origin=it.r.flight_info.origin, destination=it.r.flight_info.destination)
    it.flight = cheapest(it.flights, it.new_date, it.r.cabin)
    same = it.flight is not None and it.flight.flight_no == it.r.flight_no
    it.refuse_if(same, "reservation {reservation} is on flight {flight.flight_no} already")
    days = [day_of(f) for f in bookable(it.flights) if f.flight_no != it.r.flight_no]
    it.unavailable_if(it.flight is None, slots.NEW_DATE, days)
    _modify(
        it,
        "move reservation {reservation} to {new_date}, flight {flight.flight_no}, without a charge",
        "Reservation {reservation} is on flight {flight.flight_no} now.",
        new_flight_no=it.flight.flight_no,
    )


@intent(
    says=[
        "change the cabin of {reservation} {new_cabin}, {payment}",
        "change the cabin of {reservation} {new_cabin}",
        "change the cabin of {reservation}",
    ],
    slots=[slots.RESERVATION, slots.NEW_CABIN, slots.PAYMENT],
    share=1.2,
    because=["My knees would thank you.", "My company does not pay for it any more."],
    heard=r"\bchange the cabin\b",
)
def change_cabin(it: Plan) -> None:
    it.r = _mine(it)
    it.flight = it.r.flight_info
    it.refuse_if(it.flight.depart_time[:10] < cat.TODAY, "the flight of {reservation} has left")
    it.refuse_if(it.flight.status == "cancelled", "the flight of {reservation} has been cancelled by the airline")
    it.refuse_if(it.r.cabin == it.new_cabin, "{reservation} is in {r.cabin} already")
    it.difference = fare(it.flight, it.new_cabin) - fare(it.flight, it.r.cabin)
    it.words = f"for {it.difference} yuan" if it.difference > 0 else f"with {-it.difference} yuan back"
    _modify(
        it,
        "change the cabin of {reservation} to {new_cabin} {words}, using {payment}",
        "The cabin of {reservation} is changed.",
        new_cabin=it.new_cabin,
        new_payment_method=it.payment,
    )


@intent(
    says=[
        "add {more_bags} to {reservation}, {payment}",
        "add {more_bags} to {reservation}",
        "add bags to {reservation}",
    ],
    slots=[slots.RESERVATION, slots.MORE_BAGS, slots.PAYMENT],
    share=1.1,
    because=["I bring presents.", "My skis need a bag of their own."],
    heard=r"\badd\b.*\bbags?\b",
)
def add_bags(it: Plan) -> None:
    it.r = _mine(it)
    it.refuse_if(it.r.flight_info.depart_time[:10] < cat.TODAY, "the flight of {reservation} has left")
    bags = it.r.baggage + int(it.more_bags)
    it.fee = _bag_fee(it, it.r.cabin, bags)
    _modify(
        it,
        "change {reservation}: add {more_bags} for {fee} yuan, paying with {payment}",
        "{more_bags} added to {reservation}.",
        add_baggage=int(it.more_bags),
        new_payment_method=it.payment,
    )


@intent(
    says=["cancel {reservation} {reason}", "cancel {reservation}", "call off {reservation}", "cancel a reservation"],
    slots=[slots.RESERVATION, slots.REASON],
    share=1.6,
    because=["What a pity."],
    heard=r"\bcancel (?:a |my |the )?(?:reservation|trip|res_)|\bcall off\b",
)
def cancel_reservation(it: Plan) -> None:
    it.r = _mine(it)
    it.flight = it.r.flight_info
    it.transfer_if(
        it.flight.depart_time < f"{cat.TODAY} 06:00",
        "The traveller wants to cancel {reservation}, whose flight has left.",
    )
    gone = it.flight.status == "cancelled"
    late = it.flight.depart_time[:10] == cat.TODAY and not gone
    it.cost = "all but a fee of 10 percent is" if late else "everything is"
    it.write(
        "cancel_reservation",
        user_id=it.user.user_id,
        reservation_id=it.reservation,
        reason=TEXTS["en"]["airline_reason"] if gone else it.reason,
        propose="cancel {reservation} to {flight.destination}; {cost} refunded",
        done="{reservation} is cancelled.",
    )


@intent(
    says=["know the flight number of {reservation}", "find out the flight number of {reservation}"],
    slots=[slots.RESERVATION],
    share=0.5,
    heard=r"\bflight number of\b",
)
def ask_flight_number(it: Plan) -> None:
    it.r = _mine(it)
    it.answer("{reservation} is on flight {r.flight_no}.", tell="{r.flight_no}")


@intent(
    says=["know the balance of my bank account with you", "know how much money is left for payments by bank"],
    share=0.4,
    heard=r"\bbalance of my bank account\b|\bleft for payments\b",
)
def ask_funds(it: Plan) -> None:
    it.amount = f"{it.user.bank_balance:g}"
    it.answer("Your bank balance is {amount} yuan.", tell="{amount}")


@intent(
    says=["get compensation for {reservation}, since its flight was cancelled", "get compensation for {reservation}"],
    slots=[slots.RESERVATION],
    share=0.7,
    heard=r"\bcompensation\b",
)
def ask_compensation(it: Plan) -> None:
    it.r = _mine(it)
    it.refuse_unless(
        it.r.flight_info.status == "cancelled", "the airline has not cancelled the flight of {reservation}"
    )
    it.refuse_if(
        it.user.membership_level == "regular" and it.r.cabin == cat.CABINS[0],
        "vouchers are for silver and gold members and for Business Class",
    )
    it.answer("I can offer you a voucher of 200 yuan for {reservation}.", tell="200")


INTENTS = (
    ask_fare, book_connection, book_flight, change_destination, remove_bag, move_flight, change_cabin, add_bags,
    cancel_reservation, ask_flight_number, ask_funds, ask_compensation,
)  # fmt: skip
