"""The last thing a finished job shows in the terminal: its scores before and after, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from muarl.basics.json_values import as_figure, bounds
from muarl.observe.headline import AFTER, BEFORE, ShownShare, clean_of, clean_text, headline_of
from muarl.pages.charts import number, percent
from muarl.pages.words import word
from muarl.report.report_story import share_of

BEHAVIOUR = ("writes_without_consent", "needless_transfers", "tool_error_rate", "truncated", "turns")
"""The figures of behaviour that are shown; the report has all of them."""

FLOORS = ("do_nothing", "always_transfer")


def before_and_after(summary: Mapping[str, Any]) -> Table:
    """The scores of a quickstart's ``summary.json`` as a table: after the cold start, after RL, and the baselines; of
    several domains each has a row, with what doing nothing earns there."""
    before, after = summary["cold_start"], summary["rl"]
    floors = {name: share for name in FLOORS if (share := share_of(summary.get(name))) is not None}
    table = Table(
        f"{after['tasks']} held-out tasks",
        title=Text("Before and after reinforcement learning"),
        title_justify="left",
    )
    parts = list(_domains(before, after))
    headings = ("cold start", "after RL", "do nothing") if parts else ("after the cold start", "after RL")
    for heading in headings:
        table.add_column(heading, justify="right")
    whole = [f"{before['success']:.1%}", f"{after['success']:.1%}"]
    table.add_row("success", *whole, *([f"{floors['do_nothing']:.1%}"] if parts and "do_nothing" in floors else []))
    table.add_row("  95% interval", _interval(before), _interval(after))
    headlines = [headline_of(summary, key) for key in (BEFORE, AFTER)]
    _add(table, "  without any violation", [h.clean for h in headlines])
    by_domain = summary.get("by_domain", {})
    for name, *blocks in parts:
        shares = [*(block["success"] if block else None for block in blocks), by_domain.get(name, {}).get("do_nothing")]
        table.add_row(f"  {name}", *("–" if share is None else f"{share:.1%}" for share in shares))
        clean = [clean_of(block) if block else None for block in blocks]
        table.add_row("    without any violation", *map(clean_text, clean))
    if (greedy := share_of(summary.get("rl_greedy"))) is not None:
        table.add_row("success, greedy decoding", "", f"{greedy:.1%}")
        greedy_block = summary["rl_greedy"] if isinstance(summary["rl_greedy"], Mapping) else {}
        table.add_row("  without any violation", "", clean_text(clean_of(greedy_block)))
    _add(table, "catastrophic failures", [h.catastrophic for h in headlines])
    for name in BEHAVIOUR:
        w, values = word(name), [as_figure(block.get("behaviour", {}).get(name)) for block in (before, after)]
        if any(value is not None for value in values):
            show = percent if w.share else number
            table.add_row(w.label.lower(), *("–" if value is None else show(value) for value in values))
    if floors:
        trivial = ", ".join(f"{name.replace('_', ' ')} {share:.1%}" for name, share in floors.items())
        table.caption = Text(f"Baselines on the same tasks: {trivial}")
        table.caption_justify = "left"
    return table


def _add(table: Table, label: str, shares: Sequence[ShownShare | None]) -> None:
    """A share and its interval; "not checked" where nobody knows it."""
    table.add_row(label, *map(clean_text, shares))
    if any(share is not None for share in shares):
        table.add_row("  95% interval", *("" if share is None else share.interval_text for share in shares))


def _domains(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """(domain, its scores before, and after) of a run with several."""
    parts = [block.get("by_domain", {}) for block in (before, after)]
    for name in sorted({name for part in parts for name in part}):
        yield name, *(part.get(name) for part in parts)


def _interval(block: Mapping[str, Any]) -> str:
    ends = bounds(block.get("interval"))
    return "" if ends is None else f"{ends[0]:.1%} – {ends[1]:.1%}"
