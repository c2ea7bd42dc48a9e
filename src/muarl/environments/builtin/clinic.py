"""A clinic: appointments, prescriptions, results."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.scenarios.clinic.intents import SERVICE
from muarl.environments.service import environment

CLINIC = environment(
    SERVICE,
    name="clinic-generated",
    about="A clinic: appointments, prescriptions, results.",
    world=Path("world.md"),
)
