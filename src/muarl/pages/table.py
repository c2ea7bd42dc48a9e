"""A table that is described once and printed as HTML, as Markdown or in a terminal.

Texts are escaped in all three: cells hold what models, users and tools wrote. Heads and rows are plain text; a ``Cell``
is one with more to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from muarl.basics.untrusted import visible
from muarl.pages.markup import Child, Html, join, tag

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

T = TypeVar("T")

STYLES = {"soft": "dim", "better": "green", "worse": "red", "bad": "bold red", "good": "green"}
"""How a terminal shows a cell's ``kind``."""


@dataclass(frozen=True)
class Cell:
    """A cell with more than plain text."""

    text: str
    small: str = ""
    """Said less loudly beside it, as an interval is; in a terminal on a line of its own."""
    kind: str = ""
    """A class of the style sheet."""
    strong: bool = False
    link: str = ""
    """An address, left out if its scheme is none of the web's."""
    page: Child = None
    """What a page shows in place of the text, a drawing or a longer text."""


@dataclass(frozen=True)
class ShownColumn:
    """A column."""

    head: str
    right: bool = False
    """Of figures, aligned to the right."""
    small: str = ""
    """Said below its head."""
    whole: bool = False
    """A terminal breaks none of its words."""
    page: bool = False
    """Shown by HTML alone, as drawings are."""
    kind: str = ""
    key: str = ""
    """The colour of what it is of."""
    label: str = ""
    """What a narrow page writes before its cells."""


@dataclass(frozen=True)
class ShownTable:
    """A table. The first cell of a row names it."""

    columns: tuple[ShownColumn, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    title: str = ""
    about: str = ""
    """What must be known to read it, below the title."""
    notes: tuple[str, ...] = ()
    """Stand below the rows."""
    kind: str = ""
    """Classes of the style sheet for the whole."""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row of the table {self.title!r} has not {len(self.columns)} cells")


def table(
    head: Iterable[object],
    rows: Iterable[Iterable[object]],
    *,
    words: int = 1,
    title: str = "",
    about: str = "",
    notes: Iterable[str] = (),
    kind: str = "",
) -> ShownTable:
    """A table of which all columns but the first ``words`` are of figures, unless a ``ShownColumn`` says otherwise.
    Heads are text or a ``ShownColumn``, cells text or a ``Cell``; TypeError for anything else."""
    columns = [_given(h, ShownColumn) for h in head]
    return ShownTable(
        tuple(ShownColumn(h, right=n >= words) if isinstance(h, str) else h for n, h in enumerate(columns)),
        tuple(tuple(_given(cell, Cell) for cell in row) for row in rows),
        title,
        about,
        tuple(notes),
        kind,
    )


def _given(value: object, kind: type[T]) -> str | T:
    if not isinstance(value, (str, kind)):
        raise TypeError(f"a table shows text or a {kind.__name__}, not {value!r}")
    return value


def to_html(table: ShownTable) -> Html:
    """The table as HTML, with its title as a heading of the third level."""
    head = [tag("th", c.head, _small(c.small), class_=_classes(c), scope="col") for c in table.columns]
    rows = [tag("tr", [_html_cell(n, cell, table.columns[n]) for n, cell in enumerate(row)]) for row in table.rows]
    body = tag("table", tag("thead", tag("tr", head)), tag("tbody", rows), class_=table.kind or None)
    return join(
        tag("h3", table.title) if table.title else None,
        tag("p", table.about, class_="soft") if table.about else None,
        tag("div", body, class_="scroll"),
        [tag("p", note, class_="soft") for note in table.notes],
    )


def _html_cell(n: int, cell: str | Cell, column: ShownColumn) -> Html:
    cell = Cell(cell) if isinstance(cell, str) else cell
    lines = cell.text.split("\n")
    content: Child = cell.text if len(lines) == 1 else [tag("div", line) for line in lines]
    if cell.page is not None:
        content = cell.page
    if _is_safe(cell.link):
        content = tag("a", content, href=cell.link)
    if cell.strong:
        content = tag("b", content)
    small = tag("small", cell.small) if cell.small else None
    if n == 0:
        return tag("th", content, small, scope="row", class_=_classes(column, cell.kind))
    classes = _classes(column, cell.kind)
    return tag("td", content, " " if small else None, small, class_=classes, data_label=column.label or None)


def _key(colour: str) -> Html | None:
    return tag("i", class_=f"key {colour}") if colour else None


def _small(text: str) -> Html | None:
    return tag("small", text) if text else None


def _classes(column: ShownColumn, kind: str = "") -> str | None:
    return " ".join(filter(None, ("n" if column.right else "", column.kind, kind))) or None


def _is_safe(link: str) -> bool:
    """Whether a browser may follow it: an address of the web, or one within the page or beside it."""
    try:
        return bool(link) and urlsplit(link).scheme in ("", "http", "https")
    except ValueError:
        return False


def to_markdown(table: ShownTable, *, level: int = 2) -> str:
    """The table in Markdown, below a heading of that level if it has a title; ends with the end of a line."""
    columns = [n for n, column in enumerate(table.columns) if not column.page]
    heads = [_aside(_escaped(c.head), _escaped(c.small)) for c in (table.columns[n] for n in columns)]
    lines = [_markdown_row(heads), _markdown_row("---:" if table.columns[n].right else "---" for n in columns)]
    lines += [_markdown_row(_markdown_cell(row[n]) for n in columns) for row in table.rows]
    above = [f"{'#' * level} {_escaped(table.title)}"] if table.title else []
    parts = [*above, *filter(None, [_escaped(table.about)]), "\n".join(lines), *map(_escaped, table.notes)]
    return "\n\n".join(parts) + "\n"


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return _escaped(cell)
    text = _escaped(cell.text)
    if cell.strong and text:
        text = f"**{text}**"
    if _is_safe(cell.link):
        text = f"[{text}](<{cell.link.replace('<', '%3C').replace('>', '%3E').replace('|', '%7C')}>)"
    return _aside(text, _escaped(cell.small))


def _aside(text: str, small: str) -> str:
    return f"{text} ({small})" if small and text else text or small


_PIPES = re.compile(r"(\\*)\|")
_TAGS = re.compile(r"<(?=[A-Za-z/!?])")


def _escaped(text: str) -> str:
    """Text of one line that neither ends a cell nor is HTML or a link."""
    text = " ".join(visible(text).split("\n"))
    text = _PIPES.sub(lambda m: m.group(1) * 2 + "\\|", text)
    return _TAGS.sub("&lt;", text).replace("](", "]\\(")


def to_terminal(table: ShownTable, *, lines: bool = True) -> Table:
    """The table for a rich console; without ``lines`` between columns and rows, as short lists are shown."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    columns = [n for n, column in enumerate(table.columns) if not column.page]
    title = "\n".join(filter(None, (table.title, table.about)))
    out = Table(
        title=Text(visible(title)) if title else None,
        title_justify="left",
        caption=Text(visible("\n".join(table.notes))) if table.notes else None,
        caption_justify="left",
        box=box.HEAVY_HEAD if lines else None,
        pad_edge=lines,
        show_header=any(table.columns[n].head for n in columns),
    )
    for n in columns:
        column = table.columns[n]
        head = Text(visible("\n".join(filter(None, (column.head, column.small)))))
        justify = "right" if column.right else "left"
        out.add_column(head, justify=justify, overflow="fold", no_wrap=column.whole)  # type: ignore[arg-type]
    for row in table.rows:
        out.add_row(*_terminal_cells(row, columns))
    return out


def _terminal_cells(row: Sequence[str | Cell], columns: Iterable[int]) -> Iterator[Text]:
    from rich.text import Text

    for n in columns:
        cell = row[n]
        if isinstance(cell, str):
            yield Text(visible(cell))
            continue
        style = f"{STYLES.get(cell.kind, '')}{' bold' if cell.strong else ''}".strip()
        yield Text(visible("\n".join(filter(None, (cell.text, cell.small)))), style=style)
