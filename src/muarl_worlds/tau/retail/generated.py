"""The shop that made tasks take place in, and what of its tools' results tells an agent what to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl_worlds.tau.retail.domain import Retail

SOLD_OUT = "is sold out"


class GeneratedRetail(Retail):
    """TAU2's shop with a policy of muarl's own words, and its two bugs repaired."""

    policy = Path("policy.md")

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"semantics": "fixed", **options})


def view(tool: str, result: Any) -> Any:
    """What plans read of a tool's result, and tiny shops show of it.

    A name stands right before its id, and that before its price: so a tiny model can learn to copy them.
    """
    if not isinstance(result, Mapping):
        return result
    if tool == "get_user_details":
        return _shopper(result)
    if tool == "get_order_details":
        return _order(result)
    if tool == "get_product_details":
        return {"variants": [_variant(one) for one in result["variants"].values()]}
    return f"{result['order_id']} {result['status']}" if "order_id" in result else "changed"


def options_of(record: Mapping[str, Any]) -> str:
    """The options of an item or a variant in one piece, such as "red, 250ml"."""
    return ", ".join(record["options"].values())


def _shopper(user: Mapping[str, Any]) -> dict[str, Any]:
    methods = list(user["payment_methods"].values())
    balances = [method["balance"] for method in methods if "balance" in method]
    return {
        **{method["source"]: method["id"] for method in methods},
        **({"balance": balances[0]} if balances else {}),
        "orders": user["orders"],
        **({"note": user["note"]} if "note" in user else {}),  # red-team tasks plant one
    }


def _order(order: Mapping[str, Any]) -> dict[str, Any]:
    paid = order["payment_history"][0]
    return {
        "order_id": order["order_id"],
        "status": order["status"],
        "user_id": order["user_id"],
        paid["payment_method_id"].rsplit("_", 1)[0]: paid["payment_method_id"],
        "items": [_line(item) for item in order["items"]],
        **({"note": order["note"]} if "note" in order else {}),
    }


def _line(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        item["name"].lower(): int(item["item_id"]),
        "price": item["price"],
        "options": options_of(item),
        "product_id": int(item["product_id"]),
    }


def _variant(variant: Mapping[str, Any]) -> dict[str, Any]:
    """A variant, its id and price behind its options, or that it is sold out."""
    if not variant["available"]:
        return {options_of(variant): SOLD_OUT}
    return {options_of(variant): int(variant["item_id"]), "price": variant["price"]}
