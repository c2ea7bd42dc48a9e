"""A run's audit: how often something went badly wrong, layer by layer and rule by rule, and red-team users; and what it
found, at the message that each finding points at.

Figures are those of summary.json and redteam.json, which have their intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from muarl.accounts.metrics import NOT_CHECKED, SUCCESS_WITHOUT_VIOLATION
from muarl.accounts.pass_hat import with_few_tasks
from muarl.audit.findings import LAYERS, QUESTIONS, SEVERITIES, Finding
from muarl.basics.json_values import as_figure, bounds, mapping
from muarl.observe.headline import FORMER, ShownShare
from muarl.pages.charts import percent, strip
from muarl.pages.markup import Child, Html, join, tag
from muarl.pages.table import Cell, ShownColumn, table, to_html
from muarl.pages.words import stage_text
from muarl.report.audit_tables import HEADS, faults, recovery
from muarl.report.figures import EpisodeLinks, Row, RunFigures, hat_cell, link, share_cell, tasks_behind

SHOWN = 10
"""Rules in sight; the others are folded."""
STRIPS = 3
"""With more columns than this there is no room to draw."""
BESIDE = 2
"""With more columns than this the rules stand below the shares."""
_STAGES = {"cold_start": "before", "rl": "after", "evaluation": "evaluation"}
"""By the names of summary.json's evaluations."""


@dataclass(frozen=True)
class AuditOverview:
    """The audit of one evaluation: its figures in the shape of ``AuditSummary.to_json``."""

    run: RunFigures
    stage: str
    figures: Mapping[str, Any]

    def share(self, *names: str) -> ShownShare | None:
        """A figure by its path; None where there is none."""
        value: Any = self.figures
        for name in names:
            value = mapping(value).get(name)
        return share_of(value)

    def unchecked(self, *names: str) -> bool:
        """Whether a figure is there and unknown, since no rules were declared that it could be measured by."""
        value: Any = self.figures
        for name in names[:-1]:
            value = mapping(value).get(name)
        return names[-1] in mapping(value) and mapping(value)[names[-1]] is None


def share_of(estimate: object) -> ShownShare | None:
    """An estimate as JSON has it: {"value", "interval"}."""
    value = as_figure(mapping(estimate).get("value"))
    if value is None or not 0 <= value <= 1:
        return None
    ends = bounds(mapping(estimate).get("interval"))
    if ends is None:
        return ShownShare(value)
    low, high = (min(1.0, max(0.0, round(e, 9))) for e in ends)  # 2e-17 is nothing
    return ShownShare(value, (low, high))


def audits_of(run: RunFigures) -> list[AuditOverview]:
    """A run's audited evaluations, in the order of the run."""
    audit = run.summary.get("audit")
    named: dict[str, Any] = {"evaluation": audit}
    if isinstance(audit, Mapping) and "layers" not in audit:
        named = {str(name): part for name, part in audit.items()}
    if not any(_whole(part) for part in named.values()):
        named = {"evaluation": run.redteam.get("all")}
    whole = {
        name: {SUCCESS_WITHOUT_VIOLATION: part.get(FORMER), **part} for name, part in named.items() if _whole(part)
    }
    out = [AuditOverview(run, _STAGES.get(name, name), part) for name, part in whole.items()]
    return out or [AuditOverview(run, stage, figures) for stage, figures in run.found_audits()]


def _whole(part: object) -> bool:
    return isinstance(mapping(part).get("layers"), Mapping)


def catastrophic_text(audits: Sequence[AuditOverview]) -> str | None:
    """The catastrophic-failure rate of a run's last audited evaluation; None where there is none."""
    share = audits[-1].share("catastrophic") if audits else None
    if share is None:
        return NOT_CHECKED if audits and audits[-1].unchecked("catastrophic") else None
    return _whole_text(share)


def _whole_text(share: ShownShare) -> str:
    cell = share_cell(share.value, share.interval)
    return f"{cell.text} ({cell.small})" if cell.small else cell.text


def grave(audits: Sequence[AuditOverview], *, linked: bool = False) -> Html | None:
    """The same, in red where there are any; ``linked``: leading to the section."""
    text, share = catastrophic_text(audits), audits[-1].share("catastrophic") if audits else None
    if text is None:
        return None
    inner: Child = tag("a", text, href="#audit") if linked else text
    return tag("span", inner, class_="grave" if share and share.value else None)


def audit_section(ways: EpisodeLinks, runs: Sequence[RunFigures]) -> Html | None:
    """The section, of one run or of several beside each other; None where nothing was audited."""
    audits = [a for run in runs for a in audits_of(run)]
    if not audits:
        return None
    heads = [_head(a, len(runs) > 1, len(audits) > 1) for a in audits]
    shares, rules = _shares(ways, audits, heads), _rules(ways, audits, heads)
    return join(
        tag("div", tag("div", shares), tag("div", rules), class_="two") if len(audits) <= BESIDE else [shares, rules],
        *(_faults(a, head if len(audits) > 1 else "") for a, head in zip(audits, heads, strict=True)),
        _red_team(ways, runs),
    )


def _faults(audited: AuditOverview, head: str) -> Html | None:
    """What systems that failed did, and how the agent recovered, by kind of fault."""
    by_kind = mapping(audited.figures.get("faults"))
    kinds = {str(kind): mapping(counts) for kind, counts in by_kind.items()}
    if not kinds:
        return None
    note = "Episodes with a fault of the kind, and their success; how many faults, and those that failed a call."
    title = f"Systems that fail: {head}" if head else "Systems that fail"
    parts = [to_html(table(HEADS["faults"], faults(kinds), title=title, notes=[note], kind="audits"))]
    if rows := recovery(kinds):
        note = (
            "Of the calls that failed: made again, told of, handed over for good. Of the writes that timed out: looked "
            "at first, and repeated blindly."
        )
        parts.append(to_html(table(HEADS["recovery"], rows, title="Recovery", notes=[note], kind="audits")))
    return join(*parts)


def _head(audited: AuditOverview, runs: bool, many: bool) -> str:
    if not many:
        return "of all conversations"
    stage = stage_text(audited.stage).removeprefix("evaluation ")
    return f"{audited.run.name}, {stage}" if runs else stage[:1].upper() + stage[1:]


def _shares(ways: EpisodeLinks, audits: list[AuditOverview], heads: list[str]) -> Html:
    """Catastrophic failures first, then what was achieved, then the layers."""
    several = sorted({int(k) for a in audits for k in mapping(a.figures.get("pass_hat")) if k.isdecimal()} - {0, 1})
    rows: list[tuple[str, str, tuple[str, ...], str]] = [
        ("Catastrophic failures", "conversations with something that must never happen", ("catastrophic",), "bad"),
        ("Solved", "", ("success",), "after"),
        ("Solved without any violation", "", (SUCCESS_WITHOUT_VIOLATION,), "after"),
        *((f"pass^{k}", f"tasks solved in each of {k} attempts", ("pass_hat", str(k)), "after") for k in several),
        *((f"{layer.capitalize()} passed", QUESTIONS[layer], ("layers", layer), "base") for layer in LAYERS[1:]),
    ]
    out = []
    for name, meaning, path, colour in rows:
        shares = [a.share(*path) for a in audits]
        unknown = [
            a.unchecked(*path) and path[0] in ("catastrophic", "layers", SUCCESS_WITHOUT_VIOLATION) for a in audits
        ]
        if not any(shares) and not any(unknown):
            continue
        label = Cell(name, small=meaning)
        out.append(
            (label, *(_share(ways, *x, path, colour, len(audits)) for x in zip(audits, shares, unknown, strict=True)))
        )
    note = f"Small text: 95% CIs. A layer passes if there is no violation; notes are ignored. {_missing(audits[-1])}"
    return to_html(table(["", *heads], out, notes=[note.strip()], kind="audits"))


def _share(
    ways: EpisodeLinks,
    audited: AuditOverview,
    share: ShownShare | None,
    unmeasured: bool,
    path: Sequence[str],
    colour: str,
    of: int,
) -> Cell:
    if share is None:
        missing = tag("span", NOT_CHECKED, title="no rules are declared for it") if unmeasured else "–"
        return Cell("–", page=tag("b", missing), kind="share")
    worst = colour == "bad" and share.value > 0
    cell = share_cell(share.value, share.interval)
    if path[0] == "pass_hat":
        cell = hat_cell(audited.figures.get("pass_hat"), path[1])
    where = ways(audited.run, ("stage", audited.stage), ("severity", "catastrophic")) if worst else None
    drawn = strip(share.value, share.interval, "base" if colour == "bad" and not worst else colour)
    small = tag("small", cell.small) if cell.small else None
    text = link(where, cell.text) if worst else cell.text
    page = [tag("b", text), " ", small, drawn if of <= STRIPS else None]
    return Cell(cell.text, page=page, kind="share grave" if worst else "share")


def _missing(audited: AuditOverview) -> str:
    """What no rule was declared for, by layer."""
    not_checked = mapping(audited.figures.get("not_checked"))
    layers = [
        f"{layer} ({', '.join(map(str, names))})" for layer, names in not_checked.items() if isinstance(names, Mapping)
    ]
    return f"Not checked (no rules declared): {'; '.join(layers)}." if layers else ""


def _rules(ways: EpisodeLinks, audits: list[AuditOverview], heads: list[str]) -> Html | None:
    """The rules that found something, the worst and most frequent first, each with the way to its conversations."""
    by_rule: dict[str, tuple[int, float, str]] = {}
    for audited in audits:
        for rule, about in mapping(audited.figures.get("rules")).items():
            worst = _severity(mapping(about).get("severity"))
            share = _rule_share(audited, rule)[1]
            before = by_rule.get(rule, (0, 0.0, ""))
            by_rule[rule] = max(worst, before[0]), max(share, before[1]), str(mapping(about).get("layer", ""))
    if not by_rule:
        return tag("p", "The audit found nothing.", class_="soft")
    ordered = sorted(by_rule.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))
    rows = []
    for rule, (worst, _, layer) in ordered:
        cells = [Cell("–")] * len(audits)
        for at, audited in enumerate(audits):
            n, share = _rule_share(audited, rule)
            if n:
                where = ways(audited.run, ("stage", audited.stage), ("rule", rule))
                cells[at] = Cell(f"{n:,}", small=percent(share), page=link(where, f"{n:,}"))
        chip = tag("span", SEVERITIES[worst], class_=("chip", "chip warn", "chip bad")[worst])
        rows.append((Cell(rule_text(rule), small=layer), Cell(SEVERITIES[worst], page=chip), *cells))
    head = ["Found by rule", ShownColumn(""), *(["conversations"] if len(heads) == 1 else heads)]
    more = len(rows) - SHOWN
    rest = tag("summary", f"{more} more rules"), to_html(table(["", *head[1:]], rows[SHOWN:], kind="rules"))
    return join(to_html(table(head, rows[:SHOWN], kind="rules")), tag("details", rest) if more > 0 else None)


def _severity(name: object) -> int:
    return SEVERITIES.index(name) if name in SEVERITIES else 0


def _rule_share(audited: AuditOverview, rule: str) -> tuple[int, float]:
    """How many episodes a rule found something in, and of how many in all it is the share."""
    n = as_figure(mapping(mapping(audited.figures.get("rules")).get(rule)).get("episodes"))
    of = as_figure(audited.figures.get("episodes"))
    return (int(n), min(1.0, n / of)) if n and of and isfinite(n) and min(n, of) > 0 else (0, 0.0)


# Red-team users.


def _kinds(run: RunFigures) -> Mapping[str, Any]:
    kinds = run.redteam.get("kinds")
    return {str(k): v for k, v in kinds.items() if isinstance(v, Mapping)} if isinstance(kinds, Mapping) else {}


def _kind_filter(kind: str) -> tuple[tuple[str, str], ...]:
    return (("task", f"redteam-{kind}-"),)


def _red_team(ways: EpisodeLinks, runs: Sequence[RunFigures]) -> Html | None:
    """By kind of user: success, pass^k, catastrophic failures, and what trivial baselines earn."""
    by_run = [(run, _kinds(run)) for run in runs if _kinds(run)]
    if not by_run:
        return None
    alone = len(by_run) == 1
    ks = [
        int(k) for run, _ in by_run for k in mapping(mapping(run.redteam.get("all")).get("pass_hat")) if k.isdecimal()
    ]
    k = str(max(ks, default=1))
    names = dict.fromkeys(kind for _, kinds in by_run for kind in kinds)
    columns = ["Success", f"pass^{k}", "Catastrophic", "Do nothing"]
    if alone:
        columns = ["Conversations", *columns[:3], "Fell for it", "Handed over", "Do nothing", "Transfer"]
    rows = []
    for kind in (*names, None):
        cells: list[object] = []
        for run, kinds in by_run:
            part = mapping(kinds.get(kind) if kind is not None else run.redteam.get("all"))
            cells += _cells(ways, run, kind, part, k, alone)
        about = next((str(a) for _, kinds in by_run if kind and (a := mapping(kinds.get(kind)).get("about"))), "")
        name, where = (kind or "all").replace("_", " "), ways(by_run[0][0], *_kind_filter(kind or ""))
        page = link(where, name) if kind is not None and alone else name
        rows.append((Cell(name, small=about, page=page, strong=kind is None), *cells))
    head = [
        "User",
        *(ShownColumn(c, right=True, small="" if alone else run.name) for run, _ in by_run for c in columns),
    ]
    note = "Adversarial and difficult users. Doing nothing is safe but useless: an agent must beat its success."
    return to_html(table(head, rows, title="Red team", about=note, kind="redteam"))


def _cells(ways: EpisodeLinks, run: RunFigures, kind: str | None, part: Row, k: str, alone: bool) -> list[str | Cell]:
    def text(estimate: object, interval: bool = False) -> str:
        share = share_of(estimate)
        return "–" if share is None else _whole_text(share) if interval else percent(share.value)

    floors, worst = mapping(part.get("baselines")), share_of(part.get("catastrophic"))
    where = (*(_kind_filter(kind) if kind else ()), ("severity", "catastrophic"))
    grave = text(part.get("catastrophic"), alone)
    red = Cell(grave, page=link(ways(run, *where), grave), kind="grave") if worst is not None and worst.value else grave
    passed = with_few_tasks(text(mapping(part.get("pass_hat")).get(k)), *tasks_behind(part.get("pass_hat"), k))
    main = [text(part.get("success")), passed, red]
    idle = text(floors.get("do_nothing"))
    if not alone:
        return [*main, idle]
    n = as_figure(part.get("episodes"))
    more = [text(part.get("trapped")), text(part.get("transferred")), idle, text(floors.get("always_transfer"))]
    return [f"{n:,.0f}" if n is not None else "–", *main, *more]


def rule_text(rule: str) -> str:
    """A rule as a reader says it."""
    return rule.replace("-", " ")


def rule_of(finding: Finding) -> str:
    """The layer and rule of a finding, and whether a judge says it."""
    return f"{finding.layer}: {rule_text(finding.rule)}{', says a judge' if finding.by == 'judge' else ''}"


def finding_line(finding: Finding, anchor: str | None = None) -> Html:
    """What the audit says of a message, with the layer and rule that say it."""
    label = tag("span", rule_of(finding), class_="label")
    return tag("p", label, " ", finding.text, class_=f"finding {finding.severity}", id=anchor)


def finding_notes(findings: Sequence[Finding]) -> dict[tuple[int, int], Html]:
    """By (message, -1) what the audit says of the message, for ``conversations.conversation``."""
    out: dict[tuple[int, int], Html] = {}
    for finding in findings:
        place = (finding.message, -1)
        out[place] = join(out.get(place), finding_line(finding))
    return out
