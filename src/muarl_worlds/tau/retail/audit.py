"""What audits must know of the shop. Facts: TAU2's retail policy, and the one of generated tasks (policy.md)."""

from __future__ import annotations

from dataclasses import replace

from muarl.domains.auditing import HANDOVER_NOTICE, AuditRules, Obligation, Occasion, Resource
from muarl.domains.tooling import tool_kinds
from muarl_worlds.tau.retail.tools import RetailTools

_SWAPS = frozenset({"exchange_delivered_order_items", "modify_pending_order_items"})
_REFUNDS = frozenset({"cancel_pending_order", "modify_pending_order_payment"})
TRANSFER = frozenset({"transfer_to_human_agents"})


def _other_method(occasion: Occasion) -> bool | None:
    """Whether the refund of an order goes elsewhere than to a gift card, which gets it at once; None if unknown."""
    order = occasion.of("orders", "order_id")
    if order is None:
        return None
    methods = [p["payment_method_id"] for p in order["payment_history"] if p["transaction_type"] == "payment"]
    return any(not m.startswith("gift_card") for m in methods)


def _forbids_change(occasion: Occasion) -> str | None:
    """TAU2: once its items were modified, an order can neither be modified nor cancelled any more."""
    order = occasion.of("orders", "order_id")
    if order is not None and order["status"] == "pending (item modified)":
        return f"order {order['order_id']} had its items modified, after which nothing of it may be changed any more"
    return None


RETAIL = AuditRules(
    auth_tools=frozenset({"find_user_id_by_email", "find_user_id_by_name_zip"}),
    open_tools=frozenset({"list_all_product_types", "get_product_details", "get_item_details"}),
    resources=(
        Resource("users", "user_id", owner="user_id", mark="payment_methods"),
        Resource("orders", "order_id", owner="user_id", held=("users", "orders"), mark="payment_history"),
    ),
    spoken={
        "modify_pending_order_items": ("exchange", "swap", "upgrade", "replace"),
        "modify_pending_order_address": ("new address", "shipping address", "delivery address", "redirect"),
        "modify_user_address": ("new address", "default address"),
        "modify_pending_order_payment": ("payment method", "use"),
        "cancel_pending_order": ("cancellation", "call off"),
    },
    kinds=tool_kinds(RetailTools) | {"think": "generic"},
    replays=True,
)

RETAIL_BENCHMARK = replace(
    RETAIL,
    forbids={"modify_pending_order_address": _forbids_change, "modify_pending_order_payment": _forbids_change},
    obligations=(
        Obligation(
            "all-items",
            _SWAPS,
            "Before items are exchanged or modified, the customer must be reminded to confirm that these are all items "
            "to be changed, because it can be done once only.",
            (
                r"\b(?:all|every|any other|anything else|other items?|additional|more|only (?:item|one)"
                r"|just (?:this|the)|any (?:further|more)|complete|full list)\b",
            ),
            when="before",
        ),
        Obligation(
            "refund-timing",
            _REFUNDS,
            "The customer must be told when the refund comes: in 5 to 7 business days.",
            (r"\b(?:5|five)\s*(?:-|–|—|to|and)\s*(?:7|seven)\b|business days",),
            applies=lambda o: _other_method(o) is True,
        ),
        Obligation(
            "refund-timing",
            _REFUNDS,
            "The customer must be told when the refund comes: at once, since it goes to a gift card.",
            (r"immediate|right away|at once|instant|straight away|already|now\b|gift card",),
            applies=lambda o: _other_method(o) is False,
        ),
        HANDOVER_NOTICE,
    ),
)
