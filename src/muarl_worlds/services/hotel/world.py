"""A made world of the hotel group: guests, hotels with their rooms, bookings in every state."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.people import Maker, shift
from muarl_worlds.services.hotel import catalogue as cat
from muarl_worlds.services.hotel.tools import TODAY, price, summed

HORIZON = 60
"""How many days ahead rooms may be full."""


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """The tables of one world."""
    rng = make.rng
    cities = rng.sample(list(cat.HOTELS), 2 if make.tiny else len(cat.HOTELS))
    hotels = {}
    for city in sorted(cities):
        for name in cat.HOTELS[city][: 2 if make.tiny else None]:
            hotel = _hotel(make, name, city)
            hotels[hotel["hotel_id"]] = hotel
    guests: dict[str, Any] = {}
    bookings: dict[str, Any] = {}
    for _ in range(make.people):
        guest = _guest(make)
        guests[guest["guest_id"]] = guest
        for hotel in rng.sample(list(hotels.values()), rng.randint(2, 4)):
            booking = _booking(make, guest, hotel)
            bookings[booking["booking_id"]] = booking
    return {"guests": guests, "hotels": hotels, "bookings": bookings}


def _hotel(make: Maker, name: str, city: str) -> dict[str, Any]:
    rng = make.rng
    base = rng.choice((75, 90, 120)) if make.tiny else rng.randrange(70, 190)
    rooms = {}
    for number, (kind, sleeps) in enumerate(cat.ROOMS.items()):
        full = sorted(shift(TODAY, d) for d in range(HORIZON) if make.chance(0.12))
        rooms[kind] = {
            "sleeps": sleeps,
            "price": float(base + 35 * number + (0 if make.tiny else rng.randrange(20))),
            "full": full,
        }
    return {
        "hotel_id": make.id("hotel", "H-", 3),
        "name": name,
        "city": city,
        "breakfast_price": rng.choice((12.0, 14.5, 18.0, 21.0)),
        "parking_fee": rng.choice((0.0, 9.5, 16.0, 22.5)),
        "pet_fee": rng.choice((0.0, 11.0, 17.5)),
        "rooms": rooms,
    }


def _guest(make: Maker) -> dict[str, Any]:
    name = make.name()
    address = name.lower().replace(" ", ".") + str(make.rng.randrange(10, 1000))
    if make.tiny:
        address = name.split(" ")[0].lower()
    return {
        "guest_id": make.id("guest", "G-", 5),
        "name": name,
        "email": f"{address}@example.com",
        "tier": make.rng.choice(("basic", "silver", "gold")),
    }


def _booking(make: Maker, guest: dict[str, Any], hotel: dict[str, Any]) -> dict[str, Any]:
    rng = make.rng
    kind = rng.choice(list(cat.ROOMS))
    status = rng.choice(("confirmed",) * 7 + ("completed", "cancelled", "checked in"))
    first, last = {"completed": (-40, -8), "checked in": (-2, 0)}.get(status, (1, 45))
    rate = rng.choice(("flexible", "flexible", "flexible", "saver"))
    booking = {
        "booking_id": make.id("booking", "B-", 5),
        "guest_id": guest["guest_id"],
        "hotel_id": hotel["hotel_id"],
        "hotel": hotel["name"],
        "city": hotel["city"],
        "room_type": kind,
        "people": rng.randint(1, min(3, cat.ROOMS[kind])),
        "check_in": make.date(TODAY, first, last),
        "nights": rng.randint(1, 5) if make.chance(0.85) else rng.randint(8, 13),
        "rate": rate,
        "status": status,
        "price_per_night": price(hotel["rooms"][kind], rate),
        "breakfast": make.chance(0.3),
        "late_checkout": "none",
        "request": "none",
        "total": 0.0,
    }
    return booking if status == "cancelled" else summed(booking, hotel)
