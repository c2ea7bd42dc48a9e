# ruff: noqa: E501 (the interface's own lines)
"""TAU1 airline's 14 tools, over plain records.

The descriptions are the tools' interface, word for word as TAU1 gives it to models (sierra-research/tau-bench, MIT
licence, Copyright Sierra): they are part of what the benchmark measures. What the tools do is written anew; the order
of checks and of changes is TAU1's, since a call that fails half way leaves its first half in "official" semantics.

"fixed" mends five defects: a fourth booking overwrites the third, a fourth certificate is silently not sent, a change
of flights leaves the cabin as it was, the second leg of a connection shows the first day's seats and prices, and an
unknown reservation is called an unknown user.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muarl.domains.frozen import thaw
from muarl.domains.tooling import tool
from muarl_worlds.tau.airline.task_rules import AIRLINE_TASKS
from muarl_worlds.tau.calculator import compensated_sum
from muarl_worlds.tau.tau1.world import Record, Schema, Tau1Domain, calculate, interface, text

NEW_IDS = ("HATHAT", "HATHAU", "HATHAV")
CERTIFICATES = ("certificate_3221322", "certificate_3221323", "certificate_3221324")
AIRPORTS = {
    "SFO": "San Francisco", "JFK": "New York", "LAX": "Los Angeles", "ORD": "Chicago", "DFW": "Dallas",
    "DEN": "Denver", "SEA": "Seattle", "ATL": "Atlanta", "MIA": "Miami", "BOS": "Boston", "PHX": "Phoenix",
    "IAH": "Houston", "LAS": "Las Vegas", "MCO": "Orlando", "EWR": "Newark", "CLT": "Charlotte",
    "MSP": "Minneapolis", "DTW": "Detroit", "PHL": "Philadelphia", "LGA": "LaGuardia",
}  # fmt: skip

RESERVATION_ID = text("The reservation ID, such as 'ZFA04Y'.")
BOOKER = text("The ID of the user to book the reservation, such as 'sara_doe_496'.")
CABIN = text(enum=("basic_economy", "economy", "business"))
PAYMENT_ID = text(
    "The payment id stored in user profile, such as 'credit_card_7815826', 'gift_card_7815826', 'certificate_7815826'."
)


def integer(description: str) -> Schema:
    """A whole-number parameter."""
    return {"type": "integer", "description": description}


def number(description: str) -> Schema:
    """A number parameter."""
    return {"type": "number", "description": description}


def objects(description: str, **fields: Schema) -> Schema:
    """A list of objects, all of whose fields are required."""
    item = {"type": "object", "properties": fields, "required": list(fields)}
    return {"type": "array", "description": description, "items": item}


FLIGHT = {
    "flight_number": text("Flight number, such as 'HAT001'."),
    "date": text("The date for the flight in the format 'YYYY-MM-DD', such as '2024-05-01'."),
}
PASSENGERS = objects(
    "An array of objects containing details about each passenger.",
    first_name=text("The first name of the passenger, such as 'Noah'."),
    last_name=text("The last name of the passenger, such as 'Brown'."),
    dob=text("The date of birth of the passenger in the format 'YYYY-MM-DD', such as '1990-01-01'."),
)


def _total(values: Iterable[Any]) -> Any:
    """``sum`` as Python 3.12 has it, its errors included."""
    known = list(values)
    if all(type(v) in (int, float, bool) for v in known):
        return compensated_sum(known)
    return sum(known)  # not all numbers: for the error


def _on(flight: Record, date: Any) -> Record:
    """A flight as searches show it on a date: everything but the table of dates, and that date's entry."""
    return {k: v for k, v in flight.items() if k != "dates"} | flight["dates"][date]


def _day(date: Any) -> Any:
    """The last two characters of a date. A slice is no key before Python 3.12, where it is only not found."""
    if isinstance(date, dict):
        raise KeyError(slice(-2, None))
    return date[-2:]


class Tau1Airline(Tau1Domain):
    """TAU1's airline. Its options are those of ``Tau1Domain``."""

    name = "airline"
    tables = ("flights", "reservations", "users")
    task_rules = AIRLINE_TASKS

    def _fill(self, flight: Record, cabin: Any, passengers: Any) -> Any:
        """Complete a wished-for flight with its price and route; the price for all passengers, or ValueError."""
        number = flight["flight_number"]
        known = self._record("flights", number, f"flight {number} not found")
        if flight["date"] not in known["dates"]:
            raise ValueError(f"flight {number} not found on date {flight['date']}")
        day = known["dates"][flight["date"]]
        if day["status"] != "available":
            raise ValueError(f"flight {number} not available on date {flight['date']}")
        if day["available_seats"][cabin] < len(passengers):
            raise ValueError(f"not enough seats on flight {number}")
        flight["price"] = day["prices"][cabin]
        flight["origin"] = known["origin"]
        flight["destination"] = known["destination"]
        return flight["price"] * len(passengers)

    def _payer(self, reservation: Record, payment_id: Any, total: Any) -> Record:
        """The payment method for a change of a reservation, this world's own copy. ValueError if it can't pay."""
        user_id = reservation["user_id"]
        methods = self._record("users", user_id, "user not found")["payment_methods"]
        if payment_id not in methods:
            raise ValueError("payment method not found")
        if methods[payment_id]["source"] == "certificate":
            raise ValueError("certificate cannot be used to update reservation")
        if methods[payment_id]["source"] == "gift_card" and methods[payment_id]["amount"] < total:
            raise ValueError("gift card balance is not enough")
        found: Record = self.db.users[user_id]["payment_methods"][payment_id]
        return found

    @tool(writes=True)
    @interface(
        "Book a reservation.",
        user_id=BOOKER,
        origin=text("The IATA code for the origin city, such as 'SFO'."),
        destination=text("The IATA code for the destination city, such as 'JFK'."),
        flight_type=text(enum=("one_way", "round_trip")),
        cabin=CABIN,
        flights=objects("An array of objects containing details about each piece of flight.", **FLIGHT),
        passengers=PASSENGERS,
        payment_methods=objects(
            "An array of objects containing details about each payment method.",
            payment_id=PAYMENT_ID,
            amount=number("The amount to be paid."),
        ),
        total_baggages=integer("The total number of baggage items included in the reservation."),
        nonfree_baggages=integer("The number of non-free baggage items included in the reservation."),
        insurance=text(enum=("yes", "no")),
    )
    def book_reservation(
        self, user_id: Any, origin: Any, destination: Any, flight_type: Any, cabin: Any, flights: Any, passengers: Any,
        payment_methods: Any, total_baggages: Any, nonfree_baggages: Any, insurance: Any,
    ) -> Record:  # fmt: skip
        self._record("users", user_id, "user not found")
        reservations = self.db.reservations
        reservation_id = next((i for i in NEW_IDS[:2] if i not in reservations), NEW_IDS[2])
        if self.semantics == "fixed" and reservation_id in reservations:
            raise ValueError("too many reservations")
        reservation = {
            "reservation_id": reservation_id,
            "user_id": user_id,
            "origin": origin,
            "destination": destination,
            "flight_type": flight_type,
            "cabin": cabin,
            "flights": thaw(flights),
            "passengers": thaw(passengers),
            "payment_history": thaw(payment_methods),  # a copy: later refunds must not reach the caller's list
            "created_at": "2024-05-15T15:00:00",
            "total_baggages": total_baggages,
            "nonfree_baggages": nonfree_baggages,
            "insurance": insurance,
        }
        total: Any = 0
        for flight in reservation["flights"]:
            total += self._fill(flight, cabin, passengers)
        if insurance == "yes":
            total += 30 * len(passengers)
        total += 50 * nonfree_baggages
        methods = self.db.users[user_id]["payment_methods"]
        for payment in payment_methods:
            payment_id, amount = payment["payment_id"], payment["amount"]
            if payment_id not in methods:
                raise ValueError(f"payment method {payment_id} not found")
            if methods[payment_id]["source"] in ("gift_card", "certificate") and methods[payment_id]["amount"] < amount:
                raise ValueError(f"not enough balance in payment method {payment_id}")
        paid = _total(payment["amount"] for payment in payment_methods)
        if paid != total:
            raise ValueError(f"payment amount does not add up, total price is {total}, but paid {paid}")
        for payment in payment_methods:
            payment_id, amount = payment["payment_id"], payment["amount"]
            if methods[payment_id]["source"] == "gift_card":
                methods[payment_id]["amount"] -= amount
            elif methods[payment_id]["source"] == "certificate":
                del methods[payment_id]
        reservations[reservation_id] = reservation
        self.db.users[user_id]["reservations"].append(reservation_id)
        return reservation

    @tool(kind="generic")
    @interface(
        "Calculate the result of a mathematical expression.",
        expression=text(
            "The mathematical expression to calculate, such as '2 + 2'. The expression can contain numbers, operators (+, -, *, /), parentheses, and spaces."
        ),
    )
    def calculate(self, expression: Any) -> str:
        return calculate(expression)

    @tool(writes=True)
    @interface("Cancel the whole reservation.", reservation_id=RESERVATION_ID)
    def cancel_reservation(self, reservation_id: Any) -> Record:
        reservation = self._record("reservations", reservation_id, "reservation not found", change=True)
        history = reservation["payment_history"]
        refunds = [{"payment_id": paid["payment_id"], "amount": -paid["amount"]} for paid in history]
        history.extend(refunds)
        reservation["status"] = "cancelled"
        return reservation

    @tool
    @interface("Get the details of a reservation.", reservation_id=text("The reservation id, such as '8JX2WO'."))
    def get_reservation_details(self, reservation_id: Any) -> Record:
        subject = "user" if self.semantics == "official" else "reservation"
        return self._record("reservations", reservation_id, f"{subject} not found")

    @tool
    @interface(
        "Get the details of an user, including their reservations.",
        user_id=text("The user id, such as 'sara_doe_496'."),
    )
    def get_user_details(self, user_id: Any) -> Record:
        return self._record("users", user_id, "user not found")

    @tool
    @interface("List all airports and their cities.")
    def list_all_airports(self) -> Record:
        return dict(AIRPORTS)

    @tool
    @interface(
        "Search direct flights between two cities on a specific date.",
        origin=text("The origin city airport in three letters, such as 'JFK'."),
        destination=text("The destination city airport in three letters, such as 'LAX'."),
        date=text("The date of the flight in the format 'YYYY-MM-DD', such as '2024-01-01'."),
    )
    def search_direct_flight(self, origin: Any, destination: Any, date: Any) -> list[Record]:
        found = []
        for _, flight in self.db.flights.scan():
            if flight["origin"] == origin and flight["destination"] == destination:
                if date in flight["dates"] and flight["dates"][date]["status"] == "available":
                    found.append(_on(flight, date))
        return found

    @tool
    @interface(
        "Search direct flights between two cities on a specific date.",
        origin=text("The origin city airport in three letters, such as 'JFK'."),
        destination=text("The destination city airport in three letters, such as 'LAX'."),
        date=text("The date of the flight in the format 'YYYY-MM-DD', such as '2024-05-01'."),
    )
    def search_onestop_flight(self, origin: Any, destination: Any, date: Any) -> list[list[Record]]:
        found = []
        last_legs = [f for _, f in self.db.flights.scan() if f["destination"] == destination]
        for _, first in self.db.flights.scan():
            if first["origin"] != origin:
                continue
            for second in last_legs:
                if first["destination"] != second["origin"]:
                    continue
                arrival = first["scheduled_arrival_time_est"]
                date2 = f"2024-05-{int(_day(date)) + 1}" if "+1" in arrival else date
                if arrival > second["scheduled_departure_time_est"]:
                    continue
                if date in first["dates"] and date2 in second["dates"]:
                    if first["dates"][date]["status"] == second["dates"][date2]["status"] == "available":
                        shown = date if self.semantics == "official" else date2
                        found.append([_on(first, date) | {"date": date}, _on(second, shown) | {"date": date2}])
        return found

    @tool(writes=True)
    @interface(
        "Send a certificate to a user. Be careful!", user_id=BOOKER, amount=number("Certificate amount to send.")
    )
    def send_certificate(self, user_id: Any, amount: Any) -> str | None:
        user = self._record("users", user_id, "user not found", change=True)
        new_id = next((i for i in CERTIFICATES if i not in user["payment_methods"]), None)
        if new_id is None:
            if self.semantics == "fixed":
                raise ValueError("too many certificates")
            return None
        user["payment_methods"][new_id] = {"source": "certificate", "amount": amount, "id": new_id}
        return f"Certificate {new_id} added to user {user_id} with amount {amount}."

    @tool(kind="generic")
    @interface(
        "Use the tool to think about something. It will not obtain new information or change the database, but just append the thought to the log. Use it when complex reasoning is needed.",
        thought=text("A thought to think about."),
    )
    def think(self, thought: Any) -> str:
        return ""

    @tool(kind="generic")
    @interface(
        "Transfer the user to a human agent, with a summary of the user's issue. Only transfer if the user explicitly asks for a human agent, or if the user's issue cannot be resolved by the agent with the available tools.",
        summary=text("A summary of the user's issue."),
    )
    def transfer_to_human_agents(self, summary: Any) -> str:
        return "Transfer successful"

    @tool(writes=True)
    @interface(
        "Update the baggage information of a reservation.",
        reservation_id=RESERVATION_ID,
        total_baggages=integer("The updated total number of baggage items included in the reservation."),
        nonfree_baggages=integer("The updated number of non-free baggage items included in the reservation."),
        payment_id=PAYMENT_ID,
    )
    def update_reservation_baggages(
        self, reservation_id: Any, total_baggages: Any, nonfree_baggages: Any, payment_id: Any
    ) -> Record:
        reservation = self._record("reservations", reservation_id, "reservation not found", change=True)
        total = 50 * max(0, nonfree_baggages - reservation["nonfree_baggages"])
        method = self._payer(reservation, payment_id, total)
        reservation["total_baggages"] = total_baggages
        reservation["nonfree_baggages"] = nonfree_baggages
        if method["source"] == "gift_card":
            method["amount"] -= total
        if total != 0:
            reservation["payment_history"].append({"payment_id": payment_id, "amount": total})
        return reservation

    @tool(writes=True)
    @interface(
        "Update the flight information of a reservation.",
        reservation_id=RESERVATION_ID,
        cabin=CABIN,
        flights=objects(
            "An array of objects containing details about each piece of flight in the ENTIRE new reservation. Even if the a flight segment is not changed, it should still be included in the array.",
            **FLIGHT,
        ),
        payment_id=PAYMENT_ID,
    )
    def update_reservation_flights(self, reservation_id: Any, cabin: Any, flights: Any, payment_id: Any) -> Record:
        reservation = self._record("reservations", reservation_id, "reservation not found", change=True)
        passengers = reservation["passengers"]
        total: Any = 0
        flights = thaw(flights)
        for flight in flights:
            kept = [
                f
                for f in reservation["flights"]
                if f["flight_number"] == flight["flight_number"]
                and f["date"] == flight["date"]
                and cabin == reservation["cabin"]
            ]
            if kept:
                total += kept[0]["price"] * len(passengers)
                flight |= {key: kept[0][key] for key in ("price", "origin", "destination")}
            else:
                total += self._fill(flight, cabin, passengers)
        total -= _total(flight["price"] for flight in reservation["flights"]) * len(passengers)
        method = self._payer(reservation, payment_id, total)
        if method["source"] == "gift_card":
            method["amount"] -= total
        reservation["flights"] = flights
        if self.semantics == "fixed":
            reservation["cabin"] = cabin
        if total != 0:
            reservation["payment_history"].append({"payment_id": payment_id, "amount": total})
        return reservation

    @tool(writes=True)
    @interface(
        "Update the passenger information of a reservation.",
        reservation_id=RESERVATION_ID,
        passengers=PASSENGERS,
    )
    def update_reservation_passengers(self, reservation_id: Any, passengers: Any) -> Record:
        reservation = self._record("reservations", reservation_id, "reservation not found", change=True)
        if len(passengers) != len(reservation["passengers"]):
            raise ValueError("number of passengers does not match")
        reservation["passengers"] = thaw(passengers)
        return reservation
