"""Generated worlds: a phone with its messages, reminders and food platform, or a travel desk.

Their tables are what ``generated_domain`` makes ACEBench's objects of. No phone is larger than the benchmark's.
"""

from __future__ import annotations

import itertools
import random
from datetime import date, timedelta
from typing import Any

from muarl.domains.kit.people import Maker
from muarl_worlds.acebench import catalogue as cat

Tables = dict[str, dict[str, Any]]


# the phone


def phone_tables(make: Maker) -> Tables:
    """The tables of one phone, on which each of a few people may be the owner."""
    rng = make.rng
    names = [make.name() for _ in range(4 if make.tiny else 6)]
    people = {
        name: {
            "user_id": make.id("contact", "P", 3),
            "phone_number": make.phone(),
            "occupation": rng.choice(cat.OCCUPATIONS),
            "name": name,
        }
        for name in names
    }
    accounts = {
        name: {
            "name": name,
            "user_id": make.id("account", "A", 3),
            "password": cat.password(rng, tiny=make.tiny),
            "balance": float(rng.choice((30, 60, 120, 200, 300, 500))),
            "open": make.chance(0.15),
        }
        for name in names
    }
    merchants = _merchants(make)
    strangers = {name: {"name": name} for name in (make.name(), make.name())}
    return {
        "device": {"phone": {"wifi": make.chance(0.5), "logged_in": make.chance(0.65)}},
        "people": people,
        "accounts": accounts,
        "merchants": merchants,
        "inbox": _inbox(make, people, merchants),
        "reminders": _reminders(make, names, merchants),
        "strangers": strangers,
        "texts": {str(n): {"text": text} for n, text in enumerate(cat.messages(rng, 12, tiny=make.tiny))},
    }


def _merchants(make: Maker) -> dict[str, Any]:
    rng = make.rng
    prices = iter(rng.sample(cat.DISH_PRICES, len(cat.DISH_PRICES)))
    names = list(cat.MENUS)[: cat.TINY_MERCHANTS if make.tiny else None]
    found: dict[str, Any] = {}
    for name in rng.sample(names, 2 if make.tiny else 6):
        dishes = rng.sample(cat.MENUS[name][: cat.TINY_DISHES if make.tiny else None], 2 if make.tiny else 3)
        found[name] = {
            "merchant_id": make.id("merchant", "S", 3),
            "service_type": rng.choice(cat.SERVICES),
            "menu": [{"product": dish, "price": next(prices)} for dish in dishes],
            "name": name,
        }
    return found


def _wish(rng: random.Random, merchants: dict[str, Any]) -> tuple[int, str, str]:
    """Something to order: how many of which dish, and where."""
    merchant = rng.choice(list(merchants))
    return rng.randint(1, 3), str(rng.choice(merchants[merchant]["menu"])["product"]), merchant


def _inbox(make: Maker, people: dict[str, Any], merchants: dict[str, Any]) -> dict[str, Any]:
    """Messages, no two of them from the same person to the same person; some ask for food."""
    rng = make.rng
    pairs = rng.sample(list(itertools.permutations(people, 2)), rng.choice((4, 5, 6, 6)))
    texts = cat.messages(rng, len(pairs), tiny=make.tiny)
    for number in range(2):
        texts[number] = cat.ASKED.format(*_wish(rng, merchants))
    return {
        str(n): {
            "sender_id": people[sender]["user_id"],
            "receiver_id": people[receiver]["user_id"],
            "message": text,
            "time": f"{date(2024, 1, 1) + timedelta(days=day):%Y-%m-%d}",
        }
        for n, ((sender, receiver), text, day) in enumerate(
            zip(pairs, texts, rng.sample(range(1, 150), len(pairs)), strict=True), 1
        )
    }


def _reminders(make: Maker, people: list[str], merchants: dict[str, Any]) -> dict[str, Any]:
    """Reminders; the first of them is a list of things to do (not in tiny worlds)."""
    rng = make.rng
    count = rng.randint(1, 2) if make.tiny else rng.randint(2, 5)
    titles, notes = (
        rng.sample(cat.TITLES[: cat.TINY_TITLES if make.tiny else None], count),
        rng.sample(cat.NOTES, count),
    )
    times = rng.sample(cat.TIMES[: cat.TINY_TIMES if make.tiny else None], count)
    if not make.tiny:
        titles[0] = rng.choice(("Things to do", "Errands", "My list"))
        notes[0] = cat.TASKS.format(*_wish(rng, merchants), rng.choice(people), rng.choice(cat.TOTALS))
    return {
        str(n): {"reminder_id": n, "title": title, "description": note, "time": time, "notified": False}
        for n, (title, note, time) in enumerate(zip(titles, notes, times, strict=True), 1)
    }


# the travel desk


def travel_tables(make: Maker) -> Tables:
    """The tables of one travel desk."""
    rng = make.rng
    users = {}
    for _ in range(make.people):
        user = make.id("traveller", "user", 3)
        users[user] = {
            "user_name": make.name(),
            "password": cat.password(rng, tiny=make.tiny),
            "cash_balance": float(rng.choice((200, 500, 5000, 9000))),
            "bank_balance": float(rng.choice((400, 6000, 12000, 20000))),
            "membership_level": rng.choice(cat.MEMBERSHIPS),
            "user_id": user,
        }
    flights = _flights(make, 4 if make.tiny else 6)
    reservations: dict[str, Any] = {}
    for user in users:
        for flight in _several(rng, flights, 2 if make.tiny else rng.randint(2, 3)):
            number = make.id("reservation", "res_", 3)
            reservations[number] = {
                "reservation_id": number,
                "user_id": user,
                "flight_no": flight["flight_no"],
                "payment_method": rng.choice(cat.PAYMENTS),
                "cabin": rng.choice(cat.CABINS),
                "baggage": rng.randint(0, 2),
                "origin": flight["origin"],
                "destination": flight["destination"],
            }
    return {"users": users, "flights": flights, "reservations": reservations}


def _several(rng: random.Random, flights: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Flights to different places."""
    shuffled = rng.sample(list(flights.values()), len(flights))
    return list({flight["destination"]: flight for flight in shuffled}.values())[:count]


def _flights(make: Maker, routes: int) -> dict[str, Any]:
    """Flights on some routes, each of which begins where another ends, so that one can change there. One flight is
    over, one leaves within a day, and some are sold out or cancelled; in larger worlds two may fly on the same day."""
    rng = make.rng
    cities = rng.sample(cat.CITIES[: cat.TINY_CITIES if make.tiny else None], routes + 1)
    found: dict[str, Any] = {}
    for n, (origin, destination) in enumerate(itertools.pairwise(cities)):
        count = 2 if make.tiny else rng.randint(3, 4)
        days = rng.sample(cat.DAYS_AHEAD, count)
        if not make.tiny and make.chance(0.5):
            days[2] = days[1]
        if n == routes - 1:
            days[0] = rng.choice(cat.DAYS_OVER)
        elif n == routes - 2:
            days[0] = cat.TODAY
        fares = zip(*(rng.sample(cat.FARES[cabin], count) for cabin in cat.CABINS), strict=True)
        for day, (economy, business), (departs, arrives) in zip(
            days, fares, rng.sample(cat.CLOCKS, count), strict=True
        ):
            number = make.id("flight", "LN", 4)
            found[number] = {
                "flight_no": number,
                "origin": origin,
                "destination": destination,
                "depart_time": f"{day} {departs}",
                "arrival_time": f"{day} {arrives}",
                "status": "cancelled" if day >= cat.TODAY and make.chance(0.15) else "available",
                "seats_available": 0 if make.chance(0.12) else rng.randint(1, 9),
                "economy_price": economy,
                "business_price": business,
            }
    shuffled = rng.sample(list(found), len(found))
    return {number: found[number] for number in shuffled}
