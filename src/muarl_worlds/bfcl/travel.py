"""TravelAPI: flights, bookings, credit cards and insurance at a travel agency (BFCL travel_booking)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from muarl.domains.tooling import tool
from muarl_worlds.bfcl.api import Api, LongContext, Revision
from muarl_worlds.bfcl.parts import Draws, Literals, copied, initial, named, twin
from muarl_worlds.bfcl.routes import AIRPORTS, NEAREST, ROUTES, booking_cost, exchanged, fare, unverified


@named
class _TravelAPI(Api):
    """What both revisions have. ``token_expires_in``: None before the first login, 0 when the token is used up."""

    name = "TravelAPI"
    defaults: ClassVar[Mapping[str, Any]] = {
        "credit_card_list": {}, "booking_record": {}, "access_token": None, "token_type": None,
        "token_expires_in": None, "token_scope": None, "user_first_name": None, "user_last_name": None,
        "budget_limit": None,
    }  # fmt: skip
    floats: ClassVar[bool]
    """Whether money that is multiplied by a rate is always a float."""

    credit_card_list: dict[str, dict[str, Any]]
    booking_record: dict[str, dict[str, Any]]
    access_token: Any
    token_type: Any
    token_expires_in: Any
    token_scope: Any
    user_first_name: Any
    user_last_name: Any
    budget_limit: Any
    long_context: bool

    def load(self, config: Mapping[str, Any], long_context: LongContext | None = None) -> None:
        vars(self).update(initial(config, self.defaults))
        self.long_context = long_context is not None
        self._random = Draws(config.get("random_seed", 141053))
        if long_context is not None:
            literals = Literals(long_context)
            for card, details in literals["CREDIT_CARD_EXTENSION"].items():
                self.credit_card_list.setdefault(card, details)
            for booking, details in literals["BOOKING_RECORD_EXTENSION"].items():
                self.booking_record.setdefault(booking, details)

    def copy(self) -> Self:
        return twin(self)

    @tool(writes=True)
    def authenticate_travel(
        self,
        client_id: str,
        client_secret: str,
        refresh_token: str,
        grant_type: str,
        user_first_name: str,
        user_last_name: str,
    ) -> dict[str, Any]:
        """Log a traveller in and get an access token.

        client_id: the client's id.
        client_secret: the client's secret.
        refresh_token: the token that was given to the client.
        grant_type: read_write, read or write.
        user_first_name: the traveller's first name.
        user_last_name: the traveller's last name.
        """
        self.token_expires_in = 2
        self.access_token = str(self._random.randint(100000, 999999))
        self.token_type = "Bearer"
        self.token_scope = grant_type
        self.user_first_name = user_first_name
        self.user_last_name = user_last_name
        return {"expires_in": 2, "access_token": self.access_token, "token_type": "Bearer", "scope": grant_type}

    @tool
    def travel_get_login_status(self) -> dict[str, Any]:
        """Say whether a traveller is logged in."""
        return {"status": not (self.token_expires_in is None or self.token_expires_in == 0)}

    @tool
    def get_budget_fiscal_year(
        self, lastModifiedAfter: str | None = None, includeRemoved: str | None = None
    ) -> dict[str, Any]:
        """Tell the fiscal year of the budget.

        lastModifiedAfter: only years changed after this moment, as YYYY-MM-DDTHH:MM:SS.
        includeRemoved: whether removed years count.
        """
        return {"budget_fiscal_year": "2018"}

    @tool(writes=True)
    def register_credit_card(
        self,
        access_token: str,
        card_number: str,
        expiration_date: str,
        cardholder_name: str,
        card_verification_number: int,
    ) -> dict[str, Any]:
        """Register a credit card and get the id it has here.

        access_token: the token from logging in.
        card_number: the number on the card.
        expiration_date: until when it is valid, as MM/YYYY.
        cardholder_name: whose card it is.
        card_verification_number: the verification number.
        """
        if self.token_expires_in is None:
            return {"error": "Token not initialized"}
        refused = self._refused(access_token)
        if refused is not None:
            return {"error": refused}
        if card_number in self.credit_card_list:
            return {"error": "Card already registered"}
        card_id = str(self._random.randint(100000000000, 999999999999))
        self.credit_card_list[card_id] = {
            "card_number": card_number,
            "expiration_date": expiration_date,
            "cardholder_name": cardholder_name,
            "card_verification_number": card_verification_number,
            "balance": self._random.randint(10000, 99999),
        }
        return {"card_id": card_id}

    @tool
    def get_flight_cost(self, travel_from: str, travel_to: str, travel_date: str, travel_class: str) -> dict[str, Any]:
        """Tell what a flight costs, in dollars.

        travel_from: the code of the airport it leaves from.
        travel_to: the code of the airport it goes to.
        travel_date: the day, as YYYY-MM-DD.
        travel_class: economy, business or first.
        """
        base, factor = fare(travel_from, travel_to, travel_date, travel_class)
        costs = ROUTES.values() if self.long_context else (base,)
        return {"travel_cost_list": [float(cost * factor) for cost in costs]}

    @tool
    def get_credit_card_balance(self, access_token: str, card_id: str) -> dict[str, Any]:
        """Tell the balance of a registered credit card.

        access_token: the token from logging in.
        card_id: the card's id.
        """
        refused = self._refused(access_token)
        if refused is not None:
            return {"error": refused}
        if card_id not in self.credit_card_list:
            known = list(self.credit_card_list.keys())
            return {"error": f"Card not registered. Here are a list of card_id's: {known}"}
        return {"card_balance": self.credit_card_list[card_id]["balance"]}

    @tool(writes=True)
    def book_flight(
        self,
        access_token: str,
        card_id: str,
        travel_date: str,
        travel_from: str,
        travel_to: str,
        travel_class: str,
    ) -> dict[str, Any]:
        """Book a flight and pay for it.

        access_token: the token from logging in.
        card_id: the id of the credit card that pays.
        travel_date: the day, as YYYY-MM-DD.
        travel_from: the code of the airport it leaves from.
        travel_to: the code of the airport it goes to.
        travel_class: economy, business or first.
        """
        problem, cost = self._price(access_token, card_id, travel_date, travel_from, travel_to, travel_class)
        if problem is not None:
            return {"booking_status": False, "error": problem}
        self.credit_card_list[card_id]["balance"] -= cost
        booking_id = str(self._random.randint(1000000, 9999999))
        transaction_id = str(self._random.randint(10000000, 99999999))
        self.booking_record[booking_id] = {
            "card_id": card_id,
            "travel_date": travel_date,
            "travel_from": travel_from,
            "travel_to": travel_to,
            "travel_class": travel_class,
            "travel_cost": cost,
            "transaction_id": transaction_id,
        }
        return {
            "booking_id": booking_id,
            "transaction_id": transaction_id,
            "booking_status": True,
            "booking_history": self.booking_record if self.long_context else {},
        }

    @tool
    def retrieve_invoice(
        self, access_token: str, booking_id: str | None = None, insurance_id: str | None = None
    ) -> dict[str, Any]:
        """Show the invoice of a booking.

        access_token: the token from logging in.
        booking_id: the booking's id.
        insurance_id: the id of an insurance; it changes nothing.
        """
        refused = self._refused(access_token)
        if refused is not None:
            return {"error": refused}
        if booking_id not in self.booking_record:
            return {"error": "Booking not found"}
        record = self.booking_record[booking_id]
        shown = ("travel_date", "travel_from", "travel_to", "travel_class", "travel_cost", "transaction_id")
        return {"invoice": {"booking_id": booking_id, **{name: record[name] for name in shown}}}

    @tool
    def list_all_airports(self) -> list[str]:
        """List the codes of all airports."""
        return list(AIRPORTS)

    @tool(writes=True)
    def cancel_booking(self, access_token: str, booking_id: str) -> dict[str, Any]:
        """Cancel a booking and get the money back.

        access_token: the token from logging in.
        booking_id: the booking's id.
        """
        refused = self._refused(access_token)
        if refused is not None:
            return {"cancel_status": False, "error": refused}
        if booking_id not in self.booking_record:
            return {"cancel_status": False, "error": "Booking not found"}
        card_id = self.booking_record[booking_id]["card_id"]
        cost = self.booking_record[booking_id]["travel_cost"]
        self.credit_card_list[card_id]["balance"] += cost
        del self.booking_record[booking_id]
        return {"cancel_status": True}

    @tool
    def compute_exchange_rate(self, base_currency: str, target_currency: str, value: float) -> dict[str, Any]:
        """Convert money into another currency; one of the two must be USD.

        base_currency: what it is in: USD, RMB, EUR, JPY, GBP, CAD, AUD, INR, RUB, BRL or MXN.
        target_currency: what it is wanted in.
        value: how much.
        """
        amount, multiplied = exchanged(base_currency, target_currency, value)
        return {"exchanged_value": float(amount) if multiplied and self.floats else amount}

    @tool
    def verify_traveler_information(
        self, first_name: str, last_name: str, date_of_birth: str, passport_number: str
    ) -> dict[str, Any]:
        """Check that a traveller is who is logged in, of age today, and has a US passport.

        first_name: the traveller's first name.
        last_name: the traveller's last name.
        date_of_birth: the day of birth, as YYYY-MM-DD.
        passport_number: the passport's number.
        """
        known = (self.user_first_name, self.user_last_name)
        problem = unverified(known, (first_name, last_name), date_of_birth, passport_number)
        if problem is not None:
            return {"verification_status": False, "verification_failure": problem}
        return {"verification_status": True}

    @tool(writes=True)
    def set_budget_limit(self, access_token: str, budget_limit: float) -> dict[str, Any]:
        """Set the traveller's budget limit.

        access_token: the token from logging in.
        budget_limit: the limit in dollars.
        """
        refused = self._refused(access_token)
        if refused is not None:
            return {"error": refused}
        self.budget_limit = float(budget_limit)
        return {"budget_limit": self.budget_limit}

    @tool
    def get_nearest_airport_by_city(self, location: str) -> dict[str, Any]:
        """Look up the airport of a city.

        location: the city's name.
        """
        return {"nearest_airport": NEAREST.get(location, "Unknown")}

    @tool(writes=True)
    def purchase_insurance(
        self, access_token: str, insurance_type: str, booking_id: str, insurance_cost: float, card_id: str
    ) -> dict[str, Any]:
        """Insure a booking and pay for it.

        access_token: the token from logging in.
        insurance_type: what kind of insurance.
        booking_id: the booking's id.
        insurance_cost: what it costs, in dollars.
        card_id: the id of the credit card that pays.
        """
        refused = self._refused(access_token)
        if refused is not None:
            return {"insurance_status": False, "error": refused}
        if self.budget_limit is not None and self.budget_limit < insurance_cost:
            return {"insurance_status": False, "error": "Exceeded budget limit"}
        if booking_id not in self.booking_record:
            return {"insurance_status": False, "error": "Booking not found"}
        if card_id not in self.credit_card_list:
            return {"insurance_status": False, "error": "Credit card not registered"}
        self.credit_card_list[card_id]["balance"] -= insurance_cost
        return {"insurance_id": str(self._random.randint(100000000, 999999999)), "insurance_status": True}

    @tool
    def contact_customer_support(self, booking_id: str, message: str) -> dict[str, Any]:
        """Write to customer support about a booking.

        booking_id: the booking's id.
        message: what to tell them.
        """
        if booking_id not in self.booking_record:
            return {"error": "Booking not found"}
        return {
            "customer_support_message": "Thank you for contacting customer support. "
            "Your message has been received and we will get back to you shortly."
        }

    @tool
    def get_all_credit_cards(self) -> dict[str, Any]:
        """List all registered credit cards by their ids."""
        return {"credit_card_list": self.credit_card_list}

    def _refused(self, access_token: Any) -> str | None:
        """Why a token does not do, or None."""
        if self.token_expires_in == 0:
            return "Token expired"
        if access_token != self.access_token:
            self._count_down()
            return "Invalid access token"
        return None

    def _count_down(self) -> None:
        """A wrong token was given."""

    def _price(
        self, access_token: Any, card_id: Any, travel_date: Any, travel_from: Any, travel_to: Any, travel_class: Any
    ) -> tuple[str | None, float]:
        """Why a flight cannot be booked, or None, and its cost."""
        refused = self._refused(access_token)
        if refused is not None:
            return refused, 0
        if card_id not in self.credit_card_list:
            return "Card not registered", 0
        card = self.credit_card_list[card_id]
        if "balance" not in card:
            return "Balance not found", 0
        problem, cost = booking_cost(travel_from, travel_to, travel_date, travel_class)
        if problem is not None:
            return problem, 0
        if card["balance"] < cost:
            return "Insufficient funds", 0
        if self.budget_limit is not None and card["balance"] < self.budget_limit:
            return "Balance is less than budget limit", 0
        return None, cost


@named
class TravelV3(_TravelAPI):
    """TravelAPI of revision v3, where every wrong token counts the token's life down."""

    floats = False

    def _count_down(self) -> None:
        self.token_expires_in -= 1


@named
class TravelV4(_TravelAPI):
    """TravelAPI of revision v4."""

    floats = True

    @tool
    def get_booking_history(self, access_token: str) -> dict[str, Any]:
        """Show all bookings by their ids.

        access_token: the token from logging in.
        """
        refused = self._refused(access_token)
        if refused is not None:
            return {"error": refused}
        return {"booking_history": copied(self.booking_record)}


REVISIONS: Mapping[Revision, type[Api]] = {"v3": TravelV3, "v4": TravelV4}
