"""A hotel: rooms are booked, changed and cancelled."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.scenarios.hotel.intents import SERVICE
from muarl.environments.service import environment

HOTEL = environment(
    SERVICE,
    name="hotel-generated",
    about="A hotel: rooms are booked, changed and cancelled.",
    world=Path("world.md"),
)
