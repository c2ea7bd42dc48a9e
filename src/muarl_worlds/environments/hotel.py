"""A hotel: rooms are booked, changed and cancelled."""

from __future__ import annotations

from pathlib import Path

from muarl.environments.service import environment
from muarl_worlds.services.hotel.intents import SERVICE

HOTEL = environment(
    SERVICE,
    name="hotel-generated",
    about="A hotel: rooms are booked, changed and cancelled.",
    world=Path("world.md"),
)
