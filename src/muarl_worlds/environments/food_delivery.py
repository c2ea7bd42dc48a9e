"""Food delivery: orders, complaints, refunds."""

from __future__ import annotations

from pathlib import Path

from muarl.environments.service import environment
from muarl_worlds.services.food_delivery.intents import SERVICE

FOOD_DELIVERY = environment(
    SERVICE,
    name="food-delivery-generated",
    about="Food delivery: orders, complaints, refunds.",
    world=Path("world.md"),
)
