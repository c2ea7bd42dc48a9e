"""Generated worlds: a phone with its messages, reminders and food platform, or a travel desk, from a seed.

The state is in the form that ACEBench's scenario classes hold it in, as JSON. The one knob is ``SIZES``: tiny (for the
tiny model; everything from fixed pools), small, medium, and official, which is as large as the benchmark's worlds.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal

from muarl.domains.acebench import catalogue as cat

Family = Literal["phone", "travel"]


@dataclass(frozen=True, slots=True)
class WorldSize:
    """How large worlds are; ranges are inclusive. ``dishes``: on each merchant's menu. ``reservations``: of the
    traveller whom tasks are about, the others have one each. ``per_route``: flights between two cities."""

    name: str
    people: int
    messages: tuple[int, int]
    merchants: int
    dishes: int
    reminders: tuple[int, int]
    travellers: int
    reservations: int
    routes: int
    per_route: tuple[int, int]
    tiny: bool = False


SIZES = {
    size.name: size
    for size in (
        WorldSize("tiny", 4, (4, 6), 2, 2, (1, 2), 2, 2, 4, (2, 2), tiny=True),
        WorldSize("small", 4, (4, 6), 3, 2, (2, 3), 2, 2, 4, (2, 2)),
        WorldSize("medium", 5, (4, 6), 4, 3, (2, 4), 3, 2, 5, (2, 3)),
        WorldSize("official", 6, (4, 6), 6, 3, (3, 5), 3, 3, 6, (2, 3)),
    )
}


@dataclass(frozen=True, slots=True)
class World:
    """One generated world. ``state``: by class and attribute, in the classes' own form. ``me``: whom tasks are about
    (a name on the phone, a user id at the travel desk). ``password``: their password."""

    family: Family
    size: WorldSize
    state: dict[str, dict[str, Any]]
    me: str
    password: str


def make_world(family: Family, seed: str, size: WorldSize) -> World:
    """Build a world; the same arguments give the same one."""
    rng = random.Random(f"acebench {family} {size.name} {seed}")
    return _phone(rng, size) if family == "phone" else _travel(rng, size)


def _front(pool: Sequence[Any], count: int, size: WorldSize) -> Sequence[Any]:
    return pool[:count] if size.tiny else pool


def _password(rng: random.Random, size: WorldSize) -> str:
    word = str(rng.choice(_front(cat.PASSWORDS, cat.TINY_PASSWORDS, size)))
    return word if size.tiny else f"{word.rstrip('0123456789')}{rng.randint(100, 9999)}"


# the phone


def _phone(rng: random.Random, size: WorldSize) -> World:
    people = rng.sample(_front(cat.PEOPLE, cat.TINY_PEOPLE, size), size.people)
    me = people[0]
    accounts = {
        name: {
            "user_id": f"A{300 + n}",
            "password": _password(rng, size),
            "balance": float(rng.choice((30, 60, 120, 200, 300, 500))),
        }
        for n, name in enumerate(people)
    }
    merchants = _merchants(rng, size)
    user_list = {
        name: {
            "user_id": f"P{500 + n}",
            "phone_number": f"{rng.randint(200, 999)}-{rng.randint(200, 999)}-{rng.randint(1000, 9999)}",
            "occupation": rng.choice(cat.OCCUPATIONS),
        }
        for n, name in enumerate(people)
    }
    inbox = _inbox(rng, size, people, {n: p["user_id"] for n, p in user_list.items()}, merchants)
    reminders = _reminders(rng, size, people, merchants)
    state: dict[str, dict[str, Any]] = {
        "BaseApi": {"wifi": rng.random() < 0.5, "logged_in": rng.random() < 0.65},
        "MessageApi": {"user_list": user_list, "inbox": inbox, "message_id_counter": max(map(int, inbox))},
        "ReminderApi": {"reminder_list": reminders, "reminder_id_counter": len(reminders)},
        "FoodPlatform": {
            "users": accounts,
            "merchant_list": merchants,
            "logged_in_users": [me] if rng.random() < 0.15 else [],
            "orders": [],
        },
    }
    return World("phone", size, state, me, str(accounts[me]["password"]))


def _merchants(rng: random.Random, size: WorldSize) -> dict[str, Any]:
    found: dict[str, Any] = {}
    prices = iter(rng.sample(cat.DISH_PRICES, len(cat.DISH_PRICES)))
    for n, name in enumerate(rng.sample(_front(list(cat.MENUS), cat.TINY_MERCHANTS, size), size.merchants)):
        dishes = rng.sample(_front(cat.MENUS[name], cat.TINY_DISHES, size), size.dishes)
        menu = [{"product": dish, "price": next(prices)} for dish in dishes]
        found[name] = {"merchant_id": f"S{700 + n}", "service_type": rng.choice(cat.SERVICES), "menu": menu}
    return found


def ask_for(rng: random.Random, merchants: dict[str, Any]) -> tuple[str, str, int]:
    """Something to order: merchant, dish and how many."""
    merchant = rng.choice(list(merchants))
    return merchant, str(rng.choice(merchants[merchant]["menu"])["product"]), rng.randint(1, 3)


def _inbox(
    rng: random.Random, size: WorldSize, people: Sequence[str], ids: dict[str, str], merchants: dict[str, Any]
) -> dict[str, Any]:
    """Messages, no two of them from the same person to the same person; at least two have come to the first person,
    and one of those asks for food (not in tiny worlds)."""
    me, others = people[0], list(people[1:])
    rng.shuffle(others)
    pairs = [(others[0], me), (others[1], me), (me, others[-1])]
    rest = [(a, b) for a in people for b in people if a != b and (a, b) not in pairs]
    pairs += rng.sample(rest, rng.randint(*size.messages) - len(pairs))
    days = rng.sample(range(1, 150), len(pairs))
    texts: list[str] = []
    while len(texts) < len(pairs):
        text = cat.message(rng, tiny=size.tiny)
        if text not in texts and (size.tiny or not {cat.topic_of(t) for t in texts} & {cat.topic_of(text)}):
            texts.append(text)
    if not size.tiny:
        merchant, dish, count = ask_for(rng, merchants)
        texts[0] = f"Please order {count} x {dish} from {merchant} for me"
    order = list(zip(pairs, texts, days, strict=True))
    rng.shuffle(order)
    return {
        str(n): {"sender_id": ids[a], "receiver_id": ids[b], "message": text, "time": _day(day)}
        for n, ((a, b), text, day) in enumerate(order, 1)
    }


def _day(number: int) -> str:
    return f"{date(2024, 1, 1) + timedelta(days=number):%Y-%m-%d}"


def _reminders(rng: random.Random, size: WorldSize, people: Sequence[str], merchants: dict[str, Any]) -> dict[str, Any]:
    """Reminders; the first of them is a list of things to do (not in tiny worlds)."""
    count = rng.randint(*size.reminders)
    titles = rng.sample(_front(cat.TITLES, cat.TINY_TITLES, size), count)
    notes, times = rng.sample(cat.NOTES, count), rng.sample(_front(cat.TIMES, cat.TINY_TIMES, size), count)
    if not size.tiny:
        merchant, dish, number = ask_for(rng, merchants)
        titles[0] = rng.choice(("Things to do", "Errands", "My list"))
        text = rng.choice(cat.TOTALS)
        notes[0] = (
            f"Order {number} x {dish} from {merchant}. "
            f'Then send {rng.choice(people[1:])} the message "{text}" with the total in the brackets.'
        )
    return {
        str(n): {"reminder_id": n, "title": title, "description": note, "time": time, "notified": False}
        for n, (title, note, time) in enumerate(zip(titles, notes, times, strict=True), 1)
    }


# the travel desk


def _travel(rng: random.Random, size: WorldSize) -> World:
    ids = rng.sample(cat.TRAVELLERS, size.travellers)
    names = rng.sample(_front(cat.PEOPLE, cat.TINY_PEOPLE, size), size.travellers)
    users = {
        user: {
            "user_name": name,
            "password": _password(rng, size),
            "cash_balance": float(rng.choice((500, 5000, 9000))),
            "bank_balance": float(rng.choice((6000, 12000, 20000))),
            "membership_level": rng.choice(cat.MEMBERSHIPS),
        }
        for user, name in zip(ids, names, strict=True)
    }
    numbers = iter(rng.sample(_front(cat.FLIGHTS, cat.TINY_FLIGHTS, size), 40))
    flights = _flights(rng, size, numbers)
    reservations: list[dict[str, Any]] = []
    for reservation_id, user in zip(_reservation_ids(rng, size), _owners(ids, size), strict=True):
        flight = rng.choice(flights)
        while any((r["origin"], r["destination"]) == (flight["origin"], flight["destination"]) for r in reservations):
            flight = rng.choice(flights)
        cabin = rng.choice(cat.CABINS)
        reservations.append(
            {
                "reservation_id": reservation_id,
                "user_id": user,
                "flight_no": flight["flight_no"],
                "payment_method": rng.choice(cat.PAYMENTS),
                "cabin": cabin,
                "baggage": rng.randint(0, 2),
                "origin": flight["origin"],
                "destination": flight["destination"],
            }
        )
    state = {"Travel": {"users": users, "flights": flights, "reservations": reservations}}
    return World("travel", size, state, ids[0], str(users[ids[0]]["password"]))


def _owners(ids: Sequence[str], size: WorldSize) -> list[str]:
    return [ids[0]] * size.reservations + list(ids[1:])


def _reservation_ids(rng: random.Random, size: WorldSize) -> list[str]:
    return rng.sample(cat.RESERVATIONS, size.reservations + size.travellers - 1)


def _flights(rng: random.Random, size: WorldSize, numbers: Iterator[str]) -> list[dict[str, Any]]:
    """Flights on some routes, each of which begins where another ends, so that one can change there. One flight is
    over, sold out or cancelled; in larger worlds one leaves within a day, and two may fly on the same day."""
    cities = rng.sample(_front(cat.CITIES, cat.TINY_CITIES, size), size.routes + 1)
    routes = list(itertools.pairwise(cities))
    found = []
    for n, (origin, destination) in enumerate(routes):
        count = rng.randint(*size.per_route)
        days = rng.sample(cat.DAYS_AHEAD, count)
        if not size.tiny and count == 3 and rng.random() < 0.5:
            days[2] = days[1]
        if n == len(routes) - 1:
            days[0] = rng.choice(cat.DAYS_OVER)
        elif n == len(routes) - 2 and not size.tiny:
            days[0] = cat.TODAY
        for day, (departs, arrives) in zip(days, rng.sample(cat.CLOCKS, count), strict=True):
            status = "cancelled" if not size.tiny and day >= cat.TODAY and rng.random() < 0.12 else "available"
            found.append(
                {
                    "flight_no": next(numbers),
                    "origin": origin,
                    "destination": destination,
                    "depart_time": f"{day} {departs}",
                    "arrival_time": f"{day} {arrives}",
                    "status": status,
                    "seats_available": 0 if rng.random() < 0.12 else rng.randint(1, 9),
                    "economy_price": rng.choice(cat.FARES["Economy Class"]),
                    "business_price": rng.choice(cat.FARES["Business Class"]),
                }
            )
    rng.shuffle(found)
    return found
