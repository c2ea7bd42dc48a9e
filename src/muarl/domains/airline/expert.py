"""A scripted airline agent: near-perfect, with bad habits that can be switched on to make imperfect demonstrations."""

from __future__ import annotations

from typing import Any

from muarl.chat import Message
from muarl.domains.airline import catalogue as cat
from muarl.domains.airline import reading, rules
from muarl.domains.airline.attendant import Attendant
from muarl.domains.airline.phrases import say_cabin, say_person
from muarl.domains.airline.reading import Frame, Offer, Reservation

BOOKING = ("origin", "destination", "date", "cabin", "passengers", "bags", "insurance", "payment")
"""What a booking needs, in the order in which it is asked for."""


class AirlineExpert(Attendant):
    """One conversation's worth of expert: what it does about each kind of request."""

    def _serve(self, frame: Frame, profile: reading.Profile) -> Message:
        kind, slots = frame.kind, frame.slots
        if kind == "outside":
            return self._hand_over(f"The customer wants to talk about {slots['topic']}.")
        if kind in ("fewer_bags", "more_passengers", "insurance"):
            return self._refuse(frame)
        if kind == "balance":
            return self._answer(f"The balance of your gift card is ${profile.balance}.")
        if kind == "fare":
            return self._fare(slots)
        if kind == "book":
            return self._book(frame, profile)
        reservation = self._find_reservation(slots, profile)
        if isinstance(reservation, Message):
            return reservation
        if kind in ("flights", "cabin"):
            return self._change(frame, reservation, profile)
        steps = {
            "cancel": self._cancel,
            "bags": self._bags,
            "passenger": self._passenger,
            "compensation": self._compensate,
            "question": self._price,
        }
        return steps[kind](frame, reservation, profile)

    # one request of each kind

    def _cancel(self, frame: Frame, r: Reservation, profile: reading.Profile) -> Message:
        slots = frame.slots
        begun = [leg for leg in r.legs if leg.date <= cat.TODAY]
        look = self._next_status(begun) or self._missing(slots, "reason")
        if look is None and slots["reason"] == "cancelled flight":
            look = self._next_status(r.legs)
        if look is not None:
            return look
        statuses = {self._statuses[leg.number, leg.date] for leg in r.legs if (leg.number, leg.date) in self._statuses}
        if statuses & rules.GONE:
            return self._hand_over("The customer wants to cancel a trip that has begun.")
        if not rules.may_cancel(r.cabin, r.insured, r.recent, slots["reason"], statuses):
            refusal = self._forbidden(frame)
            if refusal is not None:
                return refusal
        return self._propose(frame, "", reservation_id=r.reservation_id)

    def _change(self, frame: Frame, r: Reservation, profile: reading.Profile) -> Message:
        """Other flights in the same cabin, or the same flights in another one."""
        slots, moving = frame.slots, frame.kind == "flights"
        if (moving and r.cabin == "basic_economy") or any(leg.date <= cat.TODAY for leg in r.legs):
            refusal = self._forbidden(frame)
            if refusal is not None:
                return refusal
        if moving:
            legs = [leg for leg in r.legs if leg.number == slots.get("flight", leg.number)]
            if len(legs) != 1:
                slots.pop("flight", None)
                return self._ask("flight")
        else:
            legs = list(r.legs)
        missing = self._missing(slots, "date" if moving else "cabin")
        if missing is not None:
            return missing
        cabin = r.cabin if moving else slots["cabin"]
        days = [slots["date"] if moving else leg.date for leg in legs]
        look = self._next_search([(g.origin, g.destination, day) for g, day in zip(legs, days, strict=True)])
        if look is not None:
            return look
        new: dict[str, Offer] = {}
        for leg, day in zip(legs, days, strict=True):
            offers = self._offers[leg.origin, leg.destination, day]
            seats = len(r.passengers)
            fit = [o for o in offers if o.seats.get(cabin, 0) >= seats and (moving or o.number == leg.number)]
            if not fit:
                return self._not_available(slots, "date" if moving else "cabin", cabin)
            new[leg.number] = min(fit, key=lambda o: o.prices[cabin])
        missing = self._missing(slots, "payment")
        method = missing if missing is not None else self._method(slots, profile)
        if isinstance(method, Message):
            return method
        flights = [
            (new[g.number].number if g in legs else g.number, slots["date"] if moving and g in legs else g.date)
            for g in r.legs
        ]
        changed = [(new[leg.number], day) for leg, day in zip(legs, days, strict=True)]
        proposal = " and ".join(
            f"flight {o.number} on {day} in {say_cabin(cabin)} at ${o.prices[cabin]}" for o, day in changed
        )
        return self._propose(
            frame,
            f"{proposal} {_paying('pay with', method)}",
            reservation_id=r.reservation_id,
            cabin=cabin,
            flights=[{"flight_number": number, "date": day} for number, day in flights],
            payment_id=method,
        )

    def _not_available(self, slots: dict[str, Any], slot: str, cabin: str) -> Message:
        if self._has("transfer_if_unavailable"):
            return self._hand_over("The wanted flight is not available.")
        wanted = slots.pop(slot)
        said = wanted if slot == "date" else say_cabin(cabin)
        return self._say(f"I am sorry, {said} is not available. Which other {slot} would you like?", slot)

    def _bags(self, frame: Frame, r: Reservation, profile: reading.Profile) -> Message:
        slots = frame.slots
        missing = self._missing(slots, "bags")
        if missing is not None:
            return missing
        if slots["bags"] < r.bags:
            return self._refuse(frame)
        missing = self._missing(slots, "payment")
        method = missing if missing is not None else self._method(slots, profile)
        if isinstance(method, Message):
            return method
        paid = rules.paid_bags(slots["bags"], profile.membership, r.cabin, len(r.passengers))
        return self._propose(
            frame,
            f"{slots['bags']} bags with {paid} paid {_paying('pay with', method)}",
            reservation_id=r.reservation_id,
            total_baggages=slots["bags"],
            nonfree_baggages=paid,
            payment_id=method,
        )

    def _passenger(self, frame: Frame, r: Reservation, profile: reading.Profile) -> Message:
        slots = frame.slots
        names = [f"{p['first_name']} {p['last_name']}" for p in r.passengers]
        if len(names) > 1 and slots.get("who") not in names:
            return self._ask("who")
        missing = self._missing(slots, "passenger")
        if missing is not None:
            return missing
        at = names.index(slots["who"]) if slots.get("who") in names else 0
        people = [dict(slots["passenger"] if n == at else p) for n, p in enumerate(r.passengers)]
        return self._propose(frame, say_person(slots["passenger"]), reservation_id=r.reservation_id, passengers=people)

    def _compensate(self, frame: Frame, r: Reservation, profile: reading.Profile) -> Message:
        look = self._next_status(r.legs)
        if look is not None:
            return look
        cancelled = any(self._statuses[leg.number, leg.date] == "cancelled" for leg in r.legs)
        amount = rules.compensation(profile.membership, r.cabin, r.insured, len(r.passengers))
        if not cancelled or not amount:
            refusal = self._forbidden(frame)
            if refusal is not None:
                return refusal
            amount = 100 * len(r.passengers)
        return self._propose(frame, str(amount), user_id=profile.user_id, amount=amount)

    def _price(self, frame: Frame, r: Reservation, profile: reading.Profile) -> Message:
        legs = [leg for leg in r.legs if leg.number == frame.slots.get("flight", leg.number)]
        if len(legs) != 1:
            frame.slots.pop("flight", None)
            return self._ask("flight")
        return self._answer(f"That is flight {legs[0].number} on {legs[0].date} at ${legs[0].price}.")

    def _fare(self, slots: dict[str, Any]) -> Message:
        missing = self._missing(slots, "origin", "destination", "date", "cabin")
        if missing is not None:
            return missing
        key = slots["origin"], slots["destination"], slots["date"]
        look = self._next_search([key])
        if look is not None:
            return look
        prices = [o.prices[slots["cabin"]] for o in self._offers[key] if o.seats.get(slots["cabin"], 0)]
        return self._answer(f"The cheapest one is ${min(prices)}." if prices else "There is none.")

    def _book(self, frame: Frame, profile: reading.Profile) -> Message:
        slots = frame.slots
        missing = self._missing(slots, *BOOKING[:5])
        if missing is not None:
            return missing
        key, cabin, people = (slots["origin"], slots["destination"], slots["date"]), slots["cabin"], slots["passengers"]
        look = self._next_search([key])
        if look is not None:
            return look
        fit = [o for o in self._offers[key] if o.seats.get(cabin, 0) >= len(people)]
        if not fit:
            return self._not_available(slots, "date", cabin)
        missing = self._missing(slots, *BOOKING[5:])
        method = missing if missing is not None else self._method(slots, profile)
        if isinstance(method, Message):
            return method
        flight = min(fit, key=lambda o: o.prices[cabin])
        paid = rules.paid_bags(slots["bags"], profile.membership, cabin, len(people))
        price = (flight.prices[cabin] + slots["insurance"] * rules.INSURANCE_FEE) * len(people) + paid * rules.BAG_FEE
        insured = "with" if slots["insurance"] else "without"
        proposal = (
            f"flight {flight.number} from {key[0]} to {key[1]} on {key[2]} in {say_cabin(cabin)} for "
            f"{' and '.join(map(say_person, people))}, {slots['bags']} bags with {paid} paid, {insured} insurance, "
            f"${price} in all {_paying('pay with', method)}"
        )
        return self._propose(
            frame,
            proposal,
            user_id=profile.user_id,
            origin=key[0],
            destination=key[1],
            flight_type="one_way",
            cabin=cabin,
            flights=[{"flight_number": flight.number, "date": key[2]}],
            passengers=[dict(p) for p in people],
            payment_methods=[{"payment_id": method, "amount": price}],
            total_baggages=slots["bags"],
            nonfree_baggages=paid,
            insurance="yes" if slots["insurance"] else "no",
        )


def _paying(verb: str, method: str) -> str:
    """The method's name stands right before its id, as in the compact observations."""
    return f"{verb} {method.rsplit('_', 1)[0].replace('_', ' ')} {method}"
