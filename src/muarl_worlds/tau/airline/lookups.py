"""What the airline's tools share: looking records up, seats and payments."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from muarl.domains.base import Domain
from muarl.domains.database import Database
from muarl_worlds.tau.airline import fixed
from muarl_worlds.tau.airline.records import FlightInfo, Payment

Record = dict[str, Any]

AIRPORTS = (
    ("SFO", "San Francisco"), ("JFK", "New York"), ("LAX", "Los Angeles"), ("ORD", "Chicago"), ("DFW", "Dallas"),
    ("DEN", "Denver"), ("SEA", "Seattle"), ("ATL", "Atlanta"), ("MIA", "Miami"), ("BOS", "Boston"), ("PHX", "Phoenix"),
    ("IAH", "Houston"), ("LAS", "Las Vegas"), ("MCO", "Orlando"), ("EWR", "Newark"), ("CLT", "Charlotte"),
    ("MSP", "Minneapolis"), ("DTW", "Detroit"), ("PHL", "Philadelphia"), ("LGA", "LaGuardia"),
)  # fmt: skip


def offer_of(flight: Record, day: Record, date: str | None) -> Record:
    """A flight that can be booked, as searches show it."""
    return {
        "flight_number": flight["flight_number"],
        "origin": flight["origin"],
        "destination": flight["destination"],
        "status": "available",
        "scheduled_departure_time_est": flight["scheduled_departure_time_est"],
        "scheduled_arrival_time_est": flight["scheduled_arrival_time_est"],
        "date": date,
        "available_seats": day["available_seats"],
        "prices": day["prices"],
    }


def leg_of(flight: Record, wanted: FlightInfo, price: int) -> Record:
    """A leg of a reservation."""
    return {
        "flight_number": wanted.flight_number,
        "origin": flight["origin"],
        "destination": flight["destination"],
        "date": wanted.date,
        "price": price,
    }


def refuse_surrogates(value: Any) -> None:
    """TAU2 logs a reservation as UTF-8 before it cancels it, and fails where earlier calls stored what has no UTF-8."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as problem:
            raise ValueError(f"Error serializing to JSON: UnicodeEncodeError: {problem}") from None
    elif isinstance(value, (list, dict)):
        for item in value:
            refuse_surrogates(item)
            if isinstance(value, dict):
                refuse_surrogates(value[item])


@lru_cache(maxsize=16)
def _routes(base: Database) -> dict[tuple[str | None, str | None], list[str]]:
    """The keys of the flights of every (origin, destination), None for any. No tool adds flights or moves them."""
    found: dict[tuple[str | None, str | None], list[str]] = {}
    for key, flight in base.tables["flights"].items():
        for origin in (flight["origin"], None):
            for destination in (flight["destination"], None):
                found.setdefault((origin, destination), []).append(key)
    return found


class AirlineLookups(Domain):
    """Writes take their records by ``self.db.table[key]``, reads only peek at them."""

    @property
    def official(self) -> bool:
        """Whether TAU2's oddities are wanted."""
        return self.semantics == "official"

    def _peek_user(self, user_id: str) -> Record:
        if user_id not in self.db.users:
            raise ValueError(f"User {user_id} not found")
        return self.db.users.peek(user_id)

    def _peek_reservation(self, reservation_id: str) -> Record:
        if reservation_id not in self.db.reservations:
            raise ValueError(f"Reservation {reservation_id} not found")
        return self.db.reservations.peek(reservation_id)

    def _peek_flight(self, flight_number: str) -> Record:
        if flight_number not in self.db.flights:
            raise ValueError(f"Flight {flight_number} not found")
        return self.db.flights.peek(flight_number)

    def _peek_day(self, flight_number: str, date: str) -> Record:
        days = self._peek_flight(flight_number)["dates"]
        if date not in days:
            raise ValueError(f"Flight {flight_number} not found on date {date}")
        return days[date]

    def _to_change(self, reservation_id: str) -> tuple[Record, Record]:
        """A reservation and its user, this world's own copies."""
        user_id = self._peek_reservation(reservation_id)["user_id"]
        reservation = self.db.reservations[reservation_id]
        if not self.official:
            fixed.refuse_cancelled(reservation)
        self._peek_user(user_id)
        return reservation, self.db.users[user_id]

    def _objects(self, model: Any, values: Any, name: str) -> Any:
        """Nested arguments as objects of their model. Officially a list that holds anything else too stays as it is."""
        if not self.official:
            return fixed.objects(model, values, name)
        return [model(**v) for v in values] if all(isinstance(v, dict) for v in values) else values

    def _price(self, wanted: FlightInfo, cabin: str, passengers: int) -> int:
        """One passenger's price of a flight with enough seats. ValueError if it cannot be booked."""
        number, date = wanted.flight_number, wanted.date
        day = self._peek_day(number, date)
        if day["status"] != "available":
            raise ValueError(f"Flight {number} not available on date {date}")
        if day["available_seats"][cabin] < passengers:
            raise ValueError(f"Not enough seats on flight {number}")
        price: int = day["prices"][cabin]
        return price

    def _take_seats(self, legs: list[Record], cabin: str, count: int) -> None:
        """Take seats on every leg that can still be booked; a negative count gives them back."""
        for leg in legs:
            number, date = leg["flight_number"], leg["date"]
            if number in self.db.flights:
                day = self.db.flights[number]["dates"].get(date)
                if day is not None and day["status"] == "available":
                    day["available_seats"][cabin] -= count

    def _charge(self, user: Record, payment_id: str, price: Any) -> list[Record]:
        """Pay for a change (a refund if negative); the entry for the payment history, none if nothing is due."""
        methods = user["payment_methods"]
        if payment_id not in methods:
            raise ValueError("Payment method not found")
        method = methods[payment_id]
        if method["source"] == "certificate":
            raise ValueError("Certificate cannot be used to update reservation")
        if method["source"] == "gift_card":
            if method["amount"] < price:
                raise ValueError("Gift card balance is not enough")
            method["amount"] -= price  # before TAU2 sees whether the amount is a whole number
        return [Payment(payment_id=payment_id, amount=price).model_dump()] if price != 0 else []

    def _bookable(self, origin: Any, destination: Any, date: Any) -> Iterator[tuple[Record, Record]]:
        """(flight, day) of every flight that can be booked on the date, in the database's order; None: any airport."""
        flights = self.db.flights
        try:
            keys = _routes(self.db.base).get((origin, destination), ())
        except TypeError:  # no airport is a list or an object
            return
        for key in keys:
            flight = flights.peek(key)
            day = flight["dates"].get(date)
            if day is not None and day["status"] == "available":
                yield flight, day

    def _pay(self, user_id: str, payments: list[Payment], price: Any) -> None:
        """Pay for a booking with several methods; certificates are used up."""
        methods = self.db.users[user_id]["payment_methods"]
        for p in payments:
            if p.payment_id not in methods:
                raise ValueError(f"Payment method {p.payment_id} not found")
            if methods[p.payment_id].get("amount", p.amount) < p.amount:
                raise ValueError(f"Not enough balance in payment method {p.payment_id}")
        paid = sum(p.amount for p in payments)
        if paid != price:
            raise ValueError(f"Payment amount does not add up, total price is {price}, but paid {paid}")
        for p in payments:
            source = methods[p.payment_id]["source"]  # a certificate named twice is gone by now: KeyError, as in TAU2
            if source == "gift_card":
                methods[p.payment_id]["amount"] -= p.amount
            elif source == "certificate":
                del methods[p.payment_id]
