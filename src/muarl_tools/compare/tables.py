"""A comparison's tables, each described once: the terminal and the page print the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muarl.accounts.intervals import Estimate
from muarl.accounts.metrics import CLEAN, NOT_CHECKED
from muarl.pages.markup import Html, join, tag
from muarl.pages.table import Cell, ShownColumn, ShownTable, table
from muarl_tools.compare.comparing import Comparison, RunScore
from muarl_tools.compare.components import AGENT, BOTH, JUDGE, REST, TASK, TRIAL, USER, Components
from muarl_tools.compare.differences import PairedDifference
from muarl_tools.compare.power import SampleSizes
from muarl_tools.compare.text import heading, p_text, points, rank_text, share, span, trials_text

SOURCES = {
    TASK: "which task it is",
    TRIAL: "which trial it is",
    AGENT: "agent's seed",
    USER: "user's seed",
    BOTH: "agent and user together",
    REST: "what no seed fixes",
    JUDGE: "the judge",
}
PAIR_WIDTH = 28
"""Letters of two names in one cell of a terminal; longer ones are numbered."""
UNKNOWN = Cell("–")


def _numbered(found: Comparison) -> bool:
    """Whether a terminal calls runs by number in the tables of pairs."""
    return bool(found.pairs) and 2 * max(map(len, found.names)) > PAIR_WIDTH


def _run(found: Comparison, run: int) -> str:
    return f"#{run + 1}" if _numbered(found) else found.names[run]


def _pair(found: Comparison, pair: PairedDifference) -> Cell:
    """Two runs: a page has room for their names."""
    names = found.names
    return Cell(f"{_run(found, pair.first)} − {_run(found, pair.second)}",
                page=f"{names[pair.first]} − {names[pair.second]}")  # fmt: skip


def scores_table(found: Comparison) -> ShownTable:
    """One row a run, the highest first."""
    ks = sorted({k for s in found.scores for k in s.pass_hat if k > 1})
    nothing = any(s.results.do_nothing is not None for s in found.scores)
    head = [
        "run",
        *(ShownColumn(name, right=True, small="95% interval") for name in ("success", "without violation")),
        *(f"pass^{k}" for k in ks),
        "trials",
        *(["do nothing"] if nothing else []),
        *(("place", ShownColumn("group")) if found.pairs else ()),
    ]

    def cells(i: int, score: RunScore) -> Iterator[str | Cell]:
        name = score.results.name
        told = ", ".join(f"{w}: {v}" for w, v in (("agent", score.results.agent), ("user", score.results.user)) if v)
        page = join(name, tag("small", told) if told else None)
        yield Cell(f"#{i + 1} {name}" if _numbered(found) else name, page=page)
        yield from (_estimate(e, NOT_CHECKED) for e in (score.success, score.clean))
        yield from (_pass_hat(score.pass_hat.get(k)) for k in ks)
        yield trials_text(score)
        if nothing:
            yield "" if score.results.do_nothing is None else share(score.results.do_nothing)
        if found.pairs:
            yield from (rank_text(score.rank), score.letters)

    return table(head, [tuple(cells(i, found.scores[i])) for i in found.order], title=heading(found))


def _estimate(found: Estimate | None, unknown: str) -> Cell:
    return Cell(unknown) if found is None else Cell(share(found.value), small=span(found.interval))


def _pass_hat(found: Estimate | None) -> Cell:
    """A terminal has no room for its interval."""
    if found is None:
        return Cell("", page="–")
    return Cell(share(found.value), page=join(share(found.value), " ", tag("small", span(found.interval))))


def verdict_of(found: Comparison, result: PairedDifference) -> Cell:
    """Which of two is better, or that it cannot be told."""
    if result.better is None:
        return Cell("cannot be told apart")
    return Cell(f"{_run(found, result.better)} is better", page=f"{found.names[result.better]} is better")


def pair_tables(found: Comparison) -> list[ShownTable]:
    """Differences in success, and in success without any violation where any pair was checked: one row a pair."""
    clean = [p.clean for p in found.pairs if p.clean is not None]
    if not found.pairs:
        return []
    reach = reach_of(found)
    return [
        _pairs_table(found, pairs, what, reach) for pairs, what in ((found.pairs, "success"), (clean, CLEAN)) if pairs
    ]


def reach_of(found: Comparison) -> float:
    """The difference at the ends of a page's bars."""
    clean = [p.clean for p in found.pairs if p.clean is not None]
    return max(max(map(abs, d.interval)) for d in (*found.pairs, *clean)) or 0.01


def _pairs_table(found: Comparison, pairs: Sequence[PairedDifference], what: str, reach: float) -> ShownTable:
    about = "on these very tasks" if found.settings.these_tasks else "on tasks like these"
    several = len(found.pairs) > 1
    head = ["pair", "difference", "95% interval", ShownColumn("", page=True, kind="t"), "p",
            *(["p (Holm)"] if several else []), ShownColumn("finding")]  # fmt: skip
    rows = [
        (
            _pair(found, d),
            Cell(points(d.difference), page=tag("b", points(d.difference))),
            span(d.interval, signed=True),
            Cell("", page=_gap(d, reach)),
            p_text(d.p),
            *([p_text(d.adjusted)] if several else []),
            verdict_of(found, d),
        )
        for d in pairs
    ]
    return table(head, rows, title=f"Differences in points of {what}, {about}")


def _gap(result: PairedDifference, reach: float) -> Html:
    """An interval around no difference."""

    def x(value: float) -> float:
        return round(110 + 104 * value / reach, 1)

    low, high = result.interval
    colour = "base" if result.better is None else "after" if result.difference > 0 else "bad"
    style = f"fill:var(--{colour});opacity:.42"
    return tag(
        "svg",
        tag("rect", x=2, y=5, width=216, height=6, rx=3, style="fill:var(--track)"),
        tag("rect", x=x(low), y=4, width=max(1.0, round(x(high) - x(low), 1)), height=8, rx=4, style=style),
        tag("line", x1=110, x2=110, y1=0, y2=16, class_="zero"),
        tag("circle", cx=x(result.difference), cy=8, r=5, style=f"fill:var(--{colour})"),
        viewBox="0 0 220 16",
        class_="gap",
        role="img",
        aria_label=f"{points(result.difference)} points, {span(result.interval, signed=True)}",
    )


def pass_hat_table(found: Comparison) -> ShownTable | None:
    """Differences in pass^k, if any was measured."""
    ks = sorted({k for p in found.pairs for k in p.pass_hat})
    if not ks:
        return None
    rows = [
        (
            _pair(found, p),
            *(
                Cell(points(gap[0]), small=span(gap[1], signed=True)) if (gap := p.pass_hat.get(k)) else UNKNOWN
                for k in ks
            ),
        )
        for p in found.pairs
    ]
    about = "pass^k is the chance that k attempts at one task all succeed."
    return table(["pair", *(f"pass^{k}" for k in ks)], rows, title="Differences in reliability", about=about)


def strata_table(found: Comparison) -> ShownTable | None:
    """Success by kind of user, a column a run; None where no run's users have strata."""
    values = dict.fromkeys((n, v) for s in found.scores for n, result in s.strata.items() for v in result.values)
    if not values:
        return None
    runs = [found.scores[i] for i in found.order]
    rows = []
    for name, value in values:
        shares = [s.strata[name].values.get(value) if name in s.strata else None for s in runs]
        cells = [UNKNOWN if e is None else Cell(f"{share(e.value)} ({e.n})", small=span(e.interval)) for e in shares]
        rows.append((f"{name}: {value}", *cells))
    names = [_run(found, i) for i in found.order]
    about = "Success (attempts) and its 95% interval, over all attempts of each run."
    return table(["kind of user", *names], rows, title="Success by stratum of users", about=about)


def components_table(title: str, found: Components) -> ShownTable:
    """Sources of variance and their shares."""
    rows = [
        (
            SOURCES[part.name],
            share(part.share),
            span(part.interval),
            f"{100 * max(0.0, part.variance) ** 0.5:.1f} points",
        )
        for part in found.parts
    ]
    head = ["source", "share of variance", "95% interval", "standard deviation"]
    return table(head, rows, title=f"{title} ({found.tasks} tasks, {found.design})")


def needed_table(found: Comparison) -> ShownTable:
    """What every pair needs."""
    size = points(found.settings.difference, sign=False)

    def count(value: int | None, otherwise: str = "–") -> str:
        return otherwise if value is None else f"{value:,}"

    def cells(needed: SampleSizes) -> tuple[str, ...]:
        return (
            "–" if needed.smallest is None else points(needed.smallest, sign=False),
            count(needed.tasks),
            count(needed.trials, "none is enough" if needed.hopeless else "–"),
            count(needed.trials_same_tasks),
        )

    head = ["pair", "points that would be seen", f"tasks for {size}", f"trials for {size}",
            "trials on these very tasks"]  # fmt: skip
    return table(head, [(_pair(found, p), *cells(p.needed)) for p in found.pairs])
