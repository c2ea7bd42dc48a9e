"""The retail domain: TAU2's tools over a shop's database, with the policy and options of the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muarl.basics.errors import DataError
from muarl.domains.database import Database
from muarl_worlds.tau.retail.tools import RetailTools

_ADDRESS = ("address1", "address2", "city", "country", "state", "zip")
_ORDER_NULLS = (
    "cancel_reason", "exchange_items", "exchange_new_items", "exchange_payment_method_id", "exchange_price_difference",
    "return_items", "return_payment_method_id",
)  # fmt: skip
_METHODS = {
    "credit_card": ("source", "id", "brand", "last_four"),
    "gift_card": ("source", "id", "balance"),
    "paypal": ("source", "id"),
}


class Retail(RetailTools):
    """TAU2's retail shop.

    ``database``: a Database, or tables (products, users, orders) in TAU2's schema; without it and without a ``policy``
    those of the installed benchmark are used (DataError says how to install it). ``render(tool_name, value)`` writes
    observations in another style than TAU2's JSON. The other options are those of ``Domain``.
    """

    name = "retail"

    @property
    def policy_text(self) -> str:
        """The policy given, else the installed benchmark's. DataError if that is not installed."""
        if not self._policy_text:
            from muarl_worlds.data import read_text

            self._policy_text = read_text("tau2", "domains/retail/policy.md")
        return self._policy_text

    @property
    def base(self) -> Database:
        """The database given, else the installed benchmark's. DataError if that is not installed."""
        if self._base is None:
            given = self._given_database
            if given is None:
                from muarl_worlds.data import read_json

                given = read_json("tau2", "domains/retail/db.json")
            self._base = given if isinstance(given, Database) else retail_database(given)
        return self._base

    def render(self, tool_name: str, value: Any) -> str:
        """TAU2's text (strings as they are, records as a line of ASCII JSON), or what the user's ``render`` gives."""
        if self._render is not None:
            return self._render(tool_name, value)
        return value if isinstance(value, str) else json.dumps(value, default=str)


def retail_database(tables: Mapping[str, Any]) -> Database:
    """A retail database as TAU2 holds it in memory: fields in its models' order, amounts as floats, nulls filled in.

    Unknown fields of records are dropped, as TAU2 drops them. DataError names the record and the missing field.
    """
    try:
        products, users, orders = tables["products"], tables["users"], tables["orders"]
    except (KeyError, TypeError) as problem:
        raise DataError(f"retail database: it lacks the table {problem}") from None
    return Database(
        {
            "products": _each("products", products, _product),
            "users": _each("users", users, _user),
            "orders": _each("orders", orders, _order),
        }
    )


def _each(table: str, records: Mapping[str, Any], normal: Any) -> dict[str, Any]:
    out = {}
    for key, record in records.items():
        try:
            out[key] = normal(record)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            text = f"lacks the field {problem}" if isinstance(problem, KeyError) else f"is malformed: {problem}"
            raise DataError(f"retail database: {table}[{key!r}] {text}") from None
    return out


def _pick(record: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    return {f: record[f] for f in fields}


def _product(record: Mapping[str, Any]) -> dict[str, Any]:
    variants = {}
    for key, v in record["variants"].items():
        variants[key] = _pick(v, ("item_id", "options", "available")) | {"price": float(v["price"])}
    return _pick(record, ("name", "product_id")) | {"variants": variants}


def _user(record: Mapping[str, Any]) -> dict[str, Any]:
    methods = {}
    for key, m in record["payment_methods"].items():
        methods[key] = _pick(m, _METHODS[m["source"]])
        if "balance" in methods[key]:
            methods[key]["balance"] = float(m["balance"])
    return {
        "user_id": record["user_id"],
        "name": _pick(record["name"], ("first_name", "last_name")),
        "address": _pick(record["address"], _ADDRESS),
        "email": record["email"],
        "payment_methods": methods,
        "orders": record["orders"],
    }


def _order(record: Mapping[str, Any]) -> dict[str, Any]:
    difference = record.get("exchange_price_difference")
    out = {
        "order_id": record["order_id"],
        "user_id": record["user_id"],
        "address": _pick(record["address"], _ADDRESS),
        "items": [
            _pick(i, ("name", "product_id", "item_id")) | {"price": float(i["price"]), "options": i["options"]}
            for i in record["items"]
        ],
        "status": record["status"],
        "fulfillments": [_pick(f, ("tracking_id", "item_ids")) for f in record["fulfillments"]],
        "payment_history": [
            _pick(p, ("transaction_type",))
            | {"amount": float(p["amount"]), "payment_method_id": p["payment_method_id"]}
            for p in record["payment_history"]
        ],
        **{name: record.get(name) for name in _ORDER_NULLS},
    }
    out["exchange_price_difference"] = None if difference is None else float(difference)
    return out
