"""Draws the figure of docs/known-model.md from the saved runs of its experiment, and puts it there with its tables:

muarl reproduce --config known-model --seeds 0,1,2 --runs-dir runs
python docs/draw_known_model.py --seeds 0,1,2 --runs-dir runs
"""

from __future__ import annotations

import argparse
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muarl.basics.files import write_text
from muarl.config.load import load_config
from muarl.pages.table import ShownTable, table, to_markdown
from muarl_tools.experiments.reproduce.measuring import ArmScore, Reproduction, groups, measure
from muarl_tools.experiments.reproduce.plan import BOTH, COLD, MORE, RULES, arms_of
from muarl_tools.experiments.reproduce.sheets import gap_cells, sheets

PAGE = Path(__file__).with_name("known-model.md")
PICTURE = Path("images/known-model.svg")
BEGIN, END = "<!-- results: written by docs/draw_known_model.py -->", "<!-- results: end -->"
TABLES = ("hats", "transfer", "turns")
"""The sheets of the reproduction that the page shows besides its own tables."""
COMPARED = ((BOTH, COLD), (MORE, COLD), (BOTH, MORE))
"""The comparisons of arms that the page shows: the first minus the second."""
BEHAVIOUR = ("writes_without_consent", "catastrophic", "needless_transfers", "tool_error_rate", "truncated")

PANEL, HEIGHT, LEFT, TOP, BOTTOM, GAP = 390, 230, 44, 46, 40, 16
STYLE = """
svg { --card:#fff; --ink:#1c2428; --soft:#5a666d; --rule:#e4e1d8; --all:#a9d3ce; --clean:#0d7a70; --floor:#b4533c }
@media (prefers-color-scheme: dark) {
  svg { --card:#1b2226; --ink:#e4e7e5; --soft:#9ba7ad; --rule:#2d363b; --all:#2c5f59; --clean:#4cc4b3;
    --floor:#e08b73 } }
text { font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif; fill:var(--soft) }
.card { fill:var(--card); stroke:var(--rule) } .title { font-size:14px; font-weight:600; fill:var(--ink) }
.value { font-weight:600; fill:var(--ink) } .end { text-anchor:end } .middle { text-anchor:middle }
.grid { stroke:var(--rule) } .all { fill:var(--all) } .clean { fill:var(--clean) }
.interval { stroke:var(--ink); stroke-width:1.4 } .seed { fill:var(--card); stroke:var(--ink) }
.floor { stroke:var(--floor); stroke-width:1.4; stroke-dasharray:5 4 }
"""


@dataclass(frozen=True)
class Panel:
    """Some tasks with some user. ``bars``: by arm its success, and its success without any violation where that was
    checked. ``floor``: success of doing nothing."""

    title: str
    bars: tuple[tuple[str, ArmScore, ArmScore | None], ...]
    floor: float | None


def panels(found: Reproduction) -> list[Panel]:
    """What the figure shows: where RL played, with users of every level, and where it never did."""
    wanted, out = found.config.reproduce, []
    for user, measured in found.by_user.items():
        title = f"{_users(user)} users"
        places = [(f"{_listed(wanted.rl)}, {title}", wanted.rl)]
        if user == RULES and wanted.unseen:
            places.append((f"never trained on: {_listed(wanted.unseen)}", wanted.unseen))
        for name, environments in places:
            bars = []
            for arm, label in arms_of(found.config.reproduce).items():
                score = measured.score(arm, environments)
                if score is not None:
                    bars.append((label, score, measured.score(arm, environments, clean=True)))
            floors = [measured.nothing[e] for e in environments if e in measured.nothing]
            if bars:
                floor = sum(floors) / len(floors) if len(floors) == len(environments) else None
                out.append(Panel(name, tuple(bars), floor))
    return out


def _users(user: str) -> str:
    return "easy" if user == RULES else user


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name.removesuffix("-generated") for name in names)


def picture(shown: Sequence[Panel]) -> str:
    """The panels as one SVG file that needs nothing else, two in a row. ValueError if there are none."""
    if not shown:
        raise ValueError("no evaluation of this experiment is finished")
    columns, rows = min(2, len(shown)), -(-len(shown) // 2)
    width, height = columns * (PANEL + GAP) + GAP, rows * (HEIGHT + GAP) + GAP
    whole = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", role="img")
    ET.SubElement(whole, "style").text = STYLE
    for number, panel in enumerate(shown):
        x, y = GAP + number % 2 * (PANEL + GAP), GAP + number // 2 * (HEIGHT + GAP)
        _panel(ET.SubElement(whole, "g", transform=f"translate({x} {y})"), panel)
    return ET.tostring(whole, encoding="unicode") + "\n"


def _panel(group: ET.Element, panel: Panel) -> None:
    _shape(group, "rect", "card", x=0, y=0, width=PANEL, height=HEIGHT, rx=8)
    _text(group, 12, 20, panel.title, "title")
    _text(group, 12, 36, "success; dark: without any violation; dashed: doing nothing")
    floor, room = HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP

    def at(share: float) -> float:
        return floor - share * room

    for percent in (0, 25, 50, 75, 100):
        _shape(group, "line", "grid", x1=LEFT, x2=PANEL - 12, y1=at(percent / 100), y2=at(percent / 100))
        _text(group, LEFT - 6, at(percent / 100) + 4, f"{percent}%", "end")
    step = (PANEL - LEFT - 12) / len(panel.bars)
    for number, (label, score, clean) in enumerate(panel.bars):
        middle, bar = LEFT + step * (number + 0.5), step * 0.5
        for value, kind in ((score, "all"), (clean, "clean")):
            if value is not None:
                top = at(value.value)
                _shape(group, "rect", kind, x=middle - bar / 2, y=top, width=bar, height=floor - top)
        low, high = score.interval
        _shape(group, "line", "interval", x1=middle, x2=middle, y1=at(low), y2=at(high))
        for seed in score.seeds if len(score.seeds) > 1 else ():
            _shape(group, "circle", "seed", cx=middle + bar * 0.36, cy=at(seed), r=2.5)
        _text(group, middle - bar / 2 - 3, at(score.value) - 3, f"{100 * score.value:.0f}", "value end")
        first, _, rest = label.partition(" ")
        for line, word in enumerate(filter(None, (first, rest))):
            _text(group, middle, floor + 15 + 13 * line, word, "middle")
    if panel.floor is not None:
        _shape(group, "line", "floor", x1=LEFT, x2=PANEL - 12, y1=at(panel.floor), y2=at(panel.floor))


def _shape(parent: ET.Element, tag: str, kind: str, **numbers: float) -> None:
    ET.SubElement(parent, tag, {"class": kind} | {name: f"{value:g}" for name, value in numbers.items()})


def _text(parent: ET.Element, x: float, y: float, text: str, kind: str = "") -> None:
    ET.SubElement(parent, "text", {"x": f"{x:g}", "y": f"{y:g}", **({"class": kind} if kind else {})}).text = text


def agents(found: Reproduction) -> ShownTable:
    """Every arm's success with every kind of users, where RL played."""
    rows, names = list[tuple[str, ...]](), found.config.reproduce.rl
    for user, measured in found.by_user.items():
        floors = [f"{100 * share:.1f}" for name, share in measured.nothing.items() if name in names]
        rows.append((_users(user), "do nothing", ", ".join(floors), "", "", "", ""))
        for arm, label in arms_of(found.config.reproduce).items():
            score, clean = (measured.score(arm, names, clean=clean) for clean in (False, True))
            if score is not None:
                rows.append((_users(user), label, *_cells(score), *_cells(clean)[::2]))
    about = "Percent; 95% intervals over tasks. Clean: done without any violation."
    head = ("users", "agent", "success", "95% interval", "each seed", "clean", "each seed")
    return table(head, rows, words=2, title="Every agent", about=about)


def behaviour(found: Reproduction) -> ShownTable:
    """What operators care about, of every arm with every kind of users, where RL played."""
    rows, group = list[tuple[str, ...]](), next(iter(groups(found.config.reproduce)))
    for user, measured in found.by_user.items():
        for arm, label in arms_of(found.config.reproduce).items():
            if (own := measured.figures.get(arm, {}).get(group)) is not None:
                shares = (f"{100 * own[name]:.1f}" if name in own else "–" for name in BEHAVIOUR)
                rows.append((_users(user), label, *shares))
    about = "Percent, means over seeds: of writes, and otherwise of conversations or calls. Cut: by a limit."
    head = (
        "users", "agent", "writes without consent", "catastrophic failures", "needless transfers", "tool errors", "cut",
    )  # fmt: skip
    return table(head, rows, words=2, title="How they behave", about=about)


def _cells(score: ArmScore | None) -> tuple[str, str, str]:
    """The mean over seeds, the interval, and each seed's own."""
    if score is None:
        return "–", "–", "–"
    seeds = ", ".join(f"{100 * value:.1f}" for value in score.seeds) if len(score.seeds) > 1 else ""
    return f"{100 * score.value:.1f}", " to ".join(f"{100 * bound:.1f}" for bound in score.interval), seeds


def differences(found: Reproduction) -> ShownTable:
    """Arms against each other, with every kind of users, where RL played."""
    rows, names, arms = list[tuple[str, ...]](), found.config.reproduce.rl, arms_of(found.config.reproduce)
    for one, other in (pair for pair in COMPARED if set(pair) <= set(arms)):
        for user, measured in found.by_user.items():
            gaps = [measured.difference(one, other, names, clean=clean) for clean in (False, True)]
            rows.append((f"{arms[one]} – {arms[other]}", _users(user), *(c for gap in gaps for c in gap_cells(gap))))
    about = (
        "Points at the same tasks, over the seeds that both have; 95% bootstrap interval and two-sided p by sign "
        "flips, both over tasks."
    )
    head = ("comparison", "users", "success", "p", "clean", "p of it")
    return table(head, rows, words=2, title="Agents against each other", about=about)


def block(found: Reproduction, picture_file: Path) -> str:
    """What stands between the marks of the page: the figure, and the tables."""
    chosen = [
        agents(found),
        differences(found),
        behaviour(found),
        *(s for key, s in sheets(found).items() if key in TABLES),
    ]
    tables = "\n".join(to_markdown(sheet, level=3) for sheet in chosen)
    about = "Bars: success, and the darker part without any violation; lines: 95% over tasks; dots: single seeds."
    return f"![Success of the arms]({picture_file.as_posix()})\n\n{about}\n\n{tables}"


def draw(found: Reproduction, page: Path) -> None:
    """Write the figure beside the page, and put it there. ValueError if the page has no place for it."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{page} has no lines {BEGIN} and {END}")
    drawn = picture(panels(found))
    (page.parent / PICTURE).parent.mkdir(exist_ok=True)
    write_text(page.parent / PICTURE, drawn)
    write_text(page, pattern.sub(lambda _: f"{BEGIN}\n{block(found, PICTURE)}\n{END}", text))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="known-model")
    parser.add_argument("--runs-dir", default="runs")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("settings", nargs="*", help="the settings that the experiment was run with, KEY=VALUE")
    given = parser.parse_args()
    config = load_config(given.config, [f"runs_dir={given.runs_dir}", *given.settings])
    draw(measure(config, [int(seed) for seed in given.seeds.split(",")]), PAGE)
    print(f"wrote {PAGE.parent / PICTURE} and {PAGE.name}")


if __name__ == "__main__":
    main()
