"""What audits go by where nobody hands them rules: what a domain's class declares, and what its tools are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from muarl.domains.auditing import UNDECLARED, AuditRules, guessed_kind

if TYPE_CHECKING:
    from muarl.domains.base import Domain


def rules_for(domain: Domain | None) -> AuditRules:
    """The rules that a domain's class declares, as far as its tools allow. An ``Environment`` may have others
    (``Environment.audit_rules``), as those that come with muarl do."""
    if domain is None:
        return UNDECLARED
    return (type(domain).audit or UNDECLARED).for_tools(domain.tool_names())


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
