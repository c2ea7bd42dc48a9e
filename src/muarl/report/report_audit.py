"""The run report's audit: catastrophic failures and layers beside success, the rules that found something, and findings
at the message that each points at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.accounts.metrics import NOT_CHECKED, SUCCESS_WITHOUT_VIOLATION
from muarl.audit.findings import LAYERS, QUESTIONS, SEVERITIES, Finding
from muarl.observe.headline import FORMER
from muarl.pages.charts import percent
from muarl.pages.markup import Html, as_figure, join, table_of, tag
from muarl.report.report_tables import bounds

Summary = Mapping[str, Any]

STAGES = {"cold_start": "Before RL", "rl": "After RL"}
"""By the names of summary.json's evaluations; a single one has no name."""
SHOWN = 12
"""Rules that are shown; findings.jsonl has them all."""


def audits_of(summary: Summary) -> list[tuple[str, Summary]]:
    """The audits that a summary holds, each with its evaluation's name: one of ``muarl eval``, or one a stage."""
    found = summary.get("audit")
    if not isinstance(found, Mapping):
        return []
    named = {"Evaluation": found} if "layers" in found else {STAGES.get(str(k), str(k)): v for k, v in found.items()}
    parts = [(name, part) for name, part in named.items() if isinstance(part, Mapping) and "layers" in part]
    return [(name, {SUCCESS_WITHOUT_VIOLATION: part.get(FORMER), **part}) for name, part in parts]


def audit_section(summary: Summary) -> Html | None:
    """Shares with their intervals, evaluation by evaluation, and what was found; None where nothing was audited."""
    audits = audits_of(summary)
    if not audits:
        return None
    heads = [name for name, _ in audits]
    figures = [("Catastrophic failures", "conversations with something that must never happen", ("catastrophic",)),
               ("Solved without any violation", "", (SUCCESS_WITHOUT_VIOLATION,)),
               *((layer.capitalize(), QUESTIONS[layer], ("layers", layer)) for layer in LAYERS[1:])]  # fmt: skip
    rows = [
        tag(
            "tr",
            tag("th", name, tag("small", meaning) if meaning else None, scope="row"),
            [_cell(part, path) for _, part in audits],
        )
        for name, meaning, path in figures
    ]
    return join(
        table_of(["", *heads], rows),
        tag("p", "Of a layer: conversations without a violation in it; notes are ignored. Small text: 95% CIs. ",
            [_missing(part) for _, part in audits[-1:]], class_="soft"),
        _rules(audits),
    )  # fmt: skip


def _cell(part: Summary, path: Sequence[str]) -> Html:
    found: Any = part
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    value = as_figure(found.get("value")) if isinstance(found, Mapping) else None
    if value is None:
        return tag("td", NOT_CHECKED, class_="n soft")
    ends = bounds(found.get("interval"))
    spread = tag("small", f"{percent(ends[0])}–{percent(ends[1])}") if ends else None
    return tag("td", percent(value), " ", spread, class_="n")


def _missing(part: Summary) -> str:
    """What no rule was declared for, by layer."""
    found = part.get("not_checked")
    if not isinstance(found, Mapping) or not found:
        return ""
    told = [f"{layer} ({', '.join(map(str, names))})" for layer, names in found.items() if isinstance(names, Mapping)]
    return f"Not checked (no rules declared): {'; '.join(told)}."


def _rules(audits: Sequence[tuple[str, Summary]]) -> Html:
    known: dict[str, Mapping[str, Any]] = {}
    for _, part in audits:
        rules = part.get("rules")
        known |= {str(k): v for k, v in rules.items() if isinstance(v, Mapping)} if isinstance(rules, Mapping) else {}
    if not known:
        return tag("p", "The audit found nothing.", class_="soft")

    def worst(rule: str) -> int:
        severity = known[rule].get("severity")
        return SEVERITIES.index(severity) if severity in SEVERITIES else 0

    rows = []
    for rule in sorted(known, key=lambda r: (-worst(r), r))[:SHOWN]:
        kind = "chip bad" if worst(rule) == len(SEVERITIES) - 1 else "chip"
        cells = [tag("td", _often(part, rule), class_="n") for _, part in audits]
        label = tag("th", rule.replace("-", " "), tag("small", str(known[rule].get("layer", ""))), scope="row")
        rows.append(tag("tr", label, tag("td", tag("span", SEVERITIES[worst(rule)], class_=kind)), cells))
    return join(
        tag("h3", "What was found"),
        table_of(["Rule", "Severity", *(f"{name}: conversations" for name, _ in audits)], rows),
    )


def _often(part: Summary, rule: str) -> str:
    rules = part.get("rules")
    own = rules.get(rule) if isinstance(rules, Mapping) else None
    n, of = as_figure(own.get("episodes")) if isinstance(own, Mapping) else None, as_figure(part.get("episodes"))
    return f"{n:,.0f} ({percent(min(1.0, n / of))})" if n and of else "–"


def finding_notes(findings: Sequence[Finding]) -> dict[tuple[int, int], Html]:
    """By (message, -1) what the audit says of the message, for ``conversations.conversation``."""
    out: dict[tuple[int, int], Html] = {}
    for finding in findings:
        judge = ", says a judge" if finding.by == "judge" else ""
        label = tag("span", f"{finding.layer}: {finding.rule.replace('-', ' ')}{judge}", class_="label")
        line = tag("p", label, " ", finding.text, class_=f"finding {finding.severity}")
        place = (finding.message, -1)
        out[place] = join(out.get(place), line)
    return out
