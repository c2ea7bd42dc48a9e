"""Figures by domain, of a run with several: a section of the run report, and charts that the viewer shows, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.accounts.metrics import BEHAVIOUR, DOMAIN, SUCCESS_WITHOUT_VIOLATION
from muarl.basics.json_values import as_figure, mapping
from muarl.pages.charts import Series, line_chart
from muarl.pages.markup import Html, join, tag
from muarl.pages.table import Cell, table, to_html
from muarl.pages.words import word
from muarl.report.figures import MEASURED, Rows, RunFigures, figure_text, points, share_cell
from muarl.report.report_audit import audits_of
from muarl.report.report_curves import CURVES
from muarl.report.report_tables import ReportStage, stage_columns
from muarl.report.report_tables import beside as together

COLOURS = 6
"""Domains that have a line of their own."""
FLOORS = (("do_nothing", "Does nothing"), ("always_transfer", "Always transfers"), ("demonstrator", "Demonstrator"))
ALL = "All"
MANY = "many"
"""The style of tables with a column for each domain."""


def domains_in(rows: Rows) -> list[str]:
    """The domains that figures are told of."""
    domains = {key.split("/", 2)[1]: None for row in rows for key in row if key.startswith(f"{DOMAIN}/")}
    return sorted(domains)


def domains_section(run: RunFigures, stages: Sequence[ReportStage]) -> Html | None:
    """Scores, behaviour and learning of each domain; None for a run of one."""
    parts = [mapping(stage.block.get("by_domain")) for stage in stages]
    names = sorted({name for part in parts for name in part} | set(domains_in(run.metrics)))
    if not names:
        return None
    blocks = [_scores(run.summary, stages, names), _audited(run, names), _behaviour(stages, names)]
    charts = domain_charts(run.rows, run.metrics)
    curves = join(tag("h3", "Learning"), tag("div", charts, class_="charts")) if charts else None
    return join(*blocks, curves)


def _scores(summary: Mapping[str, Any], stages: Sequence[ReportStage], names: Sequence[str]) -> Html | None:
    if not stages:
        return None
    by_domain = mapping(summary.get("by_domain"))
    floors = [(key, label) for key, label in FLOORS if any(key in mapping(part) for part in by_domain.values())]
    rows = []
    for name in [*names, ALL]:
        blocks = [s.block if name == ALL else mapping(mapping(s.block.get("by_domain")).get(name)) for s in stages]
        scores = [as_figure(block.get("success")) for block in blocks]
        tried = as_figure(blocks[-1].get("episodes"))
        beside = [
            as_figure(_success((summary if name == ALL else mapping(by_domain.get(name))).get(k))) for k, _ in floors
        ]
        rows.append(
            (
                name,
                Cell(f"{tried:,.0f}" if tried is not None else "–", kind="soft"),
                *map(share_cell, beside),
                together(scores, stages),
                *(share_cell(v, block.get("interval")) for v, block in zip(scores, blocks, strict=True)),
            )
        )
    head = ["", "Conversations", *(label for _, label in floors), *stage_columns(stages)]
    return to_html(table(head, rows, title="Tasks solved", kind="kinds wide"))


def _audited(run: RunFigures, names: Sequence[str]) -> Html | None:
    audits = audits_of(run)
    parts = mapping(audits[-1].figures.get("by_domain")) if audits else {}
    if not parts:
        return None
    figures = (("Catastrophic failures", "catastrophic"), ("Solved without any violation", SUCCESS_WITHOUT_VIOLATION))
    columns = [(name, mapping(parts.get(name))) for name in names] + [(ALL, audits[-1].figures)]
    estimates = [[mapping(part.get(key)) for _, part in columns] for _, key in figures]
    rows = [
        (label, *(share_cell(e.get("value"), e.get("interval")) for e in row))
        for (label, _), row in zip(figures, estimates, strict=True)
    ]
    return to_html(table(["", *(name for name, _ in columns)], rows, title="Audit", kind=MANY))


def _behaviour(stages: Sequence[ReportStage], names: Sequence[str]) -> Html | None:
    if not stages:
        return None
    last = stages[-1]
    parts = mapping(last.block.get("by_domain"))
    columns = [(name, mapping(mapping(parts.get(name)).get("behaviour"))) for name in names]
    columns.append((ALL, mapping(last.block.get("behaviour"))))
    rows = []
    for figure in BEHAVIOUR:
        w, values = word(figure), [as_figure(block.get(figure)) for _, block in columns]
        if any(value is not None for value in values):
            rows.append((Cell(w.label, small=w.meaning), *(figure_text(w, value) for value in values)))
    if not rows:
        return None
    title = f"Behaviour {last.long}".strip()
    return to_html(table(["", *(name for name, _ in columns)], rows, title=title, kind=MANY))


def domain_charts(rows: Rows, everything: Rows = ()) -> list[Html]:
    """What is watched in training, with a line for each domain. ``rows``: of training. ``everything``: with those of
    validation or evaluation, whose success is drawn as dots."""
    names = domains_in(rows)[:COLOURS]
    charts = []
    for figures in CURVES:
        figure = next((f for f in figures if any(points(rows, f"{DOMAIN}/{n}/{f}") for n in names)), None)
        if figure is None:
            continue
        w = word(figure)
        lines = [Series(name, points(rows, f"{DOMAIN}/{name}/{figure}"), f"d{i}") for i, name in enumerate(names)]
        if figure == "success":
            lines += _held_out(names, everything)
        charts.append(line_chart(w.label, lines, shares=w.share, note=w.meaning))
    return [chart for chart in charts if chart is not None]


def _held_out(names: Sequence[str], rows: Rows) -> list[Series]:
    for phase in MEASURED:
        measured = [row for row in rows if row.get("phase") == phase]
        lines = [
            Series(f"{name}, held out", measurements, f"d{i}", dots=True)
            for i, name in enumerate(names)
            if (measurements := points(measured, f"{DOMAIN}/{name}/success"))
        ]
        if lines:
            return lines
    return []


def _success(value: Any) -> Any:
    return value.get("success") if isinstance(value, Mapping) else value
