"""A bank: accounts, cards, transfers, standing orders."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.scenarios.bank.intents import SERVICE
from muarl.environments.service import environment

BANK = environment(
    SERVICE,
    name="bank-generated",
    about="A bank: accounts, cards, transfers, standing orders.",
    world=Path("world.md"),
)
