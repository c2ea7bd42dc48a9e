"""Scenarios of our own, each a folder of readable files: policy.md, world.md, intents.yaml, tools and a made world.

The same tools can be played by a model instead (``domains/imagined``).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muarl.domains.desk.generated import Desk

FOLDERS = {
    "food-delivery": "food_delivery",
    "hotel": "hotel",
    "bank": "bank",
    "clinic": "clinic",
    "insurance": "insurance",
}
"""The scenarios by the name of their domain."""

AUDIT: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "food-delivery": ("identify_customer", ("find_restaurants", "get_menu"), "customer_id"),
    "hotel": ("identify_guest", ("find_hotels", "check_rooms"), "guest_id"),
    "bank": ("verify_customer", (), "customer_id"),
    "clinic": ("identify_patient", ("find_doctors", "list_free_times"), "patient_id"),
    "insurance": ("identify_member", ("list_inspection_times",), "member_id"),
}
"""What an audit must know of each: the tool that says who calls, reads that show nobody's data, and the argument that
names the person whose data are meant."""


def desk(name: str) -> Desk:
    """The scenario of that domain. KeyError if there is none."""
    found: Desk = import_module(f"muarl.domains.scenarios.{FOLDERS[name]}.generated").DESK
    return found
