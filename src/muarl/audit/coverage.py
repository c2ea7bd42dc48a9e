"""What an audit by given rules can find at all: a layer without a declared rule is not checked, which is not 100%."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muarl.audit.findings import LAYERS, Layer
from muarl.domains.auditing import AuditRules

JUDGED: frozenset[Layer] = frozenset({"policy", "communication"})
"""Layers that a judge looks at whatever has been declared."""


@dataclass(frozen=True, slots=True)
class CoverageCheck:
    """A part of a layer that needs something of the domain's author."""

    layer: Layer
    name: str
    made: Callable[[AuditRules], bool]
    """Says whether rules declare what the check needs."""


def _asks(rules: AuditRules) -> bool:
    writes = {name for name, kind in rules.kinds.items() if kind == "write"}
    return rules.consent and not (writes and writes <= rules.free_writes)


def _tells(rules: AuditRules) -> bool:
    """Cheap questions first: obligations may be found out by trial runs."""
    return rules.asks is not None or rules.disproves is not None or any(o.say for o in rules.obligations)


CHECKS = (
    CoverageCheck("policy", "authentication", lambda r: bool(r.auth_tools)),
    CoverageCheck("policy", "consent", _asks),
    CoverageCheck("policy", "eligibility", lambda r: bool(r.forbids)),
    CoverageCheck("communication", "required information", _tells),
    CoverageCheck("safety", "other people's data", lambda r: bool(r.auth_tools or r.told_person)),
    CoverageCheck("safety", "unapproved changes", _asks),
)
"""The outcome needs a verdict, and recovery no declaration."""


def made(rules: AuditRules) -> tuple[CoverageCheck, ...]:
    """The checks that these rules allow; none where nothing was declared."""
    return tuple(c for c in CHECKS if rules.declared and c.made(rules))


def missing(rules: AuditRules) -> tuple[CoverageCheck, ...]:
    """The checks that these rules do not allow."""
    there = made(rules)
    return tuple(c for c in CHECKS if c not in there)


def checked_layers(rules: AuditRules, judged: bool = False) -> frozenset[Layer]:
    """The layers that are checked at all. ``judged``: a judge was asked too."""
    needy = {c.layer for c in CHECKS}
    covered = {c.layer for c in made(rules)} | (JUDGED if judged else set())
    return frozenset(layer for layer in LAYERS if layer not in needy or layer in covered)


def missing_text(counts: Mapping[Layer, Mapping[str, int]], episodes: int) -> str:
    """ "policy (eligibility), safety (other people's data, in 3 of 12)" of checks and how many episodes lack them."""
    parts = []
    for layer, names in counts.items():
        listed = [name if n == episodes else f"{name}, in {n} of {episodes}" for name, n in names.items()]
        parts.append(f"{layer} ({'; '.join(listed)})")
    return ", ".join(parts)
