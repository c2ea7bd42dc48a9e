"""The run report's learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.accounts.metrics import SUCCESS_WITHOUT_VIOLATION
from muarl.pages.charts import Point, Series, area_chart, line_chart, number, percent, sparkline
from muarl.pages.markup import Child, Html, as_figure, join, table_of, tag
from muarl.pages.words import phase_name, word

Rows = Sequence[Mapping[str, Any]]

# Figures that can go by several names, the first that a run has is drawn.
CURVES: tuple[tuple[str, ...], ...] = (
    ("success", "reward"),
    ("writes_without_consent",),
    ("needless_transfers",),
    ("turns",),
    ("agent_tokens", "response_length"),
    ("kl_k3", "kl", "kl_loss"),
    ("entropy",),
    ("tool_error_rate",),
    ("calls_general_share",),
)
MEASURED = ("validation", "evaluation")
"""Phases that measure on held-out tasks: dots in the curve of success, the first that a run has."""


CLEAN_TASKS = "held-out tasks, without any violation"
"""What the dots of success without any violation are called."""


def points(rows: Rows, name: str) -> list[Point]:
    """(step, figure) for the rows that have it."""
    out = []
    for row in rows:
        x, y = as_figure(row.get("step")), as_figure(row.get(name))
        if x is not None and y is not None:
            out.append((x, y))
    return sorted(out)


def learning_section(metrics: Rows) -> Html | None:
    """The curves: the cold start's loss, then what the paper and operators watch during RL."""
    if not metrics:
        return None
    phases: dict[str, list[Mapping[str, Any]]] = {}
    for row in metrics:
        phases.setdefault(str(row.get("phase", "")), []).append(row)
    trained = {p: found for p, found in phases.items() if p not in MEASURED}
    if not trained:
        return None
    main = "rl" if "rl" in trained else max(trained, key=lambda p: len(trained[p]))
    rows = phases[main]
    charts: list[Html | None] = []
    drawn = {"step", "seconds", "episodes"}
    for names in CURVES:
        name = next((n for n in names if points(rows, n)), None)
        if name is None:
            continue
        drawn.add(name)
        w = word("kl" if "kl" in name else name)
        line = points(rows, name)
        # Some estimates of the divergence can be below 0, so only what is a share is drawn as one.
        series = [Series("in training", line)]
        if name == "success":
            phase = next((p for p in MEASURED if points(phases.get(p, ()), "success")), None)
            if phase is not None and main == "rl":
                series.append(Series("held-out tasks", points(phases[phase], "success"), "base", dots=True))
                if clean := points(phases[phase], SUCCESS_WITHOUT_VIOLATION):
                    series.append(Series(CLEAN_TASKS, clean, "before", dots=True))
        charts.append(line_chart(w.label, series, shares=w.share, note=w.meaning))
    charts.insert(1, _groups(rows))
    drawn |= {"groups/all_correct", "groups/mixed", "groups/all_wrong"}
    cold = phases.get("cold_start", [])
    if main != "cold_start" and (loss := points(cold, "loss")):
        charts.append(line_chart("Loss in the cold start", [Series("loss", loss)], note=word("loss").meaning))
    charts = [c for c in charts if c is not None]
    blocks: list[Child] = []
    if charts:
        batches = [as_figure(r.get("episodes")) for r in rows]
        size = next((b for b in batches if b), None)
        each = (
            f" Each step is measured on its own {size:,.0f} fresh conversations,"
            if size
            else " Each step is measured on its own conversations,"
        )
        text = (
            f"{phase_name(main).capitalize()}, step by step."
            f"{each} so single steps scatter: the pale line is the step, the strong line a moving average. "
            f"{'The agent is sampled, on training tasks, with the training customer.' if main == 'rl' else ''}"
        )
        blocks += [tag("p", text, class_="soft"), tag("div", charts, class_="charts")]
    blocks += [everything(name, found, drawn if name == main else set()) for name, found in trained.items()]
    return join(*blocks)


def _groups(rows: Rows) -> Html | None:
    parts = (
        ("all solved", "groups/all_correct", "after"),
        ("mixed", "groups/mixed", "mid"),
        ("none solved", "groups/all_wrong", "bad"),
    )
    return area_chart(
        "Outcomes of groups",
        [Series(label, points(rows, name), colour) for label, name, colour in parts],
        note="groups of rollouts that all, some or none solved; only mixed ones give a gradient",
    )


def everything(phase: str, rows: Rows, drawn: set[str]) -> Html | None:
    """Every other figure of a phase, small, folded."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(k for k, v in row.items() if as_figure(v) is not None))
    lines = []
    for name in sorted(set(names) - drawn - {"step", "seconds"}):
        found = points(rows, name)
        w = word(name)
        show = percent if w.share else number
        lines.append(
            tag(
                "tr",
                tag("th", name, scope="row"),
                tag("td", sparkline(found)),
                tag("td", show(found[0][1]) if found else "–", class_="n"),
                tag("td", show(found[-1][1]) if found else "–", class_="n"),
            )
        )
    if not lines:
        return None
    title = f"All other metrics of {phase_name(phase)} ({len(lines)})"
    return tag("details", tag("summary", title), table_of(["Metric", "", "First", "Last"], lines, "figures"))
