"""What the scripted expert does about a travel desk's requests, one step at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.chat import Message
from muarl.domains.acebench import catalogue as cat
from muarl.domains.acebench import reading
from muarl.domains.acebench.attendant import Attendant
from muarl.domains.acebench.gold import AIRLINE_CANCELLED
from muarl.domains.acebench.phrases import say_bags
from muarl.domains.acebench.reading import Flight, Frame, Reservation, Traveller
from muarl.domains.acebench.trips import bag_fee


class TripSteps(Attendant):
    """Flights and reservations."""

    def _trip(self, frame: Frame) -> Message:
        asked = self._identity("user_id", "password")
        if asked is not None:
            return asked
        user_id = self._who["user_id"]
        known = self._seen.get(("get_user_details", user_id))
        if known is None:
            return self._call("get_user_details", user_id=user_id, password=self._slip(self._who["password"]))
        if frame.kind == "outside":
            return self._hand_over(f"The caller wants to talk about {frame.slots['topic']}.")
        profile = reading.read_traveller(known[0])
        if frame.kind == "funds":
            return self._answer(f"Your bank balance is {profile.bank} yuan.")
        steps = {"book": self._book, "connect": self._connect, "fare": self._fare}
        if frame.kind in steps:
            return steps[frame.kind](frame, profile)
        found = self._reservation(frame.slots)
        if isinstance(found, Message):
            return found
        return {
            "move": self._move,
            "cabin": self._cabin,
            "bags": self._bags,
            "cancel": self._cancel,
            "question": self._number_of,
            "compensation": self._compensate,
            "fewer_bags": self._fewer_bags,
            "destination": self._destination,
        }[frame.kind](frame, profile, found)

    # looking up

    def _flights(self, origin: str, destination: str) -> tuple[Flight, ...] | Message:
        look = self._look("get_flight_details", origin=origin, destination=destination)
        if isinstance(look, Message):
            return look
        return () if look[1] is not None else reading.read_flights(look[0], origin, destination)

    def _reservation(self, slots: dict[str, Any]) -> Reservation | Message:
        """The reservation a request is about, or the next step towards it."""
        if "reservation_id" not in slots and "described" not in slots:
            return self._ask("reservation_id")
        about = {"reservation_id": slots["reservation_id"]} if "reservation_id" in slots else self._whose()
        look = self._look("get_reservation_details", **about)
        if isinstance(look, Message):
            return look
        mine = reading.read_reservations(look[0])
        found = [
            r
            for r in mine
            if r.reservation_id == slots.get("reservation_id")
            or ("reservation_id" not in slots and r.flight.destination == slots["described"])
        ]
        if not found:
            slots.pop("reservation_id", None)
            slots.pop("described", None)
            return self._say("I cannot find that. Which reservation is it?", "reservation_id")
        slots["reservation_id"] = found[0].reservation_id
        return found[0]

    def _whose(self) -> dict[str, str]:
        return {"user_id": self._who["user_id"]}

    def _fit(self, flights: Sequence[Flight], day: str, cabin: str) -> Flight | None:
        """The cheapest flight of a day that has a seat."""
        free = [f for f in flights if f.day == day and f.free]
        return min(free, key=lambda f: f.fares[cabin]) if free else None

    def _other_day(self, slots: dict[str, Any]) -> Message:
        text = f"I am sorry, {slots['date']} is not available. Which other date would you like?"
        return self._unavailable(slots, "date", text)

    # bookings

    def _book(self, frame: Frame, profile: Traveller) -> Message:
        slots = frame.slots
        missing = self._missing(slots, "origin", "destination", "date", "cabin")
        if missing is not None:
            return missing
        flights = self._flights(slots["origin"], slots["destination"])
        if isinstance(flights, Message):
            return flights
        flight = self._fit(flights, slots["date"], slots["cabin"])
        if flight is None:
            return self._other_day(slots)
        return self._reserve(frame, profile, [flight])

    def _connect(self, frame: Frame, profile: Traveller) -> Message:
        slots = frame.slots
        missing = self._missing(slots, "origin", "destination", "via", "date", "cabin")
        if missing is not None:
            return missing
        ends = {"origin_city": slots["origin"], "transfer_city": slots["via"], "destination_city": slots["destination"]}
        look = self._look("find_transfer_flights", **ends)
        if isinstance(look, Message):
            return look
        pairs = () if look[1] is not None else reading.read_pairs(look[0])
        fit = [p for p in pairs if p[0].day == slots["date"] and p[0].free and p[1].free]
        if not fit:
            return self._other_day(slots)
        cabin = slots["cabin"]
        best = min(fit, key=lambda p: p[0].fares[cabin] + p[1].fares[cabin])
        return self._reserve(frame, profile, best)

    def _reserve(self, frame: Frame, profile: Traveller, flights: Sequence[Flight]) -> Message:
        slots = frame.slots
        missing = self._missing(slots, "bags")
        if missing is None and slots.get("hitch") == "balance":
            return self._unavailable(slots, "payment", "Insufficient balance. Which other payment would you like?")
        missing = missing or self._missing(slots, "payment")
        if missing is not None:
            return missing
        cabin, bags = slots["cabin"], slots["bags"]
        numbers = [f.number for f in flights]
        if "confirmed" not in slots:
            slots["numbers"] = numbers
        total = sum(f.fares[cabin] for f in flights)
        if self._detailed:
            total += bag_fee(profile.level, cabin, bags) * len(flights)
        named = " and ".join(numbers)
        return self._write(
            frame,
            (
                slots["origin"],
                slots["destination"],
                slots["date"],
                named,
                cabin,
                total,
                say_bags(bags),
                slots["payment"],
            ),
            user_id=self._who["user_id"],
            password=self._who["password"],
            flight_no=slots["numbers"][0],
            cabin=cabin,
            payment_method=slots["payment"],
            baggage_count=bags,
        )

    def _fare(self, frame: Frame, profile: Traveller) -> Message:
        slots = frame.slots
        missing = self._missing(slots, "origin", "destination", "date", "cabin")
        if missing is not None:
            return missing
        flights = self._flights(slots["origin"], slots["destination"])
        if isinstance(flights, Message):
            return flights
        flight = self._fit(flights, slots["date"], slots["cabin"])
        if flight is None:
            return self._answer("There is none.")
        return self._answer(f"It is {flight.number} at {flight.fares[slots['cabin']]} yuan.")

    # reservations

    def _change(self, frame: Frame, proposal: Sequence[Any], **change: Any) -> Message:
        who = {"user_id": self._who["user_id"], "reservation_id": frame.slots["reservation_id"]}
        return self._write(frame, proposal, **who, **change)

    def _move(self, frame: Frame, profile: Traveller, r: Reservation) -> Message:
        slots = frame.slots
        missing = self._missing(slots, "date")
        if missing is not None:
            return missing
        flights = self._flights(r.flight.origin, r.flight.destination)
        if isinstance(flights, Message):
            return flights
        flight = self._fit(flights, slots["date"], r.cabin)
        if flight is None:
            return self._other_day(slots)
        proposal = r.reservation_id, slots["date"], flight.number
        return self._change(frame, proposal, new_flight_no=flight.number)

    def _payment(self, slots: dict[str, Any]) -> Message | None:
        if slots.get("hitch") == "balance":
            return self._unavailable(slots, "payment", "Insufficient balance. Which other payment would you like?")
        return self._missing(slots, "payment")

    def _cabin(self, frame: Frame, profile: Traveller, r: Reservation) -> Message:
        slots = frame.slots
        missing = self._missing(slots, "cabin") or self._payment(slots)
        if missing is not None:
            return missing
        cabin, fares = slots["cabin"], r.flight.fares
        difference = fares[cabin] - fares[r.cabin] if fares else 0
        named = f"{cabin} for {difference} yuan" if difference > 0 else cabin
        named = f"{cabin} with {-difference} yuan back" if difference < 0 else named
        proposal = r.reservation_id, named, slots["payment"]
        return self._change(frame, proposal, new_cabin=cabin, new_payment_method=slots["payment"])

    def _bags(self, frame: Frame, profile: Traveller, r: Reservation) -> Message:
        slots = frame.slots
        missing = self._missing(slots, "bags") or self._payment(slots)
        if missing is not None:
            return missing
        fee = bag_fee(profile.level, r.cabin, r.bags + slots["bags"]) if self._detailed else 0
        named = f"{r.reservation_id} for {fee} yuan" if fee else r.reservation_id
        proposal = say_bags(slots["bags"]), named, slots["payment"]
        return self._change(frame, proposal, add_baggage=slots["bags"], new_payment_method=slots["payment"])

    def _cancel(self, frame: Frame, profile: Traveller, r: Reservation) -> Message:
        slots = frame.slots
        missing = self._missing(slots, "reason")
        if missing is not None:
            return missing
        if r.flight.day < cat.TODAY:
            return self._hand_over("The caller wants to cancel a flight that has left.")
        gone = r.flight.status == "cancelled"
        reason = AIRLINE_CANCELLED if gone else slots["reason"]
        fee = r.flight.day == cat.TODAY and not gone
        named = f"{r.reservation_id} for a fee of 10 percent" if fee else r.reservation_id
        return self._change(frame, (named,), reason=reason)

    def _number_of(self, frame: Frame, profile: Traveller, r: Reservation) -> Message:
        return self._answer(f"{r.reservation_id} is on flight {r.flight.number}.")

    def _compensate(self, frame: Frame, profile: Traveller, r: Reservation) -> Message:
        entitled = profile.level != "regular" or r.cabin == cat.CABINS[1]
        if (r.flight.status == "cancelled" and entitled) or self._try_anyway(frame):
            return self._answer("I can offer you a voucher of 200 yuan.")
        return self._refuse(frame)

    def _fewer_bags(self, frame: Frame, profile: Traveller, r: Reservation) -> Message:
        return self._refuse(frame)

    def _destination(self, frame: Frame, profile: Traveller, r: Reservation) -> Message:
        return self._refuse(frame)
