"""A comparison in words: figures, names and sentences, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.accounts.intervals import Interval
from muarl.accounts.metrics import CLEAN
from muarl_tools.compare.comparing import Comparison, RunScore, not_checked_text, why_excluded
from muarl_tools.compare.components import AGENT, BOTH, REST, USER, Components
from muarl_tools.compare.power import SampleSizes

NAMED = 5
"""Tasks that are left out and named; of more, only how many."""


def share(value: float) -> str:
    """A share with one decimal."""
    return f"{value:.1%}"


def points(value: float, *, sign: bool = True) -> str:
    """A difference of shares in points."""
    return f"{100 * value:+.1f}" if sign else f"{100 * value:.1f}"


def span(interval: Interval, *, signed: bool = False) -> str:
    """An interval in words."""
    low, high = interval
    return f"{points(low)} to {points(high)}" if signed else f"{share(low)} – {share(high)}"


def p_text(p: float) -> str:
    """A p-value in few characters."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def trials_text(score: RunScore) -> str:
    """How many trials a task has."""
    least, most = score.trials
    return str(least) if least == most else f"{least} to {most}"


def rank_text(rank: tuple[int, int]) -> str:
    """A place, or the places that it may be."""
    return str(rank[0]) if rank[0] == rank[1] else f"{rank[0]} to {rank[1]}"


def heading(found: Comparison) -> str:
    """What was compared."""
    runs = "1 run" if len(found.scores) == 1 else f"{len(found.scores)} runs"
    tasks = "1 task" if len(found.tasks) == 1 else f"{len(found.tasks)} tasks"
    paired = f", paired by {found.by}" if found.pairs else ""
    return f"{runs} on {tasks}{paired}"


def needed_lines(needed: SampleSizes, tasks: int, trials: str, *, pair: bool = True) -> list[str]:
    """How much must be played, in sentences. ``pair``: to tell two runs apart that there are."""
    size, chance = points(needed.difference, sign=False), f"{needed.power:.0%}"
    if needed.alike:
        return [
            ("The runs' difference is the same on every task" if pair else "All trials of each task ended alike")
            + f", so that what a difference of {size} points takes cannot be said: evaluate on more tasks, or with "
            "more trials of each."
        ]
    out = []
    many = "more than 100,000"
    if needed.smallest is not None:
        out.append(
            f"With what there is, a true difference of {points(needed.smallest, sign=False)} points would be seen with "
            f"a chance of {chance}, on tasks like these."
        )
    goal = f"For {size} points"
    if needed.tasks is not None or needed.smallest is not None:
        count = many if needed.tasks is None else f"{needed.tasks:,}"
        noun = "task" if count == "1" else "tasks"
        out.append(
            f"{goal}: {count} {noun} like these, with {trials} trial{'s' * (trials != '1')} each (here {tasks})."
        )
    if needed.hopeless:
        out.append(f"{goal}, no number of trials is enough on {tasks} tasks: they differ too much from each other.")
    elif needed.trials is not None:
        out.append(f"{goal}: or {needed.trials:,} trials of each of {tasks} such tasks.")
    if needed.trials_alike:
        out.append(
            "In no task does the difference vary from trial to trial, so that how many trials it takes cannot be said."
        )
    elif needed.trials_same_tasks is not None:
        out.append(f"{goal} on these very tasks (--these-tasks): {needed.trials_same_tasks:,} trials of each.")
    elif needed.smallest_same_tasks is None:
        out.append("How many trials it takes cannot be said from one trial a task: evaluate with --trials 2 or more.")
    return out


def power_lines(found: Comparison) -> list[str]:
    """The same for the best pair that cannot be told apart (else the best pair), or for a single run."""
    if not found.pairs:
        only = found.scores[0]
        if only.needed is None:
            return []
        first = "Compared with another agent of as much noise:"
        return [first, *needed_lines(only.needed, len(found.tasks), trials_text(only), pair=False)]
    pair = next((p for p in found.pairs if p.better is None), found.pairs[0])
    lines = needed_lines(pair.needed, len(found.tasks), trials_text(found.scores[pair.first]))
    if len(found.pairs) > 1 and lines:
        names = f"{found.names[pair.first]} and {found.names[pair.second]}"
        lines = [f"As {names} vary, and corrected for {len(found.pairs)} pairs:", *lines]
    return lines


def noise_line(found: Components) -> str | None:
    """What repeats of one side with the other fixed vary by; None where the two cannot be told apart."""
    if AGENT not in found or USER not in found or BOTH not in found:
        return None
    agent, user, both = (max(0.0, found[name].variance) for name in (AGENT, USER, BOTH))
    rest = max(0.0, found[REST].variance) if REST in found else 0.0
    alone = [100 * (side + both + rest) ** 0.5 for side in (agent, user)]
    return (
        f"With the user's seed fixed, one attempt at a task varies by {alone[0]:.1f} points (standard deviation) from "
        f"seed to seed of the agent; with the agent's fixed, by {alone[1]:.1f}."
    )


def left_out_lines(found: Comparison) -> list[str]:
    """What was not compared, and why."""
    out = []
    for score in found.scores:
        name = score.results.name
        if score.missing:
            out.append(f"{name} lacks {_tasks(score.missing)}, which others have: left out.")
        if score.excluded:
            reasons = "; ".join(f"{why[:120]} ({n})" for why, n in why_excluded(score.excluded))
            out.append(f"{name}: {len(score.excluded)} attempts failed outside the agent and are left out: {reasons}.")
        out += [f"{name}: {what}." for what in score.results.left_out]
        if score.unpaired:
            out.append(f"{name}: {score.unpaired} attempts have no partner of the same seed and are left out.")
    if found.changed:
        out.append(
            f"Left out, since the files describe them differently (other versions of the benchmark): "
            f"{_tasks(found.changed)}. --keep-changed compares them all the same."
        )
    return out


def unchecked_lines(found: Comparison) -> list[str]:
    """Runs without an audit, or with one on some of the tasks alone."""
    out = []
    if found.unchecked and not found.pairs:  # else the verdict says so
        out.append(not_checked_text(found.unchecked))
    for score in found.scores:
        if score.clean is not None and score.clean.n < score.success.n:
            out.append(
                f"{score.results.name}: {CLEAN} was checked in {score.clean.n} of {score.success.n} attempts, and is "
                "compared on the tasks of those alone."
            )
    return out


def strata_lines(found: Comparison) -> list[str]:
    """Runs whose success differs between kinds of users: a test over the values of each stratum, after Holm's
    correction for the number of strata of a run."""
    return [
        f"{score.results.name}: {result.warning}."
        for score in found.scores
        for result in score.strata.values()
        if result.warning is not None
    ]


def floor_lines(found: Comparison) -> list[str]:
    """Runs that are no better than doing nothing."""
    return [
        f"{s.results.name} cannot be told from doing nothing, which scores {share(s.results.do_nothing or 0.0)}."
        for s in found.scores
        if s.above_nothing is False
    ]


def _tasks(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMED])
    count = "1 task" if len(names) == 1 else f"{len(names)} tasks"
    return f"{count} ({shown}{', ...' if len(names) > NAMED else ''})"


def odds_lines(found: Comparison) -> list[str]:
    """Pairs whose interval and test say different things, which few tasks that differ make them do."""
    return [
        f"{found.names[d.first]} and {found.names[d.second]}{what}: the interval leaves 0 out, but the exact test "
        f"decides, and it cannot tell them apart with {d.first_ahead + d.second_ahead} tasks on which they differ."
        for p in found.pairs
        for d, what in ((p, ""), (p.clean, f", {CLEAN}"))
        if d is not None and d.at_odds
    ]


def group_lines(found: Comparison) -> list[str]:
    """The groups, of three runs and more."""
    if len(found.scores) < 3 or not found.pairs:
        return []
    both = found.clean_groups is not None
    lines = list[str]()
    for groups, what in ((found.groups, " in success" if both else ""), (found.clean_groups or (), f" in {CLEAN}")):
        for group in groups:
            if len(group) > 1:
                lines.append(f"Cannot be told apart{what}: {', '.join(found.names[i] for i in group)}.")
    return lines
