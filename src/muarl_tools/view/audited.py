"""What the audit found in an episode: in a list at its head, and each finding at the message it points at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from muarl.audit.findings import Finding, Severity
from muarl.pages.markup import Html, tag
from muarl.report.report_audit import rule_of, rule_text
from muarl_tools.view.audit_queries import RuleMark

SEVERITIES: dict[Severity, tuple[str, str]] = {
    "catastrophic": ("catastrophic", "catastrophic"),
    "violation": ("violation", "violations"),
    "note": ("note", "notes"),
}
"""From the worst: one of them, several of them."""

CHIPS = 3
"""Rules that a row of a list names."""


def audit_list(findings: Sequence[Finding] | None, messages: int, recorded: bool) -> Html | None:
    """What the audit found, in a line each that leads to the message. ``messages``: how many there are. ``recorded``:
    the run's own audit found it."""
    if not findings:
        return None
    lines = []
    for at, finding in enumerate(findings):
        name = tag("b", rule_of(finding))
        if finding.message < messages:
            name = tag("a", rule_of(finding), href=f"#finding-{at + 1}")
        lines.append(tag("li", name, f" {finding.text}", class_=finding.severity))
    kinds = Counter(f.severity for f in findings)
    counts = ", ".join(f"{kinds[s]} {names[kinds[s] > 1]}" for s, names in SEVERITIES.items() if kinds[s])
    worth = bool(kinds["catastrophic"] or kinds["violation"])
    said = f"The {'run’s own ' if recorded else ''}audit: {counts}"
    return tag("details", tag("summary", said), tag("ul", lines), class_="audit", open=worth)


def audit_chips(found: Sequence[RuleMark]) -> list[Html]:
    """In a row of a list: the worst rules, and how many more there are. Notes are nothing to show there."""
    marks = [m for m in found if m.severity]
    chips = []
    for mark in marks[:CHIPS]:
        worst, colour = ("catastrophic", "bad") if mark.severity == 2 else ("violation", "warn")
        often = f", {mark.times} times" if mark.times > 1 else ""
        chips.append(tag("span", rule_text(mark.rule), class_=f"chip {colour}", title=f"{mark.layer}, {worst}{often}"))
    if len(marks) > CHIPS:
        chips.append(tag("span", f"+ {len(marks) - CHIPS}", class_="chip"))
    return chips
