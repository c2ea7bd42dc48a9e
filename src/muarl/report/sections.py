"""What the report and the viewer's overview show of one run as a whole, in sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from muarl.basics.json_values import as_figure, mapping
from muarl.observe.headline import headline_of, what_went_wrong
from muarl.observe.progress import clock
from muarl.observe.status import FAILED, INTERRUPTED, KILLED, RUNNING, state_of
from muarl.pages.charts import sparkline
from muarl.pages.markup import Child, Html, join, tag
from muarl.pages.table import Cell, ShownColumn, table, to_html
from muarl.pages.words import phase_name
from muarl.report.figures import EpisodeLinks, RunFigures, ends, spent, thin
from muarl.report.report_audit import audit_section, audits_of, grave
from muarl.report.report_charts import chart_sections, drawn_in, filled
from muarl.report.report_curves import everything
from muarl.report.report_domains import domains_section
from muarl.report.report_story import notice, scores_section, story
from muarl.report.report_tables import ReportStage, behaviour_section, kinds_section, setup_section, users_section
from muarl.user_errors.errors import RULES

Section: TypeAlias = tuple[str, str, Html | None]
"""An anchor, a name and what is shown; None: nothing, and the section is left out."""

BEFORE, AFTER = "after the cold start", "after reinforcement learning"
UNTRAINED = "before reinforcement learning"
"""What comes before where a run's figures show reinforcement learning and no cold start."""
STAGES = (
    ("cold_start", "Cold start", BEFORE, "before"),
    ("rl", "RL", AFTER, "after"),
    ("evaluation", "Score", "", "after"),
)
"""Blocks of summary.json that are evaluations; "evaluation" is what ``muarl eval`` writes."""
STOPPED = (FAILED, INTERRUPTED, KILLED)
ROWS = 50
"""Rows from which the folded figures are drawn, at most."""


def before_text(run: RunFigures) -> str:
    """When the first of two evaluations was."""
    phases = {row.get("phase") for row in run.metrics}
    return UNTRAINED if "rl" in phases and not phases & {"cold_start", "sft"} else BEFORE


def stages_of(run: RunFigures) -> list[ReportStage]:
    """The evaluations that a run's summary holds, in the order of the run."""
    stages: list[ReportStage] = []
    for key, short, long, colour in STAGES:
        if key == "cold_start" and (before := before_text(run)) != BEFORE:
            short, long = "Before RL", before
        block = run.summary.get(key)
        if (
            isinstance(block, Mapping)
            and (stage := ReportStage(short, long, colour, block, headline_of(run.summary, key))).success is not None
        ):
            stages.append(stage)
    return stages[:2]


def head_of(
    run: RunFigures, *, now: Sequence[tuple[str, Child]] = (), live: bool = False, again: str | None = None
) -> Html:
    """What a reader must know first: how the run ended, what went wrong, its story, and its main figures.

    ``now``: further figures. ``live``: the page is made anew while the run goes on. ``again``: the command that resumes
    it.
    """
    stages = stages_of(run)
    phases = {str(row.get("phase", "")) for row in run.metrics}
    if before_text(run) == BEFORE:
        phases |= {key for key in ("cold_start", "rl") if isinstance(run.summary.get(key), Mapping)}
    wrong = [tag("li", text) for text in what_went_wrong(run.metrics)] if run.phase == "rl" else []
    return join(
        notice(run.status, bool(stages) or live, again),
        tag("div", tag("b", "Worth a look"), tag("ul", wrong), class_="notice calm") if wrong else None,
        tag("p", story(run.summary, stages, phases), class_="lede"),
        facts([*_facts(run), *now]),
    )


def _facts(run: RunFigures) -> list[tuple[str, Child]]:
    last = as_figure(run.rows[-1].get("step")) if run.rows else None
    steps = as_figure(mapping(run.settings.get("rl")).get("steps")) if run.phase == "rl" else None
    out: list[tuple[str, Child]] = [("State", state(state_of(run.status)))] if run.status else []
    if last is not None:
        of = f" of {steps:,.0f}" if steps else ""
        out.append((phase_name(run.phase).capitalize(), f"step {last + (1 if steps else 0):,.0f}{of}"))
    if (reward := ends(run.rows, "reward", "success")) is not None:
        out.append(("Reward", f"{reward[0]:.2f} → {reward[1]:.2f}"))
    out.append(("Time", clock(seconds_of(run))))
    if cost := spent(run.metrics):
        out.append(("Cost", f"${cost:,.2f}"))
    if run.resumes:
        times = f"{len(run.resumes)} times" if len(run.resumes) > 1 else "once"
        out.append(("Resumed", tag("a", times, href="#resumes")))
    if (worst := grave(audits_of(run), linked=True)) is not None:
        out.append(("Catastrophic failures", worst))
    return out


def seconds_of(run: RunFigures) -> float:
    """How long a run took, or has taken so far."""
    seconds = as_figure(run.status.get("seconds")) if run.status.get("state") != RUNNING else None
    return max((as_figure(r.get("seconds")) or 0.0 for r in run.metrics), default=0.0) if seconds is None else seconds


def state(word: str) -> Html:
    """How a run stands: running, finished, interrupted, failed, killed."""
    colour = {"running": "live", "finished": "good"}.get(word, "bad" if word in STOPPED else "")
    return tag("span", tag("i", class_="dot"), word[:40], class_=f"status {colour}")


def facts(pairs: Sequence[tuple[str, Child]]) -> Html:
    """Small named values beside each other."""
    return tag(
        "dl",
        [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs if value is not None],
        class_="facts",
    )


def sections_of(run: RunFigures, ways: EpisodeLinks, *more: Section, by_domain: Html | None = None) -> list[Section]:
    """All sections on a run. ``more``: those that only one page has. ``by_domain``: what it adds to that section."""
    stages = stages_of(run)
    domains = [part for part in (domains_section(run, stages), by_domain) if part is not None]
    return [
        ("scores", "Scores", scores_section(run.summary, stages)),
        ("audit", "Audit", audit_section(ways, [run])),
        *chart_sections([run]),
        ("behaviour", "Behaviour", behaviour_section(stages)),
        ("tools", "Each tool", tools_section([run])),
        ("domains", "By domain", join(domains) if domains else None),
        ("kinds", "By task type", kinds_section(stages)),
        ("customers", "Simulator errors", users_section(run.summary, RULES)),
        *more,
        ("setup", "Setup", _setup(run)),
    ]


def shown(sections: Sequence[Section]) -> list[Html]:
    """The sections that there are."""
    return [tag("section", tag("h2", name), body, id=key) for key, name, body in sections if body is not None]


def links_to(sections: Sequence[Section]) -> Html:
    """A list of links to them."""
    links = [tag("a", name, href=f"#{key}") for key, name, body in sections if body is not None]
    return tag("nav", links, aria_label="Sections")


def tools_section(runs: Sequence[RunFigures]) -> Html | None:
    """Calls of every tool, the general-purpose ones apart."""
    names = sorted({k for s in runs for r in s.rows for k in r if k.startswith("calls/")})
    if not names:
        return None
    general = frozenset[str]().union(*(s.general for s in runs))
    groups = (
        ("General-purpose tools", [n for n in names if n.removeprefix("calls/") in general]),
        ("The domain’s tools", [n for n in names if n.removeprefix("calls/") not in general]),
    )
    out = []
    for title, members in groups:
        rows = []
        for name in members:
            lines = [thin(filled(s, name)) for s in runs]
            cells = ((Cell("", page=sparkline(n)), f"{n[0][1]:.2f} → {n[-1][1]:.2f}" if n else "–") for n in lines)
            rows.append((name.removeprefix("calls/"), *(cell for pair in cells for cell in pair)))
        heads = [(ShownColumn(s.name if len(runs) > 1 else ""), ShownColumn("", right=True)) for s in runs]
        head = ["calls in a conversation", *(column for pair in heads for column in pair)]
        never = tag("p", "Never called: calculate, think, transfer to a person.", class_="soft")
        out.append(tag("div", tag("h3", title), to_html(table(head, rows, kind="tools")) if rows else never))
    return tag("div", out, class_="two")


def _setup(run: RunFigures) -> Html | None:
    parts = [
        setup_section(run.summary, run.metrics, run.versions),
        *folded(run),
        tag("details", tag("summary", "Configuration"), tag("pre", run.config)) if run.config else None,
    ]
    return join(parts) if any(part is not None for part in parts) else None


def folded(run: RunFigures) -> list[Html | None]:
    """Every figure that no chart shows, phase by phase, and when the run was resumed."""
    tables = [
        everything(phase, rows[:: -(-len(rows) // ROWS) or 1], drawn_in(run) if phase == run.phase else set())
        for phase, rows in (run.trained or {run.phase: run.rows}).items()
    ]
    return [*tables, _resumes(run)]


def _resumes(run: RunFigures) -> Html | None:
    """Each time that the run was resumed: when, after which step, with what changed, by which version."""
    rows = []
    for line in run.resumes[-100:]:
        after, changed = mapping(line.get("after")), mapping(line.get("changed"))
        where = f"{phase_name(after.get('phase'))}, step {after.get('step')}" if after else "the beginning"
        texts = [f"{k}: {v[0]} → {v[1]}"[:200] for k, v in changed.items() if isinstance(v, list) and len(v) == 2]
        version = " ".join(str(line[name])[:12] for name in ("muarl", "git") if line.get(name))
        rows.append((str(line.get("at") or "–"), where, ", ".join(texts) or "nothing", version))
    if not rows:
        return None
    head = ["Resumed at", "After", "Changed settings", "muarl"]
    return tag("div", to_html(table(head, rows, words=len(head), title="Resumed", kind="resumes")), id="resumes")
