"""Generated phones and travel desks as a domain: a size's tools and policies, and tiny worlds' compact observations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from muarl.domains.acebench import generator, words
from muarl.domains.acebench.desk import GeneratedAce
from muarl.domains.acebench.expert import AceExpert
from muarl.domains.acebench.phrases import say_bags
from muarl.domains.acebench.worlds import SIZES
from muarl.domains.generated import Generated

TINY_TOOLS = (
    "turn_on_wifi", "login_device", "send_message", "delete_message", "view_messages_between_users",
    "get_latest_message_id", "get_earliest_message_id", "add_reminder", "login_food_platform",
    "add_food_delivery_order", "get_products", "get_flight_details", "get_user_details", "get_reservation_details",
    "reserve_flight", "modify_flight", "cancel_reservation",
)  # fmt: skip


@lru_cache(maxsize=8)
def generated_acebench(size: str = "tiny") -> GeneratedAce:
    """The domain that tasks of ``generator`` run in.

    A task has the tools of a phone, or of a travel desk, and a policy for it. Tiny: seventeen tools for both together,
    one compact policy for both, and compact observations. What a tool takes and does is the same at every size.
    ValueError for an unknown size.
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
    folder = Path(__file__).parent
    texts = {
        name: (folder / f"policy_{name}.md").read_text(encoding="utf-8") for name in ("compact", "phone", "travel")
    }
    if size == "tiny":
        return GeneratedAce(policy=texts["compact"].strip(), tools=TINY_TOOLS, render=compact)
    return GeneratedAce(
        policy=f"{texts['phone']}\n{texts['travel']}", policies={"phone": texts["phone"], "travel": texts["travel"]}
    )


_DONE: Mapping[str, str] = {
    "turn_on_wifi": "Wi-Fi on", "login_device": "device logged in", "send_message": "sent", "delete_message": "deleted",
    "add_reminder": "reminder added", "login_food_platform": "logged in", "add_food_delivery_order": "ordered",
}  # fmt: skip


def compact(tool_name: str, value: Any) -> str:
    """A tool's result in a few words. A thing's name stands right before its number, day or price: so a tiny model can
    learn to copy them."""
    if isinstance(value, Mapping) and value.get("status") in (False, "error"):
        return str(value["message"])
    if tool_name in _DONE:
        return _DONE[tool_name]
    if tool_name in ("get_latest_message_id", "get_earliest_message_id"):
        return f"{'latest' if 'latest' in tool_name else 'earliest'} message {value['message_id']}"
    if tool_name == "view_messages_between_users":
        return "\n".join(
            f'message from {m["sender"]} number {m["id"]} says "{m["message"]}"' for m in value["messages"]
        )
    if tool_name == "get_products":
        return ", ".join(f"{d['product']} at {d['price']} yuan" for d in value)
    if tool_name == "get_user_details":
        return f"{value['user_name']}, {value['membership_level']} member"
    if tool_name == "get_flight_details" and not isinstance(value, str):
        return "\n".join(_flight(f) for f in value)
    if tool_name == "get_reservation_details":
        return "\n".join(_reservation(r) for r in value)
    return _changed(str(value))


def _flight(flight: Mapping[str, Any]) -> str:
    head = f"on {flight['depart_time'][:10]} {flight['flight_no']}"
    if flight["status"] != "available" or flight["seats_available"] <= 0:
        return f"{head} sold out"
    economy, business = flight["economy_price"], flight["business_price"]
    return f"{head} in Economy Class at {economy} yuan, in Business Class at {business} yuan"


def _reservation(found: Mapping[str, Any]) -> str:
    flight = found["flight_info"]
    number, day, bags = found["reservation_id"], flight["depart_time"][:10], say_bags(found["baggage"])
    trip = f"from {flight['origin']} to {flight['destination']} on {day} in {found['cabin']}"
    return f"trip to {flight['destination']} is {number} flight {found['flight_no']} {trip}, {bags}"


def _changed(text: str) -> str:
    """The travel desk's answers in short; what it refuses, in full."""
    for beginning, short in (
        ("Booking successful", "booked"),
        ("More than 24 hours", "cancelled"),
        ("Less than 24 hours", "cancelled"),
        ("Flight number has been", "changed"),
        ("Cabin change successful", "changed"),
        ("Baggage has been added", "changed"),
        ("Modification completed", "changed"),
    ):
        if text.startswith(beginning):
            return short
    return text


GENERATED = Generated(
    name="acebench-generated",
    sizes=tuple(SIZES),
    domain=generated_acebench,
    iter_tasks=generator.iter_tasks,
    expert=AceExpert,
    entities=words.entities,
    phrases=words.phrases,
)
