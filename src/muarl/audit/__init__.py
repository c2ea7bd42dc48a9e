"""The audit: rule-based evaluation of every episode in five layers, with findings that point at turns."""

from muarl.audit.episodes import audit_episode, findings_in
from muarl.audit.findings import LAYERS, SEVERITIES, Finding, Layer, Severity, read_findings, worst, write_findings
from muarl.audit.rules_file import keep_rules
from muarl.audit.transcript import transcript_of

__all__ = [
    "LAYERS",
    "SEVERITIES",
    "Finding",
    "Layer",
    "Severity",
    "audit_episode",
    "findings_in",
    "keep_rules",
    "read_findings",
    "transcript_of",
    "worst",
    "write_findings",
]
