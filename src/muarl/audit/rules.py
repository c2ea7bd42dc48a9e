"""The rules by which the domains that come with muarl are audited, and those of a domain of one's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from muarl.domains import scenarios
from muarl.domains.airline.audit import AIRLINE, AIRLINE_BENCHMARK
from muarl.domains.auditing import UNDECLARED, AuditRules
from muarl.domains.banking.desk import KnowledgeTools
from muarl.domains.base import tool_kinds
from muarl.domains.desk.audit import desk_rules
from muarl.domains.retail.audit import RETAIL, RETAIL_BENCHMARK
from muarl.domains.telecom.audit import TELECOM, TELECOM_BENCHMARK

if TYPE_CHECKING:
    from muarl.domains.base import Domain, Task

NO_CONSENT = AuditRules(consent=False)
"""BFCL's and ACEBench's users say what is to be done, and agents log in and switch on by themselves."""

_BANKING_KINDS = tool_kinds(KnowledgeTools)
BANKING = AuditRules(
    trusted_tools=frozenset({"KB_search", "grep"}),
    free_writes=frozenset(name for name, kind in _BANKING_KINDS.items() if kind == "write"),
    kinds=_BANKING_KINDS,
)
"""What asks for consent in TAU2's bank stands in its documents, procedure by procedure, and no rule reads those: no
write there is a finding (the figure ``writes_without_consent`` goes on counting)."""
MOCK = AuditRules(consent=False, one_person=False)
"""TAU2's mock domain has a policy of a few lines, which asks for no consent."""

DESKS = {name: desk_rules(name) for name in scenarios.AUDIT}
RULES = {
    "retail": RETAIL, "airline": AIRLINE, "telecom": TELECOM, "bfcl": NO_CONSENT, "acebench": NO_CONSENT,
    "telecom-workflow": TELECOM, "mock": MOCK, "banking_knowledge": BANKING, **DESKS,
}  # fmt: skip
"""The rules of the domains that come with muarl, by ``Task.domain``."""

BENCHMARKS = {
    "retail": RETAIL_BENCHMARK, "airline": AIRLINE_BENCHMARK, "telecom": TELECOM_BENCHMARK,
    "telecom-workflow": TELECOM_BENCHMARK,
}  # fmt: skip
"""By the same names, the rules where TAU's own policies hold, which say more than those of generated tasks."""

_READS = re.compile(
    r"^(?:get|list|find|search|look|lookup|check|show|view|fetch|read|query|describe|count|verify|identify|is|has|can)"
    r"(?:_|(?=[A-Z])|$)"
)
_GENERIC = re.compile(r"^(?:calculate|think|transfer|hand|escalate|done|respond|wait|note)(?:_|(?=[A-Z])|$)")


def rules_for(domain: str, *, benchmark: bool = False, kit: Domain | None = None) -> AuditRules:
    """The rules of a domain by its name, as far as its tools allow.

    ``benchmark``: TAU's own policy holds. ``kit``: the domain itself; where its class declares ``audit``, that counts.
    """
    declared = None if kit is None else type(kit).audit
    own = declared if isinstance(declared, AuditRules) else None
    named = BENCHMARKS.get(domain) if benchmark else None
    rules = own or named or RULES.get(domain) or UNDECLARED
    return rules if kit is None else rules.for_tools(kit.tool_names())


def rules_of(task: Task, kit: Domain | None = None) -> AuditRules:
    """The rules for a task."""
    return rules_for(task.domain, benchmark=task.benchmark, kit=kit)


def kinds_by(rules: AuditRules, kit: Domain | None = None) -> Callable[[str], str]:
    """What says of a tool whether it reads, writes or neither: the domain, else what the rules say, else its name."""

    @cache
    def kind_of(name: str) -> str:
        if kit is not None:
            try:
                return kit.kind_of(name)
            except KeyError:
                return "generic"
        return rules.kinds.get(name) or guessed_kind(name)

    return kind_of


def guessed_kind(name: str) -> str:
    """What a tool's name lets one guess: "get_order" reads, "calculate" is generic, everything else writes."""
    if _GENERIC.match(name):
        return "generic"
    return "read" if _READS.match(name) else "write"
