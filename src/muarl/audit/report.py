"""An audit's sum for people: tables for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muarl.audit.coverage import NOT_CHECKED, missing_text
from muarl.audit.findings import LAYERS, SEVERITIES
from muarl.audit.summary import AuditSummary
from muarl.benchmarks.statistics import Estimate

if TYPE_CHECKING:
    from rich.table import Table

QUESTIONS = {
    "outcome": "was the task done?",
    "policy": "was the policy followed?",
    "communication": "was everything said?",
    "safety": "were safety boundaries respected?",
    "recovery": "did it recover well?",
}

Row = tuple[str, ...]


def headline(summary: AuditSummary) -> list[Row]:
    """(figure, share, interval): the catastrophic-failure rate first, then success, decent success and pass^k."""
    worst = summary.catastrophic
    rows: list[Row] = [("catastrophic failures", *((NOT_CHECKED, "") if worst is None else _share(worst)))]
    if summary.success is not None:
        rows.append(("success", *_share(summary.success)))
    if summary.decent is not None:
        rows.append(("success without any violation", *_share(summary.decent)))
    rows += [(f"pass^{k}", *_share(e)) for k, e in summary.pass_hat.items() if k > 1]
    return rows


def layers(summary: AuditSummary) -> list[Row]:
    """(layer, its question, share of episodes without a violation, interval); "not checked" for a layer that nothing
    was declared for, "not scored" for an outcome that no verdict tells."""
    rows: list[Row] = []
    for layer in LAYERS:
        clean = summary.clean(layer)
        unknown = ("not scored" if layer == "outcome" else NOT_CHECKED, "")
        rows.append((layer, QUESTIONS[layer], *(unknown if clean is None else _share(clean))))
    return rows


def rules(summary: AuditSummary) -> list[Row]:
    """(layer, rule, severity, findings, episodes, share of episodes), layer by layer, the worst first."""
    rows: list[Row] = []
    counts = sorted(
        summary.rules.items(), key=lambda i: (LAYERS.index(i[1].layer), -SEVERITIES.index(i[1].severity), i[0])
    )
    for name, count in counts:
        share = count.episodes / summary.episodes if summary.episodes else 0.0
        rows.append((count.layer, name, count.severity, str(count.findings), str(count.episodes), f"{share:.1%}"))
    return rows


def worst(summary: AuditSummary) -> list[Row]:
    """(severity, rule, episode, message, what): some findings of every rule, the worst first."""
    return [
        (s.finding.severity, s.finding.rule, str(s.where.get("episode", "")), str(s.finding.message), s.finding.text)
        for s in summary.shown
    ]


HEADS: dict[str, Row] = {
    "headline": ("figure", "share", "95% interval"),
    "layers": ("layer", "question", "without violation", "95% interval"),
    "rules": ("layer", "rule", "severity", "findings", "episodes", "share"),
    "worst": ("severity", "rule", "episode", "message", "what was found"),
}


def markdown(summary: AuditSummary) -> str:
    """The section of an evaluation's report.md."""
    parts = ["## Audit\n", _table("headline", headline(summary)), _table("layers", layers(summary))]
    if summary.rules:
        parts += [_table("rules", rules(summary)), "Some of the findings; findings.jsonl has them all.\n"]
        parts.append(_table("worst", worst(summary)))
    else:
        parts.append(f"Nothing was found in {summary.episodes} episodes.\n")
    if summary.not_checked:
        missed = missing_text(summary.not_checked, summary.episodes)
        parts.append(f"Not checked (no rules declared): {missed}.\n")
    if summary.unjudged:
        parts.append(f"The judge did not answer for {summary.unjudged} episodes.\n")
    return "\n".join(parts)


def _table(name: str, rows: Sequence[Row]) -> str:
    head = HEADS[name]
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in row) + " |\n" for row in lines)


def tables(summary: AuditSummary, *, detailed: bool = True) -> list[Table]:
    """The tables for a terminal; without ``detailed`` only the headline and the layers."""
    from rich.table import Table
    from rich.text import Text

    shown = {"headline": headline(summary), "layers": layers(summary)}
    if detailed:
        shown |= {"rules": rules(summary), "worst": worst(summary)}
    out = []
    for name, rows in shown.items():
        if not rows:
            continue
        title = summary.name if name == "headline" else None
        table = Table(title=None if title is None else Text(title), title_justify="left")
        for column in HEADS[name]:
            right = column in ("share", "without violation", "findings", "episodes", "message", "95% interval")
            table.add_column(column, justify="right" if right else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        out.append(table)
    return out


def share_text(estimate: Estimate | None) -> str:
    """A share without its interval."""
    return NOT_CHECKED if estimate is None else f"{estimate.value:.1%}"


def _share(estimate: Estimate) -> tuple[str, str]:
    low, high = estimate.interval
    return f"{estimate.value:.1%}", f"{low:.1%} – {high:.1%}"
