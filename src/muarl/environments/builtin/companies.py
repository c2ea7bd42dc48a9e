"""Companies whose rules stand in documents: a bank, an insurer and a utility."""

from __future__ import annotations

from muarl.domains.companies import bank
from muarl.environments.service import environment

BANK_KNOWLEDGE = environment(
    bank.SERVICE,
    name="bank-knowledge-generated",
    about="A bank whose fees, limits and tools are found in 50 to 700 documents.",
)
