"""The overview's figures by domain, of runs with several: stages, and runs beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.pages.charts import percent
from muarl.pages.markup import Html, join, table_of, tag
from muarl.pages.words import stage_text
from muarl_tools.view import queries
from muarl_tools.view.layout import Site, clean_share, episodes_at, link
from muarl_tools.view.viewed import ViewedRun

HELD_OUT = ("after", "evaluation", "validation")
"""Stages of held-out tasks."""


def stages_by_domain(site: Site, seen: ViewedRun) -> Html | None:
    """The stages of a run in each of its domains; None for a run of one."""
    rows = []
    for domain, s in seen.run.ask(queries.stages_by_domain):
        place = episodes_at(seen.run, ("stage", s.stage), ("domain", domain))
        cells = [
            f"{s.episodes:,}", f"{s.tasks:,}", percent(s.success) if s.success is not None else "–", clean_share(s),
            f"{s.turns:.1f}", f"{s.tokens:,.0f}", f"{s.tool_errors:.2f}", percent(s.user_errors), f"{s.excluded:,}",
        ]  # fmt: skip
        name = tag("th", link(site, place, stage_text(s.stage)), " ", tag("small", domain), scope="row")
        rows.append(tag("tr", name, [tag("td", c, class_="n") for c in cells]))
    if not rows:
        return None
    head = ["Stage and domain", "Episodes", "Tasks", "Solved", "Without violation", "Turns", "Tokens",
            "Tool errors", "User errors", "Infrastructure failures"]  # fmt: skip
    return join(tag("h3", "Saved episodes"), table_of(head, rows, "stages"))


def held_out_by_domain(seen: Sequence[ViewedRun]) -> Html | None:
    """Success of several runs on held-out tasks of each domain; None where no run has several domains."""
    found = [(s.name, told) for s in seen if (told := s.run.ask(queries.stages_by_domain))]
    if not found:
        return None
    names = sorted({domain for _, stages in found for domain, _ in stages})
    rows = []
    for run, stages in found:
        last = {domain: means for domain, means in stages if means.stage in HELD_OUT}
        known = [last.get(name) for name in names]
        cells = [tag("td", percent(m.success) if m and m.success is not None else "–", class_="n") for m in known]
        rows.append(tag("tr", tag("th", run, scope="row"), cells))
        clean = [tag("td", clean_share(m) if m else "–", class_="n soft") for m in known]
        rows.append(tag("tr", tag("th", "without any violation", scope="row", class_="soft"), clean))
    return table_of(["Held-out tasks solved", *names], rows, "stages")
