"""The tools of a hotel group's reservations desk, on a small database of guests, hotels and bookings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.base import Domain
from muarl.domains.kit.people import made_id, shift
from muarl.domains.tooling import tool
from muarl_worlds.services.hotel.records import Booking, Bookings, Guest, Hotels, Rate, Request, Room, Rooms

TODAY = "2026-03-14"
SAVER = 0.85
"""What part of the full price the saver rate is."""
AHEAD = 10
"""How many days before and after a wished day other days are looked for."""


class HotelGroup(Domain):
    """Reservations of a group of hotels."""

    name: ClassVar[str] = "hotel"
    policy: ClassVar[Path | str] = Path("policy.md")

    def _booking(self, booking_id: str, *statuses: str) -> Any:
        if booking_id not in self.db.bookings:
            raise ValueError(f"booking {booking_id} not found")
        booking = self.db.bookings[booking_id]
        if statuses and booking["status"] not in statuses:
            raise ValueError(f"booking {booking_id} is {booking['status']}")
        return booking

    def _hotel(self, hotel_id: str) -> Any:
        if hotel_id not in self.db.hotels:
            raise ValueError(f"hotel {hotel_id} not found")
        return self.db.hotels.peek(hotel_id)

    def _room(self, hotel_id: str, room_type: str, check_in: str, nights: int) -> Any:
        """The sort of room, if it is free then."""
        room = self._hotel(hotel_id)["rooms"][room_type]
        if not 1 <= nights <= 30:
            raise ValueError("nights must be from 1 to 30")
        if check_in < TODAY:
            raise ValueError("check_in lies in the past")
        if not is_free(room, check_in, nights):
            raise ValueError(f"no {room_type} room is free for {nights} nights from {check_in}")
        return room

    @tool
    def identify_guest(self, name: str, email: str) -> Guest:
        """Find the guest by full name and e-mail address.

        name: first and last name, such as 'Ada Lind'
        email: the address on the profile, such as 'ada.lind27@example.com'
        """
        for _, guest in self.db.guests.scan():
            if guest["name"].lower() == name.strip().lower() and guest["email"] == email.strip().lower():
                return guest
        raise ValueError("no guest with this name and e-mail address")

    @tool
    def list_bookings(self, guest_id: str) -> Bookings:
        """The guest's bookings without their details, by day of arrival.

        guest_id: the guest, such as 'G-12345'
        """
        if guest_id not in self.db.guests:
            raise ValueError(f"guest {guest_id} not found")
        own = sorted((b["check_in"], k) for k, b in self.db.bookings.scan() if b["guest_id"] == guest_id)
        fields = ("booking_id", "hotel", "check_in", "status")
        return {"bookings": [{f: self.db.bookings.peek(k)[f] for f in fields} for _, k in own]}  # type: ignore[misc]

    @tool
    def get_booking(self, booking_id: str) -> Booking:
        """All details of a booking.

        booking_id: the booking, such as 'B-12345'
        """
        return self._booking(booking_id)

    @tool
    def find_hotels(self, name: str | None = None, city: str | None = None) -> Hotels:
        """The group's hotels by name or city; all of them if neither is given.

        name: a hotel's name or a part of it
        city: such as 'Lisbon'
        """
        found: list[Any] = []
        for _, h in self.db.hotels.scan():
            named = name is None or name.lower() in h["name"].lower()
            if named and (city is None or city.lower() == h["city"].lower()):
                found.append({k: v for k, v in h.items() if k != "rooms"})
        return {"hotels": found}

    @tool
    def check_rooms(self, hotel_id: str, check_in: str, nights: int) -> Rooms:
        """What rooms a hotel has for these nights, at the full price, and other days near by that are free.

        hotel_id: the hotel, such as 'H-123'
        check_in: the day of arrival, such as '2026-04-02'
        nights: how many nights, 30 at most
        """
        if not 1 <= nights <= 30:
            raise ValueError("nights must be from 1 to 30")
        rooms: list[Any] = []
        for kind, room in self._hotel(hotel_id)["rooms"].items():
            free = is_free(room, check_in, nights)
            near = [shift(check_in, n) for n in (1, 2, 3, -1, -2, -3, 4, 5, 6, 7)]
            others = [] if free else [d for d in near if d > TODAY and is_free(room, d, nights)][:3]
            offer = {"room_type": kind, "sleeps": room["sleeps"], "price_per_night": room["price"]}
            rooms.append({**offer, "free": free, "next_free": sorted(others)})
        return {"hotel_id": hotel_id, "check_in": check_in, "nights": nights, "rooms": rooms}

    @tool(writes=True)
    def book_room(
        self, guest_id: str, hotel_id: str, room_type: Room, check_in: str, nights: int, people: int, rate: Rate
    ) -> Booking:
        """Book a room. The saver rate is 15% below the full price.

        guest_id: the guest
        hotel_id: the hotel
        room_type: the sort of room
        check_in: the day of arrival
        nights: how many nights
        people: how many people stay in the room
        rate: flexible or saver
        """
        if guest_id not in self.db.guests:
            raise ValueError(f"guest {guest_id} not found")
        hotel, room = self._hotel(hotel_id), self._room(hotel_id, room_type, check_in, nights)
        if people < 1:
            raise ValueError("people must be at least 1")
        booking: Any = {
            "booking_id": made_id("B-", 5, guest_id, hotel_id, room_type, check_in, nights, people, rate),
            "guest_id": guest_id,
            "hotel_id": hotel_id,
            "hotel": hotel["name"],
            "city": hotel["city"],
            "room_type": room_type,
            "people": people,
            "check_in": check_in,
            "nights": nights,
            "rate": rate,
            "status": "confirmed",
            "price_per_night": price(room, rate),
            "breakfast": False,
            "late_checkout": "none",
            "request": "none",
            "total": 0.0,
        }
        self.db.bookings[booking["booking_id"]] = summed(booking, hotel)
        return booking

    @tool(writes=True)
    def cancel_booking(self, booking_id: str) -> Booking:
        """Cancel a booking; nothing is charged.

        booking_id: the booking
        """
        booking = self._booking(booking_id, "confirmed")
        booking |= {"status": "cancelled", "total": 0.0}
        return booking

    @tool(writes=True)
    def change_dates(self, booking_id: str, check_in: str, nights: int) -> Booking:
        """Move a booking to other nights in a room of the same sort.

        booking_id: the booking
        check_in: the new day of arrival
        nights: how many nights from then on
        """
        booking = self._booking(booking_id, "confirmed")
        room = self._room(booking["hotel_id"], booking["room_type"], check_in, nights)
        booking |= {"check_in": check_in, "nights": nights, "price_per_night": price(room, booking["rate"])}
        return summed(booking, self._hotel(booking["hotel_id"]))

    @tool(writes=True)
    def change_room(self, booking_id: str, room_type: Room) -> Booking:
        """Put a booking into another sort of room for the same nights.

        booking_id: the booking
        room_type: the sort of room that is wanted
        """
        booking = self._booking(booking_id, "confirmed")
        room = self._room(booking["hotel_id"], room_type, booking["check_in"], booking["nights"])
        booking |= {"room_type": room_type, "price_per_night": price(room, booking["rate"])}
        return summed(booking, self._hotel(booking["hotel_id"]))

    @tool(writes=True)
    def add_breakfast(self, booking_id: str) -> Booking:
        """Add breakfast for everybody and every morning to a booking.

        booking_id: the booking
        """
        booking = self._booking(booking_id, "confirmed", "checked in")
        booking["breakfast"] = True
        return summed(booking, self._hotel(booking["hotel_id"]))

    @tool(writes=True)
    def set_late_checkout(self, booking_id: str, until: str) -> Booking:
        """Let the guest keep the room longer on the last day, at no charge.

        booking_id: the booking
        until: the time, such as '13:00'
        """
        booking = self._booking(booking_id, "confirmed", "checked in")
        booking["late_checkout"] = until
        return booking

    @tool(writes=True)
    def set_special_request(self, booking_id: str, request: Request) -> Booking:
        """Note what a guest wishes for the room; it takes the place of an earlier wish.

        booking_id: the booking
        request: the wish
        """
        booking = self._booking(booking_id, "confirmed", "checked in")
        booking["request"] = request
        return booking

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the guest over to a person.

        summary: what it is about, in one sentence
        """
        return "Transfer successful"


def price(room: Any, rate: str) -> float:
    """A night's price at a rate."""
    return round(room["price"] * (SAVER if rate == "saver" else 1.0), 2)


def is_free(room: Any, check_in: str, nights: int) -> bool:
    """Whether a sort of room is free for all nights."""
    return not any(shift(check_in, n) in room["full"] for n in range(nights))


def summed(booking: Any, hotel: Any) -> Any:
    """The booking with its total brought up to date."""
    morning = hotel["breakfast_price"] * booking["people"] if booking["breakfast"] else 0.0
    booking["total"] = round(booking["nights"] * (booking["price_per_night"] + morning), 2)
    return booking
