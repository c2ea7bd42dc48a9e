"""The travel desk of ACEBench: flights, travellers and their reservations (Chinese form: chinese.py).

Upstream takes money and changes reservations before it has checked everything. ``_fixed`` checks first, so that what is
refused changes nothing; prices, fees and refunds stay upstream's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from muarl.domains.tooling import tool
from muarl_worlds.acebench.scenario import AceScenario

NOW = datetime(2024, 7, 14, 6, 0, 0)
"""The time at which reservations are cancelled."""

BAG = 50
"""The price of a bag beyond the free ones, in yuan."""

FREE_BAGS: Mapping[str, Mapping[str, int]] = {
    "regular": {"economy": 1, "business": 2},
    "silver": {"economy": 2, "business": 3},
    "gold": {"economy": 3, "business": 3},
}
"""Free bags by membership level and cabin."""

_CLOCK = "%Y-%m-%d %H:%M:%S"


class Travel(AceScenario):
    """``users`` by id, ``flights`` and ``reservations`` as lists."""

    saved: ClassVar[tuple[str, ...]] = ("users", "reservations")

    def __init__(self) -> None:
        self.users: dict[str, Any] = self._initial("users")
        self.flights: list[dict[str, Any]] = self._initial("flights")
        self.reservations: list[dict[str, Any]] = self._initial("reservations")

    @tool
    def get_flight_details(self, origin: str | None = None, destination: str | None = None) -> Any:
        """Show flights with times, prices and free seats.

        Args:
            origin: City of departure; left out: any.
            destination: City of arrival; left out: any.
        """
        flights = self.flights
        if origin:
            flights = [f for f in flights if f["origin"] == origin]
        if destination:
            flights = [f for f in flights if f["destination"] == destination]
        if len(flights) == 0:
            return self._say("no_flights")
        shown = (
            "flight_no", "origin", "destination", "depart_time", "arrival_time", "status", "seats_available",
            "economy_price", "business_price",
        )  # fmt: skip
        return [{key: flight[key] for key in shown} for flight in flights]

    @tool
    def get_user_details(self, user_id: str, password: str) -> Any:
        """Show a traveller's name, balances and membership level.

        Args:
            user_id: The traveller's id, such as 'user1'.
            password: The traveller's password.
        """
        user = self.users.get(user_id)
        if user and user["password"] == password:
            return {key: value for key, value in user.items() if key != "password"}
        return {"status": "error", "message": self._say("travel_password")}

    @tool
    def get_reservation_details(self, reservation_id: str | None = None, user_id: str | None = None) -> Any:
        """Show one reservation, or all of a traveller, with the flight of each.

        Args:
            reservation_id: The reservation's id, such as 'res_1'. If it is given, user_id does not count.
            user_id: The traveller's id.
        """
        if reservation_id:
            found = [r for r in self.reservations if r["reservation_id"] == reservation_id]
        elif user_id:
            found = [r for r in self.reservations if r["user_id"] == user_id]
        else:
            return {"status": "error", "message": self._say("which_reservation")}
        return [{**r, "flight_info": self._flight(r["flight_no"])} for r in found]

    @tool
    def authenticate_user(self, user_id: str, password: str) -> Any:
        """Check a traveller's password and show the whole profile.

        Args:
            user_id: The traveller's id.
            password: The traveller's password.
        """
        user = self.users.get(user_id)
        if user and user["password"] == password:
            return user
        return {"status": "error", "message": self._say("travel_password")}

    @tool
    def get_baggage_allowance(self, membership_level: str, cabin_class: str) -> Any:
        """Tell how many bags are free.

        Args:
            membership_level: 'regular', 'silver' or 'gold'.
            cabin_class: 'Economy Class' or 'Business Class'.
        """
        return self._free_bags().get(membership_level, {}).get(cabin_class, 0)

    @tool
    def find_transfer_flights(self, origin_city: str, transfer_city: str, destination_city: str) -> Any:
        """Find pairs of flights with a change in between, where the first lands before the second leaves.

        Args:
            origin_city: Where the journey begins.
            transfer_city: Where to change.
            destination_city: Where the journey ends.
        """
        first_legs = self._available(origin_city, transfer_city)
        second_legs = self._available(transfer_city, destination_city)
        pairs = []
        for first in first_legs:
            landing = datetime.strptime(first["arrival_time"], _CLOCK)
            for second in second_legs:
                if landing < datetime.strptime(second["depart_time"], _CLOCK):
                    pairs.append({"first_leg": first, "second_leg": second})
        return pairs or self._say("no_transfers")

    def _available(self, origin: str, destination: str) -> list[dict[str, Any]]:
        return [
            flight
            for flight in self.flights
            if flight["origin"] == origin and flight["destination"] == destination and flight["status"] == "available"
        ]

    @tool
    def calculate_baggage_fee(self, membership_level: str, cabin_class: str, baggage_count: int) -> Any:
        """Tell what a number of bags costs beyond the free ones, in yuan.

        Args:
            membership_level: 'regular', 'silver' or 'gold'.
            cabin_class: 'Economy Class' or 'Business Class'.
            baggage_count: How many bags.
        """
        free = self._free_bags()[membership_level][cabin_class]
        return max(baggage_count - free, 0) * BAG

    @tool
    def update_balance(self, user: dict[str, Any], payment_method: str, amount: float) -> Any:
        """Tell whether a profile has the money for a payment. The profile that is handed in changes, nobody's account.

        Args:
            user: The profile, with cash_balance and bank_balance.
            payment_method: 'cash' or 'bank'.
            amount: What is added, in yuan; less than zero for a payment.
        """
        if payment_method in ("cash", "bank"):
            account = f"{payment_method}_balance"
            if user[account] + amount < 0:
                return False
            user[account] += amount
        return True

    @tool(writes=True)
    def reserve_flight(
        self, user_id: str, password: str, flight_no: str, cabin: str, payment_method: str, baggage_count: int
    ) -> Any:
        """Book a seat on a flight and pay for it and for the bags.

        Args:
            user_id: The traveller's id.
            password: The traveller's password.
            flight_no: The flight's number, such as 'CA1234'.
            cabin: 'Economy Class' or 'Business Class'.
            payment_method: 'cash' or 'bank'.
            baggage_count: How many bags are checked in.
        """
        if self._fixed:
            problem = self._booking_problem(user_id, password, flight_no, cabin, baggage_count)
            if problem is not None:
                return problem
        user = self.authenticate_user(user_id, password)
        flight: Any = next(
            (f for f in self.flights if f["flight_no"] == flight_no and f["status"] == "available"), None
        )
        price = flight["economy_price"] if cabin == self._say("economy") else flight["business_price"]
        total = price + self.calculate_baggage_fee(user["membership_level"], cabin, baggage_count)
        if payment_method not in ["cash", "bank"]:
            return self._say("bad_payment")
        account = f"{payment_method}_balance"
        if total > self.users[user_id][account]:
            return self._say(account)
        self.users[user_id][account] -= total
        flight["seats_available"] -= 1
        reservation_id = f"res_{len(self.reservations) + 1}"
        self.reservations.append(
            {
                "reservation_id": reservation_id,
                "user_id": user_id,
                "flight_no": flight_no,
                "payment_method": payment_method,
                "cabin": cabin,
                "baggage": baggage_count,
            }
        )
        return self._say("booked", reservation_id, total)

    @tool(writes=True)
    def modify_flight(
        self,
        user_id: str,
        reservation_id: str,
        new_flight_no: str | None = None,
        new_cabin: str | None = None,
        add_baggage: int = 0,
        new_payment_method: str | None = None,
    ) -> Any:
        """Change a reservation: another flight between the same cities, another cabin, more bags.

        Args:
            user_id: The traveller's id.
            reservation_id: The reservation's id.
            new_flight_no: Number of the new flight; left out: it stays.
            new_cabin: 'Economy Class' or 'Business Class'; left out: it stays.
            add_baggage: How many bags are added.
            new_payment_method: 'cash' or 'bank'; left out: as the reservation was paid.
        """
        reservation = self._own_reservation(user_id, reservation_id)
        if not reservation:
            return self._say("no_own_reservation")
        flight = self._flight(reservation["flight_no"])
        if not flight:
            return self._say("no_flight_info")
        payment_method = new_payment_method if new_payment_method else reservation["payment_method"]
        user = self.users[user_id]
        if not user:
            return self._say("no_user_info")
        if self._fixed:
            problem = self._change_problem(new_cabin, add_baggage, payment_method)
            if problem is not None:
                return problem
        before = dict(user), dict(reservation)
        said: list[str] = []
        if new_flight_no and new_flight_no != reservation["flight_no"]:
            other = self._flight(new_flight_no)
            if not (other and all(other[end] == flight[end] for end in ("origin", "destination"))):
                return self._say("bad_new_flight")
            reservation["flight_no"] = new_flight_no
            said.append(self._say("flight_changed"))
        short = False
        if new_cabin and new_cabin != reservation.get("cabin"):
            difference = self.calculate_price_difference(flight, reservation["cabin"], new_cabin)
            reservation["cabin"] = new_cabin
            if difference > 0:
                paid = self.update_balance(user, payment_method, -difference)
                short = short or not paid
                said.append(self._say("cabin_paid", difference) if paid else self._say("cabin_balance"))
            elif difference < 0:
                self.update_balance(user, payment_method, -difference)
                said.append(self._say("cabin_refunded", -difference))
        if add_baggage > 0:
            free = self.get_baggage_allowance(user["membership_level"], reservation["cabin"])
            bags = reservation.get("baggage", 0) + add_baggage
            cost = max(0, bags - free) * BAG
            if cost > 0:
                paid = self.update_balance(user, payment_method, -cost)
                short = short or not paid
                said.append(self._say("baggage_paid", cost) if paid else self._say("baggage_balance"))
            reservation["baggage"] = bags
        if self._fixed and short:
            user.update(before[0])
            reservation.update(before[1])
            refusals = (self._say("cabin_balance"), self._say("baggage_balance"))
            return " ".join(text for text in said if text in refusals)
        return " ".join(said or [self._say("modified")])

    @tool(writes=True)
    def cancel_reservation(self, user_id: str, reservation_id: str, reason: str) -> Any:
        """Cancel a reservation. What is refunded depends on the reason and on how soon the flight leaves.

        Args:
            user_id: The traveller's id.
            reservation_id: The reservation's id.
            reason: Why it is cancelled, in a few words.
        """
        user = self.users.get(user_id, None)
        if not user:
            return self._say("bad_user")
        reservation = self._own_reservation(user_id, reservation_id)
        if not reservation:
            return self._say("bad_reservation")
        flight = self._flight(reservation["flight_no"])
        if not flight:
            return self._say("bad_flight")
        departure = datetime.strptime(flight["depart_time"], _CLOCK)
        if departure < NOW:
            return self._say("flown")
        economy = reservation["cabin"] == self._say("economy")
        price = flight["economy_price"] if economy else flight["business_price"]
        if reason == self._say("airline_reason"):
            self.process_refund(user, price)
            return self._say("cancelled_by_airline", price)
        if departure - NOW > timedelta(days=1):
            self.process_refund(user, price)
            return self._say("cancelled_free", price)
        fee = price * 0.1
        self.process_refund(user, price - fee)
        return self._say("cancelled_fee", fee, price - fee)

    @tool
    def process_refund(self, user: dict[str, Any], amount: float) -> Any:
        """Add a refund to the cash of a profile. The profile that is handed in changes, nobody's account.

        Args:
            user: The profile, with user_name and cash_balance.
            amount: The refund in yuan.
        """
        user["cash_balance"] += amount
        user["user_name"]  # upstream prints it, and fails if there is none
        return None

    @tool
    def calculate_price_difference(self, flight: dict[str, Any], old_cabin: str, new_cabin: str) -> Any:
        """Tell what a change of cabin costs on a flight, in yuan; less than zero: what is refunded.

        Args:
            flight: The flight, with economy_price and business_price.
            old_cabin: 'Economy Class' or 'Business Class'.
            new_cabin: 'Economy Class' or 'Business Class'.
        """
        prices = {
            self._say("economy"): flight["economy_price"],
            self._say("business"): flight["business_price"],
        }
        old, new = prices.get(old_cabin, 0), prices.get(new_cabin, 0)
        return new - old

    def _free_bags(self) -> dict[str, dict[str, int]]:
        return {
            level: {self._say("economy"): bags["economy"], self._say("business"): bags["business"]}
            for level, bags in FREE_BAGS.items()
        }

    def _flight(self, flight_no: str) -> dict[str, Any] | None:
        return next((f for f in self.flights if f["flight_no"] == flight_no), None)

    def _own_reservation(self, user_id: str, reservation_id: str) -> dict[str, Any] | None:
        wanted = reservation_id, user_id
        return next((r for r in self.reservations if (r["reservation_id"], r["user_id"]) == wanted), None)

    def _booking_problem(
        self, user_id: str, password: str, flight_no: str, cabin: str, baggage_count: int
    ) -> str | None:
        """What upstream does not check before a booking."""
        user = self.users.get(user_id)
        if not user or user["password"] != password:
            return self._say("travel_authentication")
        flight = next((f for f in self.flights if f["flight_no"] == flight_no and f["status"] == "available"), None)
        if flight is None:
            return self._say("fixed_no_flight", flight_no)
        if flight["seats_available"] <= 0:
            return self._say("fixed_full", flight_no)
        return self._change_problem(cabin, baggage_count, "cash")

    def _change_problem(self, cabin: str | None, bags: int, payment_method: str) -> str | None:
        """What upstream does not check before a change."""
        cabins = self._say("economy"), self._say("business")
        if cabin and cabin not in cabins:
            return self._say("fixed_cabin", cabin, *cabins)
        if bags < 0:
            return self._say("fixed_baggage")
        return None if payment_method in ("cash", "bank") else self._say("bad_payment")
