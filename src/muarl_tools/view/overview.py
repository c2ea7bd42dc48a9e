"""The overview: what training does to the agent, its users and the machine; one run, or several over each other.

Of one run it shows what the run's report shows (muarl.report.sections), with links to the episodes behind the figures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from muarl.accounts.metrics import NOT_CHECKED, SUCCESS_WITHOUT_VIOLATION
from muarl.observe.headline import AFTER, ALONE, harder_success, headline_of, what_went_wrong
from muarl.observe.progress import clock
from muarl.observe.status import resume_command
from muarl.pages.charts import number, percent
from muarl.pages.markup import Child, Html, join, tag
from muarl.pages.table import Cell, table, to_html
from muarl.pages.words import stage_text
from muarl.report.figures import ends, points, spent
from muarl.report.report_audit import audit_section, audits_of, grave
from muarl.report.report_charts import COLOURS, chart_sections
from muarl.report.sections import STOPPED, folded, head_of, links_to, seconds_of, sections_of, shown, tools_section
from muarl_tools.view import queries
from muarl_tools.view.compare import settings_section
from muarl_tools.view.layout import (
    Site,
    ago,
    episodes_at,
    frame,
    indexing,
    link,
    linked_cell,
    run_state,
    stage_table,
    tasks_at,
)  # fmt: skip
from muarl_tools.view.metrics import MOST_ROWS
from muarl_tools.view.overview_domains import held_out_by_domain, stages_by_domain
from muarl_tools.view.runs import Library, Run
from muarl_tools.view.viewed import ViewedRun, viewed, ways_of

THINNED = f"metrics.jsonl has more than {MOST_ROWS:,} rows: some are left out here, so that sums are too low."
HELD_OUT = ("after", "evaluation", "validation")
"""Stages whose success is that on held-out tasks; the last that a run has counts."""


def overview(site: Site, library: Library, only: Run | None = None) -> str:
    """The page, of all runs or of ``only`` one."""
    runs = library.runs if only is None else [only]
    if len(runs) == 1:
        return frame(site, library, runs[0].name, "overview", None, *_one(site, viewed(runs[0])))
    seen = [viewed(run, f"r{n}") for n, run in enumerate(runs)]
    return frame(site, library, f"{len(runs)} runs", "overview", None, *_several(site, seen))


def _one(site: Site, seen: ViewedRun) -> list[Child]:
    run, status = seen.run, seen.status
    again = resume_command(status.get("command"), run.folder.path) if run.state in STOPPED else None
    now: list[tuple[str, Child]] = []
    if run.running and (age := _age(run)) is not None:
        now.append(("Last metrics", ago(age)))
    now.append(("Saved episodes", f"{sum(s.episodes for s in run.ask(queries.stages)):,}"))
    saved = ("saved", "Saved episodes", _stages(site, run))
    sections = sections_of(seen, ways_of(site), saved, by_domain=stages_by_domain(site, seen))
    return [
        tag("h1", seen.name),
        indexing(run),
        head_of(seen, now=now, live=True, again=again),
        tag("p", THINNED, class_="notice") if run.figures.thinned else None,
        links_to(sections),
        shown(sections),
    ]


def _age(run: Run) -> float | None:
    try:
        return max(0.0, time.time() - run.folder.metrics.stat().st_mtime)
    except OSError:
        return None


def _several(site: Site, seen: Sequence[ViewedRun]) -> list[Child]:
    drawn = [s for s in seen if s.rows][:COLOURS]
    sections = [
        *chart_sections(drawn),
        ("domains", "By domain", held_out_by_domain(seen)),
        ("audit", "Audit", audit_section(ways_of(site), seen)),
        ("tools", "Each tool", tools_section(drawn)),
        *((f"saved-{n}", f"Saved episodes: {s.name}", _stages(site, s.run)) for n, s in enumerate(seen)),
        *((f"rest-{n}", f"Everything else: {s.name}", _rest(s)) for n, s in enumerate(seen)),
    ]
    return [
        tag("h1", f"{len(seen)} runs"),
        [indexing(s.run) for s in seen],
        _table(site, seen),
        settings_section([s.run for s in seen]),
        shown(sections),
    ]


def _rest(seen: ViewedRun) -> Html | None:
    yaml = tag("details", tag("summary", "Configuration"), tag("pre", seen.config)) if seen.config else None
    parts = [*folded(seen), yaml]
    return join(parts) if any(part is not None for part in parts) else None


def _table(site: Site, seen: Sequence[ViewedRun]) -> Html:
    rows = []
    for n, s in enumerate(seen):
        reward, kl, entropy = (ends(s.rows, *names) for names in (("reward", "success"), ("kl_k3", "kl"), ("entropy",)))
        held_out, clean = _held_out(s)
        harder = harder_success(s.summary) or {}
        key = tag("i", class_=f"key {s.colour}") if n < COLOURS else None
        worst = grave(audits_of(s))
        rows.append(
            (
                Cell(s.name, page=[key, link(site, episodes_at(s.run), s.name), " ", run_state(s.run)]),
                f"{len(s.rows):,}",
                f"{reward[0]:.2f} → {reward[1]:.2f}" if reward else "–",
                percent(held_out) if held_out is not None else "–",
                "–" if held_out is None else NOT_CHECKED if clean is None else percent(clean),
                ", ".join(f"{level} {percent(share)}" for level, share in harder.items()) or "–",
                Cell("–", page=worst),
                number(kl[1]) if kl else "–",
                number(entropy[1]) if entropy else "–",
                clock(seconds_of(s)),
                f"${spent(s.metrics):,.2f}",
            )
        )
    head = [
        *("Run", "Steps", "Reward", "Held out", "Without violation", "Harder users", "Catastrophic"),
        *("KL", "Entropy", "Time", "Cost"),
    ]
    warned = [
        tag("li", tag("b", s.run.name), ": ", text) for s in seen if s.phase == "rl" for text in what_went_wrong(s.rows)
    ]
    return join(
        to_html(table(head, rows, kind="runs-table")),
        tag("div", tag("b", "Worth a look"), tag("ul", warned), class_="notice calm") if warned else None,
    )


def _held_out(seen: ViewedRun) -> tuple[float | None, float | None]:
    """Success on held-out tasks, and without any violation: of the last evaluation on file, else of the last validation
    in the metrics. Older runs tell the latter in their summary alone."""
    stages = reversed(seen.run.ask(queries.stages))
    measured = next((x for x in stages if x.stage in HELD_OUT), None)
    if measured is not None and measured.success is not None:
        told = (headline_of(seen.summary, key).clean for key in (AFTER, ALONE))
        older = next((found.value for found in told if found is not None), None)
        return measured.success, older if measured.without_violation is None else measured.without_violation
    checked, clean = (points(seen.metrics, name, phase="validation") for name in ("success", SUCCESS_WITHOUT_VIOLATION))
    return checked[-1][1] if checked else None, clean[-1][1] if clean else None


def _stages(site: Site, run: Run) -> Html | None:
    found = run.ask(queries.stages)
    if not found:
        return None
    rows = [(linked_cell(site, episodes_at(run, ("stage", s.stage)), stage_text(s.stage)), s) for s in found]
    ways = tag(
        "p",
        link(site, episodes_at(run), "All episodes"),
        " · ",
        link(site, tasks_at(run, ("show", "hardest")), "hardest tasks"),
        " · ",
        link(site, tasks_at(run, ("show", "learnt")), "newly learnt"),
        " · ",
        link(site, tasks_at(run, ("show", "forgotten")), "forgotten"),
        class_="ways",
    )
    return join(stage_table("Stage", rows), ways)
