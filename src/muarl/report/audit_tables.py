"""An audit's summary as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from muarl.accounts.intervals import Estimate
from muarl.accounts.metrics import CLEAN, NOT_CHECKED
from muarl.accounts.pass_hat import few_behind, pass_hat_label
from muarl.accounts.strata import Share
from muarl.audit.coverage import missing_text
from muarl.audit.findings import LAYERS, QUESTIONS, SEVERITIES
from muarl.audit.summary import AuditSummary
from muarl.pages.table import Cell, ShownColumn, ShownTable, table, to_markdown

Row = tuple[str, ...]


def headline(summary: AuditSummary) -> list[Row]:
    """(figure, share, interval): the catastrophic-failure rate first, then success, success without any violation and
    pass^k."""
    worst = summary.catastrophic
    rows: list[Row] = [("catastrophic failures", *((NOT_CHECKED, "") if worst is None else _share(worst)))]
    if summary.success is not None:
        rows.append(("success", *_share(summary.success)))
        clean = summary.success_without_violation
        rows.append((CLEAN, *((NOT_CHECKED, "") if clean is None else _share(clean))))
    hats = summary.pass_hat
    rows += [(pass_hat_label(hats, k), *_share(e)) for k, e in hats.items() if k > 1]
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


def strata(summary: AuditSummary) -> list[Row]:
    """(kind of user, episodes, success, interval), by the values of each stratum of users."""
    return [
        (f"{name}: {value}", str(share.n), *_share(share))
        for name, result in summary.strata.items()
        for value, share in result.values.items()
    ]


def strata_warnings(summary: AuditSummary) -> list[str]:
    """One sentence for each stratum of users by which success differs."""
    return [result.warning for result in summary.strata.values() if result.warning is not None]


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


def worst_lines(summary: AuditSummary) -> list[str]:
    """The same for a terminal, in which five columns have no room: a line, and what was found below it."""
    return [
        f"{one.finding.severity} {one.finding.rule}: {_place(one.where)}, message {one.finding.message}\n"
        f"    {one.finding.text}"
        for one in summary.shown
    ]


def _place(where: Mapping[str, Any]) -> str:
    """The file of an episode, and its id."""
    return " ".join(str(where[name]) for name in ("file", "episode") if where.get(name))


def domains(summary: AuditSummary) -> list[Row]:
    """(figure, share in each domain) of a run with several domains: catastrophic failures, success, and for each other
    layer the share of episodes without a violation."""
    parts = [part for _, part in sorted(summary.by_domain.items())]
    if not parts:
        return []
    success = ("not scored" if part.success is None else share_text(part.success) for part in parts)
    rows: list[Row] = [
        ("catastrophic failures", *(share_text(part.catastrophic) for part in parts)),
        ("success", *success),
        (CLEAN, *(share_text(part.success_without_violation) for part in parts)),
    ]
    clean = [layer for layer in LAYERS if layer != "outcome"]
    return rows + [(f"{layer}: no violation", *(share_text(part.clean(layer)) for part in parts)) for layer in clean]


def faults(kinds: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """(kind of fault, episodes, success, faults, calls failed). ``kinds``: as ``FaultCount.to_json`` has them."""
    rows: list[Row] = []
    for kind, counts in sorted(kinds.items()):
        n = _whole(counts, "episodes", "scored", "successes", "faults", "failed")
        success = f"{n['successes'] / n['scored']:.1%}" if n["scored"] else "not scored"
        rows.append((kind.replace("_", " "), str(n["episodes"]), success, str(n["faults"]), str(n["failed"])))
    return rows


def recovery(kinds: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """(kind of fault; of the calls that it failed: made again, told of, handed over; of the writes that timed out:
    looked at first, repeated blindly) of the kinds that failed a call. ``kinds``: as for ``faults``."""
    rows: list[Row] = []
    for kind, counts in sorted(kinds.items()):
        calls, writes = _whole(counts, "failed", "timed_out_writes").values()
        if not calls:
            continue
        of_calls = [f"{n}/{calls}" for n in _whole(counts, "tried_again", "told", "handed_over").values()]
        of_writes = [f"{n}/{writes}" if writes else "" for n in _whole(counts, "checked", "repeated_blindly").values()]
        rows.append((kind.replace("_", " "), *of_calls, *of_writes))
    return rows


def _whole(counts: Mapping[str, Any], *names: str) -> dict[str, int]:
    """Counts of a file by these names; 0 for what is none."""
    return {name: value if isinstance(value := counts.get(name), int) else 0 for name in names}


HEADS: dict[str, tuple[str | ShownColumn, ...]] = {
    "headline": ("figure", "share", "95% interval"),
    "layers": ("layer", ShownColumn("question"), "without violation", "95% interval"),
    "strata": ("kind of user", "episodes", "success", "95% interval"),
    "rules": (
        ShownColumn("layer", whole=True),
        ShownColumn("rule", whole=True),
        ShownColumn("severity", whole=True),
        "findings",
        "episodes",
        "share",
    ),
    "faults": (ShownColumn("fault", whole=True), "episodes", "success", "faults", "calls failed"),
    "recovery": (
        ShownColumn("failed calls", whole=True),
        "made again",
        "told of",
        "handed over",
        "looked first",
        "repeated blindly",
    ),
    "worst": (
        "severity",
        ShownColumn("rule", whole=True),
        ShownColumn("episode"),
        "message",
        ShownColumn("what was found"),
    ),
}
"""A rule is shown whole, so that it can be searched for."""

FIRST = ("headline", "layers", "domains", "faults", "recovery")
"""The tables before those of single findings."""


def tables(
    summary: AuditSummary, *, detailed: bool = True, examples: bool = True, figures: bool = True
) -> dict[str, ShownTable]:
    """The tables by name; without ``detailed`` only the headline and the layers, without ``examples`` no single
    findings, without ``figures`` all but headline and layers."""
    rows_by_name = {"headline": headline(summary), "layers": layers(summary)} if figures else {}
    rows_by_name["domains"] = domains(summary)
    kinds = {kind: counts.to_json() for kind, counts in summary.faults.items()}
    rows_by_name |= {"faults": faults(kinds), "recovery": recovery(kinds)}
    if detailed:
        rows_by_name |= {"strata": strata(summary)} if figures else {}
        rows_by_name |= {"rules": rules(summary)}
        rows_by_name |= {"worst": worst(summary)} if examples else {}
    heads = HEADS | {"domains": ("by domain", *sorted(summary.by_domain))}
    return {
        name: table(heads[name], rows, title=summary.name if name == "headline" else "")
        for name, rows in rows_by_name.items()
        if rows
    }


def markdown(summary: AuditSummary) -> str:
    """The section of an evaluation's report.md."""
    texts = {name: to_markdown(replace(part, title="")) for name, part in tables(summary).items()}
    parts = ["## Audit\n", *(texts[name] for name in FIRST if name in texts)]
    if summary.rules:
        parts += [texts["rules"], "Some of the findings; findings.jsonl has them all.\n", texts.get("worst", "")]
    else:
        parts.append(f"Nothing was found in {summary.episodes} episodes.\n")
    if summary.not_checked:
        missed = missing_text(summary.not_checked, summary.episodes)
        parts.append(f"Not checked (no rules declared): {missed}.\n")
    if summary.without_agent:
        parts.append(f"Nothing to audit in {summary.without_agent} episodes: no message of the agent.\n")
    if summary.unjudged:
        parts.append(f"The judge did not answer for {summary.unjudged} episodes.\n")
    return "\n".join(parts)


def beside(name: str, parts: Mapping[str, AuditSummary], *, intervals: bool = True) -> ShownTable:
    """Several audits in one table: a column each, shares with their 95% intervals or without."""

    def cell(estimate: Estimate | None, few: str = "") -> Cell:
        interval = _share(estimate)[1] if estimate is not None and intervals else ""
        return Cell(share_text(estimate), small=", ".join(filter(None, (interval, few))))

    audits, hats = list(parts.values()), [p.pass_hat for p in parts.values()]
    rows: list[tuple[str, list[Cell]]] = [
        ("catastrophic failures", [cell(p.catastrophic) for p in audits]),
        ("success", [cell(p.success) for p in audits]),
        (CLEAN, [cell(p.success_without_violation) for p in audits]),
        *(
            (f"pass^{k}", [cell(h.get(k), few_behind(h, k)) for h in hats])
            for k in (2, 3, 4)
            if any(k in h for h in hats)
        ),
        *((f"{layer}: no violation", [cell(p.clean(layer)) for p in audits]) for layer in LAYERS[1:]),
    ]
    lines = [("episodes", *(str(p.episodes) for p in audits)), *((label, *cells) for label, cells in rows)]
    return table(["figure", *parts], lines, title=name)


def one_below_another(parts: Mapping[str, AuditSummary]) -> ShownTable:
    """Several audits in one table: a row each, shares alone."""
    return table(
        ["file", *(ShownColumn(head) for head in ("episodes", "success", "without violation", "catastrophic")),
         *map(ShownColumn, LAYERS[1:])],
        [
            (name, str(p.episodes), *map(share_text, (p.success, p.success_without_violation, p.catastrophic)),
             *map(share_text, map(p.clean, LAYERS[1:])))
            for name, p in parts.items()
        ],
    )  # fmt: skip


def share_text(estimate: Estimate | None) -> str:
    """A share without its interval."""
    return NOT_CHECKED if estimate is None else f"{estimate.value:.1%}"


def _share(estimate: Share) -> tuple[str, str]:
    low, high = estimate.interval
    return f"{estimate.value:.1%}", f"{low:.1%} – {high:.1%}"
