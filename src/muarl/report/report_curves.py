"""Which curves of a training are looked at first, and every other figure, folded."""

from __future__ import annotations

from muarl.basics.json_values import as_figure
from muarl.pages.charts import sparkline
from muarl.pages.markup import Html, tag
from muarl.pages.table import Cell, ShownColumn, table, to_html
from muarl.pages.words import phase_name, word
from muarl.report.figures import Rows, figure_text, points

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
CLEAN_TASKS = "held-out tasks, without any violation"
"""What the dots of success without any violation are called."""


def everything(phase: str, rows: Rows, drawn: set[str]) -> Html | None:
    """Every other figure of a phase, small, folded."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(k for k, v in row.items() if as_figure(v) is not None))
    lines = []
    for name in sorted(set(names) - drawn - {"step", "seconds"}):
        line, w = points(rows, name), word(name)
        first, last = (figure_text(w, line[end][1] if line else None) for end in (0, -1))
        lines.append((name, Cell("", page=sparkline(line)), first, last))
    if not lines:
        return None
    title = f"All other metrics of {phase_name(phase)} ({len(lines)})"
    figures = table(["Metric", ShownColumn(""), "First", "Last"], lines, kind="figures")
    return tag("details", tag("summary", title), to_html(figures))
