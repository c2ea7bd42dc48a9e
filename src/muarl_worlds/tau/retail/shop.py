"""Generated shops: a whole retail database from a seed, in TAU2's schema, at any size from tiny to the official one.

The one knob is ``SIZES``: tiny (for the tiny model; everything from fixed pools), small, medium, official.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from muarl.domains.kit.people import Maker
from muarl_worlds.tau import people
from muarl_worlds.tau.retail import catalogue as cat


@dataclass(frozen=True, slots=True)
class ShopSize:
    """How large a shop is. Ranges are inclusive; ``tasks_per_shop`` says how many tasks share one database."""

    name: str
    products: int
    options: int
    users: int
    orders: tuple[int, int]
    items: tuple[int, int]
    tasks_per_shop: int
    pooled: bool
    """Ids, names and prices come from the fixed pools of catalogue.py, and each product has one option."""


SIZES = {
    size.name: size
    for size in (
        ShopSize("tiny", 16, 1, 2, (2, 3), (1, 2), 1, True),
        ShopSize("small", 16, 2, 20, (2, 3), (1, 3), 40, False),
        ShopSize("medium", 30, 3, 100, (2, 3), (1, 4), 200, False),
        ShopSize("official", 50, 3, 500, (1, 3), (1, 5), 1000, False),
    )
}

STATUSES = ("pending", "pending", "pending", "delivered", "delivered", "delivered", "processed", "cancelled")

_ORDER_NULLS = (
    "cancel_reason", "exchange_items", "exchange_new_items", "exchange_payment_method_id", "exchange_price_difference",
    "return_items", "return_payment_method_id",
)  # fmt: skip


def size_for(people: int) -> ShopSize:
    """The smallest size for so many people."""
    return next((size for size in SIZES.values() if size.users >= people), SIZES["official"])


def make_tables(make: Maker) -> dict[str, dict[str, dict[str, Any]]]:
    """A whole shop in TAU2's schema, with as many users as are wanted. Theirs are the names that ``make`` allows."""
    size, rng = size_for(make.people), make.rng
    items = _ids(rng, cat.ITEM_IDS if size.pooled else None, "", 1_000_000_000, 9_999_999_999)
    order_ids = _ids(rng, cat.ORDER_IDS if size.pooled else None, "#W", 1_000_000, 9_999_999)
    payments = {
        s: _ids(rng, cat.PAYMENT_IDS[s] if size.pooled else None, f"{s}_", 1_000_000, 9_999_999) for s in cat.SOURCES
    }
    products = _products(rng, size, items)
    users: dict[str, dict[str, Any]] = {}
    orders: dict[str, dict[str, Any]] = {}
    names: set[tuple[str, str]] = set()
    for _ in range(make.people):
        first, last = _name(rng, size, names, make.allow)
        user = _user(rng, size, first, last, payments)
        while user["user_id"] in users:
            user = _user(rng, size, first, last, payments)
        users[user["user_id"]] = user
        for _ in range(rng.randint(*size.orders)):
            order = _order(rng, size, next(order_ids), user, products)
            orders[order["order_id"]] = order
            user["orders"].append(order["order_id"])
    return {"products": products, "users": users, "orders": orders}


def _ids(rng: random.Random, pool: tuple[str, ...] | None, prefix: str, low: int, high: int) -> Iterator[str]:
    """Distinct ids without end: from the pool in random order, else random numbers behind a prefix."""
    if pool is not None:
        yield from rng.sample(pool, len(pool))
        raise ValueError(f"a shop of this size needs more than the pool's {len(pool)} ids with prefix {prefix!r}")
    seen: set[int] = set()
    while True:
        number = rng.randint(low, high)
        if number not in seen:
            seen.add(number)
            yield f"{prefix}{number}"


def _price(rng: random.Random, size: ShopSize) -> float:
    return float(rng.choice(cat.PRICES)) if size.pooled else round(rng.uniform(8, 650), 2)


def _products(rng: random.Random, size: ShopSize, items: Iterator[str]) -> dict[str, dict[str, Any]]:
    names = list(cat.PRODUCTS)[: size.products]
    if size.pooled:  # a tiny shop stocks six of them, each with one option
        names = sorted(rng.sample(names, 6))
    products = {}
    for name in names:
        options = dict(itertools.islice(cat.PRODUCTS[name].items(), size.options))
        combinations = [dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())]
        if not size.pooled:
            combinations = rng.sample(combinations, min(len(combinations), rng.randint(4, 12)))
        variants = {}
        for combination in combinations:
            item = next(items)
            variants[item] = {
                "item_id": item,
                "options": combination,
                "available": rng.random() < 0.7,
                "price": _price(rng, size),
            }
        number = cat.product_id(name)
        products[number] = {"name": name, "product_id": number, "variants": variants}
    return products


def _name(
    rng: random.Random, size: ShopSize, used: set[tuple[str, str]], allow: Callable[[str, str], bool]
) -> tuple[str, str]:
    while True:
        first, last = rng.choice(people.FIRST_NAMES), rng.choice(people.LAST_NAMES)
        if not size.pooled and rng.random() < 0.7:
            last += "".join(rng.choice(people.EXTRA_SYLLABLES) for _ in range(rng.randint(1, 2)))
        if (first, last) not in used and allow(first, last):
            used.add((first, last))
            return first, last


def make_address(rng: random.Random, size: ShopSize) -> dict[str, str]:
    """A random address in TAU2's schema (all values are strings; country is always USA)."""
    city, state = rng.choice(people.CITIES)
    return {
        "address1": rng.choice(people.STREETS)
        if size.pooled
        else f"{rng.randint(1, 999)} {rng.choice(people.STREETS).split(' ', 1)[1]}",
        "address2": rng.choice(people.UNITS) if size.pooled else f"{rng.choice(('Suite', 'Apt'))} {rng.randint(1, 99)}",
        "city": city,
        "country": "USA",
        "state": state,
        "zip": rng.choice(people.ZIPS) if size.pooled else str(rng.randint(10_000, 99_999)),
    }


def _user(
    rng: random.Random, size: ShopSize, first: str, last: str, payments: dict[str, Iterator[str]]
) -> dict[str, Any]:
    number = rng.randint(1000, 1039) if size.pooled else rng.randint(1000, 9999)
    methods: dict[str, Any] = {}
    for source in rng.sample(cat.SOURCES, 2 if size.pooled else rng.randint(1, 3)):
        payment = next(payments[source])
        methods[payment] = {"source": source, "id": payment}
        if source == "credit_card":
            methods[payment] |= {"brand": rng.choice(people.CARD_BRANDS), "last_four": f"{rng.randint(0, 9999):04d}"}
        elif source == "gift_card":
            methods[payment] |= {"balance": 900.0 if size.pooled else float(rng.randint(0, rng.choice((60, 60, 900))))}
    return {
        "user_id": f"{first}_{last}_{number}".lower(),
        "name": {"first_name": first, "last_name": last},
        "address": make_address(rng, size),
        "email": f"{first}.{last}{number}@example.com".lower(),
        "payment_methods": methods,
        "orders": [],
    }


def _order(
    rng: random.Random, size: ShopSize, order_id: str, user: dict[str, Any], products: dict[str, Any]
) -> dict[str, Any]:
    chosen = rng.sample(list(products.values()), min(rng.randint(*size.items), len(products)))
    items = []
    for product in chosen:
        variant = rng.choice(list(product["variants"].values()))
        items.append(
            {
                "name": product["name"],
                "product_id": product["product_id"],
                "item_id": variant["item_id"],
                "price": variant["price"],
                "options": dict(variant["options"]),
            }
        )
    status = rng.choice(STATUSES)
    shipped = status in ("processed", "delivered")
    order = {
        "order_id": order_id,
        "user_id": user["user_id"],
        "address": dict(user["address"]),
        "items": items,
        "status": status,
        "fulfillments": [
            {"tracking_id": [str(rng.randint(10**11, 10**12 - 1))], "item_ids": [i["item_id"] for i in items]}
        ]
        if shipped
        else [],
        "payment_history": [
            {
                "transaction_type": "payment",
                "amount": round(sum(i["price"] for i in items), 2),
                "payment_method_id": rng.choice(list(user["payment_methods"])),
            }
        ],
    }
    if status == "cancelled":
        order["payment_history"].append({**order["payment_history"][0], "transaction_type": "refund"})
    order |= dict.fromkeys(_ORDER_NULLS)
    if status == "cancelled":
        order["cancel_reason"] = rng.choice(cat.REASONS)
    return order
