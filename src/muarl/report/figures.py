"""What the files of a run tell of it as a whole, and its figures as lines to draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from muarl.accounts.metrics import GENERAL_TOOLS
from muarl.accounts.pass_hat import few_tasks
from muarl.basics.errors import MuarlError
from muarl.basics.json_values import as_figure, bounds, mapping
from muarl.basics.untrusted import parse_json, read_text
from muarl.pages.charts import Point, number, percent, smooth
from muarl.pages.markup import Child, Html, tag
from muarl.pages.table import Cell
from muarl.pages.words import Word

Row = Mapping[str, Any]
Rows = Sequence[Row]

MEASURED = ("validation", "evaluation")
"""Phases that measure on held-out tasks: dots in the curve of success, the first that a run has."""
POINTS = 160
"""More points than this are averaged before they are drawn."""
RESUMES = 1 << 20
"""Bytes of a history of resumptions that is read."""


@dataclass(frozen=True, eq=False)
class RunFigures:
    """What a page shows of a run as a whole. Every part may be missing; what is missing is left out, or said to be."""

    name: str
    summary: Mapping[str, Any] = field(default_factory=dict)
    """As in summary.json."""
    metrics: Rows = ()
    """Rows as in metrics.jsonl."""
    config: str = ""
    """YAML text."""
    versions: Mapping[str, Any] = field(default_factory=dict)
    """As in versions.json."""
    status: Mapping[str, Any] = field(default_factory=dict)
    """As in status.json."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What ``config`` says."""
    redteam: Mapping[str, Any] = field(default_factory=dict)
    """As in redteam.json."""
    resumes: Rows = ()
    """Lines of resumes.jsonl."""
    general: frozenset[str] = frozenset(GENERAL_TOOLS)
    """Tools that are of no domain."""
    colour: str = "after"
    """A class of the style sheet for its lines."""

    @cached_property
    def trained(self) -> dict[str, list[Row]]:
        """The rows of each phase that trained."""
        by_phase: dict[str, list[Row]] = {}
        for row in self.metrics:
            if (phase := str(row.get("phase", ""))) not in MEASURED:
                by_phase.setdefault(phase, []).append(row)
        return by_phase

    @cached_property
    def phase(self) -> str:
        """The phase that says most: reinforcement learning, else the longest."""
        if "rl" in self.trained:
            return "rl"
        phases = [str(row.get("phase", "")) for row in self.metrics]
        return max(self.trained, key=lambda p: len(self.trained[p]), default=max(phases, key=phases.count, default=""))

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of that phase."""
        return [row for row in self.metrics if str(row.get("phase", "")) == self.phase]

    def user_errors(self) -> Sequence[Point]:
        """(step, share of conversations whose user failed) where the rows do not tell."""
        return ()

    def found_audits(self) -> Iterable[tuple[str, Mapping[str, Any]]]:
        """(stage, figures) of what an audit found, where no summary tells."""
        return ()


class EpisodeLinks(Protocol):
    """Where the episodes are that a figure was taken from."""

    def __call__(self, run: RunFigures, *query: tuple[str, str]) -> str | None:
        """The address of the run's episodes, those that fit a query; None where no page shows them."""
        ...


def nowhere(run: RunFigures, *query: tuple[str, str]) -> None:
    """The ways of a page that stands alone."""


def link(address: str | None, *children: Child, **attributes: str | None) -> Html:
    """A link, or plain text where it would lead nowhere."""
    if address is None:
        attributes.pop("rel", None)
        return tag("span", *children, **attributes)
    return tag("a", *children, href=address, **attributes)


def share_cell(value: Any, interval: Any = None, unknown: str = "–") -> Cell:
    """A share and its interval, or that it is not known."""
    share, limits = as_figure(value), bounds(interval)
    if share is None:
        return Cell(unknown, kind="soft" if unknown != "–" else "")
    return Cell(percent(share), small=f"{percent(limits[0])}–{percent(limits[1])}" if limits else "")


def tasks_behind(hats: object, k: str) -> tuple[float | None, float | None]:
    """Of how many tasks pass^k in the JSON of an evaluation is, and how many there are; None where it does not tell."""
    counted, tasks = (as_figure(mapping(mapping(hats).get(name)).get("n")) for name in (k, "1"))
    return counted, tasks


def hat_cell(hats: object, k: str) -> Cell:
    """pass^k in the JSON of an evaluation with its interval, and of how many tasks where it is not of all."""
    estimate = mapping(mapping(hats).get(k))
    cell = share_cell(estimate.get("value"), estimate.get("interval"))
    return replace(cell, small=", ".join(filter(None, (cell.small, few_tasks(*tasks_behind(hats, k))))))


def figure_text(w: Word, value: float | None) -> str:
    """A figure as its words say: a share in percent, or a number."""
    return "–" if value is None else percent(value) if w.share else number(value)


def read_resumes(folder: Path) -> list[Row]:
    """Each time that a run was resumed, and with what changes; none where the file cannot be read."""
    path = folder / "resumes.jsonl"
    try:
        resumes = [parse_json(line) for line in read_text(path, RESUMES).splitlines()] if path.is_file() else []
    except (MuarlError, ValueError):
        return []
    return [line for line in resumes if isinstance(line, dict)]


def points(rows: Iterable[Row], *names: str, phase: str | None = None) -> list[Point]:
    """(step, figure) of a phase's rows, by the first of the names that any of them has."""
    chosen = [r for r in rows if phase is None or r.get("phase") == phase]
    for name in names:
        out = [
            (x, y)
            for row in chosen
            if (y := as_figure(row.get(name))) is not None and (x := as_figure(row.get("step"))) is not None
        ]
        if out:
            return sorted(out)
    return []


def thin(line: Sequence[Point], most: int = POINTS) -> list[Point]:
    """About ``most`` points: averages of neighbours. Shorter lines stay as they are, and so do both ends."""
    if len(line) <= most:
        return list(line)
    inner = line[1:-1]
    size = -(-len(inner) // (most - 2))
    parts = [inner[i : i + size] for i in range(0, len(inner), size)]
    return [line[0], *((sum(x for x, _ in p) / len(p), sum(y for _, y in p) / len(p)) for p in parts), line[-1]]


def ends(rows: Iterable[Row], *names: str) -> tuple[float, float] | None:
    """Where the line of the first of these figures that the rows have begins and ends, smoothed; None for no line."""
    smoothed = smooth(points(rows, *names))
    return (smoothed[0][1], smoothed[-1][1]) if smoothed else None


def spent(rows: Rows) -> float:
    """Dollars of users, agents and judges over a run."""
    judged = max((as_figure(r.get("judge/cost")) or 0.0 for r in rows), default=0.0)  # a total that counts on
    return judged + sum(as_figure(row.get(name)) or 0.0 for name in ("user/cost", "agent/cost") for row in rows)
