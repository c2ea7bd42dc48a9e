"""A comparison as one HTML page, without scripts or requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from muarl.accounts.metrics import CLEAN, NOT_CHECKED
from muarl.accounts.statistics import Estimate
from muarl.basics.files import write_text
from muarl.pages.charts import share_bar
from muarl.pages.markup import Child, Html, join, table_of, tag
from muarl.report.report import document
from muarl.report.report_tables import score_rows
from muarl_tools.compare import text
from muarl_tools.compare.comparing import Comparison, RunScore
from muarl_tools.compare.components import Components
from muarl_tools.compare.differences import MCNEMAR, SIGN_FLIP, STRATIFIED, PairedDifference
from muarl_tools.compare.power import Needed
from muarl_tools.compare.text import SOURCES, p_text, points, rank_text, share, span, trials_text

TESTS = {
    MCNEMAR: "McNemar's exact test: of the tasks that only one run solved, how unlikely is so uneven a split "
    "by chance?",
    SIGN_FLIP: "The sign-flip test over tasks: if both did equally well on each task, its difference could as well "
    "have had the other sign. All combinations of signs are counted.",
    STRATIFIED: "The exact test within tasks: if both did equally well on each task, its successes could as well have "
    "fallen on the other run's trials. It says nothing about other tasks.",
}
COLOURS = ("before", "after", "base", "mid", "bad", "base")


def write_page(path: Path, found: Comparison) -> Path:
    """Write the page whole or not at all; returns its path."""
    write_text(path, comparison_page(found))
    return path


def comparison_page(found: Comparison) -> str:
    """The page's HTML."""
    verdict = found.verdict() if found.pairs else "How much is this score worth?"
    body = join(
        tag(
            "header",
            tag("p", "muarl · comparison", class_="eyebrow"),
            tag("h1", verdict.rstrip(".") if not verdict.endswith("?") else verdict),
            tag("p", f"{text.heading(found)}. {_asked(found)}", class_="lede"),
            [tag("p", line, class_="notice calm") for line in found.warnings],
            class_="top",
        ),
        tag(
            "main",
            _scores(found),
            _pairs(found),
            _noise(found),
            _needed(found),
            _left_out(found),
            _method(found),
        ),
    )
    return document(f"Comparison: {', '.join(found.names)}", body)


def _asked(found: Comparison) -> str:
    if not found.pairs:
        return ""
    return (
        "Asked: which is better on these very tasks?"
        if found.settings.these_tasks
        else "Asked: which would be better on other tasks like these?"
    )


def _section(title: str, *children: Child) -> Html:
    return tag("section", tag("h2", title), *children)


def _scores(found: Comparison) -> Html:
    rows = []
    for n, score in enumerate(found.scores[i] for i in found.order):
        colour = "after" if n == 0 else "base"
        rows.append(score_rows(score.results.name, score.success.value, score.success.interval, colour))
        if (clean := score.clean) is not None:
            rows.append(score_rows("… without any violation", clean.value, clean.interval, colour))
    axis = tag("span", tag("span", "0%"), tag("span", "50%"), tag("span", "100%"), class_="axis")
    groups = [tag("p", line) for line in text.group_lines(found)]
    unchecked = [tag("p", line) for line in text.unchecked_lines(found)]
    floors = [tag("p", line, class_="notice") for line in text.floor_lines(found)]
    return _section(
        "Success",
        tag("p", "The mean over tasks, with its 95% interval over tasks like these.", class_="soft"),
        tag("div", rows, axis, class_="scores"),
        _score_table(found),
        groups,
        unchecked,
        floors,
    )


def _score_table(found: Comparison) -> Html:
    ks = sorted({k for s in found.scores for k in s.pass_hat if k > 1})
    head = [
        "Run",
        "Success",
        "Without any violation",
        *(f"pass^{k}" for k in ks),
        "Do nothing",
        "Trials",
        *(["Place", "Group"] if found.pairs else []),
    ]

    def row(score: RunScore) -> Html:
        told = ", ".join(f"{w}: {v}" for w, v in (("agent", score.results.agent), ("user", score.results.user)) if v)
        hats = [_estimate(score.success), _estimate(score.clean, NOT_CHECKED)]
        for k in ks:
            hats.append(_estimate(score.pass_hat.get(k)))
        nothing = score.results.do_nothing
        cells = [*hats, _figure("–" if nothing is None else share(nothing)), _figure(trials_text(score))]
        if found.pairs:
            cells += [_figure(rank_text(score.rank)), _figure(score.letters)]
        name = tag("th", score.results.name, tag("small", told) if told else None, scope="row")
        return tag("tr", name, cells)

    return table_of(head, [row(found.scores[i]) for i in found.order])


def _estimate(found: Estimate | None, unknown: str = "–") -> Html:
    if found is None:
        return _figure(unknown)
    return tag("td", share(found.value), " ", tag("small", span(found.interval)), class_="n")


def _figure(value: str) -> Html:
    return tag("td", value, class_="n")


def _pairs(found: Comparison) -> Html | None:
    if not found.pairs:
        return None
    clean = [p.clean for p in found.pairs if p.clean is not None]
    reach = max(max(map(abs, d.interval)) for d in (*found.pairs, *clean)) or 0.01
    several = len(found.pairs) > 1
    head = ["Pair", "Difference in points", "", "p", *(["p (Holm)"] if several else []), "Finding"]

    def rows(pairs: Sequence[PairedDifference]) -> list[Html]:
        return [
            tag(
                "tr",
                tag("th", f"{found.names[d.first]} − {found.names[d.second]}", scope="row"),
                tag("td", tag("b", points(d.difference)), " ", tag("small", span(d.interval, signed=True)), class_="n"),
                tag("td", _gap(d, reach), class_="t"),
                _figure(p_text(d.p)),
                _figure(p_text(d.adjusted)) if several else None,
                _figure("cannot be told apart" if d.better is None else f"{found.names[d.better]} is better"),
            )
            for d in pairs
        ]

    return _section(
        "Differences",
        tag(
            "p",
            f"The bar goes from {points(-reach)} to {points(reach)} points; the line in its middle is no difference. "
            + ("Intervals are each pair's own; findings go by p after Holm's correction." if several else ""),
            class_="soft",
        ),
        tag("style", Html(".gap { width:220px; height:16px; display:block } .gap .zero { stroke:var(--soft) }")),
        tag("h3", "In success") if clean else None,
        table_of(head, rows(found.pairs)),
        [tag("h3", f"In {CLEAN}"), table_of(head, rows(clean))] if clean else None,
        [tag("p", line, class_="notice calm") for line in text.odds_lines(found)],
        _pass_hat_gaps(found),
    )


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


def _pass_hat_gaps(found: Comparison) -> Html | None:
    ks = sorted({k for p in found.pairs for k in p.pass_hat})
    if not ks:
        return None
    rows = []
    for p in found.pairs:
        cells = []
        for k in ks:
            gap = p.pass_hat.get(k)
            cells.append(
                _figure("–")
                if gap is None
                else tag("td", points(gap[0]), " ", tag("small", span(gap[1], signed=True)), class_="n")
            )
        rows.append(tag("tr", tag("th", f"{found.names[p.first]} − {found.names[p.second]}", scope="row"), cells))
    return join(
        tag("h3", "Differences in reliability"),
        tag("p", "pass^k is the chance that k attempts at one task all succeed.", class_="soft"),
        table_of(["Pair", *(f"pass^{k}" for k in ks)], rows),
    )


def _noise(found: Comparison) -> Html | None:
    parts = []
    for score in found.scores:
        for components, what in ((score.components, ""), (score.judges, ", by the judge")):
            if components is not None:
                parts.append(_components(f"{score.results.name}{what}", components))
    if not parts:
        return None
    return _section(
        "Where the noise comes from",
        tag("p", "Shares of the variance of one attempt's outcome, with 95% intervals over tasks.", class_="soft"),
        parts,
    )


def _components(name: str, found: Components) -> Html:
    bar = share_bar([(SOURCES[part.name], part.share, COLOURS[n % len(COLOURS)]) for n, part in enumerate(found.parts)])
    rows = [
        tag(
            "tr",
            tag("th", SOURCES[part.name], scope="row"),
            tag("td", share(part.share), " ", tag("small", span(part.interval)), class_="n"),
            _figure(f"{100 * max(0.0, part.variance) ** 0.5:.1f}"),
        )
        for part in found.parts
    ]
    line = text.noise_line(found)
    return join(
        tag("h3", name),
        tag("p", f"{found.tasks} tasks, {found.design}.", class_="soft"),
        bar,
        table_of(["Source", "Share of variance", "Standard deviation, points"], rows),
        tag("p", line) if line else None,
    )


def _needed(found: Comparison) -> Html | None:
    lines = text.power_lines(found)
    if not lines:
        return None
    size = points(found.settings.difference, sign=False)
    return _section(
        f"How much for a difference of {size} points",
        [tag("p", line) for line in lines],
        _needed_table(found, size) if len(found.pairs) > 1 else None,
    )


def _needed_table(found: Comparison, size: str) -> Html:
    """What every pair needs."""

    def count(value: int | None, otherwise: str = "–") -> Html:
        return _figure(otherwise if value is None else f"{value:,}")

    def cells(needed: Needed) -> list[Html]:
        seen = needed.smallest
        return [
            _figure("–" if seen is None else points(seen, sign=False)),
            count(needed.tasks),
            count(needed.trials, "none is enough" if needed.hopeless else "–"),
            count(needed.trials_same_tasks),
        ]

    head = [
        "Pair",
        "Points that would be seen",
        f"Tasks for {size}",
        f"Trials for {size}",
        "Trials on these very tasks",
    ]
    rows = [
        tag("tr", tag("th", f"{found.names[p.first]} − {found.names[p.second]}", scope="row"), cells(p.needed))
        for p in found.pairs
    ]
    return table_of(head, rows)


def _left_out(found: Comparison) -> Html | None:
    lines = text.left_out_lines(found)
    return _section("Left out", [tag("p", line) for line in lines]) if lines else None


def _method(found: Comparison) -> Html:
    told = [TESTS[name] for name in dict.fromkeys(p.test for p in found.pairs)]
    if found.pairs and not found.settings.these_tasks:
        told.insert(
            0,
            "Intervals of differences draw whole tasks with replacement (trials of a task stay together), and are "
            "widened for few tasks.",
        )
    elif found.pairs:
        told.insert(0, "Intervals of differences are from the variance of trials within tasks.")
    if len(found.pairs) > 1:
        told.append(
            f"With {len(found.pairs)} pairs, p-values are adjusted by Holm's method, so that the chance of any false "
            f"finding is at most {found.settings.alpha:g}."
        )
    if any(p.clean is not None for p in found.pairs):
        told.append(
            f"{CLEAN.capitalize()}: the task was done, and the audit found no violation in policy, communication, "
            "safety or recovery. It is tested like success, as a question of its own with its own chance of error."
        )
    files = [tag("li", f"{s.results.name}: {s.results.path} ({s.results.kind})") for s in found.scores]
    return _section("How it was compared", [tag("p", line) for line in told], tag("ul", files))
