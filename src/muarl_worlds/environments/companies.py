"""Companies whose rules stand in documents: a bank, an insurer and a utility."""

from __future__ import annotations

from muarl.environments.service import environment
from muarl_worlds.companies import bank, insurer, utility
from muarl_worlds.companies.audit import company_audit

BANK_KNOWLEDGE = environment(
    bank.SERVICE,
    audit=company_audit(bank.SERVICE),
    observer=None,  # a company cannot be told from some of its documents
    name="bank-knowledge-generated",
    about="A bank whose fees, limits and tools stand in 50 to 700 documents.",
)
INSURER_KNOWLEDGE = environment(
    insurer.SERVICE,
    audit=company_audit(insurer.SERVICE),
    observer=None,  # a company cannot be told from some of its documents
    name="insurer-knowledge-generated",
    about="An insurer whose fees, covers and tools stand in 50 to 700 documents.",
)
UTILITY_KNOWLEDGE = environment(
    utility.SERVICE,
    audit=company_audit(utility.SERVICE),
    observer=None,  # a company cannot be told from some of its documents
    name="utility-knowledge-generated",
    about="A utility whose fees, periods and tools stand in 50 to 700 documents.",
)
