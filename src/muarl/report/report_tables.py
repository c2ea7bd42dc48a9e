"""Sections of the run report that are tables: scores, behaviour, kinds of task, set-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.accounts.metrics import BEHAVIOUR, NOT_CHECKED
from muarl.accounts.strata import p_text
from muarl.basics.json_values import as_figure, bounds, mapping
from muarl.observe.headline import Headline, ShownShare, estimate_of
from muarl.observe.progress import clock
from muarl.pages.charts import dumbbell, number, percent, share_bar, strip
from muarl.pages.markup import Html, join, tag
from muarl.pages.table import Cell, ShownColumn, table, to_html
from muarl.pages.words import Word, phase_name, word
from muarl.report.figures import Rows, figure_text, hat_cell, share_cell

Block = Mapping[str, Any]


@dataclass(frozen=True)
class ReportStage:
    """One evaluation as the report shows it: a table's head, a sentence's end, a colour, its summary block, and what
    stands in the headline."""

    short: str
    long: str
    colour: str
    block: Block
    headline: Headline = field(default_factory=Headline)

    @property
    def success(self) -> float | None:
        """Its success in [0, 1]; None if the summary does not say."""
        return as_figure(self.block.get("success"))


def score_rows(label: str, share: float, interval: Any, colour: str) -> Html:
    """One row of the score strip: a name, a track, and the figure with its interval."""
    cell = share_cell(share, interval)
    return tag(
        "div",
        tag("span", label, class_="name"),
        strip(share, bounds(interval), colour),
        tag("span", tag("b", cell.text), tag("small", cell.small) if cell.small else None, class_="value"),
        class_="row",
    )


def _head(stages: Sequence[ReportStage], first: str = "") -> list[str]:
    return [first, *(s.short for s in stages), *(["Change"] if len(stages) == 2 else [])]


def headline_table(stages: Sequence[ReportStage]) -> Html:
    """Success and what must stand beside it, of each evaluation, with 95% intervals."""
    completion = [estimate_of(s.block.get("completion")) for s in stages]
    figures: list[tuple[str, list[ShownShare | None]]] = [
        ("success", [s.headline.success for s in stages]),
        ("success_without_violation", [s.headline.clean for s in stages]),
        *([("completion", completion)] if any(completion) else []),
        ("catastrophic", [s.headline.catastrophic for s in stages]),
        ("writes_without_consent", [s.headline.unasked for s in stages]),
    ]
    rows: list[list[str | Cell]] = []
    for name, shares in figures:
        w, values = word(name), [None if share is None else share.value for share in shares]
        cells = [share_cell(share and share.value, share and share.interval, NOT_CHECKED) for share in shares]
        rows.append([w.label, *cells, *_change(w, values)])
    return to_html(table(_head(stages), rows))


def scores_table(stages: Sequence[ReportStage], summary: Block) -> Html | None:
    """pass^k for each k, if any was measured beyond 1."""
    measured = [mapping(s.block.get("pass_hat")) for s in stages]
    ks = sorted({int(k) for shares in measured for k in shares if str(k).isdigit() and str(k).isascii()})
    if not any(k > 1 for k in ks):
        return None
    nothing = as_figure(summary.get("do_nothing"))
    rows = [
        (
            Cell(f"pass^{k}", page=["pass", tag("sup", k)]),
            *([percent(nothing)] if nothing is not None else []),
            *(hat_cell(shares, str(k)) for shares in measured),
        )
        for k in ks
    ]
    head = ["", *(["Do-nothing baseline"] if nothing is not None else []), *(s.short for s in stages)]
    return join(
        tag("h3", "How reliably"),
        tag("p", "pass", tag("sup", "k"), " is the chance that k attempts at one task all succeed.", class_="soft"),
        to_html(table(head, rows)),
    )


def _estimate(estimate: Any) -> Cell:
    return share_cell(mapping(estimate).get("value"), mapping(estimate).get("interval"))


def _change(w: Word, values: Sequence[float | None]) -> list[Cell]:
    """From the first of two values to the second; nothing to show of one."""
    if len(values) != 2:
        return []
    before, after = values
    if before is None or after is None:
        return [Cell("–")]
    difference = after - before
    if w.share:
        size = abs(difference) * 100
        text = f"{size:.0f} points" if size >= 9.95 else f"{size:.1f} points"
        same = size < 0.05
    else:
        text, same = number(abs(difference)), number(before) == number(after)
    if same:
        return [Cell("same", kind="soft")]
    arrow = "↑" if difference > 0 else "↓"
    verdict = "" if w.better is None else "better" if (difference > 0) == (w.better == "higher") else "worse"
    return [Cell(f"{arrow} {text}", small=verdict, kind=verdict)]


def behaviour_section(stages: Sequence[ReportStage]) -> Html | None:
    """How the agent behaves, at each stage, and how conversations end."""
    blocks = [dict(mapping(s.block.get("behaviour"))) for s in stages]
    for seen, stage in zip(blocks, stages, strict=True):
        for key, alias in (("turns", "turns"), ("agent_tokens", "tokens_per_episode")):
            if key not in seen and as_figure(stage.block.get(alias)) is not None:
                seen[key] = stage.block[alias]
    everything = {k for seen in blocks for k in seen}
    named = [k for k in BEHAVIOUR if k in everything]
    # Task completion stands beside success.
    other = sorted(k for k in everything - {"audit/completion"} if k not in named and not k.startswith("stop/"))
    rows: list[list[str | Cell]] = []
    never: list[str] = []
    for key in [*named, *other]:
        w, values = word(key), [as_figure(seen.get(key)) for seen in blocks]
        if all(v is None for v in values):
            continue
        if any(values):
            rows.append([Cell(w.label, small=w.meaning), *(figure_text(w, v) for v in values), *_change(w, values)])
        else:
            never.append(w.label.lower())
    if not rows and not never:
        return None
    intro = "The reward covers only the database. These metrics cover the rest, on the same conversations."
    return join(
        tag("p", intro, class_="soft"),
        to_html(table(_head(stages, "On held-out tasks"), rows, kind="behaviour wide")) if rows else None,
        tag("p", f"Not seen at all: {', '.join(never)}.", class_="soft") if never else None,
        _stops(stages, blocks),
    )


_STOP_COLOUR = {"user_stop": "after", "agent_stop": "after", "transfer": "mid"}
_STOP_LABEL = {
    "user_stop": "user ended it",
    "agent_stop": "agent was done",
    "transfer": "transferred",
    "max_turns": "too many turns",
    "turn_length": "turn too long",
    "context_full": "context full",
    "tool_errors": "too many errors",
    "empty_reply": "empty reply",
    "broken_call": "malformed call",
}


def _stops(stages: Sequence[ReportStage], blocks: Sequence[Block]) -> Html | None:
    reasons = [r for r in _STOP_LABEL if any(f"stop/{r}" in seen for seen in blocks)]
    if not reasons:
        return None

    cuts = [r for r in reasons if r not in _STOP_COLOUR]
    colours = _STOP_COLOUR | {r: f"bad cut{n % 4}" for n, r in enumerate(cuts)}

    def bar(block: Block) -> Html:
        return share_bar([(_STOP_LABEL[r], as_figure(block.get(f"stop/{r}")) or 0.0, colours[r]) for r in reasons])

    def told(reason: str) -> str:
        shares = [as_figure(b.get(f"stop/{reason}")) or 0.0 for b in blocks if any(k in b for k in names)]
        return f"{_STOP_LABEL[reason]} {' → '.join(percent(s) for s in shares)}"

    names = {f"stop/{r}" for r in reasons}
    keys = [tag("span", tag("i", class_=f"key {colours[r]}"), told(r)) for r in reasons]
    lines = [
        item
        for stage, block in zip(stages, blocks, strict=True)
        if any(f"stop/{r}" in block for r in reasons)
        for item in (tag("span", stage.short), bar(block))
    ]
    return join(tag("h3", "How conversations end"), tag("div", lines, class_="bars"), tag("p", keys, class_="legend"))


def kinds_section(stages: Sequence[ReportStage]) -> Html | None:
    """Success by what the customer wants, what the customer is like, and how hard the task is."""
    tables: list[Html] = []
    blocks = [mapping(s.block.get("by_tag")) for s in stages]
    titles = {"intent": "By task type", "persona": "By persona", "difficulty": "By difficulty"}
    for key in dict.fromkeys([*titles, *(k for seen in blocks for k in seen)]):
        kinds = [mapping(seen.get(key)) for seen in blocks]
        rows = []
        for value in dict.fromkeys(v for kind in reversed(kinds) for v in kind):
            estimates = [mapping(kind.get(value)) for kind in kinds]
            shares = [as_figure(e.get("value")) for e in estimates]
            n = next((e["n"] for e in reversed(estimates) if "n" in e), None)
            rows.append(
                (
                    str(value).replace("_", " "),
                    Cell(f"{n:,}" if isinstance(n, int) else "", kind="soft"),
                    beside(shares, stages),
                    *map(share_cell, shares),
                )
            )
        if rows:
            head = ["", "Conversations", *stage_columns(stages)]
            tables.append(to_html(table(head, rows, title=titles.get(key, f"By {key}"), kind="kinds wide")))
    if not tables:
        return None
    note = "Shares of held-out conversations solved. Small groups scatter: one of 20 has an interval of ±20 points."
    return join(tag("p", note, class_="soft"), tables, _strata_notes(stages))


def _strata_notes(stages: Sequence[ReportStage]) -> Html | None:
    """What the test over the values of each stratum of users says, one evaluation after another."""
    notes = []
    for stage in stages:
        tested = {str(name): mapping(block) for name, block in mapping(stage.block.get("strata")).items()}
        if not tested:
            continue
        p_values = [(name, p) for name, block in tested.items() if (p := as_figure(block.get("p_holm"))) is not None]
        warnings = [str(block["warning"]) for block in tested.values() if block.get("warning")]
        notes.append(tag("p", tag("b", f"{stage.short}: "), "; ".join(warnings) + "." if warnings else _NO_DIFFERENCE))
        if p_values:
            notes.append(
                tag("p", f"{_STRATA_TEST} {', '.join(f'{n}: p {p_text(p)}' for n, p in p_values)}.", class_="soft")
            )
    return join(tag("h3", "Do kinds of users fare differently?"), notes) if notes else None


_NO_DIFFERENCE = "no difference in success between the values of any stratum of users could be shown."
_STRATA_TEST = "Randomisation test over the values of each stratum, after Holm’s correction for the number of strata;"


def stage_columns(stages: Sequence[ReportStage]) -> list[ShownColumn]:
    """A drawn column and one for each evaluation, with its colour."""
    drawn = ShownColumn("0% to 100%", page=True, kind="t")
    return [drawn, *(ShownColumn(s.short, right=True, key=s.colour) for s in stages)]


def beside(shares: Sequence[float | None], stages: Sequence[ReportStage]) -> Cell:
    """The evaluations' shares on one track."""
    return Cell("", page=dumbbell([(v, s.colour) for v, s in zip(shares, stages, strict=True)]))


def users_section(summary: Block, rules: Mapping[str, str]) -> Html | None:
    """Simulated customers who failed: how many, by which rules (``rules``: what each finds), and the scores without
    their conversations. None if nobody looked, or nobody failed."""
    errors = mapping(summary.get("user_errors"))
    spoiled, share = as_figure(errors.get("episodes")), as_figure(errors.get("share"))
    if not spoiled or share is None:
        return None
    blocks = mapping(summary.get("evaluation")), mapping(errors.get("without"))
    rows = [("Solved", *(share_cell(block.get("success"), block.get("interval")) for block in blocks))]
    for k in mapping(blocks[0].get("pass_hat")):
        rows.append((f"pass^{k}", *(hat_cell(block.get("pass_hat"), k) for block in blocks)))
    counts = [
        (rules.get(rule, rule), number(n))
        for rule, value in mapping(errors.get("by_rule")).items()
        if (n := as_figure(value)) is not None
    ]
    intro = (
        f"In {number(spoiled)} conversations ({percent(share)}) the simulated customer did something wrong. That is "
        "hardly the agent’s fault; the scores above count them all the same."
    )
    return join(
        tag("p", intro, class_="soft"),
        to_html(table(["", "All", "Without those"], rows)),
        to_html(table(["What the customer did", "Conversations"], counts, kind="wide")) if counts else None,
    )


def setup_section(summary: Block, metrics: Rows, versions: Block) -> Html | None:
    """Time, memory, users, seed and versions."""
    facts: list[tuple[str | Cell, str]] = []
    seconds, memory = as_figure(summary.get("seconds")), as_figure(summary.get("peak_memory_bytes"))
    if seconds is not None:
        facts.append(("Total time", clock(seconds)))
    facts += [(Cell(name, kind="soft"), clock(spent)) for name, spent in phase_seconds(summary, metrics)]
    if memory is not None:
        facts.append(("Peak memory", f"{memory / 2**30:.2f} GiB"))
    facts += evaluated(summary)
    for key, label in (("seed", "Seed"), ("user_train", "User in training"), ("user_eval", "User in evaluation")):
        if (value := summary.get(key)) is not None:
            text = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, Mapping) else str(value)
            facts.append((label, text))
    software = [(str(k), str(v)) for k, v in versions.items()]
    columns = [
        tag("div", to_html(table([title, ""], pairs, kind="facts")))
        for title, pairs in (("The run", facts), ("Software", software))
        if pairs
    ]
    return tag("div", columns, class_="two") if columns else None


def evaluated(summary: Block) -> list[tuple[str, str]]:
    """Who was evaluated, on what, by which judge, and what it cost; of an evaluation's own summary."""
    benchmark, cost = mapping(summary.get("benchmark")), as_figure(mapping(summary.get("cost")).get("total"))
    facts = [
        ("Agent", summary.get("agent")),
        ("Domain", summary.get("domain") or benchmark.get("name")),
        ("Split", summary.get("split") or benchmark.get("split")),
        ("Trials per task", benchmark.get("trials")),
        ("Judge of assertions", summary.get("judge")),
        ("Cost", f"${cost:,.2f}" if cost else None),
    ]
    return [(label, str(value)) for label, value in facts if value is not None]


def phase_seconds(summary: Block, metrics: Rows) -> list[tuple[str, float]]:
    """(phase, seconds) in order: from summary["phases"] where the run tells, else from the clock in its rows."""
    phases = summary.get("phases")
    if isinstance(phases, Mapping):
        return [(phase_name(k), s) for k, v in phases.items() if (s := as_figure(v)) is not None]
    out: dict[str, float] = {}
    last = 0.0
    for row in metrics:
        now = as_figure(row.get("seconds"))
        if now is not None and now >= last:
            name = phase_name(row.get("phase"))
            out[name] = out.get(name, 0.0) + now - last
            last = now
    return list(out.items())
