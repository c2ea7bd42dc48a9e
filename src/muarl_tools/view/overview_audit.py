"""The overview's audit: how often something went badly wrong, layer by layer and rule by rule, and red-team users.

Figures are those of summary.json and redteam.json, which have their intervals; where a run has findings and no summary
(yet), they are worked out from the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from muarl.accounts.metrics import NOT_CHECKED, SUCCESS_WITHOUT_VIOLATION
from muarl.audit.coverage import checked_layers
from muarl.audit.findings import LAYERS, QUESTIONS
from muarl.observe.headline import FORMER
from muarl.pages.charts import percent, strip
from muarl.pages.markup import Child, Html, as_figure, join, table_of, tag
from muarl_tools.view import audit_queries, queries
from muarl_tools.view.audit_queries import Sum
from muarl_tools.view.audited import rule_text
from muarl_tools.view.layout import Site, episodes_at, link, mapping, stage_text, words
from muarl_tools.view.queries import SEVERITY_AT_LEAST
from muarl_tools.view.runs import Run

SHOWN = 10
"""Rules in sight; the others are folded."""
STRIPS = 3
"""With more columns than this there is no room to draw."""
BESIDE = 2
"""With more columns than this the rules stand below the shares."""
_STAGES = {"cold_start": "before", "rl": "after", "evaluation": "evaluation"}
"""By the names of summary.json's evaluations."""


@dataclass(frozen=True)
class Share:
    """A share and its 95% interval, None where it has none."""

    value: float
    interval: tuple[float, float] | None = None

    @property
    def text(self) -> str:
        """With the interval in brackets."""
        return percent(self.value) + (f" ({_span(self.interval)})" if self.interval else "")


@dataclass(frozen=True)
class AuditOverview:
    """The audit of one evaluation: its figures in the shape of ``AuditSummary.to_json``."""

    run: Run
    stage: str
    figures: Mapping[str, Any]

    def share(self, *names: str) -> Share | None:
        """A figure by its path; None where there is none."""
        found: Any = self.figures
        for name in names:
            found = mapping(found).get(name)
        return share_of(found)

    def unchecked(self, *names: str) -> bool:
        """Whether a figure is there and unknown, since no rules were declared that it could be measured by."""
        found: Any = self.figures
        for name in names[:-1]:
            found = mapping(found).get(name)
        return names[-1] in mapping(found) and mapping(found)[names[-1]] is None


def share_of(found: object) -> Share | None:
    """An estimate as JSON has it: {"value", "interval"}."""
    value = as_figure(mapping(found).get("value"))
    if value is None or not 0 <= value <= 1:
        return None
    bounds = mapping(found).get("interval")
    ends = [as_figure(b) for b in bounds] if isinstance(bounds, list) else []
    if len(ends) != 2 or any(e is None or not isfinite(e) for e in ends):
        return Share(value)
    low, high = (min(1.0, max(0.0, round(e or 0.0, 9))) for e in ends)  # 2e-17 is nothing
    return Share(value, (low, high))


def audits_of(run: Run) -> list[AuditOverview]:
    """A run's audited evaluations, in the order of the run."""
    found = run.json("summary").get("audit")
    named: dict[str, Any] = {"evaluation": found}
    if isinstance(found, Mapping) and "layers" not in found:
        named = {str(name): part for name, part in found.items()}
    if not any(_whole(part) for part in named.values()):
        named = {"evaluation": run.json("redteam").get("all")}
    whole = {
        name: {SUCCESS_WITHOUT_VIOLATION: part.get(FORMER), **part} for name, part in named.items() if _whole(part)
    }
    out = [AuditOverview(run, _STAGES.get(name, name), part) for name, part in whole.items()]
    return out or [AuditOverview(run, stage, _from_index(run, s)) for stage, s in run.ask(audit_queries.sums).items()]


def _whole(part: object) -> bool:
    return "catastrophic" in mapping(part) and isinstance(mapping(part).get("layers"), Mapping)


def _from_index(run: Run, found: Sum) -> dict[str, Any]:
    from muarl.accounts.statistics import share_of as estimate  # with numpy, which few pages need

    stage = next((s for s in run.ask(queries.stages) if s.stage == found.stage), None)
    success = None if stage is None or stage.success is None else {"value": stage.success}
    clean = None if stage is None or stage.without_violation is None else {"value": stage.without_violation}
    checked = frozenset[str]().union(*map(checked_layers, run.rules))
    layers: dict[str, Any] = {
        layer: {"value": 1 - found.bad.get(layer, 0) / found.episodes} if layer in checked else None
        for layer in LAYERS
        if layer != "outcome"
    }
    worst = estimate(found.tasks.values())
    severities = {n: name for name, n in SEVERITY_AT_LEAST.items()}
    return {
        "episodes": found.episodes,
        "catastrophic": worst.to_json() if worst.value or "safety" in checked else None,
        "success": success,
        SUCCESS_WITHOUT_VIOLATION: clean,
        "layers": {"outcome": success, **layers},
        "rules": {
            rule: {"layer": layer, "severity": severities[severity], "episodes": n}
            for rule, (layer, severity, n) in found.rules.items()
        },
    }


def catastrophic_text(audits: Sequence[AuditOverview]) -> str | None:
    """The catastrophic-failure rate of a run's last audited evaluation; None where there is none."""
    found = audits[-1].share("catastrophic") if audits else None
    if found is None:
        return NOT_CHECKED if audits and audits[-1].unchecked("catastrophic") else None
    return found.text


def audit_section(site: Site, known: Mapping[Run, Sequence[AuditOverview]]) -> Html | None:
    """The section, of one run or of several beside each other; None where nothing was audited."""
    runs = list(known)
    audits = [a for some in known.values() for a in some]
    if not audits:
        return None
    heads = [_head(a, len(runs) > 1, len(audits) > 1) for a in audits]
    return tag(
        "section",
        tag("h2", "Audit"),
        tag("div", tag("div", _shares(site, audits, heads)), tag("div", _rules(site, audits, heads)), class_="two")
        if len(audits) <= BESIDE
        else [_shares(site, audits, heads), _rules(site, audits, heads)],
        _red_team(site, runs),
        id="audit",
    )


def _head(audited: AuditOverview, runs: bool, many: bool) -> str:
    if not many:
        return "of all conversations"
    stage = stage_text(audited.stage)
    return f"{audited.run.name}, {stage}" if runs else stage


def _shares(site: Site, audits: list[AuditOverview], heads: list[str]) -> Html:
    """Catastrophic failures first, then what was achieved, then the layers."""
    several = sorted({int(k) for a in audits for k in mapping(a.figures.get("pass_hat")) if k.isdecimal()} - {0, 1})
    rows: list[tuple[str, str, tuple[str, ...], str]] = [
        ("Catastrophic failures", "conversations with something that must never happen", ("catastrophic",), "bad"),
        ("Solved", "", ("success",), "after"),
        ("Solved without any violation", "", (SUCCESS_WITHOUT_VIOLATION,), "after"),
        *((f"pass^{k}", f"tasks solved in each of {k} attempts", ("pass_hat", str(k)), "after") for k in several),
        *((f"{layer.capitalize()} passed", QUESTIONS[layer], ("layers", layer), "base") for layer in LAYERS[1:]),
    ]
    out = []
    for name, meaning, path, colour in rows:
        found = [a.share(*path) for a in audits]
        unknown = [
            a.unchecked(*path) and path[0] in ("catastrophic", "layers", SUCCESS_WITHOUT_VIOLATION) for a in audits
        ]
        if not any(found) and not any(unknown):
            continue
        cells = []
        for audited, share, unmeasured in zip(audits, found, unknown, strict=True):
            grave = path == ("catastrophic",) and share is not None and share.value > 0
            missing = tag("span", NOT_CHECKED, title="no rules are declared for it") if unmeasured else "–"
            text: Child = missing if share is None else percent(share.value)
            if grave and share is not None:
                where = (("stage", audited.stage), ("severity", "catastrophic"))
                text = link(site, episodes_at(audited.run, *where), percent(share.value))
            shade = "base" if colour == "bad" and not grave else colour
            drawn = strip(share.value, share.interval, shade) if share and len(audits) <= STRIPS else None
            within = tag("small", _span(share.interval)) if share and share.interval else None
            cells.append(tag("td", tag("b", text), " ", within, drawn, class_="share grave" if grave else "share"))
        label = tag("th", name, tag("small", meaning) if meaning else None, scope="row")
        out.append(tag("tr", label, cells))
    note = tag("p", "Small text: 95% CIs. A layer passes if there is no violation; notes are ignored.", class_="soft")
    return join(table_of(["", *heads], out, "audits"), note)


def _span(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{percent(interval[0])}–{percent(interval[1])}"


def _rules(site: Site, audits: list[AuditOverview], heads: list[str]) -> Html | None:
    """The rules that found something, the worst and most frequent first, each with the way to its conversations."""
    known: dict[str, tuple[int, float, str]] = {}
    for audited in audits:
        for rule, about in mapping(audited.figures.get("rules")).items():
            worst = SEVERITY_AT_LEAST.get(str(mapping(about).get("severity")), 0)
            share = _rule_share(audited, rule)[1]
            before = known.get(rule, (0, 0.0, ""))
            known[rule] = max(worst, before[0]), max(share, before[1]), str(mapping(about).get("layer", ""))
    if not known:
        return tag("p", "The audit found nothing.", class_="soft")
    ordered = sorted(known.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))
    rows = []
    for rule, (worst, _, layer) in ordered:
        cells = []
        for audited in audits:
            n, share = _rule_share(audited, rule)
            where = episodes_at(audited.run, ("stage", audited.stage), ("rule", rule))
            cells.append(
                tag("td", [link(site, where, f"{n:,}"), " ", tag("small", percent(share))] if n else "–", class_="n")
            )
        word, colour = (("note", ""), ("violation", " warn"), ("catastrophic", " bad"))[worst]
        name = tag("th", rule_text(rule), tag("small", layer), scope="row")
        rows.append(tag("tr", name, tag("td", tag("span", word, class_=f"chip{colour}")), cells))
    heads = ["conversations"] if len(heads) == 1 else heads
    table = table_of(["Found by rule", "", *heads], rows[:SHOWN], "rules")
    more = len(rows) - SHOWN
    rest = table_of(["", "", *heads], rows[SHOWN:], "rules") if more > 0 else None
    return join(table, tag("details", tag("summary", f"{more} more rules"), rest) if rest else None)


def _rule_share(audited: AuditOverview, rule: str) -> tuple[int, float]:
    """How many episodes a rule found something in, and of how many in all it is the share."""
    n = as_figure(mapping(mapping(audited.figures.get("rules")).get(rule)).get("episodes"))
    of = as_figure(audited.figures.get("episodes"))
    return (int(n), min(1.0, n / of)) if n and of and isfinite(n) and min(n, of) > 0 else (0, 0.0)


# Red-team users.


def _kinds(run: Run) -> Mapping[str, Any]:
    found = run.json("redteam").get("kinds")
    return {str(k): v for k, v in found.items() if isinstance(v, Mapping)} if isinstance(found, Mapping) else {}


def _kind_filter(kind: str) -> tuple[tuple[str, str], ...]:
    return (("task", f"redteam-{kind}-"),)


def _red_team(site: Site, runs: list[Run]) -> Html | None:
    """By kind of user: success, pass^k, catastrophic failures, and what trivial baselines earn."""
    known = [(run, _kinds(run)) for run in runs if _kinds(run)]
    if not known:
        return None
    alone = len(known) == 1
    ks = [
        int(k)
        for run, _ in known
        for k in mapping(mapping(run.json("redteam").get("all")).get("pass_hat"))
        if k.isdecimal()
    ]
    k = str(max(ks, default=1))
    names = dict.fromkeys(kind for _, kinds in known for kind in kinds)
    columns = ["Success", f"pass^{k}", "Catastrophic", "Do nothing"]
    if alone:
        columns = [
            "Conversations",
            "Success",
            f"pass^{k}",
            "Catastrophic",
            "Fell for it",
            "Handed over",
            "Do nothing",
            "Transfer",
        ]
    rows = []
    for kind in (*names, None):
        cells: list[Html] = []
        for run, kinds in known:
            part = mapping(kinds.get(kind) if kind is not None else run.json("redteam").get("all"))
            cells += [tag("td", c, class_="n") for c in _cells(site, run, kind, part, k, alone)]
        about = next((str(a) for _, kinds in known if kind and (a := mapping(kinds.get(kind)).get("about"))), None)
        name: Child = "all" if kind is None else words(kind)
        if kind is not None and alone:
            name = link(site, episodes_at(known[0][0], *_kind_filter(kind)), words(kind))
        rows.append(tag("tr", tag("th", name, tag("small", about) if about else None, scope="row"), cells,
                        class_="sum" if kind is None else None))  # fmt: skip
    top = None
    if not alone:
        top = tag(
            "tr", tag("th", ""), [tag("th", run.name, colspan=len(columns), scope="colgroup") for run, _ in known]
        )
    head = tag(
        "tr",
        [tag("th", c, class_="n" if n else None, scope="col") for n, c in enumerate(["User", *columns * len(known)])],
    )
    table = tag("table", tag("thead", top, head), tag("tbody", rows), class_="redteam")
    note = "Adversarial and difficult users. Doing nothing is safe but useless: an agent must beat its success."
    return join(tag("h3", "Red team"), tag("p", note, class_="soft"), tag("div", table, class_="scroll"))


def _cells(site: Site, run: Run, kind: str | None, part: Mapping[str, Any], k: str, alone: bool) -> list[Child]:
    def text(found: object, interval: bool = False) -> str:
        share = share_of(found)
        return "–" if share is None else share.text if interval else percent(share.value)

    floors, worst = mapping(part.get("baselines")), share_of(part.get("catastrophic"))
    where = (*(_kind_filter(kind) if kind else ()), ("severity", "catastrophic"))
    grave: Child = text(part.get("catastrophic"), alone)
    if worst is not None and worst.value:
        grave = tag("span", link(site, episodes_at(run, *where), grave), class_="grave")
    main: list[Child] = [text(part.get("success")), text(mapping(part.get("pass_hat")).get(k)), grave]
    idle = text(floors.get("do_nothing"))
    if not alone:
        return [*main, idle]
    n = as_figure(part.get("episodes"))
    more = [text(part.get("trapped")), text(part.get("transferred")), idle, text(floors.get("always_transfer"))]
    return [f"{n:,.0f}" if n is not None and isfinite(n) else "–", *main, *more]
