"""What a shop's tools show of its records, for worlds put together from logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muarl.domains.database import Database
from muarl.domains.world_from_log import Observer, Sighting, Tables, merged
from muarl_worlds.tau.retail.domain import retail_database

_NOTHING = {"address1": "", "address2": "", "city": "", "country": "", "state": "", "zip": ""}
_USER: dict[str, Any] = {
    "name": {"first_name": "", "last_name": ""},
    "address": _NOTHING,
    "email": "",
    "payment_methods": {},
    "orders": [],
}
_ORDER: dict[str, Any] = {
    "user_id": "",
    "address": _NOTHING,
    "items": [],
    "status": "",
    "fulfillments": [],
    "payment_history": [],
}


def seen(tool: str, arguments: Mapping[str, Any], result: Any) -> Iterable[Sighting]:
    """The users, orders and products that a read shows."""
    if tool == "find_user_id_by_email" and isinstance(result, str):
        yield "users", result, {"user_id": result, "email": arguments.get("email", "")}
    elif tool == "find_user_id_by_name_zip" and isinstance(result, str):
        name = {"first_name": arguments.get("first_name", ""), "last_name": arguments.get("last_name", "")}
        yield "users", result, {"user_id": result, "name": name, "address": {"zip": arguments.get("zip", "")}}
    elif tool == "list_all_product_types" and isinstance(result, Mapping):
        for name, product in result.items():
            yield "products", str(product), {"name": name, "product_id": str(product)}
    elif isinstance(result, Mapping):
        for shown, table, key in (
            ("get_user_details", "users", "user_id"),
            ("get_order_details", "orders", "order_id"),
            ("get_product_details", "products", "product_id"),
        ):
            if tool == shown and isinstance(result.get(key), str):
                yield table, result[key], result


def implied(tool: str, arguments: Mapping[str, Any], result: Any) -> Iterable[Sighting]:
    """The payment methods that an order was paid with, or that a change was settled with."""
    if isinstance(result, Mapping) and isinstance(result.get("order_id"), str):
        methods = [p.get("payment_method_id") for p in result.get("payment_history") or () if isinstance(p, Mapping)]
        known = {str(m): _method(str(m)) for m in (*methods, arguments.get("payment_method_id")) if m}
        yield "users", str(result.get("user_id", "")), {"payment_methods": known}


def _method(method: str) -> dict[str, Any]:
    """A payment method of which only the id is known, which tells its kind. A gift card's balance is taken for 0."""
    if method.startswith("gift_card"):
        return {"source": "gift_card", "id": method, "balance": 0.0}
    if method.startswith("paypal"):
        return {"source": "paypal", "id": method}
    return {"source": "credit_card", "id": method, "brand": "", "last_four": ""}


def complete(tables: Tables) -> Database:
    """A shop's database of what was seen."""
    return retail_database(
        {
            "products": {k: merged(r, {"name": "", "variants": {}}) for k, r in tables["products"].items()},
            "users": {k: merged(r, {"user_id": k, **_USER}) for k, r in tables["users"].items()},
            "orders": {k: merged(r, _ORDER) for k, r in tables["orders"].items()},
        }
    )


OBSERVER = Observer(("products", "users", "orders"), seen, implied, complete)
