"""A company's expenses desk: claims and cards, some of which only a colleague may approve."""

from __future__ import annotations

from muarl.environments.service import environment
from muarl_worlds.services.expenses.intents import SERVICE

EXPENSES = environment(
    SERVICE,
    name="expenses-generated",
    about="An expenses desk: claims and cards, some for a colleague's approval.",
)
