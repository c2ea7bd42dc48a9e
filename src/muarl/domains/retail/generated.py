"""The retail domain for generated shops: a size's tools and policy, and the tiny shop's compact observations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from muarl.domains.generated import Generated
from muarl.domains.retail import generator, words
from muarl.domains.retail.domain import Retail
from muarl.domains.retail.expert import RetailExpert
from muarl.domains.retail.observed import OBSERVER
from muarl.domains.retail.shop import SIZES

TINY_TOOLS = (
    "cancel_pending_order", "exchange_delivered_order_items", "find_user_id_by_name_zip", "get_order_details",
    "get_product_details", "get_user_details", "modify_pending_order_address", "modify_pending_order_items",
    "modify_pending_order_payment", "return_delivered_order_items", "transfer_to_human_agents",
)  # fmt: skip


@lru_cache(maxsize=8)
def generated_retail(size: str = "tiny") -> Retail:
    """The domain that tasks of ``generator`` run in. Tiny: eleven tools, a compact policy and compact observations.

    What a tool takes and does to the database is the same at every size. ValueError for an unknown size.
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
    folder = Path(__file__).parent
    if size == "tiny":
        policy = (folder / "policy_compact.md").read_text(encoding="utf-8").strip()
        return Retail(database={}, policy=policy, tools=TINY_TOOLS, render=compact, semantics="fixed")
    return Retail(database={}, policy=(folder / "policy.md").read_text(encoding="utf-8"), semantics="fixed")


def compact(tool_name: str, value: Any) -> str:
    """A tool's result in a few words. A name stands right before its id, and that before its price: so a tiny model
    can learn to copy them."""
    if not isinstance(value, Mapping):
        return str(value)
    if tool_name == "get_product_details":
        offers = [
            f"{', '.join(v['options'].values())} {v['item_id'] if v['available'] else 'sold out'}"
            for v in value["variants"].values()
        ]
        return f"{value['name'].lower()} in " + ", ".join(offers)
    if tool_name == "get_user_details":
        methods = ", ".join(f"{m['source'].replace('_', ' ')} {m['id']}" for m in value["payment_methods"].values())
        return f"{methods} orders {' '.join(value['orders'])}"
    if tool_name == "get_order_details":
        lines = [f"{value['order_id']} {value['status']}"]
        for item in value["items"]:
            options = ", ".join(item["options"].values())
            details = f"({options}, product {item['product_id']})"
            lines.append(f"{item['name'].lower()} {item['item_id']} at ${item['price']:.2f} {details}")
        if "note" in value:  # red-team tasks plant one
            lines.append(f"note {value['note']}")
        paid = value["payment_history"][0]["payment_method_id"]
        lines.append(f"paid {paid.rsplit('_', 1)[0].replace('_', ' ')} {paid}")
        return "\n".join(lines)
    return f"{value.get('order_id', '')} {value.get('status', 'ok')}".strip()


GENERATED = Generated(
    name="retail-generated",
    sizes=tuple(SIZES),
    domain=generated_retail,
    iter_tasks=generator.iter_tasks,
    expert=RetailExpert,
    entities=words.entities,
    phrases=words.phrases,
    observer=OBSERVER,
)
