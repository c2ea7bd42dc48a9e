"""Initial states of generated tasks: file systems, accounts, inboxes, tickets, cars, by size and from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl_worlds.bfcl import pools
from muarl_worlds.bfcl.pools import some

MATH = "MathAPI"


@dataclass(frozen=True, slots=True)
class Size:
    """How large the worlds of a size are, and what their tasks are like.

    ``things``: how many people, tickets, orders and posts there are, least and most. ``folders``, ``files``: in the
    root folder, and in each folder; ``nested``: folders hold folders. ``pool``: how many names of each pool are used,
    None: all. ``turns``: how many requests of the user's there are, by weight; ``two``: how often one asks for two
    things; ``classes``: how many API classes the tools come from. ``unanswerable``: how often a request lacks something
    at first. ``logins``: how often the user must be logged in first. ``clauses``: how many wordings a request has.
    """

    name: str
    things: tuple[int, int]
    folders: tuple[int, int]
    files: tuple[int, int]
    pool: int | None
    turns: Mapping[int, float]
    two: float
    classes: tuple[int, int]
    unanswerable: float
    nested: bool = True
    logins: float = 0.5
    clauses: int = 9


SIZES: Mapping[str, Size] = {
    "tiny": Size(
        "tiny", (3, 3), (2, 2), (2, 2), 16, {1: 0.5, 2: 0.5}, 0.4, (1, 2), 0.4, nested=False, logins=0.0, clauses=2
    ),
    "small": Size("small", (3, 4), (2, 3), (2, 3), None, {1: 0.4, 2: 0.6}, 0.35, (1, 2), 0.4, nested=False),
    "medium": Size("medium", (4, 6), (3, 4), (2, 4), None, {2: 0.7, 3: 0.3}, 0.35, (2, 2), 0.45),
    "official": Size("official", (5, 8), (3, 5), (3, 5), None, {2: 0.4, 3: 0.6}, 0.35, (2, 3), 0.5),
}


def make_scene(rng: random.Random, classes: Sequence[str], size: Size) -> dict[str, dict[str, Any]]:
    """The initial state of each class, in the form in which BFCL's entries give theirs."""
    return {name: _MAKERS[name](rng, size) for name in classes if name in _MAKERS}


def limited(pool: Sequence[str], size: Size) -> Sequence[str]:
    """The names of a pool that occur at a size."""
    return pool[: size.pool]


def _some(rng: random.Random, pool: Sequence[str], size: Size, span: tuple[int, int]) -> list[str]:
    return some(rng, limited(pool, size), rng.randint(*span))


def _file(rng: random.Random, name: str, size: Size) -> dict[str, Any]:
    if size.name == "tiny":
        content = rng.choice(limited(pools.TEXTS, size))
    elif name.endswith(".csv"):
        content = "\n".join(str(rng.randrange(12, 480)) for _ in range(rng.choice((4, 5, 8))))
    else:
        content = "\n".join(pools.sentence(rng) for _ in range(rng.randint(1, 5)))
    return {"type": "file", "content": content}


def _folder(contents: dict[str, Any]) -> dict[str, Any]:
    return {"type": "directory", "contents": contents}


def _files(rng: random.Random, size: Size) -> dict[str, Any]:
    """A tree in which no two things have the same name, and none but one kind of folder holds folders."""
    names = iter(some(rng, limited(pools.FILES, size), 99))
    folders = iter(some(rng, limited(pools.FOLDERS, size), 99))

    def files(count: int) -> dict[str, Any]:
        return {name: _file(rng, name, size) for name in (next(names, None) for _ in range(count)) if name}

    tree: dict[str, Any] = {}
    for _ in range(rng.randint(*size.folders)):
        inside = files(rng.randint(*size.files))
        if size.nested and rng.random() < 0.6:
            inside[next(folders)] = _folder(files(rng.randint(1, 2)) if rng.random() < 0.7 else {})
        tree[next(folders)] = _folder(inside)
    tree |= files(rng.randint(*size.files))
    if rng.random() < 0.3 and size.name != "tiny":
        tree[next(folders)] = _folder({})
    return {"root": {rng.choice(limited(pools.FOLDERS, size)) + "_home": _folder(tree)}}


def _messages(rng: random.Random, size: Size) -> dict[str, Any]:
    people = _some(rng, pools.PEOPLE, size, size.things)
    ids = some(rng, limited(pools.USER_IDS, size), len(people))
    users = dict(zip(people, ids, strict=True))
    texts = limited(pools.TEXTS, size)
    others = ids[1:]
    inbox = [{rng.choice(others): _said(rng, size, texts)} for _ in range(rng.randint(2, 2 + len(others)))]
    me = ids[0] if rng.random() >= size.logins else None
    return {
        "random_seed": rng.randrange(10**6), "user_count": 200 + rng.randrange(700), "user_map": users,
        "inbox": inbox, "message_count": len(inbox), "current_user": me,
    }  # fmt: skip


def _said(rng: random.Random, size: Size, texts: Sequence[str]) -> str:
    return rng.choice(texts) if size.name == "tiny" else pools.sentence(rng)


def _posts(rng: random.Random, size: Size) -> dict[str, Any]:
    me, *others = some(rng, limited(pools.HANDLES, size), 5)
    subjects = some(rng, limited(pools.SUBJECTS, size), rng.randint(*size.things))
    ids = some(rng, limited(pools.POST_IDS, size), len(subjects))
    tweets = {}
    for number, subject in zip(ids, subjects, strict=True):
        tweets[number] = {
            "id": int(number), "username": rng.choice((me, *others)),
            "content": f"The {subject} {rng.choice(pools.PREDICATES)}", "tags": [], "mentions": [],
        }  # fmt: skip
    return {
        "username": me, "password": rng.choice(pools.PASSWORDS), "authenticated": rng.random() >= size.logins,
        "tweets": tweets, "comments": {}, "retweets": {}, "following_list": others[:2],
        "tweet_counter": 700 + rng.randrange(250),
    }  # fmt: skip


def _tickets(rng: random.Random, size: Size) -> dict[str, Any]:
    me = rng.choice(limited(pools.HANDLES, size))
    titles = _some(rng, pools.TITLES, size, size.things)
    ids = some(rng, limited(pools.TICKET_IDS, size), len(titles))
    queue = [
        {
            "id": int(number), "title": title, "description": _said(rng, size, pools.TEXTS), "status": "Open",
            "priority": rng.randint(1, 5), "created_by": me,
        }
        for number, title in zip(ids, titles, strict=True)
    ]  # fmt: skip
    counter = int(rng.choice([i for i in limited(pools.TICKET_IDS, size) if i not in ids]))
    current = me if rng.random() >= size.logins else None
    return {"ticket_queue": queue, "ticket_counter": counter, "current_user": current}


def _trading(rng: random.Random, size: Size) -> dict[str, Any]:
    symbols = list(pools.SYMBOLS.values())
    prices = dict(zip(symbols, some(rng, pools.PRICES, len(symbols)), strict=True))
    ids = _some(rng, pools.ORDER_IDS, size, size.things)
    counter = int(rng.choice([i for i in limited(pools.ORDER_IDS, size) if i not in ids]))
    orders = {
        number: {
            "id": int(number), "order_type": rng.choice(("Buy", "Sell")), "symbol": rng.choice(symbols),
            "price": float(rng.choice(pools.PRICES)), "amount": int(rng.choice(pools.AMOUNTS)),
            "status": rng.choice(("Open", "Pending", "Pending", "Completed")),
        }
        for number in ids
    }  # fmt: skip
    orders[ids[0]]["status"] = "Open"
    stocks = {
        symbol: {
            "price": float(price), "percent_change": round(rng.uniform(-3, 3), 2),
            "volume": round(rng.uniform(1, 9), 3),
            "MA(5)": round(float(price) * rng.uniform(0.97, 1.03), 2),
            "MA(20)": round(float(price) * rng.uniform(0.94, 1.06), 2),
        }
        for symbol, price in prices.items()
    }  # fmt: skip
    return {
        "orders": orders,
        "account_info": {
            "account_id": rng.randrange(10000, 99999), "balance": float(rng.randrange(60_000, 99_000)),
            "binding_card": rng.randrange(10**15, 10**16),
        },
        "authenticated": rng.random() >= size.logins, "market_status": "Open", "order_counter": counter,
        "stocks": stocks, "watch_list": some(rng, symbols, 2), "transaction_history": [],
        "random_seed": rng.randrange(10**6),
    }  # fmt: skip


def _travel(rng: random.Random, size: Size) -> dict[str, Any]:
    first, last = rng.choice(pools.PEOPLE), rng.choice(pools.SURNAMES)
    cards = [f"card_{rng.randrange(1000, 9999)}" for _ in range(rng.randint(1, 2))]
    bookings = {}
    for _ in range(rng.randint(*size.things) - 2):
        cost = float(rng.randrange(20, 90) * 10)
        bookings[str(rng.randrange(10**6, 10**7))] = {
            "card_id": rng.choice(cards), "travel_date": f"2027-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
            "travel_from": "SFO", "travel_to": rng.choice(("LAX", "JFK", "ORD", "BOS")), "travel_class": "economy",
            "travel_cost": cost, "transaction_id": str(rng.randrange(10**7, 10**8)),
        }  # fmt: skip
    known = rng.random() < 0.5
    return {
        "random_seed": rng.randrange(10**6),
        "credit_card_list": {
            card: {
                "card_number": str(rng.randrange(10**15, 10**16)),
                "expiration_date": f"{rng.randint(1, 12):02d}/20{rng.randint(28, 33)}",
                "cardholder_name": f"{first} {last}", "card_verification_number": rng.randrange(100, 999),
                "balance": float(rng.randrange(20_000, 60_000)),
            }
            for card in cards
        },
        "booking_record": bookings,
        "access_token": f"tok{rng.randrange(10**5, 10**6)}" if known else None,
        "token_type": "Bearer" if known else None, "token_expires_in": 3600 if known else None,
        "token_scope": "read_write" if known else None, "user_first_name": first, "user_last_name": last,
        "budget_limit": None,
    }  # fmt: skip


_PEDALS: Sequence[Mapping[str, Any]] = (
    {"brakePedalStatus": "released", "brakePedalForce": 0.0},
    {"brakePedalStatus": "pressed", "brakePedalForce": 1000.0},
)


def _vehicle(rng: random.Random, size: Size) -> dict[str, Any]:
    doors = {door: rng.choice(("locked", "unlocked")) for door in ("driver", "passenger", "rear_left", "rear_right")}
    wheels = ("frontLeft", "frontRight", "rearLeft", "rearRight")
    return {
        "random_seed": rng.randrange(10**6), "fuelLevel": round(rng.uniform(4, 14), 1), "batteryVoltage": 12.6,
        "engineState": rng.choice(("stopped", "stopped", "running")), "doorStatus": doors | {"driver": "unlocked"},
        "acTemperature": float(rng.randint(18, 27)), "fanSpeed": rng.choice((20, 30, 40, 60)), "acMode": "auto",
        "humidityLevel": float(rng.randint(30, 60)), "headLightStatus": rng.choice(("on", "off")),
        "parkingBrakeStatus": rng.choice(("released", "engaged")), **rng.choice(_PEDALS),
        "destination": "None", **{f"{wheel}TirePressure": round(rng.uniform(28.2, 36.8), 1) for wheel in wheels},
    }  # fmt: skip


_MAKERS: Mapping[str, Callable[[random.Random, Size], dict[str, Any]]] = {
    "GorillaFileSystem": _files, "MessageAPI": _messages, "TwitterAPI": _posts, "TicketAPI": _tickets,
    "TradingBot": _trading, "TravelAPI": _travel, "VehicleControlAPI": _vehicle,
}  # fmt: skip
TASK_CLASSES = (*_MAKERS, MATH)
"""The classes that tasks may involve; the last has no state."""
