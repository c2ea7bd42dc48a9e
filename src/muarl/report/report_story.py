"""What the run report says in words: the run in one paragraph, its scores, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.accounts.metrics import NOT_CHECKED
from muarl.basics.json_values import as_figure, bounds
from muarl.observe.headline import by_difficulty, clean_of, cost_text, traded_text
from muarl.observe.progress import clock
from muarl.observe.status import FAILED, INTERRUPTED, KILLED, RUNNING, state_of
from muarl.pages.charts import percent
from muarl.pages.markup import Child, Html, join, tag
from muarl.pages.shortening import cut
from muarl.pages.table import to_html
from muarl.report.difficulty import difficulty_table
from muarl.report.report_tables import ReportStage, headline_table, score_rows, scores_table

Summary = Mapping[str, Any]

FLOORS = (
    ("do_nothing", "Do-nothing baseline"),
    ("always_transfer", "Always-transfer baseline"),
    ("demonstrator", "Demonstrator"),
)
"""Figures of summary.json that a score is read against."""


STOPPED = {
    INTERRUPTED: "This run was interrupted",
    FAILED: "This run failed",
    KILLED: "This run was killed",
}
KILLED_TEXT = (
    "Its process no longer exists: killed, out of memory, or the machine went down. Saved state is consistent."
)
SENTENCE = 2000
"""Characters of a run's last words that are shown."""


def share_of(value: Any) -> float | None:
    """A share from a figure, or from a block that has "success"; None where there is none."""
    return as_figure(value.get("success") if isinstance(value, Mapping) else value)


def notice(status: Mapping[str, Any], finished: bool, again: str | None = None) -> Html | None:
    """What a reader must know first: that the run failed, was stopped, or had not finished. ``again``: the command that
    resumes it."""
    state = state_of(status)
    said = cut(str(KILLED_TEXT if state == KILLED else status.get("message") or ""), SENTENCE)
    if state in STOPPED:
        resume = [" Resume: ", tag("code", again)] if again is not None else None
        text = tag("b", f"{STOPPED[state]}. ")
        return tag("div", text, said, " What it had finished is below.", resume, class_="notice")
    if state == RUNNING and not finished:
        return tag("div", "This run had not finished when the page was made.", class_="notice calm")
    return tag("div", said, class_="notice") if said else None


def _way(phases: set[str], agent: object = None, paid: object = None) -> str:
    """How it came about. ``paid``: what the reward was, as summary.json tells it."""
    reward = "rewarded only if a conversation left the database exactly as it should be"
    reward += ", and less where it broke a rule" if "layers" in str(paid) else ""
    if "rl" in phases:
        first = "first from examples (the cold start), then by practice" if "cold_start" in phases else "by practice"
        return f"An agent learned to serve simulated customers on a live database: {first}, {reward}. "
    if "cold_start" in phases or "sft" in phases:
        return "An agent learned from examples to serve simulated customers on a live database. "
    who = f"The agent “{agent}” served" if agent else "An agent served"
    return f"{who} simulated customers on a live database. "


def _said(value: Any) -> str:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, Mapping) else str(value)


def story(summary: Summary, stages: Sequence[ReportStage], phases: set[str]) -> Html:
    """The run in one paragraph, from its figures alone; it says so if nothing was gained or chance may explain it, and
    first of all if success was gained at the cost of the rules."""
    traded = traded_text(stages[0].headline, stages[1].headline) if len(stages) == 2 else None
    out: list[Child] = [tag("strong", traded) if traded else None, " " if traded else None]
    out.append(_way(phases, summary.get("agent"), summary.get("reward")))
    tasks = stages[-1].block.get("tasks") if stages else None
    unseen = " it had never seen" if phases & {"rl", "cold_start"} and not summary.get("trained_on_benchmark") else ""
    on = f"On {tasks:,} tasks{unseen}" if isinstance(tasks, int) else f"On tasks{unseen}"
    if user := summary.get("user_eval"):
        trained = summary.get("user_train")
        other = "the same customer as in training" if user == trained else "another customer than in training"
        on += f", with {other} ({_said(user)})" if trained is not None else f", with the customer {_said(user)}"
    scores = [s.success or 0.0 for s in stages]
    if not stages:
        out.append("It has not been evaluated yet. ")
    else:
        solved = [[tag("b", percent(v)), f" {s.long}" if s.long else ""] for v, s in zip(scores, stages, strict=True)]
        out += [on, ", it solved ", solved[0], [" and ", solved[1]] if len(solved) == 2 else None, _beside(stages)]
    if len(stages) == 2:
        out.append(_compare(stages[0], stages[1]) if traded is None else None)
    elif stages and "rl" in phases:
        out.append("The other evaluation is missing. ")
    harder = [f"{percent(h.success.value)} with {level} ones" for level, h in by_difficulty(summary)[1:] if h.success]
    if harder:
        out.append(f"These users are easy to serve: on the same tasks it solved {' and '.join(harder)}. ")
    if (cost := cost_text(summary)) is not None:
        out.append(f"{cost} ")
    nothing, transfer = share_of(summary.get("do_nothing")), share_of(summary.get("always_transfer"))
    comparisons = [f"doing nothing at all solves {percent(nothing)}"] if nothing is not None else []
    comparisons += [f"always handing over to a person {percent(transfer)}"] if transfer is not None else []
    if comparisons:
        out.append(f"For comparison, {' and '.join(comparisons)}. ")
    if summary.get("trained_on_benchmark"):
        out.append("Benchmark tasks were in training, so this is no measure of new tasks. ")
    seconds, memory = as_figure(summary.get("seconds")), as_figure(summary.get("peak_memory_bytes"))
    if seconds is not None:
        out.append(f"The whole job took {_spoken(seconds)}")
        out.append(f" and at most {memory / 2**30:.1f} GiB of memory." if memory is not None else ".")
    return join(*out)


def _beside(stages: Sequence[ReportStage]) -> list[Child]:
    """What must be read with success: without any violation, catastrophic failures, and writes without consent."""
    out: list[Child] = []
    clean = [s.headline.clean for s in stages]
    if any(clean):
        bold = [tag("b", NOT_CHECKED if c is None else percent(c.value)) for c in clean]
        out += ["; without any violation ", _both(bold), ". "]
    else:
        out.append("; whether it kept the rules meanwhile was not checked. ")
    catastrophic = [s.headline.catastrophic for s in stages]
    if any(catastrophic):
        shares = [NOT_CHECKED if c is None else percent(c.value) for c in catastrophic]
        out += ["Catastrophic failures happened in ", _both(shares), " of the conversations. "]
    unasked = [s.headline.unasked for s in stages]
    if any(unasked):
        shares = ["–" if c is None else percent(c.value) for c in unasked]
        out += ["Of its changes to the database, ", _both(shares), " had no consent of the customer. "]
    return out


def _both(shares: Sequence[Child]) -> list[Child]:
    return [shares[0], *([" and ", shares[1]] if len(shares) == 2 else [])]


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'}"
    if seconds < 5400:
        return f"{seconds / 60:.1f}".removesuffix(".0") + " minutes"
    return f"{clock(seconds)} hours"


def _compare(before: ReportStage, after: ReportStage) -> str:
    first, second = bounds(before.block.get("interval")), bounds(after.block.get("interval"))
    if (after.success or 0.0) <= (before.success or 0.0):
        return "Practice did not make it better. "
    if first and second and second[0] <= first[1]:
        return "The two intervals overlap, so chance may explain some of the difference. "
    return ""


def _clean(stage: ReportStage) -> str:
    clean = stage.headline.clean
    return NOT_CHECKED if clean is None else percent(clean.value)


def scores_section(summary: Summary, stages: Sequence[ReportStage]) -> Html:
    """The scores with their intervals, next to what an agent gets that does not try."""
    if not stages:
        return tag("p", "No evaluation has finished yet.", class_="soft")
    heroes = [
        tag(
            "div",
            tag("b", percent(s.success or 0.0)),
            tag("span", f"of tasks solved {s.long}"),
            tag("span", tag("strong", f"without any violation: {_clean(s)}")),
            class_=f"hero {s.colour}",
        )
        for s in stages
    ]
    rows: list[Html] = []
    for key, label in FLOORS:
        value = summary.get(key)
        if (share := share_of(value)) is not None:
            rows.append(score_rows(label, share, value.get("interval") if isinstance(value, Mapping) else None, "base"))
    for s in stages:
        label = (s.long[:1].upper() + s.long[1:]) or s.short
        rows.append(score_rows(label, s.success or 0.0, s.block.get("interval"), s.colour))
        if (clean := s.headline.clean) is not None:
            rows.append(score_rows("… without any violation", clean.value, clean.interval, s.colour))
    if (greedy := share_of(summary.get("rl_greedy"))) is not None:
        block = summary["rl_greedy"] if isinstance(summary["rl_greedy"], Mapping) else {}
        rows.append(score_rows("Greedy decoding", greedy, block.get("interval"), "after"))
        if (clean := clean_of(block)) is not None:
            rows.append(score_rows("… without any violation", clean.value, clean.interval, "after"))
    axis = tag("span", [tag("span", f"{p}%") for p in (0, 25, 50, 75, 100)], class_="axis")
    last = stages[-1].block
    tasks, episodes = last.get("tasks"), last.get("episodes")
    excluded = sum(int(as_figure(s.block.get("excluded")) or 0) for s in stages)
    notes = [
        "A task is solved if the final database equals the one after the gold actions and, where a task also requires "
        "information or calls, the agent gave them. Without any violation: solved, and the audit found none in policy, "
        "communication, safety or recovery. Bands are 95% intervals."
    ]
    if isinstance(tasks, int):
        notes.append(f"{tasks:,} tasks" + (f", {episodes:,} conversations." if isinstance(episodes, int) else "."))
    if excluded:
        notes.append(f"{excluded:,} conversations that infrastructure broke are in no figure.")
    levels = difficulty_table(summary)
    return join(
        tag("div", heroes, class_="heroes"),
        headline_table(stages),
        None if levels is None else to_html(levels),
        tag("div", rows, axis, class_="scores"),
        tag("p", " ".join(notes), class_="soft"),
        scores_table(stages, summary),
    )
