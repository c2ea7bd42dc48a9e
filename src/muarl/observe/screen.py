"""The console that commands print tables on, which makes texts of others visible in whatever they stand; and tables
that fit it: where it is narrow, whole columns go before the names that tell rows apart are cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from muarl.basics.untrusted import visible
from muarl.observe.terminal import aside


class Screen(Console):
    """A rich console in which only rich itself writes control characters. Tables measure their cells before; of texts
    that must not be cut for that, give them what ``visible`` makes."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable, in which texts are visible."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

    def print(self, *objects: Any, **how: Any) -> None:
        """As rich prints, above a sign of work if one is shown."""
        with aside():
            super().print(*objects, **how)


GAP = 2
"""Blanks between two columns."""


def print_narrow(
    console: Console,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    first_to_go: Sequence[str],
    right: Collection[str] = (),
) -> None:
    """Print rows of text as a table without lines.

    Of ``first_to_go`` columns are left out, the first one first, until the rest fits, and a line below names them.
    ``right``: columns of figures.
    """
    widths = [max(map(_width, cells)) for cells in zip(head, *rows, strict=True)]
    columns = list(range(len(head)))
    for name in first_to_go:
        if sum(widths[n] for n in columns) + GAP * (len(columns) - 1) <= console.width:
            break
        columns.remove(head.index(name))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for n in columns:
        table.add_column(Text(head[n]), justify="right" if head[n] in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[n]) for n in columns))
    console.print(table)
    left_out = [name for n, name in enumerate(head) if n not in columns]
    if left_out:
        console.print(Text(f"A wider terminal also shows: {', '.join(left_out)}."))


def _width(cell: str) -> int:
    return max(map(cell_len, cell.split("\n")))
