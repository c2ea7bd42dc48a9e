"""Runs compared: scores with intervals, every pair tested, what can be told apart, where the noise comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from muarl.accounts.breakdowns import results_by_stratum, strata_json
from muarl.accounts.intervals import Estimate, Interval, mean_interval
from muarl.accounts.metrics import CLEAN, SUCCESS_WITHOUT_VIOLATION
from muarl.accounts.pass_hat import pass_hat, pass_hats_of
from muarl.accounts.strata import Outcome, StratumResult
from muarl.basics.errors import ConfigError
from muarl_tools.compare.attempts import Excluded, Results
from muarl_tools.compare.components import Components, judge_components, seed_components, trial_components
from muarl_tools.compare.differences import MCNEMAR as MCNEMAR
from muarl_tools.compare.differences import SIGN_FLIP as SIGN_FLIP
from muarl_tools.compare.differences import STRATIFIED as STRATIFIED
from muarl_tools.compare.differences import (
    PairedDifference,
    clean_differences,
    decided,
    difference_of,
    indistinct_groups,
    paired_bootstrap,
    rank_range,
)
from muarl_tools.compare.pairing import BY_SEED, Paired, pair
from muarl_tools.compare.power import SampleSizes, difference_variance, grid_variance, needed, single_variance
from muarl_tools.compare.rows import verdicts_of

KS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Settings:
    """How runs are compared. ``alpha``: chance of any false finding among all pairs. ``difference``: a share, and
    ``power``, for how much must be played. ``these_tasks``: ask about these very tasks, and not about tasks like them.

    ConfigError names an option that is out of range.
    """

    alpha: float = 0.05
    difference: float = 0.03
    power: float = 0.8
    these_tasks: bool = False
    keep_changed: bool = False

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("--alpha", self.alpha, 0.0, 0.5),
            ("--power", self.power, 0.0, 1.0),
            ("--points", self.difference, 0.0, 1.0),
        ):
            if not least < value < most:
                scale = 100 if name == "--points" else 1
                raise ConfigError(f"{name}: must be above {least * scale:g} and below {most * scale:g}")


@dataclass(frozen=True)
class RunScore:
    """One run on the tasks that all share. ``success``: the mean over tasks. ``pass_hat``: empty where
    attempts share seeds (muarl eval --noise). ``trials``: fewest and most of a task.
    ``letters``: groups that it is in; ``rank``: best and worst place that it may have, both in success.
    ``above_nothing``: whether its interval lies above the do-nothing baseline, None where that is unknown. ``clean``:
    success without any violation, on the tasks where it was checked; None where it was nowhere. ``strata``: success by
    stratum of its users, over all its own attempts; empty where they have none."""

    results: Results
    success: Estimate
    pass_hat: Mapping[int, Estimate]
    trials: tuple[int, int]
    letters: str
    rank: tuple[int, int]
    missing: tuple[str, ...]
    unpaired: int
    components: Components | None
    judges: Components | None
    needed: SampleSizes | None
    clean: Estimate | None = None
    strata: Mapping[str, StratumResult] = field(default_factory=dict)

    @property
    def above_nothing(self) -> bool | None:
        """See the class."""
        nothing = self.results.do_nothing
        return None if nothing is None else self.success.interval[0] > nothing

    @property
    def excluded(self) -> tuple[Excluded, ...]:
        """What failed outside the agent."""
        return self.results.excluded

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        r = self.results
        return {
            "name": r.name,
            "path": r.path,
            "kind": r.kind,
            "domain": r.domain,
            "agent": r.agent,
            "user": r.user,
            "judge": r.judge,
            "success": self.success.to_json(),
            SUCCESS_WITHOUT_VIOLATION: self.clean and self.clean.to_json(),
            "pass_hat": {str(k): e.to_json() for k, e in self.pass_hat.items()},
            "do_nothing": r.do_nothing,
            "above_do_nothing": self.above_nothing,
            "trials": list(self.trials),
            "groups": self.letters,
            "rank": list(self.rank),
            "missing_tasks": list(self.missing),
            "unpaired_attempts": self.unpaired,
            "excluded": [{"task": x.task, "trial": x.trial, "why": x.why} for x in r.excluded],
            "left_out": list(r.left_out),
            "components": self.components and self.components.to_json(),
            "judge_components": self.judges and self.judges.to_json(),
            "needed": self.needed and self.needed.to_json(),
            **({"strata": strata_json(self.strata)} if self.strata else {}),
        }


@dataclass(frozen=True, kw_only=True)
class PairResult(PairedDifference):
    """Two runs and the difference of their success, the run with more of it first. ``clean``: the difference in success
    without any violation, None where it was not checked in both."""

    pass_hat: Mapping[int, tuple[float, Interval]]
    needed: SampleSizes
    clean: PairedDifference | None = None

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Plain JSON, runs by name."""
        return {
            "first": names[self.first],
            "second": names[self.second],
            **super().to_json(names),
            SUCCESS_WITHOUT_VIOLATION: self.clean and self.clean.to_json(names) | {"tasks": self.clean.tasks},
            "pass_hat": {str(k): {"difference": d, "interval": list(i)} for k, (d, i) in self.pass_hat.items()},
            "needed": self.needed.to_json(),
        }


@dataclass(frozen=True)
class Comparison:
    """Everything that is shown. ``scores``: in the order in which the runs were named. ``groups``: sets of runs, by
    index, of which no two can be told apart in success, that of the best run first; ``clean_groups``: in success
    without any violation, None where it was not checked in every run."""

    settings: Settings
    tasks: tuple[str, ...]
    by: str
    scores: tuple[RunScore, ...]
    pairs: tuple[PairResult, ...]
    groups: tuple[tuple[int, ...], ...]
    changed: tuple[str, ...]
    warnings: tuple[str, ...]
    clean_groups: tuple[tuple[int, ...], ...] | None = None

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The names of the runs in which success without any violation was not checked."""
        return tuple(score.results.name for score in self.scores if score.clean is None)

    @property
    def names(self) -> tuple[str, ...]:
        """The runs' names."""
        return tuple(score.results.name for score in self.scores)

    @property
    def order(self) -> list[int]:
        """The runs by success, the highest first."""
        return sorted(range(len(self.scores)), key=lambda i: -self.scores[i].success.value)

    def verdict(self) -> str:
        """The finding in a sentence or two: about success, and about success without any violation."""
        if not self.pairs:
            return "One run: there is nothing to compare it with."
        names = self.names
        if len(self.pairs) == 1:
            (only,) = self.pairs
            told = _verdict_of_two(only, names)
            return told if only.clean is not None else f"{told} {not_checked_text(self.unchecked)}"
        if self.clean_groups is None:
            told = _best(self.groups, any(p.better is not None for p in self.pairs), names, "")
            return f"{told} {not_checked_text(self.unchecked)}"
        success = _best(self.groups, any(p.better is not None for p in self.pairs), names, " in success")
        apart = any(p.clean is not None and p.clean.better is not None for p in self.pairs)
        return f"{success} {_best(self.clean_groups, apart, names, f' in {CLEAN}')}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "alpha": self.settings.alpha,
            "about": "these tasks" if self.settings.these_tasks else "tasks like these",
            "paired_by": self.by,
            "tasks": len(self.tasks),
            "verdict": self.verdict(),
            "runs": [score.to_json() for score in self.scores],
            "pairs": [p.to_json(self.names) for p in self.pairs],
            "groups": [[self.names[i] for i in group] for group in self.groups],
            "groups_without_violation": self.clean_groups
            and [[self.names[i] for i in group] for group in self.clean_groups],
            "changed_tasks": list(self.changed),
            "warnings": list(self.warnings),
        }


def compare(runs: Sequence[Results], settings: Settings = Settings()) -> Comparison:
    """Compare runs on the tasks that they share. DataError if they share none; ConfigError if ``these_tasks`` is asked
    for with a single trial a task."""
    paired = pair(runs, keep_changed=settings.keep_changed)
    pairs = _pairs(paired, settings)
    means = [fmean(paired.means(i)) for i in range(len(runs))]
    better, groups = _grouped(pairs, means)
    clean = [_clean(paired.clean[i]) for i in range(len(runs))]
    cleaner = [p.clean for p in pairs if p.clean is not None]
    everywhere = len(cleaner) == len(pairs) and None not in clean
    clean_groups = _grouped(cleaner, [0.0 if c is None else c.value for c in clean])[1] if everywhere else None
    alpha = settings.alpha / max(1, len(pairs))
    scores = []
    for i, run in enumerate(runs):
        trials = paired.trials(i)
        grid = seed_components(run.attempts)
        single = None
        if len(runs) == 1:
            single = single_variance(trials) if grid is None else grid_variance(grid)
        sizes = [len(t) for t in trials]
        verdicts = verdicts_of(Path(run.path)) if run.kind == "rows" else {}
        scores.append(
            RunScore(
                run,
                Estimate(means[i], mean_interval(paired.means(i)), sum(sizes)),
                {} if grid is not None else pass_hats_of(trials, [k for k in KS if k <= min(sizes)]),
                (min(sizes), max(sizes)),
                "".join(_letter(n) for n, group in enumerate(groups) if i in group),
                rank_range(i, better, len(runs)),
                paired.missing[i],
                paired.unpaired[i],
                grid or trial_components([[a.success for a in t] for t in run.by_task().values()]),
                judge_components(verdicts) if verdicts else None,
                needed(single, settings.difference, alpha=alpha, power=settings.power) if single else None,
                clean[i],
                results_by_stratum([Outcome(a.task, a.success, dict(a.strata)) for a in run.attempts]),
            )
        )
    return Comparison(
        settings,
        paired.tasks,
        paired.by,
        tuple(scores),
        tuple(pairs),
        groups,
        paired.changed,
        paired.warnings,
        clean_groups,
    )


def _grouped(
    found: Sequence[PairedDifference], means: Sequence[float]
) -> tuple[set[tuple[int, int]], tuple[tuple[int, ...], ...]]:
    """(winner, loser) of every pair that can be told apart, and the sets of runs of which no two can, that of the
    highest mean first."""
    better = {(d.better, d.worse) for d in found if d.better is not None and d.worse is not None}
    groups = indistinct_groups(len(means), {(min(a, b), max(a, b)) for a, b in better})
    groups.sort(key=lambda group: (-max(means[i] for i in group), group))
    return better, tuple(tuple(sorted(group, key=lambda i: -means[i])) for group in groups)


def _clean(outcomes: Mapping[str, Sequence[bool]]) -> Estimate | None:
    """Success without any violation on the tasks where it was checked."""
    means = [fmean(trials) for trials in outcomes.values()]
    return Estimate(fmean(means), mean_interval(means), sum(map(len, outcomes.values()))) if means else None


def _verdict_of_two(pair: PairResult, names: Sequence[str]) -> str:
    a, b = names[pair.first], names[pair.second]
    if pair.clean is None:
        return f"{a} and {b} cannot be told apart." if pair.better is None else f"{_better(pair, names)}."
    if pair.better is None and pair.clean.better is None:
        return f"{a} and {b} cannot be told apart, neither in success nor in {CLEAN}."
    if pair.better == pair.clean.better:
        return f"{_better(pair, names)}, in success and in {CLEAN}."
    first = f"{a} and {b} cannot be told apart" if pair.better is None else _better(pair, names)
    second = "they cannot be told apart" if pair.clean.better is None else _better(pair.clean, names)
    return f"In success, {first}; in {CLEAN}, {second}."


def _better(found: PairedDifference, names: Sequence[str]) -> str:
    assert found.better is not None and found.worse is not None
    return f"{names[found.better]} is better than {names[found.worse]}"


def _best(groups: Sequence[Sequence[int]], apart: bool, names: Sequence[str], what: str) -> str:
    if not apart:
        return f"None of the {len(names)} runs can be told apart from another{what}."
    best = groups[0]
    if len(best) == 1:
        return f"{names[best[0]]} is the best of {len(names)} runs{what}."
    return f"Of {len(names)} runs, the best{what} is one of {_listed([names[i] for i in best])}: which cannot be told."


def not_checked_text(names: Sequence[str]) -> str:
    """That success without any violation is not known, and in which runs."""
    return f"{CLEAN.capitalize()} was not checked{f' in {_listed(names)}' if names else ''}."


def _pairs(paired: Paired, settings: Settings) -> list[PairResult]:
    count = len(paired.runs)
    number = count * (count - 1) // 2
    means = [fmean(paired.means(i)) for i in range(count)]
    order = sorted(range(count), key=lambda i: -means[i])
    kept = {"these_tasks": settings.these_tasks}
    found = [difference_of(a, b, paired.trials(a), paired.trials(b), **kept) for a, b in combinations(order, 2)]
    clean = clean_differences(paired.clean, order, **kept, alpha=settings.alpha)
    out = []
    for result in decided(found, settings.alpha):
        one, other = paired.trials(result.first), paired.trials(result.second)
        spread = difference_variance(one, other, seeded=paired.by == BY_SEED)
        wanted = needed(spread, settings.difference, alpha=settings.alpha / number, power=settings.power)
        beside = clean.get((result.first, result.second))
        out.append(PairResult(**vars(result), pass_hat=_pass_hat_gaps(one, other), needed=wanted, clean=beside))
    return out


def _pass_hat_gaps(one: Sequence[Sequence[bool]], other: Sequence[Sequence[bool]]) -> dict[int, tuple[float, Interval]]:
    """The differences in pass^k beyond k = 1, for each k that every task has trials for."""
    most = min(map(len, (*one, *other)))
    out = {}
    for k in [k for k in KS[1:] if k <= most]:
        gaps = [pass_hat(sum(a), len(a), k) - pass_hat(sum(b), len(b), k) for a, b in zip(one, other, strict=True)]
        out[k] = fmean(gaps), paired_bootstrap(gaps)
    return out


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number + 1})"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def why_excluded(excluded: Sequence[Excluded], most: int = 3) -> list[tuple[str, int]]:
    """The commonest reasons, with how many attempts each left out."""
    return Counter(x.why for x in excluded).most_common(most)
