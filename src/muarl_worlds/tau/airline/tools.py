# ruff: noqa: E501 (the interface's own lines)
"""TAU2 airline's 14 tools, over plain records.

The docstrings are the tools' interface, word for word as TAU2 gives it to models (sierra-research/tau2-bench, MIT
licence, Copyright Sierra Research): they are part of what the benchmark measures. What the tools do is written anew.

In "official" semantics the order of checks, the error texts and the oddities are TAU2's: nested arguments become
objects only if all of a list are JSON objects, unchecked values are stored as they came, and what a call did before it
failed stays done. What "fixed" mends besides is said in fixed.py.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from muarl.domains.tooling import tool
from muarl_worlds.tau.airline import fixed
from muarl_worlds.tau.airline.lookups import AIRPORTS, AirlineLookups, Record, leg_of, offer_of, refuse_surrogates
from muarl_worlds.tau.airline.records import (
    CabinClass,
    Certificate,
    FlightInfo,
    FlightType,
    Insurance,
    Passenger,
    Payment,
    Reservation,
)
from muarl_worlds.tau.airline.task_rules import AIRLINE_TASKS
from muarl_worlds.tau.calculator import calculate

NOW = "2024-05-15T15:00:00"
NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
NEW_CERTIFICATES = ("certificate_3221322", "certificate_3221323", "certificate_3221324")


class AirlineTools(AirlineLookups):
    """The tools. The class name stands in TAU2's error texts."""

    task_rules = AIRLINE_TASKS

    @tool(writes=True)
    def book_reservation(
        self,
        user_id: str,
        origin: str,
        destination: str,
        flight_type: FlightType,
        cabin: CabinClass,
        flights: list[FlightInfo | dict[str, Any]],
        passengers: list[Passenger | dict[str, Any]],
        payment_methods: list[Payment | dict[str, Any]],
        total_baggages: int,
        nonfree_baggages: int,
        insurance: Insurance,
    ) -> Record:
        """
        Book a reservation.

        Args:
            user_id: The ID of the user to book the reservation such as 'sara_doe_496'`.
            origin: The IATA code for the origin city such as 'SFO'.
            destination: The IATA code for the destination city such as 'JFK'.
            flight_type: The type of flight such as 'one_way' or 'round_trip'.
            cabin: The cabin class such as 'basic_economy', 'economy', or 'business'.
            flights: An array of objects containing details about each piece of flight.
            passengers: An array of objects containing details about each passenger.
            payment_methods: An array of objects containing details about each payment method.
            total_baggages: The total number of baggage items to book the reservation.
            nonfree_baggages: The number of non-free baggage items to book the reservation.
            insurance: Whether the reservation has insurance.
        """
        wanted = self._objects(FlightInfo, flights, "flights")
        travellers = self._objects(Passenger, passengers, "passengers")
        payments = self._objects(Payment, payment_methods, "payment_methods")
        self._peek_user(user_id)
        new_id = next((i for i in NEW_RESERVATIONS if i not in self.db.reservations), None)
        if new_id is None:
            raise ValueError("Too many reservations")
        reservation = Reservation(
            reservation_id=new_id,
            user_id=user_id,
            origin=origin,
            destination=destination,
            flight_type=flight_type,
            cabin=cabin,
            flights=[],
            passengers=travellers,
            payment_history=payments,
            created_at=NOW,
            total_baggages=total_baggages,
            nonfree_baggages=nonfree_baggages,
            insurance=insurance,
        ).model_dump()
        price: Any = 0
        for info in wanted:
            each = self._price(info, cabin, len(travellers))
            reservation["flights"].append(leg_of(self._peek_flight(info.flight_number), info, each))
            price += each * len(travellers)
        if insurance == "yes":
            price += 30 * len(travellers)
        price += 50 * nonfree_baggages  # as it came: "2", which TAU2's models read as a number, fails here
        if not self.official:
            fixed.check_baggages(total_baggages, nonfree_baggages)
            fixed.refuse_negative(**{f"payment_methods[{i}].amount": p.amount for i, p in enumerate(payments)})
        self._pay(user_id, payments, price)
        self._take_seats(reservation["flights"], cabin, len(travellers))
        self.db.reservations[new_id] = reservation
        self.db.users[user_id]["reservations"].append(new_id)
        return reservation

    @tool(kind="generic")
    def calculate(self, expression: str) -> str:
        """
        Calculate the result of a mathematical expression.

        Args:
            expression: The mathematical expression to calculate, such as '2 + 2'. The expression can contain numbers, operators (+, -, *, /), parentheses, and spaces.
        """
        return calculate(expression)

    @tool(writes=True)
    def cancel_reservation(self, reservation_id: str) -> Record:
        """
        Cancel the whole reservation.

        Args:
            reservation_id: The reservation ID, such as 'ZFA04Y'.
        """
        self._peek_reservation(reservation_id)
        reservation = self.db.reservations[reservation_id]
        if self.official:
            refuse_surrogates([reservation["cabin"], reservation["passengers"], reservation["total_baggages"]])
        else:
            fixed.refuse_cancelled(reservation)
            self._take_seats(reservation["flights"], reservation["cabin"], -len(reservation["passengers"]))
        history = reservation["payment_history"]
        history += [{"payment_id": p["payment_id"], "amount": -p["amount"]} for p in history]
        reservation["status"] = "cancelled"
        return reservation

    @tool
    def get_reservation_details(self, reservation_id: str) -> Record:
        """
        Get the details of a reservation.

        Args:
            reservation_id: The reservation ID, such as '8JX2WO'.
        """
        return self._peek_reservation(reservation_id)

    @tool
    def get_user_details(self, user_id: str) -> Record:
        """
        Get the details of a user, including their reservations.

        Args:
            user_id: The user ID, such as 'sara_doe_496'.
        """
        return self._peek_user(user_id)

    @tool
    def list_all_airports(self) -> list[Record]:
        """Returns a list of all available airports."""
        return [{"iata": iata, "city": city} for iata, city in AIRPORTS]

    @tool
    def search_direct_flight(self, origin: str, destination: str, date: str) -> list[Record]:
        """
        Search for direct flights between two cities on a specific date.

        Args:
            origin: The origin city airport in three letters, such as 'JFK'.
            destination: The destination city airport in three letters, such as 'LAX'.
            date: The date of the flight in the format 'YYYY-MM-DD', such as '2024-01-01'.
        """
        return [offer_of(flight, day, None) for flight, day in self._bookable(origin, destination, date)]

    @tool
    def search_onestop_flight(self, origin: str, destination: str, date: str) -> list[list[Record]]:
        """
        Search for one-stop flights between two cities on a specific date.

        Args:
            origin: The origin city airport in three letters, such as 'JFK'.
            destination: The destination city airport in three letters, such as 'LAX'.
            date: The date of the flight in the format 'YYYY-MM-DD', such as '2024-05-01'.
        """
        found = []
        for first, day in self._bookable(origin, None, date):
            arrival = first["scheduled_arrival_time_est"]
            if not self.official:
                date2, earliest = fixed.next_departure(date, arrival)
            elif "+1" in arrival:  # TAU2's way: the day without its zero, the arrival compared with its "+1"
                date2, earliest = f"2024-05-{int(date[-2:]) + 1}", arrival
            else:
                date2, earliest = date, arrival
            for second, day2 in self._bookable(first["destination"], destination, date2):
                if second["scheduled_departure_time_est"] >= earliest:
                    found.append([offer_of(first, day, date), offer_of(second, day2, date2)])
        return found

    @tool(writes=True)
    def send_certificate(self, user_id: str, amount: int) -> str:
        """
        Send a certificate to a user. Be careful!

        Args:
            user_id: The ID of the user to book the reservation, such as 'sara_doe_496'.
            amount: The amount of the certificate to send.
        """
        self._peek_user(user_id)
        methods = self.db.users[user_id]["payment_methods"]
        new_id = next((i for i in NEW_CERTIFICATES if i not in methods), None)
        if new_id is None:
            raise ValueError("Too many certificates")
        if not self.official:
            fixed.refuse_negative(amount=amount)
        methods[new_id] = Certificate(source="certificate", id=new_id, amount=amount).model_dump()
        return f"Certificate {new_id} added to user {user_id} with amount {amount}."

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """
        Transfer the user to a human agent, with a summary of the user's issue.
        Only transfer if
         -  the user explicitly asks for a human agent
         -  given the policy and the available tools, you cannot solve the user's issue.

        Args:
            summary: A summary of the user's issue.
        """
        return "Transfer successful"

    @tool(writes=True)
    def update_reservation_baggages(
        self, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> Record:
        """
        Update the baggage information of a reservation.

        Args:
            reservation_id: The reservation ID, such as 'ZFA04Y'
            total_baggages: The updated total number of baggage items included in the reservation.
            nonfree_baggages: The updated number of non-free baggage items included in the reservation.
            payment_id: The payment id stored in user profile, such as 'credit_card_7815826', 'gift_card_7815826', 'certificate_7815826'.
        """
        reservation, user = self._to_change(reservation_id)
        if not self.official:
            fixed.check_baggages(total_baggages, nonfree_baggages)
        price = 50 * max(0, nonfree_baggages - reservation["nonfree_baggages"])
        reservation["payment_history"] += self._charge(user, payment_id, price)
        reservation["total_baggages"] = total_baggages  # as they came: "2" stays a string, and hashes as one
        reservation["nonfree_baggages"] = nonfree_baggages
        return reservation

    @tool(writes=True)
    def update_reservation_flights(
        self, reservation_id: str, cabin: CabinClass, flights: list[FlightInfo | dict[str, Any]], payment_id: str
    ) -> Record:
        """
        Update the flight information of a reservation.


        Args:
            reservation_id: The reservation ID, such as 'ZFA04Y'.
            cabin: The cabin class of the reservation
            flights: An array of objects containing details about each piece of flight in the ENTIRE new reservation. Even if the a flight segment is not changed, it should still be included in the array.
            payment_id: The payment id stored in user profile, such as 'credit_card_7815826', 'gift_card_7815826', 'certificate_7815826'.
        """
        wanted = self._objects(FlightInfo, flights, "flights")
        reservation, user = self._to_change(reservation_id)
        old, passengers = reservation["flights"], len(reservation["passengers"])
        legs: list[Record] = []
        price = 0
        for info in wanted:
            kept = (
                leg
                for leg in old
                if leg["flight_number"] == info.flight_number
                and leg["date"] == info.date
                and cabin == reservation["cabin"]
            )
            leg = next(kept, None)  # a leg that stays keeps the price it had
            if leg is None:
                each = self._price(info, cabin, passengers)
                leg = leg_of(self._peek_flight(info.flight_number), info, each)
            legs.append(leg)
            price += leg["price"] * passengers
        price -= sum(leg["price"] for leg in old) * passengers
        reservation["payment_history"] += self._charge(user, payment_id, price)
        if not self.official:
            stay = {id(leg) for leg in old} & {id(leg) for leg in legs}
            self._take_seats([leg for leg in old if id(leg) not in stay], reservation["cabin"], -passengers)
            self._take_seats([leg for leg in legs if id(leg) not in stay], cabin, passengers)
        reservation["flights"] = legs
        reservation["cabin"] = cabin
        return reservation

    @tool(writes=True)
    def update_reservation_passengers(
        self, reservation_id: str, passengers: list[Passenger | dict[str, Any]]
    ) -> Record:
        """
        Update the passenger information of a reservation.

        Args:
            reservation_id: The reservation ID, such as 'ZFA04Y'.
            passengers: An array of objects containing details about each passenger.
        """
        travellers = self._objects(Passenger, passengers, "passengers")
        self._peek_reservation(reservation_id)
        reservation = self.db.reservations[reservation_id]
        if not self.official:
            fixed.refuse_cancelled(reservation)
        if len(travellers) != len(reservation["passengers"]):
            raise ValueError("Number of passengers does not match")
        # Officially a list that is not all objects, or a text of the right length, is stored as it came.
        reservation["passengers"] = (
            [t.model_dump() if isinstance(t, Passenger) else deepcopy(t) for t in travellers]
            if isinstance(travellers, list)
            else deepcopy(travellers)
        )
        return reservation

    @tool
    def get_flight_status(self, flight_number: str, date: str) -> str:
        """
        Get the status of a flight.

        Args:
            flight_number: The flight number.
            date: The date of the flight.
        """
        status: str = self._peek_day(flight_number, date)["status"]
        return status
