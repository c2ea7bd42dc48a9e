"""A clinic: appointments, prescriptions, results."""

from __future__ import annotations

from pathlib import Path

from muarl.environments.service import environment
from muarl_worlds.services.clinic.intents import SERVICE

CLINIC = environment(
    SERVICE,
    name="clinic-generated",
    about="A clinic: appointments, prescriptions, results.",
    world=Path("world.md"),
)
