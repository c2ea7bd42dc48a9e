"""What the audit found in an episode: in a list at its head, and each finding at the message it points at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from muarl.audit import Finding, Severity
from muarl.observe.markup import Html, tag

SEVERITIES: dict[Severity, tuple[str, str]] = {
    "catastrophic": ("catastrophic", "catastrophic"),
    "violation": ("violation", "violations"),
    "note": ("note", "notes"),
}
"""From the worst: one of them, several of them."""


def finding_line(finding: Finding, anchor: str | None) -> Html:
    """What the audit says of a message, with the layer and rule that say it."""
    label = tag("span", _rule(finding), class_="label")
    return tag("p", label, " ", finding.text, class_=f"finding {finding.severity}", id=anchor)


def _rule(finding: Finding) -> str:
    return f"{finding.layer}: {finding.rule.replace('-', ' ')}"


def audit_list(findings: Sequence[Finding] | None) -> Html | None:
    """What the audit found, in a line each that leads to the message."""
    if not findings:
        return None
    lines = [
        tag(
            "li",
            tag("a", _rule(finding), href=f"#finding-{at + 1}"),
            f" {finding.text}",
            class_=finding.severity,
        )
        for at, finding in enumerate(findings)
    ]
    kinds = Counter(f.severity for f in findings)
    counts = ", ".join(f"{kinds[s]} {names[kinds[s] > 1]}" for s, names in SEVERITIES.items() if kinds[s])
    worth = bool(kinds["catastrophic"] or kinds["violation"])
    return tag("details", tag("summary", f"The audit: {counts}"), tag("ul", lines), class_="audit", open=worth)
