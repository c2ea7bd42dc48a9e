"""What `muarl domains check` finds as an HTML page, in the style of run reports: the policy's rules, then the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muarl.basics.version import __version__
from muarl.domains.checking import CheckFinding, KeptRule, RuleKeeper, RuleTable
from muarl.pages.markup import Html, join, table_of, tag
from muarl.report.report import sectioned
from muarl_tools.checks.environment.rules import CheckOutcome, EnvironmentReport
from muarl_tools.checks.printing import html_of

WHAT, MET, AUDIT = "What keeps it", "Tasks that meet it", "Audited as"
REWARD, NOBODY = "the reward only", "nothing"
HOW = "docs/kit.md, “Rules of the policy, one by one”"
CSS = Html("""
.rules td, .rules th { padding-right:18px } .rules th { overflow-wrap:normal }
.rules td.policy { width:36%; white-space:pre-line } .rules td.policy:last-child { width:auto }
.rules .keeper { width:32% } .rules .met { white-space:nowrap }
.rules .place { display:block; font:12.5px/1.5 var(--mono); color:var(--soft) } .rules .chip { margin:4px 0 0 }
.checks .state { white-space:nowrap } .found li { margin:0 0 .6em; max-width:48em }
@media (max-width:620px) {
  .rules thead { display:none } .rules tr, .rules th, .rules td, .rules td.policy, .rules td.keeper { display:block;
    width:auto; border:0; padding:0 0 6px; text-align:left } .rules tr.first { border-top:1px solid var(--rule);
    padding-top:12px } .rules tbody th { font-weight:600 } .rules tbody th::before { content:"Rule " }
  .rules td[data-is]::before { content:attr(data-is) ": "; color:var(--soft) }
}
""")


def page_of(checked: EnvironmentReport) -> str:
    """The whole document, without scripts."""
    tables = [outcome.rules for outcome in checked.outcomes if outcome.rules is not None]
    wrong = [outcome for outcome in checked.outcomes if outcome.problems]
    drawn = f"{checked.tasks:,} {checked.split} tasks, seed {checked.seed}"
    top = (
        tag("style", CSS),
        tag("p", "muarl · domain check", class_="eyebrow"),
        tag("h1", checked.name),
        tag("p", _headline(checked.outcomes, wrong), class_="lede"),
        tag("p", f"Size {checked.size}, {drawn}." if checked.size else f"{drawn}.", class_="soft"),
        [_notices(table) for table in tables],
    )
    several = len(tables) > 1
    sections: list[tuple[str, str, Html | None]] = [
        (f"rules-{n}", f"Rules of the policy{f' ({n} of {len(tables)})' if several else ''}", _rules(table))
        for n, table in enumerate(tables, 1)
    ]
    sections += [
        ("problems", "Problems", join([_problems(outcome) for outcome in wrong]) if wrong else None),
        ("checks", "All checks", _checks(checked.outcomes)),
    ]
    foot = tag("p", f"Made by muarl {__version__}, ", tag("code", "muarl domains check"), ".")
    return sectioned(f"{checked.name} · muarl domain check", top, sections, foot)


def _headline(outcomes: Sequence[CheckOutcome], wrong: Sequence[CheckOutcome]) -> str:
    looked = sum(not outcome.skipped for outcome in outcomes)
    count = sum(len(outcome.problems) for outcome in wrong)
    if not count:
        return f"No problems in {looked} checks."
    named = ", ".join(f"{outcome.check.name} ({len(outcome.problems)})" for outcome in wrong)
    return f"{count} problem{'s' * (count > 1)} in {len(wrong)} of {looked} checks: {named}."


def _notices(table: RuleTable) -> Iterator[Html]:
    """The rules that need somebody's eye."""
    if not table.declared:
        yield _notice(
            f"No declaration names one of the policy's {len(table.rules)} numbered rules, so nobody knows which are "
            f"practised: write refuse_if(..., rule=10) and the like ({HOW}).",
            calm=True,
        )
        return
    idle = [rule for rule in table.rules if rule.text and not rule.practised and not rule.audited]
    nowhere = [rule for rule in idle if not rule.only_said]
    if nowhere:
        yield _notice("Nothing practises or audits: ", nowhere)
    unknown = [rule for rule in table.rules if not rule.text]
    if unknown:
        yield _notice(f"Named in the declaration, and not in the policy: {', '.join(r.number for r in unknown)}.")
    unmet = [rule for rule in table.rules if rule.audited and not rule.practised]
    if unmet:
        yield _notice(f"Audited, and met by none of {table.tasks:,} tasks: ", unmet, calm=True)
    said = [rule for rule in idle if rule.only_said]
    if said:
        yield _notice("Kept by the author's word only: ", said, calm=True)


def _notice(text: str, rules: Sequence[KeptRule] = (), *, calm: bool = False) -> Html:
    named = [tag("li", tag("b", rule.number), f" {rule.text}") for rule in rules]
    return tag("div", text, tag("ul", named) if named else None, class_="notice calm" if calm else "notice")


def _rules(table: RuleTable) -> Html:
    if not table.declared:
        rows = [tag("tr", tag("th", r.number, scope="row"), tag("td", r.text, class_="policy")) for r in table.rules]
        return table_of(("Rule", "What the policy says"), rows, "rules", words=2)
    kept = sum(bool(rule.text and rule.keepers) for rule in table.rules)
    there = sum(bool(rule.text) for rule in table.rules)
    return join(
        tag(
            "p",
            f"{kept} of {there} numbered rules are kept by something declared; {table.tasks:,} tasks were drawn. What "
            "only the reward tells is no finding of an audit: a breach costs the task.",
            class_="soft",
        ),
        table_of(
            ("Rule", "What the policy says", WHAT, MET, AUDIT),
            [row for rule in table.rules for row in _rule(rule, table.tasks)],
            "rules",
            words=5,
        ),
    )


def _rule(rule: KeptRule, tasks: int) -> Iterator[Html]:
    """The rows of one rule: one for each thing that keeps it."""
    rows = max(1, len(rule.keepers))
    span = rows if rows > 1 else None
    text = rule.text or tag("em", "The policy has no such rule.")
    head = (
        tag("th", rule.number, scope="row", rowspan=span),
        tag("td", text, _chip(rule), class_="policy", rowspan=span),
    )
    if not rule.keepers:
        cells = [_cell(WHAT, NOBODY, "keeper"), _cell(MET, "–", "met"), _cell(AUDIT, NOBODY)]
        yield tag("tr", head, cells, class_="first")
    for n, keeper in enumerate(rule.keepers):
        yield tag("tr", head if n == 0 else None, _keeper(keeper, tasks), class_="first" if n == 0 else None)


def _chip(rule: KeptRule) -> Html | None:
    if not rule.keepers:
        return join("\n", tag("span", "kept by nothing", class_="chip bad"))
    if rule.only_said or not rule.text:
        return None
    return None if rule.practised else join("\n", tag("span", "met by no task", class_="chip bad"))


def _keeper(keeper: RuleKeeper, tasks: int) -> list[Html]:
    what = join(
        keeper.what,
        f" “{keeper.text}”" if keeper.text else None,
        tag("span", keeper.place, class_="place") if keeper.place else None,
    )
    met = "–" if keeper.tasks is None else f"{keeper.tasks:,} of {tasks:,}"
    audit = "–" if keeper.audit is None else keeper.audit or REWARD
    return [_cell(WHAT, what, "keeper"), _cell(MET, met, "met"), _cell(AUDIT, audit)]


def _cell(label: str, text: str, class_: str | None = None) -> Html:
    """A cell that says on a narrow screen, where there is no head, what it is."""
    return tag("td", text, class_=class_, data_is=label)


def _problems(outcome: CheckOutcome) -> Html:
    return join(
        tag("h3", outcome.check.name),
        tag("p", outcome.check.about, class_="soft"),
        tag("ul", [tag("li", _problem(problem)) for problem in outcome.problems], class_="found"),
    )


def _problem(problem: CheckFinding) -> Html:
    return join(tag("b", f"{problem.where}: ") if problem.where else None, html_of(problem))


def _checks(outcomes: Sequence[CheckOutcome]) -> Html:
    rows = []
    for outcome in outcomes:
        colour = "" if outcome.skipped else " bad" if outcome.problems else " good"
        head = tag("th", outcome.check.name, tag("small", outcome.check.about), scope="row")
        state = tag("td", tag("span", outcome.state, class_=f"chip{colour}"), class_="state")
        rows.append(tag("tr", head, state, tag("td", outcome.skipped or outcome.measured)))
    others = [o for o in outcomes if o.rows and o.rules is None]
    return join(table_of(("Check", "State", "Looked at"), rows, "checks", words=3), [_own_rows(o) for o in others])


def _own_rows(outcome: CheckOutcome) -> Html:
    head, *rows = outcome.rows
    cells = [tag("tr", tag("th", row[0], scope="row"), [tag("td", cell) for cell in row[1:]]) for row in rows]
    return join(tag("h3", outcome.check.name), table_of(head, cells, words=len(head)))
