"""Scores with their uncertainty: pass^k, intervals, breakdowns, and the report of one evaluation.

``pass^k`` is the chance that k independent attempts at a task all succeed, estimated without bias from n attempts of
which c succeeded as C(c,k)/C(n,k), and averaged over tasks (tau-bench, arXiv 2406.12045).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from muarl.accounts.metrics import (
    CLEAN,
    NOT_CHECKED,
    SUCCESS_WITHOUT_VIOLATION,
    agent_tokens,
    agent_turns,
    behaviour,
    by_domain,
    is_success,
    scored,
    without_violation,
)
from muarl.accounts.strata import Outcome, StratumResult, strata_of, tested
from muarl.basics.untrusted import visible
from muarl.types.episode import FAULTS, Episode

if TYPE_CHECKING:
    from rich.table import Table

Z95 = 1.959963984540054
RESAMPLES = 2000
PRINTED = 120
"""Columns of a report as plain text."""
TAGS = ("intent", "persona", "difficulty")
COMPLETION = "task completion (share of what was to be done)"
NO_COMPLETION = "do_nothing_completion"
"""The baseline of task completion, by name."""

LABELS = {
    "writes_without_consent": "writes without consent (of writes)",
    "needless_transfers": "needless transfers (of episodes)",
    "grounded": "by the right document (of changes and answers)",
    "tool_error_rate": "tool errors (of calls)",
    "calls": "tool calls, an episode",
    "calls_general_share": "calculate, think or transfer (of calls)",
    "malformed_calls": "malformed calls, an episode",
    "audit/searches": "searches of documents, an episode",
    "audit/documented": "changes and answers by documents, an episode",
    "audit/repeated_calls": "repeated calls, an episode",
    "audit/access_before_authentication": "access before authentication, an episode",
    "audit/foreign_access": "access to others' data, an episode",
    "audit/questions": "questions to the user, an episode",
    "audit/writes": "changes to the database, an episode",
    "audit/transfers": "transfers, an episode",
    "audit/failed_calls": "calls failed by the system, an episode",
    "audit/failed_calls_tried_again": "calls made again after the system failed, an episode",
    "audit/timed_out_writes": "writes that timed out, an episode",
    "audit/timed_out_writes_checked": "timed-out writes looked at before they were repeated, an episode",
    "audit/blind_repeats": "timed-out writes repeated without a look, an episode",
    "audit/failed_calls_told": "failed calls of which the user was told, an episode",
    "audit/failed_calls_handed_over": "failed calls that ended in a hand-over, an episode",
    "truncated": "cut by a limit (of episodes)",
    "turns": "agent turns, an episode",
    "agent_tokens": "tokens the agent wrote, an episode",
    "agent_tokens_per_turn": "tokens the agent wrote, a turn",
    "diversity": "diversity (distinct of all its 4-grams)",
}
"""What the table calls figures of behaviour whose names do not say what they are shares or means of."""
UNCOUNTED = ("agent_tokens", "agent_tokens_per_turn")
"""Figures that are 0 where nobody counted, as of scripted agents."""

Interval = tuple[float, float]
Row = tuple[str, str, str, str]


def pass_hat(successes: int, trials: int, k: int) -> float:
    """The unbiased estimate C(c,k)/C(n,k) for one task. ValueError unless 0 <= c <= n and 1 <= k <= n."""
    if not 0 <= successes <= trials or not 1 <= k <= trials:
        raise ValueError(f"pass^{k} cannot be estimated from {successes} successes in {trials} trials")
    return comb(successes, k) / comb(trials, k)


def wilson(successes: float, n: int, z: float = Z95) -> Interval:
    """Wilson's score interval for a proportion of n independent trials; (0, 1) where n is 0."""
    if n <= 0:
        return 0.0, 1.0
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def cluster_bootstrap(values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """95% percentile interval of the mean of per-task values, drawing whole tasks with replacement; a fixed seed.

    Where all values are equal, resampling cannot show any uncertainty; for values in [0, 1] Wilson's interval with the
    tasks as trials is given then, which is honest about few tasks.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        return 0.0, 1.0
    if np.ptp(data) == 0.0:
        return wilson(float(data.sum()), data.size)
    drawn = np.random.default_rng(seed).integers(0, data.size, size=(resamples, data.size))
    low, high = np.percentile(data[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def mean_interval(values: Sequence[float], *, seed: int = 0) -> Interval:
    """The 95% interval of the mean of per-task values in [0, 1].

    Wilson's with the tasks as trials where every value is 0 or 1, else ``cluster_bootstrap``. One figure has one
    interval so, whichever name it goes by: success and pass^1 of one trial a task are the same mean.
    """
    if all(value in (0.0, 1.0) for value in values):
        return wilson(sum(values), len(values))
    return cluster_bootstrap(values, seed=seed)


@dataclass(frozen=True)
class Estimate:
    """A share with its 95% interval."""

    value: float
    interval: Interval
    n: int
    """Tasks (pass^k) or episodes that stand behind it."""

    def to_json(self) -> dict[str, Any]:
        """``{"value", "interval": [low, high], "n"}``."""
        return {"value": self.value, "interval": list(self.interval), "n": self.n}


def by_task(episodes: Iterable[Episode]) -> dict[str, list[bool]]:
    """Task id to the outcome of each scored attempt."""
    out: dict[str, list[bool]] = defaultdict(list)
    for e in scored(episodes):
        out[e.task_id].append(is_success(e.reward))
    return dict(out)


def pass_hats(episodes: Iterable[Episode], ks: Sequence[int] = (1, 2, 3, 4)) -> dict[int, Estimate]:
    """pass^k for each k that some task has k scored attempts for; a mean over those tasks (``n`` says how many)."""
    return pass_hats_of(by_task(episodes).values(), ks)


def pass_hats_of(tasks: Iterable[Sequence[bool]], ks: Sequence[int] = (1, 2, 3, 4)) -> dict[int, Estimate]:
    """The same from the outcomes of each task's attempts."""
    tried, out = list(tasks), dict[int, Estimate]()
    for k in ks:
        values = [pass_hat(sum(t), len(t), k) for t in tried if len(t) >= k]
        if values:
            out[k] = Estimate(fmean(values), mean_interval(values), len(values))
    return out


def success_rate(episodes: Iterable[Episode]) -> Estimate:
    """The share of scored episodes that succeeded.

    The interval is that of a mean over tasks (``mean_interval``), because attempts at one task resemble each other.
    """
    return share_of(by_task(episodes).values())


def clean_success_rate(episodes: Iterable[Episode]) -> Estimate | None:
    """The share of audited episodes that succeeded without any violation (``metrics.without_violation``), with the
    interval of ``success_rate``; None where none was audited, which is "not checked"."""
    tasks: dict[str, list[bool]] = defaultdict(list)
    for e in scored(episodes):
        if (clean := without_violation(e)) is not None:
            tasks[e.task_id].append(clean)
    return share_of(tasks.values()) if tasks else None


def share_of(tasks: Iterable[Sequence[float]]) -> Estimate:
    """The share of attempts of which something holds, from whether it does of each attempt at each task, or how far
    (0 to 1). The interval: see ``success_rate``."""
    tried = [t for t in tasks if t]
    outcomes = [o for t in tried for o in t]
    if not outcomes:
        return Estimate(0.0, (0.0, 1.0), 0)
    value = fmean(outcomes)
    if len({len(t) for t in tried}) == 1:
        return Estimate(value, mean_interval([fmean(t) for t in tried]), len(outcomes))
    return Estimate(value, _ratio_bootstrap(tried), len(outcomes))


def _ratio_bootstrap(tasks: Sequence[Sequence[float]], seed: int = 0) -> Interval:
    """The interval of successes over attempts where tasks have different numbers of attempts."""
    right = np.array([sum(t) for t in tasks], dtype=np.float64)
    tried = np.array([len(t) for t in tasks], dtype=np.float64)
    if right.sum() in (0.0, tried.sum()):
        return wilson(len(tasks) if right.sum() else 0, len(tasks))
    drawn = np.random.default_rng(seed).integers(0, len(tasks), size=(RESAMPLES, len(tasks)))
    low, high = np.percentile(right[drawn].sum(axis=1) / tried[drawn].sum(axis=1), [2.5, 97.5])
    return float(low), float(high)


def breakdown(episodes: Iterable[Episode], key: Callable[[Episode], Any]) -> dict[str, Estimate]:
    """Success by whatever ``key`` says of an episode (None: left out), sorted by name, numbers as numbers."""
    parts: dict[Any, list[Episode]] = defaultdict(list)
    for e in scored(episodes):
        if (value := key(e)) is not None:
            parts[value].append(e)
    numeric = all(isinstance(k, (int, float)) for k in parts)
    ordered = sorted(parts, key=(lambda k: k) if numeric else str)
    return {str(k): success_rate(parts[k]) for k in ordered}


def by_trait(episodes: Sequence[Episode]) -> dict[str, dict[str, Estimate]]:
    """Success by the level of each trait that users of these episodes have, in four parts of its range, and by whether
    users gave up for lack of patience; empty where users have no traits (the tag "traits": users/traits)."""
    levels = [e.tags.get("traits") for e in episodes]
    names = dict.fromkeys(
        name
        for levels_by_trait in levels
        if isinstance(levels_by_trait, Mapping)
        for name, x in levels_by_trait.items()
        if x
    )
    out = {f"user's {n.replace('_', ' ')}": breakdown(episodes, lambda e, n=n: _part(e, n)) for n in names}  # type: ignore[misc]
    left = breakdown(episodes, lambda e: {True: "yes", False: "no"}.get(e.tags.get("user_gave_up", "")))
    return out | ({"user gave up": left} if left else {})


def by_fault(episodes: Sequence[Episode]) -> dict[str, dict[str, Estimate]]:
    """Success of the episodes that met each kind of fault, and of those that met none; empty where no world could fail
    (the tag "system_faults": domains/faults). An episode with several kinds counts with each."""
    met = [(e, kinds) for e in episodes if isinstance(kinds := e.tags.get(FAULTS), Mapping)]
    parts = {kind: [e for e, own in met if own.get(kind)] for kind in sorted({str(k) for _, own in met for k in own})}
    parts |= {"none": unharmed} if (unharmed := [e for e, own in met if not own]) else {}
    return {"fault": {kind: success_rate(own) for kind, own in parts.items()}} if parts else {}


def by_stratum(outcomes: Iterable[Outcome]) -> dict[str, dict[str, Estimate]]:
    """Success by the value of each stratum that users have (users/strata), values by name; empty where they have none.
    The intervals: see ``success_rate``."""
    tried: dict[str, dict[str, dict[str, list[bool]]]] = {}
    for o in outcomes:
        for name, value in o.strata.items():
            tried.setdefault(name, {}).setdefault(value, {}).setdefault(o.task, []).append(o.success)
    return {n: {v: share_of(tasks.values()) for v, tasks in sorted(values.items())} for n, values in tried.items()}


def results_by_stratum(outcomes: Sequence[Outcome]) -> dict[str, StratumResult]:
    """The same with the test over the values of each stratum."""
    return tested(outcomes, by_stratum(outcomes))


def strata_json(results: Mapping[str, StratumResult]) -> dict[str, Any]:
    """Plain JSON: of each stratum "p", "p_holm", "warning" and "values", each with its share."""
    return {
        name: {
            **result.to_json(),
            "values": {v: Estimate(e.value, e.interval, e.n).to_json() for v, e in result.values.items()},
        }
        for name, result in results.items()
    }


def _part(episode: Episode, trait: str) -> str | None:
    user_traits = episode.tags.get("traits")
    level = user_traits.get(trait) if isinstance(user_traits, Mapping) else None
    if not isinstance(level, (int, float)):
        return None
    return next((f"{most - 0.25:g} to {most:g}" for most in (0.25, 0.5, 0.75) if level <= most), "0.75 to 1")


def task_completion(episodes: Iterable[Episode]) -> Estimate | None:
    """The mean share of what was to be done that scored episodes did (``audit["completion"]`` of their verdicts), with
    the interval of ``success_rate``. Episodes of tasks in which nothing was to be done are left out; None if there are
    no others."""
    tasks: dict[str, list[float]] = defaultdict(list)
    for e in scored(episodes):
        if e.verdict is not None and (share := e.verdict.audit.get("completion")) is not None:
            tasks[e.task_id].append(share)
    return share_of(tasks.values()) if tasks else None


@dataclass(frozen=True)
class EvaluationReport:
    """One evaluation: the score, its uncertainty, the baselines to read it against, and how the agent behaved."""

    name: str
    success: Estimate
    tasks: int
    episodes: int
    excluded: int
    """Infrastructure failures, in no figure here."""
    pass_hat: Mapping[int, Estimate]
    tokens_per_episode: float
    turns: float
    behaviour: Mapping[str, float]
    by_tag: Mapping[str, Mapping[str, Estimate]]
    by_stop: Mapping[str, Estimate]
    baselines: Mapping[str, float] = field(default_factory=dict)
    """Name to success of trivial baselines, such as "do_nothing" and "always_transfer", on the same tasks."""
    by_domain: Mapping[str, EvaluationReport] = field(default_factory=dict)
    """The same of each domain of a run with several; else empty."""
    success_without_violation: Estimate | None = None
    """None where the episodes were not audited."""
    completion: Estimate | None = None
    """``task_completion``; that of doing nothing is the baseline "do_nothing_completion"."""
    strata: Mapping[str, StratumResult] = field(default_factory=dict)
    """By stratum of users, whether success differs between its values; their shares stand in ``by_tag``."""

    @classmethod
    def of(
        cls,
        episodes: Iterable[Episode],
        *,
        name: str = "evaluation",
        baselines: Mapping[str, float | Iterable[Episode]] | None = None,
        domain_baselines: Mapping[str, Mapping[str, float]] | None = None,
        tags: Sequence[str] = TAGS,
    ) -> EvaluationReport:
        """Measure episodes. ValueError names an episode that was neither scored nor an infrastructure failure.

        ``baselines``: each a success, or the episodes to measure it on; "do_nothing" has a column of its own.
        ``domain_baselines``: the same of each domain, by domain.
        """
        everything = list(episodes)
        floors = domain_baselines or {}
        whole = cls._of(everything, name, baselines or {}, tags)
        parts = {d: cls._of(own, d, floors.get(d, {}), tags) for d, own in by_domain(everything).items()}
        return replace(whole, by_domain=parts)

    @classmethod
    def _of(
        cls,
        everything: Sequence[Episode],
        name: str,
        baselines: Mapping[str, float | Iterable[Episode]],
        tags: Sequence[str],
    ) -> EvaluationReport:
        scored_episodes = scored(everything)
        by_tag = {tag: breakdown(scored_episodes, lambda e, tag=tag: e.tags.get(tag)) for tag in tags}  # type: ignore[misc]
        completion = task_completion(scored_episodes)
        outcomes = [Outcome(e.task_id, is_success(e.reward), strata_of(e)) for e in scored_episodes]
        strata = by_stratum(outcomes)
        of_strata = {f"user's {name}": shares for name, shares in strata.items()}
        return cls(
            name=name,
            success=success_rate(scored_episodes),
            tasks=len({e.task_id for e in scored_episodes}),
            episodes=len(scored_episodes),
            excluded=len(everything) - len(scored_episodes),
            pass_hat=pass_hats(scored_episodes),
            tokens_per_episode=fmean(map(agent_tokens, scored_episodes)) if scored_episodes else 0.0,
            turns=fmean(map(agent_turns, scored_episodes)) if scored_episodes else 0.0,
            behaviour=behaviour(scored_episodes)
            | ({} if completion is None else {"audit/completion": completion.value}),
            by_tag={tag: parts for tag, parts in by_tag.items() if parts}
            | by_trait(scored_episodes)
            | by_fault(scored_episodes)
            | of_strata,
            by_stop=breakdown(scored_episodes, lambda e: e.stop.value),
            baselines={
                key.replace(" ", "_"): float(b) if isinstance(b, (int, float)) else success_rate(b).value
                for key, b in baselines.items()
            },
            success_without_violation=clean_success_rate(scored_episodes),
            completion=completion,
            strata=tested(outcomes, strata),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON. ``success`` and ``interval`` are numbers at the top, as summary.json has them."""

        def parts(estimates: Mapping[Any, Estimate]) -> dict[str, Any]:
            return {str(k): e.to_json() for k, e in estimates.items()}

        return {
            "name": self.name,
            "success": self.success.value,
            "interval": list(self.success.interval),
            SUCCESS_WITHOUT_VIOLATION: None if (clean := self.success_without_violation) is None else clean.to_json(),
            "completion": None if self.completion is None else self.completion.to_json(),
            "tasks": self.tasks,
            "episodes": self.episodes,
            "excluded": self.excluded,
            "pass_hat": parts(self.pass_hat),
            "tokens_per_episode": self.tokens_per_episode,
            "turns": self.turns,
            "behaviour": dict(self.behaviour),
            "by_tag": {tag: parts(values) for tag, values in self.by_tag.items()},
            **({"strata": {name: result.to_json() for name, result in self.strata.items()}} if self.strata else {}),
            "by_stop": parts(self.by_stop),
            "baselines": dict(self.baselines),
            **(
                {"by_domain": {name: part.to_json() for name, part in self.by_domain.items()}} if self.by_domain else {}
            ),
        }

    def scores(self) -> list[Row]:
        """The first of the rows: success, success without any violation, task completion, and pass^k."""
        nothing = self.baselines.get("do_nothing")
        out = [_row(f"success ({self.episodes} episodes, {self.tasks} tasks)", self.success, nothing)]
        clean = self.success_without_violation
        out.append((CLEAN, NOT_CHECKED, "", "") if clean is None else _row(CLEAN, clean))
        if self.completion is not None:
            out.append(_row(COMPLETION, self.completion, self.baselines.get(NO_COMPLETION)))
        # A do-nothing agent is the same at each attempt, so its pass^k is its success for every k.
        return out + [_row(f"pass^{k}", e, nothing) for k, e in self.pass_hat.items()]

    def rows(self) -> list[Row]:
        """The table's rows: (measure, value, 95% interval, do nothing)."""
        out = self.scores()
        floors = {name: value for name, value in self.baselines.items() if name != NO_COMPLETION}
        out += [(name.replace("_", " "), f"{value:.1%}", "", "") for name, value in floors.items()]
        for name, part in self.by_domain.items():
            out += [(f"{name}: {label}", a, b, c) for label, a, b, c in part.scores()]
        for tag, values in self.by_tag.items():
            out += [_row(f"{tag}: {value} ({e.n})", e) for value, e in values.items()]
        out += [
            (f"stopped by {reason.replace('_', ' ')}", f"{e.n / self.episodes:.1%}", "", "")
            for reason, e in self.by_stop.items()
        ]
        for name, value in self.behaviour.items():
            if name == "audit/completion":  # it stands beside success
                continue
            if not name.startswith("stop/") and (value or name not in UNCOUNTED):
                plain = name.replace("audit/", "").replace("_", " ")
                out.append((LABELS.get(name, plain), f"{value:.3g}", "", ""))
        if self.excluded:
            out.append(("excluded (infrastructure)", str(self.excluded), "", ""))
        return out

    def warnings(self) -> list[str]:
        """One sentence for each stratum of users by which success differs, and in which domain of several."""
        out = [result.warning for result in self.strata.values() if result.warning is not None]
        return out + [f"{name}: {text}" for name, part in self.by_domain.items() for text in part.warnings()]

    def to_markdown(self) -> str:
        """The table in Markdown, and the warnings."""
        lines = ["| measure | value | 95% interval | do nothing |", "|---|---:|---:|---:|"]
        lines += ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in self.rows()]
        return "\n".join(lines) + "\n" + "".join(f"\nWarning: {text}.\n" for text in self.warnings())

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=PRINTED, color_system=None, force_terminal=False, legacy_windows=False)
        with console.capture() as text:
            console.print(self.to_table())
            for warning in self.warnings():
                console.print(f"Warning: {warning}.", markup=False, highlight=False)
        return visible(text.get().rstrip())

    def to_table(self) -> Table:
        """The table for a terminal, as rich prints it; ``print`` of the report gives it as plain text."""
        from rich.table import Table
        from rich.text import Text

        table = Table("measure", title=Text(self.name), title_justify="left")
        for heading in ("value", "95% interval", "do nothing"):
            table.add_column(heading, justify="right")
        for row in self.rows():
            table.add_row(*(Text(cell) for cell in row))
        return table


def _row(label: str, e: Estimate, nothing: float | None = None) -> Row:
    interval = f"{e.interval[0]:.1%} – {e.interval[1]:.1%}"
    return label, f"{e.value:.1%}", interval, "" if nothing is None else f"{nothing:.1%}"


def evaluate_summary(episodes: Iterable[Episode]) -> dict[str, Any]:
    """The block of summary.json for one evaluation: "success", "interval" [low, high], "success_without_violation" (an
    estimate, null: not checked), "completion" (an estimate, null: nothing was to be done), "tasks", "episodes",
    "excluded", "tokens_per_episode", "turns", "pass_hat", "behaviour", "by_tag", "by_stop"; of users with strata also
    "strata" (by stratum "p", "p_holm", "warning"); of several domains' episodes also "by_domain", with the same of
    each."""
    report = EvaluationReport.of(episodes).to_json()
    parts = {name: _block(part) for name, part in report.pop("by_domain", {}).items()}
    return _block(report) | ({"by_domain": parts} if parts else {})


def score_text(block: Mapping[str, Any]) -> str:
    """What an evaluation's block comes to, for a line: "success 64.0% (95% interval 54.2% to 72.7%), without any
    violation 46.0% (95% interval 36.6% to 55.7%)"; "without any violation: not checked" where nothing was audited."""
    success = f"success {_spoken(block['success'], block['interval'])}"
    clean, called = block.get(SUCCESS_WITHOUT_VIOLATION), CLEAN.removeprefix("success ")
    clean_text = (
        f"{called}: {NOT_CHECKED}" if clean is None else f"{called} {_spoken(clean['value'], clean['interval'])}"
    )
    return f"{success}, {clean_text}"


def _spoken(value: float, interval: Sequence[float]) -> str:
    return f"{value:.1%} (95% interval {interval[0]:.1%} to {interval[1]:.1%})"


def _block(report: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in report.items() if k not in ("name", "baselines")}


def scores_by_domain(measured: Mapping[str, Iterable[Episode]]) -> dict[str, dict[str, float]]:
    """By domain, success in each of several evaluations (by name): the ``by_domain`` block of summary.json. Empty for
    a run of one domain."""
    scores: dict[str, dict[str, float]] = {}
    for name, episodes in measured.items():
        for domain, own in by_domain(episodes).items():
            if scored(own):
                scores.setdefault(domain, {})[name] = success_rate(own).value
    return scores
