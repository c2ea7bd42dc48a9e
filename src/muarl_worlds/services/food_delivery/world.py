"""A made world of the food delivery service: customers, restaurants with their menus, orders in every state."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.people import Maker
from muarl_worlds.services.food_delivery import catalogue as cat
from muarl_worlds.services.food_delivery.tools import TODAY

STATUSES = ("placed", "placed", "placed", "preparing", "on the way", "delivered", "delivered", "delivered", "cancelled")
REFUNDED = 0.5
"""The share of delivered orders of which a dish has been refunded already."""
INSTRUCTIONS = ("none", "leave at the door", "call on arrival")


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """The tables of one world."""
    rng = make.rng
    names = rng.sample(list(cat.RESTAURANTS), 3 if make.tiny else len(cat.RESTAURANTS))
    restaurants = {r["restaurant_id"]: r for r in (_restaurant(make, name) for name in sorted(names))}
    customers: dict[str, Any] = {}
    orders: dict[str, Any] = {}
    for _ in range(make.people):
        customer = _customer(make)
        customers[customer["customer_id"]] = customer
        visited = rng.sample(list(restaurants.values()), min(len(restaurants), rng.randint(2, 4)))
        for restaurant in visited:
            order = _order(make, customer, restaurant)
            orders[order["order_id"]] = order
    for order in orders.values():
        if order["status"] == "delivered" and make.chance(REFUNDED):
            _refund(order, rng.choice(order["items"]))
    return {"customers": customers, "restaurants": restaurants, "orders": orders}


def _refund(order: dict[str, Any], item: dict[str, Any]) -> None:
    """Refund a dish, as the tool does."""
    item["refunded"] = True
    order["refunded"] = round(order["refunded"] + item["price"] * item["quantity"], 2)


def _price(make: Maker) -> float:
    return make.rng.randrange(8, 52) / 2 + (0.0 if make.tiny else make.rng.choice((0.0, 0.2, 0.4)))


def _restaurant(make: Maker, name: str) -> dict[str, Any]:
    cuisine, dishes = cat.RESTAURANTS[name]
    menu: dict[str, Any] = {}
    for dish in dishes[: 4 if make.tiny else None]:
        dish_id = make.id("dish", "D-", 4)
        menu[dish_id] = {
            "dish_id": dish_id,
            "name": dish,
            "price": round(_price(make), 2),
            "available": make.chance(0.75),
        }
    return {
        "restaurant_id": make.id("restaurant", "R-", 3),
        "name": name,
        "cuisine": cuisine,
        "open": make.chance(0.85),
        "zones": sorted(make.rng.sample(cat.ZONES, make.rng.randint(2, 3))),
        "delivery_fee": make.rng.choice((0.0, 1.5, 2.5, 3.5)),
        "minimum": float(make.rng.choice((10, 12, 15))),
        "dishes": menu,
    }


def _customer(make: Maker) -> dict[str, Any]:
    rng = make.rng
    addresses = [
        {
            "address_id": make.id("address", "A-", 4),
            "label": label,
            "street": make.street(),
            "zone": rng.choice(cat.ZONES),
        }
        for label in rng.sample(cat.LABELS, rng.randint(2, 3))
    ]
    payments = [
        {"payment_id": make.id("payment", "P-", 4), "kind": kind} for kind in rng.sample(cat.CARDS, rng.randint(1, 3))
    ]
    return {
        "customer_id": make.id("customer", "C-", 5),
        "name": make.name(),
        "phone": make.phone(),
        "addresses": addresses,
        "payments": payments,
    }


def _order(make: Maker, customer: dict[str, Any], restaurant: dict[str, Any]) -> dict[str, Any]:
    rng = make.rng
    status = rng.choice(STATUSES)
    items = [
        {
            "dish_id": d["dish_id"],
            "name": d["name"],
            "quantity": rng.choice((1, 1, 1, 2, 2, 3)),
            "price": d["price"],
            "refunded": False,
        }
        for d in rng.sample(list(restaurant["dishes"].values()), rng.randint(1, 3))
    ]
    under_way = status in ("placed", "preparing", "on the way")
    ordered = TODAY if under_way else make.date(TODAY, -4, 0 if status == "cancelled" else -1)
    tip = rng.choice((0.0, 0.0, 2.0, 5.0))
    total = round(sum(i["price"] * i["quantity"] for i in items) + restaurant["delivery_fee"] + tip, 2)
    return {
        "order_id": make.id("order", "F-", 5),
        "customer_id": customer["customer_id"],
        "restaurant_id": restaurant["restaurant_id"],
        "restaurant": restaurant["name"],
        "ordered_on": ordered,
        "delivered_on": ordered if status == "delivered" else None,
        "status": status,
        "items": items,
        "delivery_fee": restaurant["delivery_fee"],
        "tip": tip,
        "total": total,
        "address_id": rng.choice(customer["addresses"])["address_id"],
        "instruction": rng.choice(INSTRUCTIONS),
        "payment_id": rng.choice(customer["payments"])["payment_id"],
        "eta_minutes": rng.randrange(10, 60) if under_way else None,
        "refunded": total if status == "cancelled" else 0.0,
    }
