"""The overview's figures by domain, of runs with several: stages, and runs beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.pages.charts import percent
from muarl.pages.markup import Html, join, tag
from muarl.pages.table import Cell, table, to_html
from muarl.pages.words import stage_text
from muarl_tools.view import queries
from muarl_tools.view.layout import Site, clean_share, episodes_at, linked_cell, stage_table
from muarl_tools.view.viewed import ViewedRun

HELD_OUT = ("after", "evaluation", "validation")
"""Stages of held-out tasks."""


def stages_by_domain(site: Site, seen: ViewedRun) -> Html | None:
    """The stages of a run in each of its domains; None for a run of one."""
    rows = []
    for domain, s in seen.run.ask(queries.stages_by_domain):
        place = episodes_at(seen.run, ("stage", s.stage), ("domain", domain))
        rows.append((linked_cell(site, place, stage_text(s.stage), domain), s))
    return join(tag("h3", "Saved episodes"), stage_table("Stage and domain", rows)) if rows else None


def held_out_by_domain(seen: Sequence[ViewedRun]) -> Html | None:
    """Success of several runs on held-out tasks of each domain; None where no run has several domains."""
    found = [(s.name, told) for s in seen if (told := s.run.ask(queries.stages_by_domain))]
    if not found:
        return None
    names = sorted({domain for _, stages in found for domain, _ in stages})
    rows: list[tuple[object, ...]] = []
    for run, stages in found:
        last = {domain: means for domain, means in stages if means.stage in HELD_OUT}
        known = [last.get(name) for name in names]
        rows.append((run, *(percent(m.success) if m and m.success is not None else "–" for m in known)))
        clean = (clean_share(m) if m else "–" for m in known)
        rows.append(tuple(Cell(text, kind="soft") for text in ("without any violation", *clean)))
    return to_html(table(["Held-out tasks solved", *names], rows, kind="stages"))
