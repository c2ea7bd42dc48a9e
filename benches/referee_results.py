"""Of benches/referee.py: what is measured of a published file, and of two that are next to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muarl.accounts.intervals import Estimate, Interval
from muarl.audit.summary import AuditSummary
from muarl_tools.compare.attempts import Results
from referee_sources import Source


@dataclass
class Scored:
    """A file that was scored again."""

    source: Source
    benchmark: str
    domain: str
    conversations: int
    recorded: int
    """Conversations whose recorded reward muarl gives too, of ``rewarded``."""
    rewarded: int
    score: Estimate
    pass_hat: Mapping[int, Estimate]
    nothing: float
    judged: int
    """Conversations whose reward a judge of words would decide."""
    stated: float
    """The published score, a share."""
    as_published: float | None
    """muarl's score of the file as it is, where the simulations had to be joined with other tasks; None elsewhere."""
    audit: AuditSummary
    prose: bool
    """Whether the agent speaks in sentences, which is what rules of consent can read; False where it sends JSON."""
    results: Results
    notes: list[str] = field(default_factory=list)

    @property
    def alone(self) -> bool:
        """Whether the agent worked without a user."""
        return self.results.user == "none (solo mode)"


@dataclass(frozen=True)
class Neighbours:
    """Two results next to each other by their published score."""

    first: str
    second: str
    tasks: int
    difference: float
    interval: Interval
    p: float
    adjusted: float
    """After Holm's correction for all neighbours of the table."""
    needed: int | None
    """Tasks like these at which a difference as large as this one would be seen, with a chance of 80%."""
