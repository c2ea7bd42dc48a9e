"""Draws the training curves of docs/results.md from the runs of an experiment under several seeds, and puts them there:

muarl seeds 0,1,2 quickstart
python docs/draw_curves.py runs/quickstart-seed0 runs/quickstart-seed1 runs/quickstart-seed2
"""

from __future__ import annotations

import argparse
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from muarl.basics.files import write_text
from muarl.observe.rundir import RunDirectory
from muarl.pages.charts import HEIGHT, WIDTH, percent
from muarl_tools.experiments.seeds import seed_chart, spreads

PAGE = Path(__file__).with_name("results.md")
PICTURE = Path("images/training-curves.svg")
BEGIN, END = "<!-- curves: written by docs/draw_curves.py -->", "<!-- curves: end -->"

SHOWN = (("success", "reward"), ("writes_without_consent",), ("turns",), ("entropy",))
COLUMNS, GAP, TITLE = 2, 16, 44

STYLE = """
svg { --card:#fff; --ink:#1c2428; --soft:#5a666d; --rule:#e4e1d8; --after:#0d7a70; --base:#7c878d }
@media (prefers-color-scheme: dark) {
  svg { --card:#1b2226; --ink:#e4e7e5; --soft:#9ba7ad; --rule:#2d363b; --after:#4cc4b3; --base:#8b979d } }
text { font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif; fill:var(--soft) }
.card { fill:var(--card); stroke:var(--rule) } .title { font-size:14px; font-weight:600; fill:var(--ink) }
.end { text-anchor:end } .middle { text-anchor:middle } .grid { stroke:var(--rule) } .hover { fill:none }
.line { fill:none; stroke:var(--after); stroke-width:2.2; stroke-linejoin:round } .line.base { stroke:var(--base) }
.spread { opacity:.2; fill:var(--after) } .spread.base { fill:var(--base) }
.dot { fill:var(--after); stroke:var(--card); stroke-width:1.5 } .dot.base { fill:var(--base) }
"""


def picture(runs: Sequence[RunDirectory]) -> str:
    """The curves as one SVG file that needs nothing else. ValueError if the runs have no training steps."""
    figures = [ET.fromstring(str(chart)) for names in SHOWN if (chart := seed_chart(names, runs)) is not None]
    if not figures:
        raise ValueError("none of these runs has training steps")
    rows = -(-len(figures) // COLUMNS)
    width, height = COLUMNS * (WIDTH + GAP) + GAP, rows * (HEIGHT + TITLE + GAP) + GAP
    whole = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", role="img")
    ET.SubElement(whole, "style").text = STYLE
    for n, figure in enumerate(figures):
        x, y = GAP + n % COLUMNS * (WIDTH + GAP), GAP + n // COLUMNS * (HEIGHT + TITLE + GAP)
        _panel(whole, figure, x, y)
    return ET.tostring(whole, encoding="unicode") + "\n"


def _panel(whole: ET.Element, figure: ET.Element, x: int, y: int) -> None:
    """One chart as a card at (x, y): its title, where it begins and ends, what its dots are, and the drawing."""
    size = {"x": str(x), "y": str(y), "width": str(WIDTH), "height": str(HEIGHT + TITLE)}
    ET.SubElement(whole, "rect", {**size, "rx": "8", "class": "card"})
    caption, drawing = figure.find("figcaption"), figure.find("svg")
    assert caption is not None
    assert drawing is not None
    title, now = caption.findtext("b", ""), caption.findtext("span", "")
    ET.SubElement(whole, "text", {"x": str(x + 12), "y": str(y + 22), "class": "title"}).text = title
    ET.SubElement(whole, "text", {"x": str(x + WIDTH - 10), "y": str(y + 22), "class": "end"}).text = now
    if figure.find("p") is not None:
        note = "line: in training; dots: held-out tasks"
        ET.SubElement(whole, "text", {"x": str(x + 12), "y": str(y + 38)}).text = note
    drawing.attrib = {"x": str(x), "y": str(y + TITLE), "width": str(WIDTH), "height": str(HEIGHT)}
    whole.append(drawing)


def block(runs: Sequence[RunDirectory], picture_file: Path) -> str:
    """What stands between the marks of the page: the picture, and the scores over seeds."""
    seeds = ", ".join(str(run.read_json("summary").get("seed", run.name)) for run in runs)
    lines = [
        f"![Training curves, seeds {seeds}]({picture_file.as_posix()})",
        "",
        f"Seeds {seeds}: lines are means, as moving averages over steps; bands go from the lowest seed to the highest.",
        "",
        "| score | mean | lowest to highest seed |",
        "|---|---|---|",
    ]
    lines += [
        f"| {s.label} | {percent(s.mean)} | {percent(s.low)} to {percent(s.high)} |" for s in spreads(runs) if s.values
    ]
    return "\n".join(lines)


def draw(runs: Sequence[RunDirectory], page: Path) -> None:
    """Write the picture beside the page, and put it there. ValueError if the page has no place for it."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{page} has no lines {BEGIN} and {END}")
    drawn = picture(runs)
    (page.parent / PICTURE).parent.mkdir(exist_ok=True)
    write_text(page.parent / PICTURE, drawn)
    write_text(page, pattern.sub(lambda _: f"{BEGIN}\n{block(runs, PICTURE)}\n{END}", text))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of runs that differ in their seed alone")
    draw([RunDirectory.at(path) for path in parser.parse_args().runs], PAGE)
    print(f"wrote {PAGE.parent / PICTURE} and {PAGE.name}")


if __name__ == "__main__":
    main()
