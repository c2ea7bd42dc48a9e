"""An insurance company: policies and claims."""

from __future__ import annotations

from pathlib import Path

from muarl.environments.service import environment
from muarl_worlds.services.insurance.intents import SERVICE

INSURANCE = environment(
    SERVICE,
    name="insurance-generated",
    about="An insurance company: policies and claims.",
    world=Path("world.md"),
)
