"""What callers may want of a travel desk: flights and reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from muarl.domains.acebench import catalogue as cat
from muarl.domains.acebench.travel import BAG, FREE_BAGS, NOW
from muarl.domains.acebench.wishes import Draw, Drawer
from muarl.domains.drawing import Infeasible, Request

Record = dict[str, Any]
_CLOCK = "%Y-%m-%d %H:%M:%S"


def day_of(flight: Mapping[str, Any]) -> str:
    """The day on which a flight leaves."""
    return str(flight["depart_time"])[:10]


def can_be_had(flight: Mapping[str, Any]) -> bool:
    """Whether a seat can be booked: the flight is to come, takes place and is not sold out."""
    ahead = datetime.strptime(flight["depart_time"], _CLOCK) - NOW > timedelta(days=1)
    return ahead and flight["status"] == "available" and flight["seats_available"] > 0


def fare(flight: Mapping[str, Any], cabin: str) -> int:
    """What a seat costs, in yuan."""
    return int(flight["economy_price" if cabin == cat.CABINS[0] else "business_price"])


def bag_fee(level: str, cabin: str, bags: int) -> int:
    """What bags cost, in yuan."""
    free = FREE_BAGS[level]["economy" if cabin == cat.CABINS[0] else "business"]
    return max(0, bags - free) * BAG


def flights(draw: Draw, origin: str | None = None, destination: str | None = None) -> list[Record]:
    """The flights between two cities, or all."""
    found: list[Record] = draw.part("Travel")["flights"]
    return [f for f in found if (origin is None or (f["origin"], f["destination"]) == (origin, destination))]


def flight_of(draw: Draw, reservation: Mapping[str, Any]) -> Record:
    """The flight of a reservation."""
    return next(f for f in flights(draw) if f["flight_no"] == reservation["flight_no"])


def cheapest(found: Sequence[Record], cabin: str) -> Record | None:
    """The one flight that is cheaper than all others, None if there is none."""
    best = sorted(found, key=lambda f: fare(f, cabin))[:2]
    return best[0] if best and (len(best) == 1 or fare(best[0], cabin) < fare(best[1], cabin)) else None


def _mine(draw: Draw) -> list[Record]:
    found: list[Record] = draw.part("Travel")["reservations"]
    return [r for r in found if r["user_id"] == draw.world.me]


def _ahead(draw: Draw) -> list[Record]:
    """The caller's reservations whose flights are to come."""
    return [r for r in _mine(draw) if flight_of(draw, r)["depart_time"] > str(NOW)]


def _flying(draw: Draw) -> list[Record]:
    """Those whose flights take place."""
    return [r for r in _ahead(draw) if flight_of(draw, r)["status"] == "available"]


def _user(draw: Draw) -> Record:
    found: Record = draw.part("Travel")["users"][draw.world.me]
    return found


def _about(draw: Draw, reservation: Record) -> tuple[Record, list[str]]:
    """How the caller names a reservation, and what they have forgotten."""
    described = {"reservation_id": reservation["reservation_id"], "described": reservation["destination"]}
    if draw.rng.random() < 0.15:
        return described, ["reservation_id"]
    return {"reservation_id": reservation["reservation_id"]}, []


def _bookable(draw: Draw, origin: str, destination: str, cabin: str) -> dict[str, Record]:
    """By day the flight that is to be booked: the cheapest one."""
    found: dict[str, Record] = {}
    open_flights = [f for f in flights(draw, origin, destination) if can_be_had(f)]
    for day in {day_of(f) for f in open_flights}:
        best = cheapest([f for f in open_flights if day_of(f) == day], cabin)
        if best is not None:
            found[day] = best
    return found


def _closed(draw: Draw, origin: str, destination: str) -> list[str]:
    """Days to come on which no seat can be had; those on which something flies all the same, if there are any."""
    known = flights(draw, origin, destination)
    free = {day_of(f) for f in known if can_be_had(f)}
    full = [day_of(f) for f in known if day_of(f) not in free and day_of(f) > cat.TODAY]
    return full or [d for d in cat.DAYS_AHEAD if d not in free]


def _book(draw: Draw) -> Request:
    rng, user = draw.rng, _user(draw)
    flight = draw.chosen(flights(draw))
    route = {"origin": flight["origin"], "destination": flight["destination"]}
    cabin, bags, payment = rng.choice(cat.CABINS), rng.randint(0, 3), rng.choice(cat.PAYMENTS)
    found = _bookable(draw, route["origin"], route["destination"], cabin)
    day = draw.chosen(sorted(found))

    def affordable(wish: Mapping[str, Any]) -> bool:
        cost = fare(found[wish["date"]], wish["cabin"]) + bag_fee(user["membership_level"], wish["cabin"], wish["bags"])
        return bool(cost <= user[f"{wish['payment']}_balance"])

    wish: Record = {**route, "date": day, "cabin": cabin, "bags": bags, "payment": payment}
    if not affordable(wish):
        other = {**wish, "payment": next(p for p in cat.PAYMENTS if p != payment)}
        if not affordable(other) or rng.random() < 0.3:
            raise Infeasible
        return Request("book", wish, fallback=other, final=other, intent="insufficient")
    if draw.misses():
        first = {**wish, "date": draw.chosen(_closed(draw, **route))}
        if draw.drops():
            return Request("book", first, fallback={"drop": True}, final=None, intent="unavailable")
        return Request("book", first, fallback=wish, final=wish, intent="unavailable")
    then = None
    if draw.changes():
        slot = rng.choice(("bags", "cabin", "date"))
        if slot == "bags":
            then = {**wish, "bags": draw.chosen(n for n in range(4) if n != bags)}
        elif slot == "date":
            then = {**wish, "date": draw.chosen(d for d in sorted(found) if d != day)}
        else:
            then = {**wish, "cabin": next(c for c in cat.CABINS if c != cabin)}
            if _bookable(draw, route["origin"], route["destination"], then["cabin"]).get(day) != found[day]:
                raise Infeasible
        if not affordable(then):
            raise Infeasible
    return Request("book", wish, then=then, final=then or wish)


def _connect(draw: Draw) -> Request:
    """Two flights with a change where they meet; there is no direct one."""
    user, cabin = _user(draw), draw.rng.choice(cat.CABINS)
    pairs = []
    for first in flights(draw):
        for second in flights(draw):
            meets = first["destination"] == second["origin"] and first["arrival_time"] < second["depart_time"]
            if meets and can_be_had(first) and can_be_had(second):
                pairs.append((first, second))
    first, second = draw.chosen(pairs)
    ends = first["origin"], first["destination"], second["destination"]
    available = [
        (f, s)
        for f in flights(draw, ends[0], ends[1])
        for s in flights(draw, ends[1], ends[2])
        if f["status"] == s["status"] == "available" and f["arrival_time"] < s["depart_time"]
    ]
    same_day = [(f, s) for f, s in available if day_of(f) == day_of(first)]
    if same_day != [(first, second)] or flights(draw, ends[0], ends[2]):
        raise Infeasible  # the day would not say which flights are meant
    payment = draw.rng.choice(cat.PAYMENTS)
    bags = draw.rng.randint(0, 2)
    cost = sum(fare(f, cabin) + bag_fee(user["membership_level"], cabin, bags) for f in (first, second))
    if cost > user[f"{payment}_balance"]:
        raise Infeasible
    wish = {
        "origin": ends[0], "via": ends[1], "destination": ends[2], "date": day_of(first), "cabin": cabin, "bags": bags,
        "payment": payment, "flights": [first["flight_no"], second["flight_no"]],
    }  # fmt: skip
    return Request("connect", wish, final=wish)


def _move(draw: Draw) -> Request:
    reservation = draw.chosen(_flying(draw))
    flight = flight_of(draw, reservation)
    found = _bookable(draw, flight["origin"], flight["destination"], reservation["cabin"])
    open_days = [d for d in sorted(found) if d != day_of(flight)]
    base, unknown = _about(draw, reservation)
    right = {**base, "date": draw.chosen(open_days)}
    if draw.misses():
        closed = _closed(draw, flight["origin"], flight["destination"])
        wrong = {**base, "date": draw.chosen(d for d in closed if d != day_of(flight))}
        if draw.drops():
            return Request("move", wrong, fallback={"drop": True}, final=None, unknown=unknown, intent="unavailable")
        return Request("move", wrong, fallback=right, final=right, unknown=unknown, intent="unavailable")
    then = None
    if draw.changes() and len(open_days) > 1:
        then = {**base, "date": draw.chosen(d for d in open_days if d != right["date"])}
    return Request("move", right, then=then, final=then or right, unknown=unknown)


def _cabin(draw: Draw) -> Request:
    reservation = draw.chosen(_flying(draw))
    flight = flight_of(draw, reservation)
    old = reservation["cabin"]
    new = next(c for c in cat.CABINS if c != old)
    base, unknown = _about(draw, reservation)
    difference = fare(flight, new) - fare(flight, old)
    able = [p for p in cat.PAYMENTS if difference <= _user(draw)[f"{p}_balance"]]
    right = {**base, "cabin": new, "payment": draw.chosen(able)}
    if difference > 0 and len(able) == 1 and draw.rng.random() < 0.7:
        poor = {**right, "payment": next(p for p in cat.PAYMENTS if p not in able)}
        return Request("cabin", poor, fallback=right, final=right, unknown=unknown, intent="insufficient")
    then = None
    if draw.changes():
        if draw.drops():
            return Request("cabin", right, then={"drop": True}, final=None, unknown=unknown)
        then = {**right, "payment": draw.chosen(p for p in able if p != right["payment"])}
    return Request("cabin", right, then=then, final=then or right, unknown=unknown)


def _bags(draw: Draw) -> Request:
    reservation = draw.chosen(_flying(draw))
    base, unknown = _about(draw, reservation)
    user = _user(draw)
    wish = {**base, "bags": draw.rng.randint(1, 3), "payment": draw.rng.choice(cat.PAYMENTS)}

    def affordable(count: int) -> bool:
        cost = bag_fee(user["membership_level"], reservation["cabin"], reservation["baggage"] + count)
        return bool(cost <= user[f"{wish['payment']}_balance"])

    if not affordable(wish["bags"]):
        raise Infeasible
    then = None
    if draw.changes():
        then = {**wish, "bags": draw.chosen(n for n in range(1, 4) if n != wish["bags"] and affordable(n))}
    return Request("bags", wish, then=then, final=then or wish, unknown=unknown)


def _cancel(draw: Draw) -> Request:
    reservation = draw.chosen(_ahead(draw))
    flight = flight_of(draw, reservation)
    base, unknown = _about(draw, reservation)
    gone = flight["status"] == "cancelled"
    wish = {**base, "reason": cat.AIRLINE_REASON if gone else draw.rng.choice(cat.REASONS)}
    then = None
    if draw.changes():
        if draw.drops():
            return Request("cancel", wish, then={"drop": True}, final=None, unknown=unknown)
        others = [r for r in _ahead(draw) if r is not reservation and flight_of(draw, r)["status"] != "cancelled"]
        other = draw.chosen(others)
        if gone or unknown:
            raise Infeasible
        then = {**wish, "reservation_id": other["reservation_id"]}
    return Request("cancel", wish, then=then, final=then or wish, unknown=unknown)


def _question(draw: Draw) -> Request:
    about = "flight" if draw.tiny else draw.rng.choice(("flight", "fare", "funds"))
    if about == "flight":
        reservation = draw.chosen(_mine(draw))
        base, unknown = _about(draw, reservation)
        return Request("question", base, final=base, unknown=unknown, answer=reservation["flight_no"])
    if about == "funds":
        balance = _user(draw)["bank_balance"]
        return Request("funds", {}, final={}, answer=f"{balance:g}", intent="question")
    flight = draw.chosen(f for f in flights(draw) if can_be_had(f))
    cabin = draw.rng.choice(cat.CABINS)
    wish = {"origin": flight["origin"], "destination": flight["destination"], "date": day_of(flight), "cabin": cabin}
    if _bookable(draw, wish["origin"], wish["destination"], cabin).get(wish["date"]) != flight:
        raise Infeasible
    return Request("fare", wish, final=wish, answer=str(fare(flight, cabin)), intent="question")


def due(draw: Draw, reservation: Record) -> bool:
    """Whether a voucher is due: the flight is cancelled, and the traveller is silver or gold or flies business."""
    entitled = _user(draw)["membership_level"] != "regular" or reservation["cabin"] == cat.CABINS[1]
    return entitled and flight_of(draw, reservation)["status"] == "cancelled"


def _compensation(draw: Draw) -> Request:
    reservation = draw.chosen(r for r in _mine(draw) if due(draw, r))
    wish = {"reservation_id": reservation["reservation_id"]}
    return Request("compensation", wish, final=wish, answer="200")


def _forbidden(draw: Draw) -> Request:
    """What the policy forbids: right is to refuse, and nothing is changed."""
    variants = ["fewer_bags", "destination"] + ([] if draw.tiny else ["compensation"])
    variant = draw.rng.choice(variants)
    if variant == "compensation":
        reservation = draw.chosen(r for r in _mine(draw) if not due(draw, r))
    else:
        reservation = draw.chosen(_ahead(draw))
    wish: Record = {"reservation_id": reservation["reservation_id"]}
    if variant == "fewer_bags":
        if not reservation["baggage"]:
            raise Infeasible
    elif variant == "destination":
        cities = cat.CITIES[: cat.TINY_CITIES]
        ends = reservation["origin"], reservation["destination"]
        wish["destination"] = draw.chosen(c for c in cities if c not in ends)
    return Request(variant, wish, intent="forbidden")


def _flown(draw: Draw) -> Request:
    """A flight that has left and is to be cancelled: that takes a person."""
    reservation = draw.chosen(r for r in _mine(draw) if day_of(flight_of(draw, r)) < cat.TODAY)
    wish = {"reservation_id": reservation["reservation_id"], "reason": draw.rng.choice(cat.REASONS)}
    return Request("cancel", wish, intent="flown")


def _outside(draw: Draw) -> Request:
    return Request("outside", {"topic": draw.rng.choice(cat.TOPICS_TRAVEL)})


TRIPS: Mapping[str, Drawer] = {
    "book": _book, "connect": _connect, "move": _move, "cabin": _cabin, "bags": _bags, "cancel": _cancel,
    "question": _question, "compensation": _compensation, "forbidden": _forbidden, "flown": _flown,
    "outside": _outside,
}  # fmt: skip
