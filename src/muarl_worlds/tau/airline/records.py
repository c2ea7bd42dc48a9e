"""The records of TAU2's airline, as its data model checks and orders them.

Field names, their order, types, class names and the descriptions of ``FlightInfo``, ``Passenger`` and ``Payment`` are
TAU2's to the letter (sierra-research/tau2-bench, MIT licence, Copyright Sierra Research): they show in tool schemas,
error texts and hashes. Those three have no docstrings, which would show too.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

FlightType = Literal["round_trip", "one_way"]
CabinClass = Literal["business", "economy", "basic_economy"]
Insurance = Literal["yes", "no"]
PerCabin = dict[CabinClass, int]


class FlightInfo(BaseModel):
    flight_number: str = Field(description="Flight number, such as 'HAT001'.")
    date: str = Field(description="The date for the flight in the format 'YYYY-MM-DD', such as '2024-05-01'.")


class Passenger(BaseModel):
    first_name: str = Field(description="Passenger's first name")
    last_name: str = Field(description="Passenger's last name")
    dob: str = Field(description="Date of birth in YYYY-MM-DD format")


class Payment(BaseModel):
    payment_id: str = Field(description="Unique identifier for the payment")
    amount: int = Field(description="Payment amount in dollars")


class Name(BaseModel):
    """A user's name."""

    first_name: str
    last_name: str


class Address(BaseModel):
    """A user's address."""

    address1: str
    address2: str | None = None
    city: str
    country: str
    state: str
    zip: str


class CreditCard(BaseModel):
    """A card whose balance nobody keeps here."""

    source: Literal["credit_card"]
    id: str
    brand: str
    last_four: str


class GiftCard(BaseModel):
    """A card with a balance in dollars."""

    source: Literal["gift_card"]
    id: str
    amount: float


class Certificate(BaseModel):
    """A voucher in dollars that one booking uses up."""

    source: Literal["certificate"]
    id: str
    amount: float


class User(BaseModel):
    """A customer."""

    user_id: str
    name: Name
    address: Address
    email: str
    dob: str
    payment_methods: dict[str, Annotated[CreditCard | GiftCard | Certificate, Field(discriminator="source")]]
    saved_passengers: list[Passenger]
    membership: Literal["gold", "silver", "regular"]
    reservations: list[str]


class Available(BaseModel):
    """A flight on a day on which it can be booked."""

    status: Literal["available"]
    available_seats: PerCabin
    prices: PerCabin


class Landed(BaseModel):
    """A flight that has arrived."""

    status: Literal["landed"]
    actual_departure_time_est: str
    actual_arrival_time_est: str


class Cancelled(BaseModel):
    """A flight that does not fly on that day."""

    status: Literal["cancelled"]


class Expected(BaseModel):
    """A flight that has not left yet."""

    status: Literal["delayed", "on time"]
    estimated_departure_time_est: str
    estimated_arrival_time_est: str


class Flying(BaseModel):
    """A flight in the air."""

    status: Literal["flying"]
    actual_departure_time_est: str
    estimated_arrival_time_est: str


class Flight(BaseModel):
    """A flight number and what becomes of it on each day."""

    flight_number: str
    origin: str
    destination: str
    scheduled_departure_time_est: str
    scheduled_arrival_time_est: str
    dates: dict[str, Annotated[Available | Landed | Cancelled | Expected | Flying, Field(discriminator="status")]]


class ReservationFlight(BaseModel):
    """One leg of a reservation; the price is one passenger's."""

    flight_number: str
    origin: str
    destination: str
    date: str
    price: int


class Reservation(BaseModel):
    """A booking."""

    reservation_id: str
    user_id: str
    origin: str
    destination: str
    flight_type: FlightType
    cabin: CabinClass
    flights: list[ReservationFlight]
    passengers: list[Passenger]
    payment_history: list[Payment]
    created_at: str
    total_baggages: int
    nonfree_baggages: int
    insurance: Insurance
    status: Literal["cancelled"] | None = None
