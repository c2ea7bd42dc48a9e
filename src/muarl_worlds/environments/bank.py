"""A bank: accounts, cards, transfers, standing orders."""

from __future__ import annotations

from pathlib import Path

from muarl.environments.service import environment
from muarl_worlds.services.bank.intents import SERVICE

BANK = environment(
    SERVICE,
    name="bank-generated",
    about="A bank: accounts, cards, transfers, standing orders.",
    world=Path("world.md"),
)
