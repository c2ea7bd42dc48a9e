"""The page of a reproduction (HTML without scripts), and the same as Markdown and JSON, from saved runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from muarl.basics.files import write_json, write_text
from muarl.pages.markup import Html, join, tag
from muarl.pages.table import Cell, ShownTable, to_html, to_markdown
from muarl.report.report import document
from muarl.report.report_curves import CURVES
from muarl_tools.experiments.reproduce.measuring import Reproduction
from muarl_tools.experiments.reproduce.plan import ARMS, root_of
from muarl_tools.experiments.seeds import seed_chart

TITLE = "The paper in miniature"
PAGE, TABLES, FIGURES = "reproduce.html", "reproduce.md", "reproduce.json"


def write_page(found: Reproduction, shown: Mapping[str, ShownTable]) -> Path:
    """Write reproduce.html, reproduce.md and reproduce.json beside the runs; returns the first one's path. ``shown``:
    the tables (``sheets``)."""
    root = root_of(found.config.runs_dir, found.config.name)
    pretrained = found.config.reproduce.pretrained
    title = f"Arms from {found.config.model.checkpoint}" if pretrained else TITLE
    write_text(root / TABLES, markdown(shown, title))
    write_json(
        root / FIGURES,
        {
            key: {"head": [column.head for column in sheet.columns], "rows": [list(map(_line, r)) for r in sheet.rows]}
            for key, sheet in shown.items()
        },
    )
    write_text(root / PAGE, html(found, shown, title))
    return root / PAGE


def _line(cell: str | Cell) -> str:
    return str(cell).replace("\n", " ")


def markdown(shown: Mapping[str, ShownTable], title: str = TITLE) -> str:
    """The tables in Markdown."""
    return "\n".join([f"# {title}\n", *map(to_markdown, shown.values())])


def html(found: Reproduction, shown: Mapping[str, ShownTable], title: str = TITLE) -> str:
    """The whole page."""
    sections = [_section(key, sheet.title, to_html(replace(sheet, title=""))) for key, sheet in shown.items()]
    for arm, runs in found.training.items():
        charts = [c for c in (seed_chart(names, runs) for names in CURVES[:4]) if c is not None]
        if charts:
            note = "Lines are means of the seeds, moving averages over steps; bands go from the lowest to the highest."
            drawn = join(tag("p", note, class_="soft"), tag("div", charts, class_="charts"))
            sections.append(_section(f"curves-{arm}", f"RL's steps: {ARMS[arm]}", drawn))
    top = tag("header", tag("p", "muarl reproduce", class_="eyebrow"), tag("h1", title), class_="top")
    return document(title, join(top, tag("main", sections)))


def _section(key: str, title: str, content: Html) -> Html:
    return tag("section", tag("h2", title), content, id=key)
