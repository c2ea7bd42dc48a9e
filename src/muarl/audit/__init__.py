"""The audit: the five layers of operators' questions, asked of every episode, each answer pointing at a turn."""

from muarl.audit.episodes import audit_episode, findings_in
from muarl.audit.findings import LAYERS, SEVERITIES, Finding, Layer, Severity, read_findings, worst, write_findings
from muarl.audit.rules_file import keep_rules
from muarl.audit.scene import scene_of

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
    "scene_of",
    "worst",
    "write_findings",
]
