"""What the tools of the hotel answer, field by field."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from muarl.domains.schema import Date, Id, Money, TypedDict, record

Room = Literal["standard", "deluxe", "family", "suite"]
Rate = Literal["flexible", "saver"]
Request = Literal["a cot", "a quiet room", "a high floor", "a parking space", "feather-free pillows"]
Status = Literal["confirmed", "checked in", "completed", "cancelled"]
GuestId = Annotated[str, Id("G-", 5)]
HotelId = Annotated[str, Id("H-", 3)]
BookingId = Annotated[str, Id("B-", 5)]
Nights = Annotated[int, Field(ge=1)]


@record("guest_id")
class Guest(TypedDict):
    """``tier``: of the loyalty programme."""

    guest_id: GuestId
    name: str
    email: str
    tier: Literal["basic", "silver", "gold"]


@record("booking_id")
class BookingLine(TypedDict):
    """A booking in a list."""

    booking_id: BookingId
    hotel: str
    check_in: Date
    status: Status


@record()
class Bookings(TypedDict):
    bookings: list[BookingLine]


@record("booking_id")
class Booking(TypedDict):
    """``late_checkout`` and ``request``: "none" if there is none. ``total``: all nights, breakfast included."""

    booking_id: BookingId
    guest_id: GuestId
    hotel_id: HotelId
    hotel: str
    city: str
    room_type: Room
    people: Annotated[int, Field(ge=1)]
    check_in: Date
    nights: Nights
    rate: Rate
    status: Status
    price_per_night: Money
    breakfast: bool
    late_checkout: Annotated[str, Field(pattern=r"^(none|\d\d:\d\d)$")]
    request: str
    total: Money


@record("hotel_id")
class Hotel(TypedDict):
    """Prices are by day, breakfast by person and day."""

    hotel_id: HotelId
    name: str
    city: str
    breakfast_price: Money
    parking_fee: Money
    pet_fee: Money


@record()
class Hotels(TypedDict):
    hotels: list[Hotel]


@record()
class RoomOffer(TypedDict):
    """``free``: for all nights that were asked for. ``next_free``: other days from which on as many nights are free."""

    room_type: Room
    sleeps: int
    price_per_night: Money
    free: bool
    next_free: list[Date]


@record()
class Rooms(TypedDict):
    hotel_id: HotelId
    check_in: Date
    nights: Nights
    rooms: list[RoomOffer]
