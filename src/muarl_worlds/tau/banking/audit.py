"""What audits must know of TAU2's bank.

What asks for consent stands in the bank's documents, procedure by procedure, and no rule reads those: no write there is
a finding (the figure ``writes_without_consent`` goes on counting).
"""

from __future__ import annotations

from muarl.domains.auditing import AuditRules
from muarl.domains.tooling import tool_kinds
from muarl_worlds.tau.banking.agent_tools import KnowledgeTools
from muarl_worlds.tau.banking.search_tools import NAMES

_KINDS = tool_kinds(KnowledgeTools)
BANKING = AuditRules(
    trusted_tools=frozenset(NAMES),
    free_writes=frozenset(name for name, kind in _KINDS.items() if kind == "write"),
    kinds=_KINDS,
)
