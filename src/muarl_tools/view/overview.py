"""The overview: what training does to the agent, its users and the machine; one run, or several over each other."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.accounts.metrics import GENERAL_TOOLS, NOT_CHECKED, SUCCESS_WITHOUT_VIOLATION
from muarl.observe.headline import AFTER, ALONE, headline_of, last_lines, what_went_wrong
from muarl.observe.progress import clock
from muarl.observe.status import KILLED, RUNNING, resume_command
from muarl.pages.charts import number, percent, sparkline
from muarl.pages.markup import Child, Html, as_figure, join, table_of, tag
from muarl.pages.shortening import cut
from muarl.pages.words import phase_name
from muarl.report.report_curves import everything
from muarl_tools.view import queries
from muarl_tools.view.compare import settings_section
from muarl_tools.view.layout import (
    STOPPED,
    Site,
    ago,
    clean_share,
    episodes_at,
    facts,
    frame,
    indexing,
    link,
    mapping,
    stage_text,
    state,
    tasks_at,
)  # fmt: skip
from muarl_tools.view.metrics import MOST_ROWS, ends, points, thin
from muarl_tools.view.overview_audit import AuditOverview, audit_section, audits_of, catastrophic_text
from muarl_tools.view.overview_charts import COLOURS, DRAWN, RunRows, chart_sections, filled, spent
from muarl_tools.view.overview_domains import domains_section
from muarl_tools.view.runs import Library, Run

KILLED_TEXT = (
    "Its process no longer exists: killed, out of memory, or the machine went down. Saved state is consistent."
)
SENTENCE = 2000
"""Characters of a run's last words that are shown."""
THINNED = f"metrics.jsonl has more than {MOST_ROWS:,} rows: some are left out here, so that sums are too low."
HELD_OUT = ("after", "evaluation", "validation")
"""Stages whose success is that on held-out tasks; the last that a run has counts."""

Audits = Mapping[Run, Sequence[AuditOverview]]


def overview(site: Site, library: Library, only: Run | None = None) -> str:
    """The page, of all runs or of ``only`` one."""
    runs = library.runs if only is None else [only]
    alone = len(runs) == 1
    seen = [RunRows.of(run, n, alone) for n, run in enumerate(runs)]
    title = runs[0].name if alone else f"{len(runs)} runs"
    drawn = [s for s in seen if s.rows][:COLOURS]
    audits = {run: audits_of(run) for run in runs}
    body: list[Child] = [
        tag("h1", title),
        [indexing(s.run) for s in seen],
        _one(seen[0], audits) if alone else _several(site, seen, audits),
        None if alone else settings_section(runs),
        chart_sections(drawn),
        domains_section(site, seen),
        audit_section(site, audits),
        _tools(drawn),
        [_stages(site, s.run, alone) for s in seen],
        [_rest(s, alone) for s in seen],
    ]
    return frame(site, library, title, "overview", None, *body)


# The head of the page.


def _one(seen: RunRows, audits: Audits) -> Html:
    run, status = seen.run, seen.run.json("status")
    found = [tag("li", text) for text in what_went_wrong(seen.rows)] if seen.phase == "rl" else []
    said = KILLED_TEXT if run.state == KILLED else status.get("message")
    again = resume_command(status.get("command"), run.folder.path) if run.state in STOPPED else None
    message: list[Child] = [cut(str(said), SENTENCE)] if said else []
    message += [" Resume: ", tag("code", again)] if again is not None else []
    return join(
        facts([*_facts(seen), *_grave(audits[run])]),
        tag("p", message, class_="notice") if message else None,
        tag("p", THINNED, class_="notice") if run.figures.thinned else None,
        [tag("p", line, class_="notice") for line in last_lines(run.json("summary"))],
        tag("div", tag("b", "Worth a look"), tag("ul", found), class_="notice calm") if found else None,
        _scores(run),
    )


def _facts(seen: RunRows) -> list[tuple[str, Child]]:
    run, rows = seen.run, seen.rows
    status = run.json("status")
    last = as_figure(rows[-1].get("step")) if rows else None
    steps = as_figure(mapping(run.config.get("rl")).get("steps")) if seen.phase == "rl" else None
    out: list[tuple[str, Child]] = [("State", state(run))]
    if last is not None:
        of = f" of {steps:,.0f}" if steps else ""
        out.append((phase_name(seen.phase).capitalize(), f"step {last + (1 if steps else 0):,.0f}{of}"))
    reward = ends(rows, "reward", "success")
    if reward is not None:
        out.append(("Reward", f"{reward.first:.2f} → {reward.last:.2f}"))
    seconds = as_figure(status.get("seconds")) if status.get("state") != RUNNING else None
    if seconds is None:
        seconds = max((as_figure(r.get("seconds")) or 0.0 for r in seen.all_rows), default=0.0)
    out.append(("Time", clock(seconds)))
    if run.running and (age := _age(run)) is not None:
        out.append(("Last metrics", ago(age)))
    cost = spent(seen.all_rows)
    if cost:
        out.append(("Cost", f"${cost:,.2f}"))
    if resumes := run.resumes:
        out.append(("Resumed", tag("a", f"{len(resumes)} times" if len(resumes) > 1 else "once", href="#resumes")))
    episodes = sum(s.episodes for s in run.ask(queries.stages))
    out.append(("Saved episodes", f"{episodes:,}"))
    return out


def _grave(audits: Sequence[AuditOverview]) -> list[tuple[str, Child]]:
    text = catastrophic_text(audits)
    if text is None:
        return []
    found = audits[-1].share("catastrophic")
    shown = tag("span", tag("a", text, href="#audit"), class_="grave" if found and found.value else None)
    return [("Catastrophic failures", shown)]


def _grave_cell(audits: Sequence[AuditOverview]) -> Child:
    found = audits[-1].share("catastrophic") if audits else None
    text = catastrophic_text(audits) or "–"
    return tag("span", text, class_="grave") if found and found.value else text


def _age(run: Run) -> float | None:
    try:
        return max(0.0, time.time() - run.folder.metrics.stat().st_mtime)
    except OSError:
        return None


def _scores(run: Run) -> Html | None:
    summary = run.json("summary")
    named = (
        ("do_nothing", "does nothing"), ("cold_start", "before RL"), ("rl", "after RL"), ("evaluation", "evaluation"),
    )  # fmt: skip
    shown: list[tuple[str, Child]] = []
    for key, name in named:
        block = summary.get(key)
        success = as_figure(block.get("success")) if isinstance(block, Mapping) else as_figure(block)
        if success is None:
            continue
        bounds = block.get("interval") if isinstance(block, Mapping) else None
        text = percent(success)
        if isinstance(bounds, list) and len(bounds) == 2 and all(as_figure(b) is not None for b in bounds):
            text += f" ({percent(bounds[0])}–{percent(bounds[1])})"
        shown.append((f"Held-out tasks solved, {name}", text))
        if key != "do_nothing":
            shown.append((f"Without any violation, {name}", _clean(summary, key)))
    return facts(shown) if len(shown) > 1 else None


def _clean(summary: Mapping[str, Any], key: str) -> str:
    """Success without any violation of an evaluation in a summary, with its interval."""
    found = headline_of(summary, key).clean
    if found is None:
        return NOT_CHECKED
    spread = f" ({percent(found.interval[0])}–{percent(found.interval[1])})" if found.interval else ""
    return f"{percent(found.value)}{spread}"


def _several(site: Site, seen: list[RunRows], audits: Audits) -> Html:
    rows = []
    for n, s in enumerate(seen):
        reward, kl = ends(s.rows, "reward", "success"), ends(s.rows, "kl_k3", "kl")
        entropy = ends(s.rows, "entropy")
        held_out, clean = _held_out(s)
        cells: list[Child] = [
            f"{len(s.rows):,}",
            f"{reward.first:.2f} → {reward.last:.2f}" if reward else "–",
            percent(held_out) if held_out is not None else "–",
            "–" if held_out is None else NOT_CHECKED if clean is None else percent(clean),
            _grave_cell(audits[s.run]),
            number(kl.last) if kl else "–",
            number(entropy.last) if entropy else "–",
            clock(max((as_figure(r.get("seconds")) or 0.0 for r in s.all_rows), default=0.0)),
            f"${spent(s.all_rows):,.2f}",
        ]
        key = tag("i", class_=f"key {s.colour}") if n < COLOURS else None
        name = tag("th", key, link(site, episodes_at(s.run), s.run.name), " ", state(s.run), scope="row")
        rows.append(tag("tr", name, [tag("td", c, class_="n") for c in cells]))
    head = ["Run", "Steps", "Reward", "Held out", "Without violation", "Catastrophic", "KL", "Entropy", "Time", "Cost"]
    warned = [
        tag("li", tag("b", s.run.name), ": ", text) for s in seen if s.phase == "rl" for text in what_went_wrong(s.rows)
    ]
    return join(
        table_of(head, rows, "runs-table"),
        tag("div", tag("b", "Worth a look"), tag("ul", warned), class_="notice calm") if warned else None,
    )


def _held_out(seen: RunRows) -> tuple[float | None, float | None]:
    """Success on held-out tasks, and without any violation: of the last evaluation on file, else of the last validation
    in the metrics. Older runs tell the latter in their summary alone."""
    stages = reversed(seen.run.ask(queries.stages))
    measured = next((x for x in stages if x.stage in HELD_OUT), None)
    if measured is not None and measured.success is not None:
        told = (headline_of(seen.run.json("summary"), key).clean for key in (AFTER, ALONE))
        older = next((found.value for found in told if found is not None), None)
        return measured.success, older if measured.without_violation is None else measured.without_violation
    checked, clean = (
        points(seen.all_rows, name, phase="validation") for name in ("success", SUCCESS_WITHOUT_VIOLATION)
    )
    return checked[-1][1] if checked else None, clean[-1][1] if clean else None


# Tables.


def _tools(drawn: list[RunRows]) -> Html | None:
    """Calls of every tool, the general-purpose ones apart."""
    if not drawn:
        return None
    names = sorted({k for s in drawn for r in s.rows for k in r if k.startswith("calls/")})
    if not names:
        return None
    general = GENERAL_TOOLS.union(*(rules.transfer_tools for s in drawn for rules in s.run.rules))
    groups = (
        ("General-purpose tools", [n for n in names if n.removeprefix("calls/") in general]),
        ("The domain’s tools", [n for n in names if n.removeprefix("calls/") not in general]),
    )
    out = []
    for title, members in groups:
        rows = []
        for name in members:
            lines = [thin(filled(s, name)) for s in drawn]
            cells: list[Html] = []
            for line in lines:
                cells.append(tag("td", sparkline(line)))
                cells.append(tag("td", f"{line[0][1]:.2f} → {line[-1][1]:.2f}" if line else "–", class_="n"))
            rows.append(tag("tr", tag("th", name.removeprefix("calls/"), scope="row"), cells))
        if not rows:
            text = "Never called: calculate, think, transfer to a person."
            out.append(tag("div", tag("h3", title), tag("p", text, class_="soft")))
            continue
        head = tag(
            "tr",
            tag("th", "calls in a conversation", scope="col"),
            [tag("th", s.run.name if len(drawn) > 1 else "", colspan=2, scope="col") for s in drawn],
        )
        table = tag("table", tag("thead", head), tag("tbody", rows), class_="tools")
        out.append(tag("div", tag("h3", title), tag("div", table, class_="scroll")))
    return tag("section", tag("h2", "Each tool"), tag("div", out, class_="two"), id="tools")


def _stages(site: Site, run: Run, alone: bool) -> Html | None:
    found = run.ask(queries.stages)
    if not found:
        return None
    rows = []
    for s in found:
        cells: list[Child] = [
            f"{s.episodes:,}",
            f"{s.tasks:,}",
            percent(s.success) if s.success is not None else "–",
            clean_share(s),
            f"{s.turns:.1f}",
            f"{s.tokens:,.0f}",
            f"{s.tool_errors:.2f}",
            percent(s.user_errors),
            f"{s.excluded:,}",
        ]
        name = link(site, episodes_at(run, ("stage", s.stage)), stage_text(s.stage))
        rows.append(tag("tr", tag("th", name, scope="row"), [tag("td", c, class_="n") for c in cells]))
    head = [
        "Stage",
        "Episodes",
        "Tasks",
        "Solved",
        "Without violation",
        "Turns",
        "Tokens",
        "Tool errors",
        "User errors",
        "Infrastructure failures",
    ]
    title = "Saved episodes" + ("" if alone else f": {run.name}")
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
    return tag("section", tag("h2", title), table_of(head, rows, "stages"), ways)


def _rest(s: RunRows, alone: bool) -> Html | None:
    stride = -(-len(s.rows) // 50) or 1
    table = everything(s.phase, s.rows[::stride], DRAWN) if s.rows else None
    config = s.run.folder.read_config() if s.run.config else ""
    yaml = tag("details", tag("summary", "Configuration"), tag("pre", config)) if config else None
    resumes = _resumes(s.run)
    if table is None and yaml is None and resumes is None:
        return None
    return tag("section", tag("h2", "Everything else" + ("" if alone else f": {s.run.name}")), table, resumes, yaml)


def _resumes(run: Run) -> Html | None:
    """Each time that the run was resumed: when, after which step, with what changed, by which version."""
    rows = []
    for line in run.resumes[-100:]:
        after, changed = mapping(line.get("after")), mapping(line.get("changed"))
        where = f"{phase_name(after.get('phase'))}, step {after.get('step')}" if after else "the beginning"
        texts = [f"{k}: {v[0]} → {v[1]}"[:200] for k, v in changed.items() if isinstance(v, list) and len(v) == 2]
        version = " ".join(str(line[name])[:12] for name in ("muarl", "git") if line.get(name))
        cells = [where, ", ".join(texts) or "nothing", version]
        rows.append(tag("tr", tag("th", str(line.get("at") or "–"), scope="row"), [tag("td", c) for c in cells]))
    if not rows:
        return None
    table = table_of(["Resumed at", "After", "Changed settings", "muarl"], rows, "resumes")
    return tag("div", tag("h3", "Resumed"), table, id="resumes")
