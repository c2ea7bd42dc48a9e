"""Generated airlines: a whole airline database from a seed, in TAU2's schema, from tiny to the official size.

The one knob is ``SIZES``: tiny (for the tiny model; everything from fixed pools), small, medium, official. What tiny
leaves out: reservations of several flights or passengers, flights at the same time, certificates.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.kit.people import Maker
from muarl_worlds.tau.airline import catalogue as cat
from muarl_worlds.tau.airline import policy_checks
from muarl_worlds.tau.airline.domain import airline_database

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """How large an airline is. Ranges are inclusive; ``tasks_per_network``: how many tasks share one database."""

    name: str
    routes: int
    """Pairs of airports with flights both ways; 0: only what the reservations need."""
    users: int
    reservations: tuple[int, int]
    passengers: int
    tasks_per_network: int
    pooled: bool
    """Ids, names, days and prices come from the fixed pools of catalogue.py."""


SIZES = {
    size.name: size
    for size in (
        NetworkSize("tiny", 0, 2, (2, 3), 1, 1, True),
        NetworkSize("small", 12, 20, (2, 4), 2, 40, False),
        NetworkSize("medium", 36, 100, (2, 5), 3, 200, False),
        NetworkSize("official", 75, 500, (2, 6), 3, 1000, False),
    )
}


def size_for(people: int) -> NetworkSize:
    """The smallest size for so many people."""
    return next((size for size in SIZES.values() if size.users >= people), SIZES["official"])


PAST_SHARE, CANCELLED_SHARE, RECENT_SHARE = 0.24, 0.6, 0.15
"""How many reservations begin in the past, how many of those were cancelled by the airline, how many are a day old."""
ON_OFFER, NO_SEATS = 0.55, 0.15
"""How often a flight can be booked on a day to come, and how often a cabin of it is full."""
PRESENT = 15 * 60
"""The policy's present time of day, in minutes."""


@dataclass(slots=True)
class _Making:
    """What is under construction. ``routes``: flight numbers by origin and destination."""

    rng: random.Random
    size: NetworkSize
    flights: dict[str, Record] = field(default_factory=dict)
    users: dict[str, Record] = field(default_factory=dict)
    reservations: dict[str, Record] = field(default_factory=dict)
    routes: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    pools: dict[str, list[Any]] = field(default_factory=dict)

    def take(self, name: str, pool: tuple[Any, ...]) -> Any:
        """Another one of a pool, each only once in a network."""
        if name not in self.pools:
            self.pools[name] = self.rng.sample(pool, len(pool))
        return self.pools[name].pop()


def make_tables(make: Maker) -> dict[str, dict[str, Record]]:
    """A whole airline in TAU2's schema, with as many users as are wanted. Theirs are the names that ``make`` allows."""
    size, rng = size_for(make.people), make.rng
    making = _Making(rng, size)
    pairs: set[tuple[str, str]] = set()
    while len(pairs) < size.routes:
        one, other = rng.sample(cat.CODES, 2)
        if (other, one) not in pairs and (one, other) not in pairs:
            pairs.add((one, other))
            for route in ((one, other), (other, one)):
                for _ in range(2):
                    _add_flight(making, *route)
    names: set[tuple[str, str]] = set()
    for _ in range(make.people):
        first, last = person_name(rng, size, lambda f, n: (f, n) not in names and make.allow(f, n))
        names.add((first, last))
        user = _add_user(making, first, last)
        for _ in range(rng.randint(*size.reservations)):
            _add_reservation(making, user)
    _part_prices(making)
    tables = {"flights": making.flights, "users": making.users, "reservations": making.reservations}
    return {name: dict(records) for name, records in airline_database(tables).tables.items()}


def _part_prices(making: _Making) -> None:
    """No two flights of a route cost the same on a day, so that one of them is the cheapest."""
    for numbers in making.routes.values():
        for day in cat.FUTURE:
            taken: set[tuple[str, int]] = set()
            for offer in (making.flights[number]["dates"].get(day, {}) for number in numbers):
                for cabin in offer.get("prices", {}):
                    while (cabin, offer["prices"][cabin]) in taken:
                        offer["prices"][cabin] += 1
                    taken.add((cabin, offer["prices"][cabin]))


def person_name(
    rng: random.Random, size: NetworkSize, allow: Callable[[str, str], bool] = lambda f, n: True
) -> tuple[str, str]:
    """A first and a last name that ``allow`` lets pass."""
    while True:
        first, last = rng.choice(cat.FIRST_NAMES), rng.choice(cat.LAST_NAMES)
        if not size.pooled and rng.random() < 0.7:
            last += "".join(rng.choice(cat.EXTRA_SYLLABLES) for _ in range(rng.randint(1, 2)))
        if allow(first, last):
            return first, last


def make_person(rng: random.Random, size: NetworkSize) -> dict[str, str]:
    """A passenger in TAU2's schema."""
    first, last = person_name(rng, size)
    return {"first_name": first, "last_name": last, "dob": _birthday(rng, size)}


def _birthday(rng: random.Random, size: NetworkSize) -> str:
    if size.pooled:
        return rng.choice(cat.BIRTHDAYS)
    return f"{rng.randint(1950, 2005)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


# flights


def _add_flight(making: _Making, origin: str, destination: str) -> Record:
    rng, pooled = making.rng, making.size.pooled
    number = making.take("flights", cat.FLIGHTS) if pooled else f"HAT{len(making.flights) + 1:03d}"
    leaves = rng.randrange(5 * 60, 17 * 60, 30)  # minutes of the day, on which it lands as well
    lands = leaves + rng.randrange(60, 330, 30)
    flight: Record = {
        "flight_number": number,
        "origin": origin,
        "destination": destination,
        "scheduled_departure_time_est": _clock(leaves),
        "scheduled_arrival_time_est": _clock(lands),
        "dates": {},
    }
    making.flights[number] = flight
    making.routes.setdefault((origin, destination), []).append(number)
    if not pooled:
        for day in cat.DAYS:
            status = _day(rng, day, leaves, lands)
            if status is not None:
                flight["dates"][day] = status
    return flight


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}:00"


def _day(rng: random.Random, day: str, leaves: int, lands: int) -> Record | None:
    """What becomes of a flight on a day, None if it does not fly at all."""
    if day > cat.TODAY:
        return _on_offer(rng, False) if rng.random() < ON_OFFER else None
    if rng.random() < 0.08:
        return {"status": "cancelled"}
    late = rng.randint(0, 25)
    start, end = f"{day}T{_clock(leaves + late)}", f"{day}T{_clock(lands + late)}"
    if day < cat.TODAY or lands + late <= PRESENT:
        return {"status": "landed", "actual_departure_time_est": start, "actual_arrival_time_est": end}
    if leaves + late <= PRESENT:
        return {"status": "flying", "actual_departure_time_est": start, "estimated_arrival_time_est": end}
    status = "delayed" if late > 15 else "on time"
    return {"status": status, "estimated_departure_time_est": start, "estimated_arrival_time_est": end}


def _on_offer(rng: random.Random, pooled: bool) -> Record:
    seats = {c: 0 if rng.random() < NO_SEATS else rng.randint(3, 20) for c in ("business", "economy", "basic_economy")}
    ranges = {"business": (280, 900), "economy": (120, 260), "basic_economy": (51, 115)}
    prices = {c: rng.choice(cat.PRICES[c]) if pooled else rng.randint(*ranges[c]) for c in ranges}
    return {"status": "available", "available_seats": seats, "prices": prices}


# people


def _add_user(making: _Making, first: str, last: str) -> Record:
    rng, size = making.rng, making.size
    while True:
        number = int(rng.choice(cat.NUMBERS)) if size.pooled else rng.randint(1000, 9999)
        user_id = f"{first}_{last}_{number}".lower()
        if user_id not in making.users:
            break
    methods: dict[str, Record] = {}
    sources = list(cat.SOURCES[:2]) if size.pooled else rng.sample(cat.SOURCES, rng.randint(1, 3))
    if sources == ["certificate"]:
        sources = ["credit_card"]  # certificates alone pay for no change
    for source in sources:
        payment = making.take(source, cat.PAYMENT_IDS[source]) if size.pooled else _payment_id(rng, source)
        methods[payment] = {"source": source, "id": payment}
        if source == "credit_card":
            methods[payment] |= {"brand": rng.choice(cat.CARD_BRANDS), "last_four": f"{rng.randint(0, 9999):04d}"}
        else:
            methods[payment]["amount"] = 900.0 if size.pooled else float(rng.randint(100, 900))
    city, state = rng.choice(cat.CITIES)
    user = {
        "user_id": user_id,
        "name": {"first_name": first, "last_name": last},
        "address": {
            "address1": rng.choice(cat.STREETS),
            "address2": rng.choice(cat.UNITS),
            "city": city,
            "country": "USA",
            "state": state,
            "zip": rng.choice(cat.ZIPS),
        },
        "email": f"{first}.{last}{number}@example.com".lower(),
        "dob": _birthday(rng, size),
        "payment_methods": methods,
        "saved_passengers": [make_person(rng, size) for _ in range(0 if size.pooled else rng.randint(0, 2))],
        "membership": rng.choice(cat.MEMBERSHIPS),
        "reservations": [],
    }
    making.users[user_id] = user
    return user


def _payment_id(rng: random.Random, source: str) -> str:
    return f"{source}_{rng.randint(1_000_000, 9_999_999)}"


# reservations


def _add_reservation(making: _Making, user: Record) -> None:
    rng, size = making.rng, making.size
    key = making.take("reservations", cat.RESERVATIONS) if size.pooled else cat.reservation_id(rng)
    if key in making.reservations:
        return _add_reservation(making, user)
    cabin = rng.choices(cat.CABINS, (0.27, 0.43, 0.3))[0]
    past = rng.random() < PAST_SHARE
    days = _days(rng, past, size.pooled or rng.random() < 0.5)
    legs = _legs(making, cabin, days, past)
    passengers = [{**user["name"], "dob": user["dob"]} if rng.random() < 0.6 else make_person(rng, size)]
    while not size.pooled and len(passengers) < size.passengers and rng.random() < 0.45:
        other = make_person(rng, size)
        if all(p["first_name"] != other["first_name"] for p in passengers):
            passengers.append(other)
    count = len(passengers)
    bags = rng.randint(0, policy_checks.free_bags(user["membership"], cabin, count) + 1)
    bags = min(bags, 5 if size.pooled else 10)
    paid = policy_checks.paid_bags(bags, user["membership"], cabin, count)
    insured = rng.random() < 0.4
    price = (
        sum(leg["price"] for leg in legs) * count
        + insured * policy_checks.INSURANCE_FEE * count
        + paid * policy_checks.BAG_FEE
    )
    if not past and rng.random() < RECENT_SHARE:
        created = f"{cat.TODAY}T{rng.randint(1, 14):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}"
    else:
        month, latest = ("04", 30) if past else ("05", 12)
        created = f"2024-{month}-{rng.randint(1, latest):02d}T{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:00"
    making.reservations[key] = {
        "reservation_id": key,
        "user_id": user["user_id"],
        "origin": legs[0]["origin"],
        "destination": legs[0]["destination"],
        "flight_type": "one_way" if len(legs) == 1 else "round_trip",
        "cabin": cabin,
        "flights": legs,
        "passengers": passengers,
        "payment_history": [{"payment_id": rng.choice(list(user["payment_methods"])), "amount": price}],
        "created_at": created,
        "total_baggages": bags,
        "nonfree_baggages": paid,
        "insurance": "yes" if insured else "no",
        "status": None,
    }
    user["reservations"].append(key)


def _days(rng: random.Random, past: bool, one_way: bool) -> tuple[str, ...]:
    """When a reservation's flights leave: the way out in the past or ahead, the way back always ahead."""
    out = rng.choice(cat.PAST if past else cat.FUTURE[:-4])
    back = rng.choice([d for d in cat.FUTURE[2:] if d > out])
    return (out,) if one_way else (out, back)


def _legs(making: _Making, cabin: str, days: tuple[str, ...], past: bool) -> list[Record]:
    """A reservation's flights, made bookable (or gone, or cancelled) on their days where they are not yet."""
    rng, pooled = making.rng, making.size.pooled
    route = _new_route(making) if pooled else rng.choice(list(making.routes))
    legs = []
    for n, day in enumerate(days):
        origin, destination = route if n == 0 else route[::-1]
        numbers = making.routes[origin, destination]
        flight = making.flights[rng.choice(numbers)]
        known = flight["dates"].get(day, {})
        if past and n == 0:
            if rng.random() < CANCELLED_SHARE:
                flight["dates"][day] = {"status": "cancelled"}
            elif known.get("status") != "landed":
                start, end = (flight[f"scheduled_{what}_time_est"] for what in ("departure", "arrival"))
                flight["dates"][day] = {
                    "status": "landed",
                    "actual_departure_time_est": f"{day}T{start}",
                    "actual_arrival_time_est": f"{day}T{end}",
                }
        elif known.get("status") != "available":
            for number in numbers if pooled else ():
                making.flights[number]["dates"].pop(day, None)
            flight["dates"][day] = _on_offer(rng, pooled)
        price = flight["dates"][day].get("prices", {}).get(cabin, rng.choice(cat.PRICES[cabin]))
        if not pooled:
            price = max(51, price - rng.randint(0, 40))  # what was paid when it was booked
        leg = {"flight_number": flight["flight_number"], "origin": origin, "destination": destination}
        legs.append({**leg, "date": day, "price": price})
    return legs


def _new_route(making: _Making) -> tuple[str, str]:
    """A route to where no other goes, with two flights that share the days to come: on no day is there a choice."""
    rng = making.rng
    while True:
        origin, destination = rng.sample(cat.CODES, 2)
        if all(destination != other for _, other in making.routes):
            break
    for _ in range(2):
        _add_flight(making, origin, destination)
    for day in cat.FUTURE:
        if rng.random() < ON_OFFER:
            number = rng.choice(making.routes[origin, destination])
            making.flights[number]["dates"][day] = _on_offer(rng, True)
    return origin, destination
