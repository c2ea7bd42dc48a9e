"""Food delivery: orders, complaints, refunds."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.scenarios.food_delivery.intents import SERVICE
from muarl.environments.service import environment

FOOD_DELIVERY = environment(
    SERVICE,
    name="food-delivery-generated",
    about="Food delivery: orders, complaints, refunds.",
    world=Path("world.md"),
)
