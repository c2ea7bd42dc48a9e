"""An insurance company: policies and claims."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.scenarios.insurance.intents import SERVICE
from muarl.environments.service import environment

INSURANCE = environment(
    SERVICE,
    name="insurance-generated",
    about="An insurance company: policies and claims.",
    world=Path("world.md"),
)
