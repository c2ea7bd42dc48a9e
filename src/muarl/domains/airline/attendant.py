"""What the scripted airline agent does whatever it is asked: hear, observe, look up, ask, propose, refuse.

It reads only what any agent reads: the caller's words and the tools' observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.chat import Message
from muarl.domains.airline import reading
from muarl.domains.airline.gold import WRITES
from muarl.domains.airline.reading import Frame, Leg, Offer, Reservation
from muarl.domains.experts import Habits
from muarl.domains.scripted import TRANSFER, TRANSFERRED, SlotExpert

ASK: Mapping[str, str] = {
    "reservation_id": "Which reservation is it?",
    "reason": "What is the reason?",
    "flight": "Which flight is it?",
    "date": "Which date would you like?",
    "cabin": "Which cabin would you like?",
    "bags": "How many bags in total?",
    "who": "Which passenger is it?",
    "passenger": "Who is the new passenger?",
    "payment": "Which payment method should I use?",
    "origin": "From where do you fly?",
    "destination": "Where do you fly to?",
    "passengers": "Who is flying? Please give me the names and dates of birth of all passengers.",
    "insurance": "Would you like insurance?",
}
PROPOSE: Mapping[str, str] = {
    "cancel": "I will cancel reservation {}",
    "flights": "I will change reservation {} to {}",
    "cabin": "I will change reservation {} to {}",
    "bags": "I will update reservation {} to {}",
    "passenger": "I will change the passenger of reservation {} to {}",
    "compensation": "I will send a certificate of ${1} for reservation {0}",
    "book": "I will book {1}",
}
REFUSE: Mapping[str, str] = {
    "cancel": "I cannot cancel this reservation.",
    "flights": "I cannot change flights in basic economy.",
    "cabin": "I cannot change the cabin, the trip has begun.",
    "compensation": "I cannot offer compensation for this.",
    "bags": "I cannot remove bags.",
    "fewer_bags": "I cannot remove bags.",
    "passenger": "I cannot find this passenger.",
    "more_passengers": "I cannot change the number of passengers.",
    "insurance": "I cannot add insurance after booking.",
}
GUESSES: Mapping[str, Any] = {"reason": "change of plan", "payment": "credit_card", "insurance": False, "bags": 0}
"""What a guessing expert takes for granted; for an existing reservation it does not guess bags."""


class Attendant(SlotExpert[Frame]):
    """One conversation: ``act`` takes the new messages and gives the next one; ``_serve`` is the subclass's."""

    ask, propose, refuse, guesses, writes = ASK, PROPOSE, REFUSE, GUESSES, WRITES
    plain = "bags"

    def __init__(self, *, seed: int, habits: Habits = Habits()) -> None:
        super().__init__("airline", seed=seed, habits=habits)
        self._user_id: str | None = None
        self._profile: reading.Profile | None = None
        self._not_found = False
        self._reservations: dict[str, Reservation] = {}
        self._offers: dict[tuple[str, str, str], tuple[Offer, ...]] = {}
        self._statuses: dict[tuple[str, str], str] = {}

    # what came in

    def _hear_who(self, text: str) -> None:
        self._user_id = reading.read_identity(text) or self._user_id

    def _requests_in(self, text: str) -> list[Frame]:
        return reading.read_requests(text)

    def _slots_in(self, text: str) -> Mapping[str, Any]:
        return reading.read_slots(text)

    def _observe(self, message: Message) -> None:
        call, text = self._last, message.content or ""
        if call is None:
            return
        given = call.arguments
        if message.error:
            if call.name == "get_user_details" and not self._slipped:
                self._not_found, self._user_id = True, None
            elif call.name == "get_reservation_details" and not self._slipped and self._frames:
                self._frames[0].slots.pop("reservation_id", None)
            elif call.name == "get_flight_status":
                self._statuses[given["flight_number"], given["date"]] = "unknown"
            elif call.name == "search_direct_flight":
                self._offers[given["origin"], given["destination"], given["date"]] = ()
            elif call.name in WRITES.values() and self._frames:
                self._frames.pop(0)
                self._outcome = "I cannot do that."
            return
        if call.name == "get_user_details":
            self._profile = reading.read_profile(given["user_id"], text)
        elif call.name == "get_reservation_details":
            self._reservations[given["reservation_id"]] = reading.read_reservation(text)
        elif call.name == "search_direct_flight":
            self._offers[given["origin"], given["destination"], given["date"]] = reading.read_offers(text)
        elif call.name == "get_flight_status":
            self._statuses[given["flight_number"], given["date"]] = text
        elif call.name == TRANSFER:
            self._handed_over = True
        elif call.name in WRITES.values():
            self._reservations.pop(given.get("reservation_id", ""), None)
            self._frames.pop(0)
            self._outcome = "Done."

    # what goes out

    def _decide(self) -> Message:
        if self._handed_over:
            return self._say(TRANSFERRED)
        if self._profile is None:
            if self._user_id is None:
                checking = "I could not find you. Please check your user id."
                return self._say(checking if self._not_found else "May I have your user id?")
            return self._call("get_user_details", user_id=self._slip(self._user_id))
        if self._transfer:
            return self._hand_over("The customer needs help.")
        if not self._frames:
            return self._what_else()
        return self._serve(self._frames[0], self._profile)

    def _serve(self, frame: Frame, profile: reading.Profile) -> Message:
        """The next step towards what the first request asks for."""
        raise NotImplementedError

    # steps that requests share

    def _find_reservation(self, slots: dict[str, Any], profile: reading.Profile) -> Reservation | Message:
        """The reservation a request is about, or the next step towards it."""
        if "reservation_id" not in slots:
            if "described" not in slots:
                return self._ask("reservation_id")
            for known in profile.reservations:
                if known not in self._reservations:
                    return self._call("get_reservation_details", reservation_id=known)
                if self._reservations[known].destination == slots["described"]:
                    slots["reservation_id"] = known
                    break
            else:
                del slots["described"]
                return self._ask("reservation_id")
        wanted = slots["reservation_id"]
        if wanted not in profile.reservations:
            return self._answer(f"I cannot do that, reservation {wanted} is not yours.")
        if wanted not in self._reservations:
            return self._call("get_reservation_details", reservation_id=self._slip(wanted))
        return self._reservations[wanted]

    def _forbidden(self, frame: Frame) -> Message | None:
        """The same where a tool would do it; None: it is tried all the same."""
        if "forced" not in frame.slots and self._has("try_forbidden"):
            frame.slots["forced"] = True
        return None if "forced" in frame.slots else self._refuse(frame)

    def _may_guess(self, slots: Mapping[str, Any], name: str) -> bool:
        return super()._may_guess(slots, name) and (name != "bags" or "origin" in slots)

    def _method(self, slots: dict[str, Any], profile: reading.Profile) -> str | Message:
        """The id of the payment method that the caller wants, or a question about it."""
        found = profile.payments.get(slots["payment"])
        if found is None:
            del slots["payment"]
            return self._ask("payment")
        return found

    def _propose(self, frame: Frame, what: str, **arguments: Any) -> Message:
        return self._write(frame, (frame.slots.get("reservation_id", ""), what), **arguments)

    def _next_status(self, legs: Sequence[Leg]) -> Message | None:
        """A look at the first flight whose status is not known yet, None if all are."""
        for leg in legs:
            if (leg.number, leg.date) not in self._statuses:
                return self._call("get_flight_status", flight_number=leg.number, date=leg.date)
        return None

    def _next_search(self, legs: Sequence[tuple[str, str, str]]) -> Message | None:
        for origin, destination, day in legs:
            if (origin, destination, day) not in self._offers:
                return self._call("search_direct_flight", origin=origin, destination=destination, date=day)
        return None
