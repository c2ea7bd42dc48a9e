"""A shop small enough to read, for tests."""

from __future__ import annotations

from typing import Any

from muarl.domains.base import World
from muarl.types.chat import ToolCall, ToolResult
from muarl_worlds.tau.retail.domain import Retail

ADDRESS = {"address1": "1 Oak St", "address2": "", "city": "Bonn", "country": "DE", "state": "NW", "zip": "53111"}


def variant(item_id: str, size: str, price: float, available: bool = True) -> dict[str, Any]:
    return {"item_id": item_id, "options": {"size": size}, "available": available, "price": price}


def order(order_id: str, status: str, items: list[tuple[str, str, float]], paid_with: str = "card_1") -> dict[str, Any]:
    return {
        "order_id": order_id,
        "user_id": "ann_1",
        "address": ADDRESS,
        "items": [
            {"name": "Mug", "product_id": "P1", "item_id": i, "price": price, "options": {"size": size}}
            for i, size, price in items
        ],
        "status": status,
        "fulfillments": [],
        "payment_history": [
            {"transaction_type": "payment", "amount": sum(p for _, _, p in items), "payment_method_id": paid_with}
        ],
    }


def tables() -> dict[str, Any]:
    mugs = [variant("S", "small", 10.1), variant("M", "medium", 20.2), variant("L", "large", 30.3)]
    return {
        "products": {
            "P1": {
                "name": "Mug",
                "product_id": "P1",
                "variants": {v["item_id"]: v for v in [*mugs, variant("X", "huge", 99, available=False)]},
            }
        },
        "users": {
            "ann_1": {
                "user_id": "ann_1",
                "name": {"first_name": "Ann", "last_name": "Ö'Hara"},
                "address": ADDRESS,
                "email": "Ann@example.com",
                "payment_methods": {
                    "card_1": {"source": "credit_card", "brand": "visa", "last_four": "1111", "id": "card_1"},
                    "gift_1": {"source": "gift_card", "balance": 15, "id": "gift_1"},
                    "pay_1": {"source": "paypal", "id": "pay_1"},
                },
                "orders": ["#1", "#2", "#3"],
            }
        },
        "orders": {
            "#1": order("#1", "pending", [("S", "small", 10.1), ("M", "medium", 20.2)]),
            "#2": order("#2", "delivered", [("S", "small", 10.1), ("S", "small", 10.1)]),
            "#3": order("#3", "pending", [("S", "small", 10.1)], paid_with="gift_1"),
        },
    }


def shop(**options: Any) -> Retail:
    return Retail(database=tables(), policy="Be exact.", **options)


def use(world: World, name: str, **arguments: Any) -> ToolResult:
    return world.call("assistant", ToolCall("1", name, arguments))
