"""The findings of a check as an HTML page, in the style of run reports."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.basics.version import __version__
from muarl.domains.checking import LEVELS, CheckFinding
from muarl.pages.markup import Html, join, table_of, tag
from muarl.report.report import sectioned
from muarl_tools.checks.printing import html_of, row_of
from muarl_tools.checks.tasks.report import TaskReport
from muarl_tools.checks.tasks.rules import OVERALL, RULES

TITLES = {"error": "Errors", "warning": "Warnings", "note": "Notes"}
ABOUT = {
    "error": "The score of these tasks is wrong.",
    "warning": "The score of these tasks depends on what nobody has decided, or on luck.",
    "note": "To know when reading scores; many of these are meant so.",
}
WHOLE = "white-space:nowrap"
MOST = 400
"""Findings of one level that the page lists."""


def page_of(report: TaskReport) -> str:
    """The whole document."""
    wrong, flagged = len(report.flagged("error")), len(report.flagged("error", "warning"))
    together = "".join(f"; all together: {finding.level} {finding.rule}" for finding in report.overall)
    top = (
        tag("p", "muarl · task check", class_="eyebrow"),
        tag("h1", report.label),
        tag(
            "p",
            f"{wrong} of {report.count} tasks have an error, {flagged} an error or a warning{together}. Found by "
            "replaying gold actions and by rules, without a model.",
            class_="lede",
        ),
    )
    sections = [
        ("all", "About all tasks together", _overall(report) if report.overall else None),
        ("baselines", "What trivial agents earn", _baselines(report)),
        ("experts", "What scripted experts earn", _experts(report) if report.played else None),
        ("rules", "By rule", _rules(report) if report.findings else None),
    ]
    for level in LEVELS:
        found = report.of(level)
        body = join(tag("p", ABOUT[level]), _findings(found)) if found else None
        sections.append((level, TITLES[level], body))
    foot = tag("p", f"Made by muarl {__version__}, ", tag("code", "muarl tasks check"), ".")
    return sectioned(f"{report.label} · task check", top, sections, foot)


def _baselines(report: TaskReport) -> Html:
    rows = [row_of(name, [*_share(won, total), judged or ""]) for name, won, judged, total in report.baselines()]
    return table_of(["agent", "reward 1", "share", "if a judge says so"], rows)


def _share(won: int, total: int) -> tuple[str, str]:
    return f"{won} of {total}", f"{won / total:.0%}"


def _experts(report: TaskReport) -> Html:
    rows = [row_of(name, _share(won, total)) for name, won, total in report.experts()]
    return join(
        tag("p", "Played with the environment's own rule-based users.", class_="soft"),
        table_of(["agent", "reward 1", "share"], rows),
        tag("p", f"{report.asking.lost_text[:1].upper()}{report.asking.lost_text[1:]}.") if report.asking else None,
    )


def _overall(report: TaskReport) -> Html:
    return tag("ul", [tag("li", tag("b", f"{f.level}: {OVERALL[f.rule]}. "), html_of(f)) for f in report.overall])


def _rules(report: TaskReport) -> Html:
    rows = [
        tag("tr", tag("th", tag("code", rule), scope="row"), tag("td", level), tag("td", tasks), tag("td", RULES[rule]))
        for rule, level, _, tasks in report.rules()
    ]
    return table_of(("rule", "level", "tasks", "what it says"), rows, words=4)


def _findings(findings: Sequence[CheckFinding]) -> Html:
    rows = [
        tag(
            "tr",
            tag("th", f"{f.split} {f.where}", scope="row", style=WHOLE),
            tag("td", tag("code", f.rule), style=WHOLE),
            tag("td", html_of(f)),
        )
        for f in findings[:MOST]
    ]
    more = len(findings) - MOST
    return join(
        table_of(("task", "rule", "evidence and remedy"), rows, words=3),
        tag("p", f"and {more} more (muarl tasks check --json has all)", class_="soft") if more > 0 else None,
    )
