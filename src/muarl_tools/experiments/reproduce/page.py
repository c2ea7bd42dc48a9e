"""The page of a reproduction (HTML without scripts, and Markdown), from saved runs."""

from __future__ import annotations

from pathlib import Path

from muarl.basics.files import write_json, write_text
from muarl.pages.markup import Html, join, table_of, tag
from muarl.report.report import document
from muarl.report.report_curves import CURVES
from muarl_tools.experiments.reproduce.measuring import Reproduction
from muarl_tools.experiments.reproduce.plan import ARMS, root_of
from muarl_tools.experiments.reproduce.sheets import Sheet, sheets
from muarl_tools.experiments.seeds import seed_chart

TITLE = "The paper in miniature"
PAGE, TABLES, FIGURES = "reproduce.html", "reproduce.md", "reproduce.json"


def write_page(found: Reproduction) -> Path:
    """Write reproduce.html, reproduce.md and reproduce.json beside the runs; returns the first one's path."""
    root = root_of(found.config.runs_dir, found.config.name)
    shown = sheets(found)
    write_text(
        root / TABLES,
        markdown(shown, title_of(found.config.model.checkpoint, pretrained=found.config.reproduce.pretrained)),
    )
    write_json(
        root / FIGURES,
        {sheet.key: {"head": list(sheet.head), "rows": [list(r) for r in sheet.rows]} for sheet in shown},
    )
    write_text(root / PAGE, html(found, shown))
    return root / PAGE


def title_of(checkpoint: str, *, pretrained: bool) -> str:
    """What the page is called."""
    return f"Arms from {checkpoint}" if pretrained else TITLE


def markdown(shown: list[Sheet], title: str = TITLE) -> str:
    """The tables in Markdown."""
    parts = [f"# {title}\n"]
    for sheet in shown:
        lines = [_line(sheet.head), "|" + "---|" * len(sheet.head), *map(_line, sheet.rows)]
        parts.append(f"## {sheet.title}\n\n{sheet.note}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def html(found: Reproduction, shown: list[Sheet]) -> str:
    """The whole page."""
    sections: list[Html] = [_section(sheet) for sheet in shown]
    for arm, runs in found.training.items():
        charts = [c for c in (seed_chart(names, runs) for names in CURVES[:4]) if c is not None]
        if charts:
            note = "Lines are means of the seeds, moving averages over steps; bands go from the lowest to the highest."
            sections.append(
                tag(
                    "section",
                    tag("h2", f"RL's steps: {ARMS[arm]}"),
                    tag("p", note, class_="soft"),
                    tag("div", charts, class_="charts"),
                    id=f"curves-{arm}",
                )
            )
    title = title_of(found.config.model.checkpoint, pretrained=found.config.reproduce.pretrained)
    top = tag("header", tag("p", "muarl reproduce", class_="eyebrow"), tag("h1", title), class_="top")
    return document(title, join(top, tag("main", sections)))


def _lines(cell: str) -> str | list[Html]:
    """A cell whose parts stand under each other: a score, and the seeds' range."""
    parts = cell.split("; ")
    return cell if len(parts) == 1 else [tag("div", part) for part in parts]


def _section(sheet: Sheet) -> Html:
    rows = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            [tag("td", _lines(cell), class_="n" if n >= sheet.words else None) for n, cell in enumerate(row[1:], 1)],
        )
        for row in sheet.rows
    ]
    return tag(
        "section",
        tag("h2", sheet.title),
        tag("p", sheet.note, class_="soft"),
        table_of(list(sheet.head), rows, "figures" if sheet.words == 1 else "many", words=sheet.words),
        id=sheet.key,
    )
