"""The findings of a check as an HTML page, in the style of run reports."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.pages.markup import Html, join, table_of, tag
from muarl.report.report import document
from muarl_tools.check_tasks.findings import LEVELS, OVERALL, RULES, TaskFinding
from muarl_tools.check_tasks.run import TaskReport

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
    wrong = {(f.split, f.task) for f in report.of("error")}
    flagged = {(f.split, f.task) for f in report.of("error", "warning")}
    levels = [level for level in LEVELS if report.of(level)]
    top = tag(
        "header",
        tag("p", "muarl · task check", class_="eyebrow"),
        tag("h1", report.label),
        tag(
            "p",
            f"{len(wrong)} of {report.count} tasks have an error, {len(flagged)} an error or a warning"
            f"{_together(report)}. Found by replaying gold actions and by rules, without a model.",
            class_="lede",
        ),
        tag("nav", [tag("a", TITLES[level], href=f"#{level}") for level in levels], aria_label="Sections"),
        class_="top",
    )
    sections = [
        tag("section", tag("h2", "About all tasks together"), _overall(report), id="all") if report.overall else None,
        tag("section", tag("h2", "What trivial agents earn"), _baselines(report), id="baselines"),
        tag("section", tag("h2", "What scripted experts earn"), _experts(report), id="experts")
        if report.played
        else None,
        tag("section", tag("h2", "By rule"), _rules(report), id="rules") if report.findings else None,
        *(
            tag("section", tag("h2", TITLES[level]), tag("p", ABOUT[level]), _findings(report.of(level)), id=level)
            for level in levels
        ),
    ]
    foot = tag("footer", tag("p", "Made by ", tag("code", "muarl tasks check"), "."))
    return document(f"{report.label} · task check", join(top, tag("main", sections), foot))


def _together(report: TaskReport) -> str:
    """What is found of all tasks together, for the page's first sentence."""
    return "".join(f"; all together: {finding.level} {finding.rule}" for finding in report.overall)


def _baselines(report: TaskReport) -> Html:
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", f"{won} of {total}", class_="n"),
            tag("td", f"{won / total:.0%}", class_="n"),
            tag("td", judged or "", class_="n"),
        )
        for name, won, judged, total in report.baselines()
    ]
    return table_of(["agent", "reward 1", "share", "if a judge says so"], rows)


def _experts(report: TaskReport) -> Html:
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", f"{won} of {total}", class_="n"),
            tag("td", f"{won / total:.0%}", class_="n"),
        )
        for name, won, total in report.experts()
    ]
    return join(
        tag("p", "Played with the environment's own rule-based users.", class_="soft"),
        table_of(["agent", "reward 1", "share"], rows),
        tag("p", f"{report.asking.lost_text[:1].upper()}{report.asking.lost_text[1:]}.") if report.asking else None,
    )


def _overall(report: TaskReport) -> Html:
    told = [
        tag(
            "li",
            tag("b", f"{finding.level}: {OVERALL[finding.rule]}. "),
            f"{finding.evidence}. ",
            tag("span", f"{finding.remedy}.", class_="soft"),
        )
        for finding in report.overall
    ]
    return tag("ul", told)


def _rules(report: TaskReport) -> Html:
    head = [tag("th", text, scope="col") for text in ("rule", "level", "tasks", "what it says")]
    rows = [
        tag("tr", tag("th", tag("code", rule), scope="row"), tag("td", level), tag("td", tasks), tag("td", RULES[rule]))
        for rule, level, _, tasks in report.rules()
    ]
    return tag("div", tag("table", tag("thead", tag("tr", head)), tag("tbody", rows)), class_="scroll")


def _findings(findings: Sequence[TaskFinding]) -> Html:
    head = [tag("th", text, scope="col") for text in ("task", "rule", "evidence and remedy")]
    rows = [
        tag(
            "tr",
            tag("th", f"{f.split} {f.task}", scope="row", style=WHOLE),
            tag("td", tag("code", f.rule), style=WHOLE),
            tag("td", f"{f.evidence}. ", tag("span", f"{f.remedy}.", class_="soft"), _mends(f)),
        )
        for f in findings[:MOST]
    ]
    more = len(findings) - MOST
    return join(
        tag("div", tag("table", tag("thead", tag("tr", head)), tag("tbody", rows)), class_="scroll"),
        tag("p", f"and {more} more (muarl tasks check --json has all)", class_="soft") if more > 0 else None,
    )


def _mends(finding: TaskFinding) -> Html | None:
    said = [str(m.value) for m in finding.fixes if m.what == "say"]
    if said:
        return tag("p", "Add to the scenario: ", tag("em", " ".join(said)))
    dropped = [str(m.index) for m in finding.fixes if m.what == "drop" and m.settled]
    if dropped:
        return tag("p", f"Fixed: without actions[{', '.join(dropped)}].")
    changed = [m for m in finding.fixes if m.what in ("arguments", "basis")]
    return tag("p", f"Fixed: {changed[0].value}") if changed else None
