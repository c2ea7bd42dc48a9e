"""Runs compared: scores with intervals, every pair tested, what can be told apart, where the noise comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from muarl.comparison.attempts import Excluded, Results
from muarl.comparison.components import Components, judge_components, seed_components, trial_components
from muarl.comparison.groups import indistinct_groups, rank_range
from muarl.comparison.intervals import paired_bootstrap, same_tasks_interval
from muarl.comparison.pairing import BY_SEED, Paired, pair
from muarl.comparison.power import Needed, difference_variance, grid_variance, needed, single_variance
from muarl.comparison.rows import verdicts_of
from muarl.comparison.significance import holm, mcnemar, sign_flip, stratified
from muarl.errors import ConfigError
from muarl.statistics import Estimate, Interval, mean_interval, pass_hat, pass_hats_of

MCNEMAR, SIGN_FLIP, STRATIFIED = "McNemar, exact", "sign flips of tasks", "exact within tasks"
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
    ``letters``: groups that it is in; ``rank``: best and worst place that it may have. ``above_nothing``: whether its
    interval lies above the do-nothing baseline, None where that is unknown."""

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
    needed: Needed | None

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
            "pass_hat": {str(k): e.to_json() for k, e in self.pass_hat.items()},
            "do_nothing": r.do_nothing,
            "above_do_nothing": self.above_nothing,
            "trials": list(self.trials),
            "groups": self.letters,
            "rank": list(self.rank),
            "missing_tasks": list(self.missing),
            "unpaired_attempts": self.unpaired,
            "excluded": [{"task": x.task, "trial": x.trial, "why": x.why} for x in r.excluded],
            "components": self.components and self.components.to_json(),
            "judge_components": self.judges and self.judges.to_json(),
            "needed": self.needed and self.needed.to_json(),
        }


@dataclass(frozen=True)
class PairResult:
    """Two runs, the one with more success first: ``difference`` of their success, with its interval (of this pair
    alone).

    ``adjusted``: the p-value after Holm's correction for all pairs. ``better``: the index of the run that is, None if
    they cannot be told apart. ``first_ahead`` and ``second_ahead``: tasks on which one has the larger share.
    """

    first: int
    second: int
    difference: float
    interval: Interval
    test: str
    p: float
    adjusted: float
    better: int | None
    first_ahead: int
    second_ahead: int
    pass_hat: Mapping[int, tuple[float, Interval]]
    needed: Needed

    @property
    def worse(self) -> int | None:
        """The index of the run that is worse, None if they cannot be told apart."""
        return None if self.better is None else self.first + self.second - self.better

    @property
    def at_odds(self) -> bool:
        """Whether the interval leaves 0 out and the test, which decides, does not reject that it is 0."""
        low, high = self.interval
        return self.better is None and self.p == self.adjusted and not low <= 0 <= high

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Plain JSON, runs by name."""
        return {
            "first": names[self.first],
            "second": names[self.second],
            "difference": self.difference,
            "interval": list(self.interval),
            "test": self.test,
            "p": self.p,
            "p_holm": self.adjusted,
            "better": None if self.better is None else names[self.better],
            "tasks_first_ahead": self.first_ahead,
            "tasks_second_ahead": self.second_ahead,
            "pass_hat": {str(k): {"difference": d, "interval": list(i)} for k, (d, i) in self.pass_hat.items()},
            "needed": self.needed.to_json(),
        }


@dataclass(frozen=True)
class Comparison:
    """Everything that is shown. ``scores``: in the order in which the runs were named. ``groups``: sets of runs, by
    index, of which no two can be told apart, that of the best run first."""

    settings: Settings
    tasks: tuple[str, ...]
    by: str
    scores: tuple[RunScore, ...]
    pairs: tuple[PairResult, ...]
    groups: tuple[tuple[int, ...], ...]
    changed: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The runs' names."""
        return tuple(score.results.name for score in self.scores)

    @property
    def order(self) -> list[int]:
        """The runs by success, the highest first."""
        return sorted(range(len(self.scores)), key=lambda i: -self.scores[i].success.value)

    def verdict(self) -> str:
        """The finding in a sentence or two."""
        names = self.names
        if not self.pairs:
            return "One run: there is nothing to compare it with."
        told = [p for p in self.pairs if p.better is not None]
        if len(self.pairs) == 1:
            (only,) = self.pairs
            a, b = names[only.first], names[only.second]
            if only.better is None:
                return f"{a} and {b} cannot be told apart."
            return f"{names[only.better]} is better than {a if only.better == only.second else b}."
        if not told:
            return f"None of the {len(names)} runs can be told apart from another."
        best = self.groups[0]
        if len(best) == 1:
            return f"{names[best[0]]} is the best of {len(names)} runs."
        return f"Of {len(names)} runs, the best is one of {_listed([names[i] for i in best])}: which cannot be told."

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
            "changed_tasks": list(self.changed),
            "warnings": list(self.warnings),
        }


def compare(runs: Sequence[Results], settings: Settings = Settings()) -> Comparison:
    """Compare runs on the tasks that they share. DataError if they share none; ConfigError if ``these_tasks`` is asked
    for with a single trial a task."""
    paired = pair(runs, keep_changed=settings.keep_changed)
    pairs = _pairs(paired, settings)
    better = {(p.better, p.worse) for p in pairs if p.better is not None and p.worse is not None}
    apart = {(min(a, b), max(a, b)) for a, b in better}
    means = [fmean(paired.means(i)) for i in range(len(runs))]
    groups = indistinct_groups(len(runs), apart)
    groups.sort(key=lambda group: (-max(means[i] for i in group), group))
    groups = [tuple(sorted(group, key=lambda i: -means[i])) for group in groups]
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
            )
        )
    return Comparison(
        settings, paired.tasks, paired.by, tuple(scores), tuple(pairs), tuple(groups), paired.changed, paired.warnings
    )


def _pairs(paired: Paired, settings: Settings) -> list[PairResult]:
    found = []
    count = len(paired.runs)
    number = count * (count - 1) // 2
    means = [fmean(paired.means(i)) for i in range(count)]
    for first, second in combinations(sorted(range(count), key=lambda i: -means[i]), 2):
        one, other = paired.trials(first), paired.trials(second)
        gaps = [_share(a) - _share(b) for a, b in zip(one, other, strict=True)]
        if settings.these_tasks:
            interval = same_tasks_interval(one, other)
            if interval is None:
                raise ConfigError(
                    "--these-tasks: the noise of trials is known only where every task has at least two in each run; "
                    "leave the option out, or evaluate with --trials 2 or more"
                )
            test = STRATIFIED
            p = stratified([(sum(a), len(a), sum(b), len(b)) for a, b in zip(one, other, strict=True)])
        else:
            interval = paired_bootstrap([float(g) for g in gaps])
            if all(len(t) == 1 for t in (*one, *other)):
                test, p = MCNEMAR, mcnemar(sum(g > 0 for g in gaps), sum(g < 0 for g in gaps))
            else:
                test, p = SIGN_FLIP, sign_flip(gaps)
        spread = difference_variance(one, other, seeded=paired.by == BY_SEED)
        wanted = needed(spread, settings.difference, alpha=settings.alpha / number, power=settings.power)
        found.append(
            PairResult(
                first,
                second,
                float(sum(gaps) / len(gaps)),
                interval,
                test,
                p,
                p,
                None,
                sum(g > 0 for g in gaps),
                sum(g < 0 for g in gaps),
                _pass_hat_gaps(one, other),
                wanted,
            )
        )
    adjusted = holm([p.p for p in found])
    return [_decided(result, q, settings.alpha) for result, q in zip(found, adjusted, strict=True)]


def _decided(result: PairResult, adjusted: float, alpha: float) -> PairResult:
    better = None
    if adjusted <= alpha and result.difference:
        better = result.first if result.difference > 0 else result.second
    return PairResult(**{**vars(result), "adjusted": adjusted, "better": better})


def _pass_hat_gaps(one: Sequence[Sequence[bool]], other: Sequence[Sequence[bool]]) -> dict[int, tuple[float, Interval]]:
    """The differences in pass^k beyond k = 1, for each k that every task has trials for."""
    most = min(map(len, (*one, *other)))
    out = {}
    for k in [k for k in KS[1:] if k <= most]:
        gaps = [pass_hat(sum(a), len(a), k) - pass_hat(sum(b), len(b), k) for a, b in zip(one, other, strict=True)]
        out[k] = fmean(gaps), paired_bootstrap(gaps)
    return out


def _share(trials: Sequence[bool]) -> Fraction:
    return Fraction(sum(trials), len(trials))


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number + 1})"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def why_excluded(excluded: Sequence[Excluded], most: int = 3) -> list[tuple[str, int]]:
    """The commonest reasons, with how many attempts each left out."""
    return Counter(x.why for x in excluded).most_common(most)
