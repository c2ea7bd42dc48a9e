"""A job's last evaluation by how hard its users were to serve, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl.observe.headline import Headline, ShownShare, by_difficulty, clean_text
from muarl.pages.table import Cell, ShownTable, table

HEAD = ("Users", "Success", "Without any violation", "Catastrophic failures", "Writes without consent")


def difficulty_table(summary: Mapping[str, Any]) -> ShownTable | None:
    """Success with easy, typical and hard users, and what must stand beside it, from a summary.json; None where there
    were easy ones alone."""
    rows = [
        (
            Cell(level, small=h.partial),
            _success(h),
            _cell(h.clean),
            _cell(h.catastrophic),
            "–" if h.unasked is None else h.unasked.text,
        )
        for level, h in by_difficulty(summary)
    ]
    if not rows:
        return None
    about = "The same tasks with users who leave out, interrupt, contradict themselves and leave (docs/users.md)."
    return table(HEAD, rows, title="By how hard users are to serve", about=about)


def _success(headline: Headline) -> Cell:
    return Cell("–") if headline.success is None else _cell(headline.success)


def _cell(share: ShownShare | None) -> Cell:
    return Cell(clean_text(share), small="" if share is None else share.interval_text)
