"""The overview's figures by domain, of runs with several: charts, stages, and runs beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muarl.pages.charts import percent
from muarl.pages.markup import Child, Html, table_of, tag
from muarl.report.report_domains import domain_charts
from muarl_tools.view import queries
from muarl_tools.view.layout import Site, clean_share, episodes_at, link, stage_text
from muarl_tools.view.overview_charts import RunRows
from muarl_tools.view.runs import Run

HELD_OUT = ("after", "evaluation", "validation")
"""Stages of held-out tasks."""


def domains_section(site: Site, seen: Sequence[RunRows]) -> Html | None:
    """Of one run its charts and stages by domain, of several their success on held-out tasks in each; None where no run
    has several domains."""
    found = {s.run: s.run.ask(queries.stages_by_domain) for s in seen}
    told = [s for s in seen if found[s.run]]
    if len(seen) == 1:
        charts = domain_charts(seen[0].rows, seen[0].all_rows)
        table = _stages(site, seen[0], found[seen[0].run]) if told else None
        body: list[Child] = [tag("div", charts, class_="charts") if charts else None, table]
    else:
        body = [_held_out(told, found)] if told else []
    if not any(body):
        return None
    return tag("section", tag("h2", "By domain"), body, id="domains")


def _stages(site: Site, seen: RunRows, found: Sequence[tuple[str, queries.StageMeans]]) -> Html:
    rows = []
    for domain, s in found:
        place = episodes_at(seen.run, ("stage", s.stage), ("domain", domain))
        cells = [
            f"{s.episodes:,}", f"{s.tasks:,}", percent(s.success) if s.success is not None else "–", clean_share(s),
            f"{s.turns:.1f}", f"{s.tokens:,.0f}", f"{s.tool_errors:.2f}", percent(s.user_errors), f"{s.excluded:,}",
        ]  # fmt: skip
        name = tag("th", link(site, place, stage_text(s.stage)), " ", tag("small", domain), scope="row")
        rows.append(tag("tr", name, [tag("td", c, class_="n") for c in cells]))
    head = ["Stage and domain", "Episodes", "Tasks", "Solved", "Without violation", "Turns", "Tokens",
            "Tool errors", "User errors", "Infrastructure failures"]  # fmt: skip
    return table_of(head, rows, "stages")


def _held_out(seen: Sequence[RunRows], found: Mapping[Run, list[tuple[str, queries.StageMeans]]]) -> Html:
    names = sorted({domain for stages in found.values() for domain, _ in stages})
    rows = []
    for s in seen:
        last = {domain: means for domain, means in found[s.run] if means.stage in HELD_OUT}
        known = [last.get(name) for name in names]
        cells = [tag("td", percent(m.success) if m and m.success is not None else "–", class_="n") for m in known]
        rows.append(tag("tr", tag("th", s.run.name, scope="row"), cells))
        clean = [tag("td", clean_share(m) if m else "–", class_="n soft") for m in known]
        rows.append(tag("tr", tag("th", "without any violation", scope="row", class_="soft"), clean))
    return table_of(["Held-out tasks solved", *names], rows, "stages")
