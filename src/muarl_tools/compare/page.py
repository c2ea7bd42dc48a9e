"""A comparison as one HTML page, without scripts or requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from muarl.accounts.metrics import CLEAN
from muarl.basics.files import write_text
from muarl.pages.charts import share_bar
from muarl.pages.markup import Child, Html, join, tag
from muarl.pages.table import to_html
from muarl.report.report import document
from muarl.report.report_tables import score_rows
from muarl_tools.compare import tables, text
from muarl_tools.compare.comparing import Comparison
from muarl_tools.compare.components import Components
from muarl_tools.compare.differences import MCNEMAR, SIGN_FLIP, STRATIFIED
from muarl_tools.compare.tables import SOURCES
from muarl_tools.compare.text import points

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
            _strata(found),
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
        to_html(replace(tables.scores_table(found), title="")),
        groups,
        unchecked,
        floors,
    )


def _pairs(found: Comparison) -> Html | None:
    if not found.pairs:
        return None
    reach, hats = tables.reach_of(found), tables.pass_hat_table(found)
    holm = "Intervals are each pair's own; findings go by p after Holm's correction."
    return _section(
        "Differences",
        tag(
            "p",
            f"The bar goes from {points(-reach)} to {points(reach)} points; the line in its middle is no difference. "
            + (holm if len(found.pairs) > 1 else ""),
            class_="soft",
        ),
        tag("style", Html(".gap { width:220px; height:16px; display:block } .gap .zero { stroke:var(--soft) }")),
        [to_html(shown) for shown in tables.pair_tables(found)],
        [tag("p", line, class_="notice calm") for line in text.odds_lines(found)],
        None if hats is None else to_html(hats),
    )


def _strata(found: Comparison) -> Html | None:
    shown = tables.strata_table(found)
    if shown is None:
        return None
    how = (
        "Success (attempts) and its 95% interval, over all attempts of each run. Tested by exchanging values at "
        "random, with Holm's correction for the number of strata of a run."
    )
    rows = to_html(replace(shown, title="", about=""))
    warnings = [tag("p", line, class_="notice") for line in text.strata_lines(found)]
    return _section("Kinds of users", tag("p", how, class_="soft"), rows, warnings)


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
    line = text.noise_line(found)
    return join(to_html(tables.components_table(name, found)), bar, tag("p", line) if line else None)


def _needed(found: Comparison) -> Html | None:
    lines = text.power_lines(found)
    if not lines:
        return None
    size = points(found.settings.difference, sign=False)
    return _section(
        f"How much for a difference of {size} points",
        [tag("p", line) for line in lines],
        to_html(tables.needed_table(found)) if len(found.pairs) > 1 else None,
    )


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
