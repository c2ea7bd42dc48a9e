"""Runs that differ in their seed alone, as one: means with the lowest and highest seed, as a table and as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from muarl.accounts.metrics import NOT_CHECKED, SUCCESS_WITHOUT_VIOLATION
from muarl.basics.files import write_json, write_text
from muarl.basics.json_values import as_figure
from muarl.observe.headline import clean_in, headline_of
from muarl.observe.rundir import RunDirectory
from muarl.pages.charts import Point, Series, line_chart
from muarl.pages.markup import Html, join, tag
from muarl.pages.table import ShownColumn, ShownTable, table, to_html
from muarl.pages.words import word
from muarl.report.figures import MEASURED, points
from muarl.report.report import document
from muarl.report.report_curves import CURVES

SCORES = (
    ("cold_start", "Held-out success before RL"),
    ("rl", "Held-out success after RL"),
    ("rl_greedy", "Held-out success, greedy decoding"),
    ("evaluation", "Held-out success"),
    ("do_nothing", "Do-nothing baseline"),
    ("always_transfer", "Always-transfer baseline"),
)
"""Blocks of summary.json that hold a success rate, and what they are called."""
EVALUATED = ("cold_start", "rl", "rl_greedy", "evaluation")
"""Those of an agent's evaluations, which success without any violation stands beside."""
VALIDATED = "Validation success, last"
LAST = 0.1
"""Share of the training steps, the last ones, whose mean success is a run's."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Spread:
    """One score over seeds: ``values`` by seed name, shares in [0, 1]; none where no seed tells it, as with success
    without any violation where nothing was checked."""

    label: str
    values: Mapping[str, float]

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return fmean(self.values.values())

    @property
    def low(self) -> float:
        """The lowest seed's."""
        return min(self.values.values())

    @property
    def high(self) -> float:
        """The highest seed's."""
        return max(self.values.values())


def spreads(runs: Sequence[RunDirectory]) -> list[Spread]:
    """The scores that any of the runs has, in the order of ``SCORES``, then validation and training success."""
    found: dict[str, dict[str, float]] = {}
    for run in runs:
        for label, value in _scores(run).items():
            found.setdefault(label, {})[run.name] = value
    for label in (*(label for key, label in SCORES if key in EVALUATED), VALIDATED):
        if label in found:
            found.setdefault(_clean(label), {})
    order = [name for _, label in SCORES for name in (label, _clean(label))]
    labels = sorted(found, key=lambda label: order.index(label) if label in order else len(order))
    return [Spread(label, found[label]) for label in labels]


def _scores(run: RunDirectory) -> dict[str, float]:
    summary, rows, out = run.read_json("summary"), run.read_metrics(), dict[str, float | None]()
    for key, label in SCORES:
        block = summary.get(key)
        value = as_figure(block.get("success") if isinstance(block, Mapping) else block)
        clean = headline_of(summary, key).clean
        out |= {label: value, _clean(label): None if value is None or clean is None else clean.value}
    for name, scores in _by_domain(summary).items():
        for key, called in SCORES:
            clean, label = clean_in(summary, key, name), f"{called}, {name}"
            out |= {label: as_figure(scores.get(key)), _clean(label): None if clean is None else clean.value}
    for label, name in ((VALIDATED, "success"), (_clean(VALIDATED), SUCCESS_WITHOUT_VIOLATION)):
        out[label] = next((value for _, value in reversed(points(_phase(rows, "validation"), name))), None)
    if trained := points(_phase(rows, "rl"), "success"):
        last = trained[-max(1, round(LAST * len(trained))) :]
        out["Training success, last tenth of the steps"] = fmean(y for _, y in last)
    return {label: value for label, value in out.items() if value is not None}


def _clean(label: str) -> str:
    return f"{label}, without any violation"


def _by_domain(summary: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The scores of each domain, of a run with several."""
    found = summary.get("by_domain")
    return {str(k): v for k, v in found.items() if isinstance(v, Mapping)} if isinstance(found, Mapping) else {}


def _phase(rows: Rows, name: str) -> Rows:
    return [row for row in rows if row.get("phase") == name]


def band(lines: Sequence[Sequence[Point]]) -> tuple[list[Point], list[tuple[float, float, float]]]:
    """Mean, and (x, lowest, highest), at every x that all lines have."""
    tables = [dict(line) for line in lines if line]
    shared = sorted(set.intersection(*(set(t) for t in tables))) if tables else []
    mean = [(x, fmean(t[x] for t in tables)) for x in shared]
    return mean, [(x, min(t[x] for t in tables), max(t[x] for t in tables)) for x in shared]


def seeds_table(name: str, runs: Sequence[RunDirectory]) -> ShownTable:
    """The scores: mean, lowest and highest seed, and on a page each seed's own."""
    own = [ShownColumn(run.name.removeprefix(f"{name}-"), right=True, page=True) for run in runs]
    rows = []
    for s in spreads(runs):
        shares = [f"{v:.1%}" for v in (s.mean, s.low, s.high)] if s.values else [NOT_CHECKED, "", ""]
        rows.append([s.label, *shares, *(f"{s.values[r.name]:.1%}" if r.name in s.values else "–" for r in runs)])
    return table(["score", "mean", "lowest", "highest", *own], rows, title=f"{name}: {_count(runs)}", kind="figures")


def seeds_page(name: str, runs: Sequence[RunDirectory]) -> str:
    """One HTML page without scripts: scores by seed, and training curves as mean and band."""
    scores = seeds_table(name, runs)
    charts = [c for c in (seed_chart(names, runs) for names in CURVES) if c is not None]
    note = (
        f"Lines are means of {_count(runs)}, moving averages over steps; bands go from the lowest seed to the highest."
    )
    curves = join(tag("h2", "Training"), tag("p", note, class_="soft"), tag("div", charts, class_="charts"))
    top = tag("header", tag("p", f"muarl · {_count(runs)}", class_="eyebrow"), tag("h1", name), class_="top")
    sections = [
        tag("section", tag("h2", "Scores"), to_html(replace(scores, title=""))) if scores.rows else None,
        tag("section", curves) if charts else None,
    ]
    return document(f"{name} · {_count(runs)}", join(top, tag("main", sections)))


def _count(runs: Sequence[RunDirectory]) -> str:
    return "1 seed" if len(runs) == 1 else f"{len(runs)} seeds"


def seed_chart(names: Sequence[str], runs: Sequence[RunDirectory]) -> Html | None:
    """The first of these metrics that a run has, over the training steps: mean and band. None if no run has one."""
    rows = [run.read_metrics() for run in runs]
    trained = [_phase(r, "rl") or _phase(r, "cold_start") for r in rows]
    name = next((n for n in names if any(points(r, n) for r in trained)), None)
    if name is None:
        return None
    w = word("kl" if "kl" in name else name)
    mean, around = band([points(r, name) for r in trained])
    series = [Series("in training", mean, band=around)]
    if name == "success":
        for phase in MEASURED:
            checked, between = band([points(_phase(r, phase), "success") for r in rows])
            if checked:
                series.append(Series("held-out tasks", checked, "base", dots=True, band=between))
                break
    return line_chart(w.label, series, shares=w.share, note=w.meaning)


def write_seeds(root: Path, name: str, runs: Sequence[RunDirectory]) -> Path:
    """Write NAME-seeds.html, and the same scores as NAME-seeds.json; returns the page's path."""
    page = root / f"{name}-seeds.html"
    found = [{"score": s.label, "values": s.values} for s in spreads(runs)]
    means = [{"mean": s.mean, "lowest": s.low, "highest": s.high} if s.values else {} for s in spreads(runs)]
    scores = [one | mean for one, mean in zip(found, means, strict=True)]
    write_json(page.with_suffix(".json"), {"name": name, "runs": [run.name for run in runs], "scores": scores})
    write_text(page, seeds_page(name, runs))
    return page
