"""The findings of many episodes, summed up: each layer's share, the catastrophic-failure rate, pass^k beside them.

Episodes are added one by one and not kept, so that files of any length can be summed up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muarl.accounts.breakdowns import results_by_stratum, strata_json
from muarl.accounts.intervals import Estimate, share_of
from muarl.accounts.metrics import DOMAIN, VIOLATIONS, is_success
from muarl.accounts.pass_hat import pass_hats_of
from muarl.accounts.strata import Outcome, StratumResult, strata_of
from muarl.audit.coverage import checked_layers, missing
from muarl.audit.fault_recovery import FaultCount, count_faults, recoveries
from muarl.audit.findings import LAYERS, SEVERITIES, Finding, Layer, Severity
from muarl.audit.rules import kinds_by
from muarl.domains.auditing import AuditRules
from muarl.types.episode import FAULTS, Episode

WORST = 20
"""Findings that a summary shows one by one; the findings' file has them all."""


@dataclass(slots=True)
class RuleCount:
    """How often a rule found something."""

    layer: Layer
    severity: Severity
    """The worst of its findings."""
    findings: int = 0
    episodes: int = 0


@dataclass(frozen=True, slots=True)
class LocatedFinding:
    """A finding with where it is."""

    where: Mapping[str, Any]
    finding: Finding


def violations(findings: Iterable[Finding], rules: AuditRules, judged: bool = False) -> int | None:
    """How many violations, catastrophic ones included, an audit by these rules has found in other layers than the
    outcome; notes do not count. None where neither policy nor safety was checked, since nothing found then says
    nothing. A success without any violation is a success with 0. ``judged``: a judge saw it too."""
    if not checked_layers(rules, judged) & _CLAIMED:
        return None
    return sum(f.severity != "note" and f.layer != "outcome" for f in findings)


def acted(episode: Episode) -> bool:
    """Whether there is a message of the agent. Without one there is nothing to audit."""
    return any(m.role == "assistant" for m in episode.messages)


def note_violations(episode: Episode, findings: Iterable[Finding], rules: AuditRules, judged: bool = False) -> None:
    """Write ``violations`` into a scored episode's verdict (``audit["violations"]``), where figures, comparisons and
    whoever reads the episode find it; what an earlier audit wrote goes."""
    if episode.verdict is not None:
        figures = {k: v for k, v in episode.verdict.audit.items() if k != VIOLATIONS}
        count = violations(findings, rules, judged) if acted(episode) else None
        noted = figures if count is None else figures | {VIOLATIONS: float(count)}
        episode.verdict = replace(episode.verdict, audit=noted)


@dataclass
class AuditSummary:
    """The sum of audits."""

    name: str = "audit"
    """What was audited."""
    unjudged: int = 0
    """Episodes that a judge should have seen and did not."""
    judged: int = 0
    rules: dict[str, RuleCount] = field(default_factory=dict)
    worst: list[LocatedFinding] = field(default_factory=list)
    excluded: int = 0
    without_agent: int = 0
    """Episodes without a message of the agent; like ``unread``, they count in no layer's share but the outcome's."""
    unread: int = 0
    """Episodes of which not all that the agent did could be read."""
    not_checked: dict[Layer, dict[str, int]] = field(default_factory=dict)
    """By layer, checks that the rules did not allow, and for how many episodes."""
    by_domain: dict[str, AuditSummary] = field(default_factory=dict)
    """The sums of each domain of a run with several."""
    faults: dict[str, FaultCount] = field(default_factory=dict)
    """By kind, what systems that fail did, and how the agent recovered."""
    _tasks: dict[str, list[_Attempt]] = field(default_factory=lambda: defaultdict(list))

    def add(
        self,
        episode: Episode,
        findings: Sequence[Finding],
        where: Mapping[str, Any] | None = None,
        *,
        rules: AuditRules,
        judged: bool = False,
        unread: bool = False,
    ) -> None:
        """Take an episode's audit into account. One that infrastructure ended counts as excluded, as in scores.

        ``rules``: by which it was audited; they tell which layers were checked at all. ``judged``: a judge saw it too.
        ``unread``: not all that the agent did could be read, so that what was not found says nothing.
        """
        if (domain := episode.tags.get(DOMAIN)) is not None:
            part = self.by_domain.setdefault(str(domain), AuditSummary(str(domain)))
            part._add(episode, findings, where, rules, judged, unread)
        self._add(episode, findings, where, rules, judged, unread)

    def _add(
        self,
        episode: Episode,
        findings: Sequence[Finding],
        where: Mapping[str, Any] | None,
        rules: AuditRules,
        judged: bool,
        unread: bool,
    ) -> None:
        if episode.stop.value == "infrastructure":
            self.excluded += 1
            return
        reward = None if episode.verdict is None else episode.verdict.reward
        success = None if reward is None else is_success(reward)
        bad = frozenset(f.layer for f in findings if f.severity != "note")
        catastrophic = any(f.severity == "catastrophic" for f in findings)
        checked, clean = checked_layers(rules, judged), violations(findings, rules, judged)
        silent = not acted(episode)
        self.without_agent += silent
        self.unread += unread
        if silent or unread:
            checked, clean = frozenset(), None
        strata = strata_of(episode)
        self._tasks[episode.task_id].append(_Attempt(success, bad, catastrophic, checked, clean, strata))
        if FAULTS in episode.tags:
            recovered = recoveries(episode.messages, rules.transfer_tools, kinds_by(rules))
            count_faults(self.faults, episode.messages, success, recovered)
        for check in missing(rules):
            names = self.not_checked.setdefault(check.layer, {})
            names[check.name] = names.get(check.name, 0) + 1
        for rule, group in _by_rule(findings).items():
            worst = max((f.severity for f in group), key=SEVERITIES.index)
            count = self.rules.setdefault(rule, RuleCount(group[0].layer, worst))
            count.findings += len(group)
            count.episodes += 1
            count.severity = max(count.severity, worst, key=SEVERITIES.index)
        place = where if where is not None else {"episode": episode.id, "task_id": episode.task_id}
        self._keep(LocatedFinding(place, f) for f in findings if f.severity != "note")

    def _keep(self, examples: Iterable[LocatedFinding]) -> None:
        """The worst findings, of every rule some, in the order in which they came."""
        for one in examples:
            same = sum(s.finding.rule == one.finding.rule for s in self.worst)
            if same < max(2, WORST // 6):
                self.worst.append(one)

    # What it comes to.

    @property
    def episodes(self) -> int:
        """Audited episodes."""
        return sum(map(len, self._tasks.values()))

    @property
    def catastrophic(self) -> Estimate | None:
        """The share of episodes with a catastrophic finding, with its 95% interval; None where no rules could have
        found one. Of several domains' episodes those count whose safety was checked, and those with such a finding."""
        return self._share(lambda a: a.catastrophic, lambda a: a.catastrophic or "safety" in a.checked)

    def clean(self, layer: Layer) -> Estimate | None:
        """The share of episodes without a violation in a layer, among those in which it was checked. None if it was in
        none: no rules are declared for it, or, for the outcome, no verdict told it."""
        if layer == "outcome":
            return self.success
        return self._share(lambda a: layer not in a.bad, lambda a: layer in a.checked)

    @property
    def success(self) -> Estimate | None:
        """The share of scored episodes that succeeded, None if none was scored."""
        scored = [[a.success for a in t if a.success is not None] for t in self._tasks.values()]
        return share_of(scored) if any(scored) else None

    @property
    def success_without_violation(self) -> Estimate | None:
        """The share of scored episodes that succeeded without a violation in any other layer (``violations``), as in
        ``metrics.clean_outcomes``; None if none was scored, or where neither policy nor safety was checked, be it in
        one of several domains."""
        attempts = [[a for a in t if a.success is not None] for t in self._tasks.values()]
        if all(a.violations is None for t in attempts for a in t):
            return None
        parts = self.by_domain.values()
        if any(part.success is not None and part.success_without_violation is None for part in parts):
            return None
        scored = [
            [bool(a.success and not a.violations) for a in t if not a.success or a.violations is not None]
            for t in attempts
        ]
        return share_of(t for t in scored if t) if any(scored) else None

    @property
    def pass_hat(self) -> dict[int, Estimate]:
        """pass^k of the scored episodes."""
        scored = [[a.success for a in t if a.success is not None] for t in self._tasks.values()]
        return pass_hats_of([t for t in scored if t])

    @property
    def strata(self) -> dict[str, StratumResult]:
        """Success of the scored episodes by stratum of users; empty where they have none."""
        tried = ((task, a) for task, attempts in self._tasks.items() for a in attempts)
        return results_by_stratum([Outcome(task, a.success, a.strata) for task, a in tried if a.success is not None])

    def _share(self, holds: _Holds, among: _Holds) -> Estimate | None:
        tasks = [[holds(a) for a in t if among(a)] for t in self._tasks.values()]
        return share_of(t for t in tasks if t) if any(tasks) else None

    @property
    def shown(self) -> list[LocatedFinding]:
        """The findings to show one by one, the worst first."""
        ordered = sorted(self.worst, key=lambda s: -SEVERITIES.index(s.finding.severity))
        return ordered[:WORST]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, as summary.json has it under "audit"."""

        def part(estimate: Estimate | None) -> dict[str, Any] | None:
            return None if estimate is None else estimate.to_json()

        return {
            "episodes": self.episodes,
            "tasks": len(self._tasks),
            "excluded": self.excluded,
            "without_agent": self.without_agent,
            "unread": self.unread,
            "catastrophic": part(self.catastrophic),
            "success": part(self.success),
            "success_without_violation": part(self.success_without_violation),
            "pass_hat": {str(k): e.to_json() for k, e in self.pass_hat.items()},
            "layers": {layer: part(self.clean(layer)) for layer in LAYERS},
            **({"strata": strata_json(strata)} if (strata := self.strata) else {}),
            "rules": {
                name: {"layer": c.layer, "severity": c.severity, "findings": c.findings, "episodes": c.episodes}
                for name, c in sorted(self.rules.items(), key=lambda item: _order(item[0], item[1]))
            },
            "not_checked": {layer: dict(names) for layer, names in self.not_checked.items()},
            **({"faults": {k: c.to_json() for k, c in sorted(self.faults.items())}} if self.faults else {}),
            "judged": self.judged,
            "unjudged": self.unjudged,
            **({"by_domain": {n: p.to_json() for n, p in sorted(self.by_domain.items())}} if self.by_domain else {}),
        }


@dataclass(frozen=True, slots=True)
class _Attempt:
    success: bool | None
    bad: frozenset[Layer]
    catastrophic: bool
    checked: frozenset[Layer]
    violations: int | None
    strata: Mapping[str, str] = field(default_factory=dict)


_Holds = Callable[[_Attempt], bool]
_CLAIMED: frozenset[Layer] = frozenset({"policy", "safety"})
"""Layers of which one must have been checked before a success may be called one without any violation."""


def _by_rule(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule].append(finding)
    return by_rule


def _order(name: str, count: RuleCount) -> tuple[int, int, str]:
    return LAYERS.index(count.layer), -SEVERITIES.index(count.severity), name
