"""What the saved runs of a reproduction show: success by arm and environment, and paired comparisons of arms.

A task's outcome under an arm is the mean over its seeds; where two arms are compared, over those that both have.
Intervals and tests are over tasks, given the trained models; how much the models of different seeds differ is said
beside them (lowest and highest seed).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np

from muarl.accounts.intervals import Interval, mean_interval, wilson
from muarl.accounts.metrics import DOMAIN, by_domain, episode_metrics, is_success, scored, without_violation
from muarl.accounts.pass_hat import pass_hats
from muarl.config.sections import RunConfig
from muarl.config.stages import ReproduceConfig
from muarl.observe.rundir import RunDirectory
from muarl.types.episode import Episode
from muarl_tools.experiments.reproduce.plan import (
    BASE,
    BOTH,
    COLD,
    MORE,
    RL,
    SFT,
    TRAIN,
    ArmEvaluation,
    evaluations,
    stages,
)
from muarl_tools.experiments.stages import Stage

PAIRS = ((COLD, BASE), (RL, BASE), (BOTH, BASE), (RL, COLD), (BOTH, COLD), (BOTH, RL), (MORE, COLD), (BOTH, MORE))
"""The comparisons of arms: the first minus the second."""
PHASES = {SFT: ("cold_start", ""), TRAIN: ("rl", "update/")}
"""What the rows of figures of a recipe's steps are called, and the beginning of an update's figures in them."""
RESAMPLES = 10_000
FLOORS = {"do_nothing": "doing nothing", "always_transfer": "always transferring"}
"""The baselines of an evaluation's summary, and what they are called."""
BEHAVIOUR = (
    "turns", "needless_transfers", "writes_without_consent", "catastrophic", "tool_error_rate", "truncated",
)  # fmt: skip


@dataclass(frozen=True)
class ArmScore:
    """Success of one arm in one environment, or in several. ``interval``: over tasks; ``seeds``: each seed's own."""

    value: float
    interval: Interval
    seeds: tuple[float, ...]
    tasks: int


@dataclass(frozen=True)
class ArmDifference:
    """How much more one arm succeeds than another at the same tasks. ``p``: two-sided, see ``sign_flips``."""

    value: float
    interval: Interval
    p: float
    tasks: int


@dataclass(frozen=True)
class ArmsMeasured:
    """Everything that the page shows of one user. ``outcomes``: by arm and seed (the base's is None), each task's
    success, the mean of its trials; a task's id begins with its environment. ``floors``: what "do_nothing" and
    "always_transfer" score, by environment. ``hats``: pass^k by arm and environment, means over seeds; ``hat_tasks``:
    of how many tasks.
    ``figures``: behaviour by arm and group of environments, means over seeds. ``clean``: like ``outcomes``, success
    without any violation, of the tasks whose episodes were audited. ``turns``: by arm and environment, the figures of
    ``recipes/evaluation/next_turns.py`` as means over seeds, where evaluations have them."""

    user: str
    outcomes: Mapping[str, Mapping[int | None, Mapping[str, float]]]
    floors: Mapping[str, Mapping[str, float]]
    figures: Mapping[str, Mapping[str, Mapping[str, float]]]
    clean: Mapping[str, Mapping[int | None, Mapping[str, float]]] = field(default_factory=dict)
    turns: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    hats: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    hat_tasks: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    @property
    def nothing(self) -> Mapping[str, float]:
        """What doing nothing scores, by environment."""
        return self.floor("do_nothing")

    def floor(self, name: str) -> dict[str, float]:
        """What a baseline scores, by the environments that it was measured in."""
        return {environment: own[name] for environment, own in self.floors.items() if name in own}

    def score(self, arm: str, environments: Sequence[str], *, clean: bool = False) -> ArmScore | None:
        """An arm's success in these environments taken together; None where it has not been evaluated. ``clean``:
        success without any violation; None where it was not checked either."""
        outcomes = self.clean if clean else self.outcomes
        found = self._tasks(arm, environments, outcomes)
        if not found:
            return None
        own = outcomes[arm].values()
        seeds = tuple(fmean(v for task, v in one.items() if task in found) for one in own)
        return ArmScore(fmean(found.values()), mean_interval(list(found.values())), seeds, len(found))

    def difference(
        self, one: str, other: str, environments: Sequence[str], *, clean: bool = False
    ) -> ArmDifference | None:
        """One arm's success minus another's at the tasks that both have played, over the seeds that both have (the base
        is one for all); None where there are none. ``clean``: success without any violation, None where one of them
        was not checked."""
        outcomes = self.clean if clean else self.outcomes
        seeds = None if BASE in (one, other) else set(outcomes.get(one, {})) & set(outcomes.get(other, {}))
        a, b = (self._tasks(arm, environments, outcomes, seeds) for arm in (one, other))
        both = [task for task in a if task in b]
        if not both:
            return None
        gaps = np.array([a[task] - b[task] for task in both])
        drawn = np.random.default_rng(0).integers(0, len(gaps), size=(RESAMPLES, len(gaps)))
        low, high = np.percentile(gaps[drawn].mean(axis=1), [2.5, 97.5])
        if not gaps.any():  # resampling cannot show any uncertainty then; Wilson's for tasks that differ can
            high = wilson(0, len(gaps))[1]
            low = -high
        return ArmDifference(float(gaps.mean()), (float(low), float(high)), sign_flips(gaps), len(both))

    def _tasks(
        self,
        arm: str,
        environments: Sequence[str],
        outcomes: Mapping[str, Mapping[int | None, Mapping[str, float]]],
        seeds: Collection[int | None] | None = None,
    ) -> dict[str, float]:
        """Each task's mean over the arm's seeds, or over these, of the tasks that all of them have played."""
        own = [each for seed, each in outcomes.get(arm, {}).items() if seeds is None or seed in seeds]
        if not own:
            return {}
        shared = [t for t in own[0] if t.split(":")[0] in environments and all(t in one for one in own)]
        return {task: fmean(one[task] for one in own) for task in shared}


def sign_flips(gaps: Sequence[float] | np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """The p-value of paired differences by flipping their signs at random: the share of flips whose mean is at least as
    far from 0 as the true one (with the true one among them). 1 where all are 0."""
    data = np.asarray(gaps, dtype=np.float64)
    data = data[data != 0.0]
    if not data.size:
        return 1.0
    signs = np.random.default_rng(seed).integers(0, 2, size=(resamples, data.size), dtype=np.int8) * 2 - 1
    flipped = np.abs(signs @ data)
    return float((1 + np.sum(flipped >= abs(data.sum()) - 1e-9)) / (1 + resamples))


def groups(wanted: ReproduceConfig) -> dict[str, tuple[str, ...]]:
    """The environments that figures are given for together, by what they are called."""
    kept_out = () if wanted.kept_out is None else (wanted.kept_out,)
    found = {"trained on by RL": wanted.rl, "never trained on": wanted.unseen, "never even read": kept_out}
    return {name: own for name, own in found.items() if own}


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction has found so far. ``by_user``: by who plays the user in evaluations. ``done``, ``planned``:
    stages. ``training``: the finished stages of RL, by arm. ``learned``: of each arm's own stage, by what kind it is,
    each seed's tokens, tokens with loss, and seconds."""

    config: RunConfig
    seeds: tuple[int, ...]
    by_user: Mapping[str, ArmsMeasured]
    done: int
    planned: int
    training: Mapping[str, Sequence[RunDirectory]] = field(default_factory=dict)
    base: Mapping[str, object] = field(default_factory=dict)
    learned: Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]] = field(default_factory=dict)


def measure(config: RunConfig, seeds: Sequence[int]) -> Reproduction:
    """Read the saved runs. Stages that are not finished are left out."""
    planned = stages(config, seeds)
    found: dict[str, list[ArmEvaluation]] = defaultdict(list)
    for evaluation in evaluations(config, seeds):
        if evaluation.stage.is_finished:
            found[evaluation.user].append(evaluation)
    training: dict[str, list[RunDirectory]] = defaultdict(list)
    for stage in planned:
        if stage.recipe == TRAIN and stage.is_finished:
            training[stage.name.split("-")[0]].append(RunDirectory.at(stage.folder))
    made = not config.reproduce.pretrained and planned[0].is_finished
    base = RunDirectory.at(planned[0].folder).read_json("summary") if made else {}
    return Reproduction(
        config,
        tuple(seeds),
        {user: _measured(config.reproduce, user, own) for user, own in found.items()},
        sum(stage.is_finished for stage in planned),
        len(planned),
        training,
        base,
        _learned(planned),
    )


def _learned(planned: Sequence[Stage]) -> dict[str, dict[str, list[dict[str, float]]]]:
    """See ``Reproduction.learned``."""
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    for stage in planned:
        phase, prefix = PHASES.get(stage.recipe, ("", ""))
        if not phase or not stage.is_finished:
            continue
        rows = [row for row in RunDirectory.at(stage.folder).read_metrics() if row.get("phase") == phase]
        if rows:
            sums = {n: sum(float(row.get(prefix + n, 0.0)) for row in rows) for n in ("tokens", "loss_tokens")}
            sums["seconds"] = float(rows[-1]["seconds"])
            found.setdefault(stage.name.split("-")[0], {}).setdefault(phase.replace("_", " "), []).append(sums)
    return found


def _measured(wanted: ReproduceConfig, user: str, found: Sequence[ArmEvaluation]) -> ArmsMeasured:
    outcomes: dict[str, dict[int | None, dict[str, float]]] = defaultdict(dict)
    clean: dict[str, dict[int | None, dict[str, float]]] = defaultdict(dict)
    rows: dict[tuple[str, str, str], list[Mapping[str, float]]] = defaultdict(list)  # by kind, arm and environment
    floors: dict[str, dict[str, float]] = {}
    for one in found:
        episodes, summary = _episodes(one.stage), RunDirectory.at(one.stage.folder).read_json("summary")
        outcomes[one.arm][one.seed], clean[one.arm][one.seed] = outcomes_of(episodes), clean_outcomes_of(episodes)
        for name, own in by_domain(episodes).items():
            hats = pass_hats(own)
            rows["hats", one.arm, name].append({str(k): e.value for k, e in hats.items()})
            rows["hat_tasks", one.arm, name].append({str(k): e.n for k, e in hats.items()})
        for group, names in groups(wanted).items():
            if own := [e for e in episodes if e.task_id.split(":")[0] in names]:
                rows["figures", one.arm, group].append(episode_metrics(own) | _catastrophic(summary, one.stage, names))
        for name, shares in summary.get("next_turns", {}).items():
            rows["turns", one.arm, name].append(shares)
        if one.arm == BASE:
            scores = summary.get("by_domain") or {one.stage.config.domains[0].name: summary}
            for name, block in scores.items():
                floors[name] = {n: block[n] for n in FLOORS if block.get(n) is not None}
    means: dict[str, dict[str, dict[str, dict[str, float]]]] = defaultdict(lambda: defaultdict(dict))
    for (kind, arm, name), each in rows.items():
        means[kind][arm][name] = _means(each, BEHAVIOUR if kind == "figures" else list(each[0]))
    several = means["hats"], means["hat_tasks"]
    return ArmsMeasured(user, outcomes, floors, means["figures"], clean, means["turns"], *several)


def _catastrophic(summary: Mapping[str, Any], stage: Stage, names: Sequence[str]) -> dict[str, float]:
    """The share of an evaluation's conversations in these environments with a catastrophic finding, by its audit."""
    audit = summary.get("audit") or {}
    parts = audit.get("by_domain") or {stage.config.domains[0].name: audit}
    found = [part["catastrophic"] for name, part in parts.items() if name in names and part.get("catastrophic")]
    count = sum(one["n"] for one in found)
    return {"catastrophic": sum(one["value"] * one["n"] for one in found) / count} if count else {}


def _episodes(stage: Stage) -> list[Episode]:
    """The episodes of an evaluation; of one with a single environment with its name before their tasks' ids."""
    found = RunDirectory.at(stage.folder).read_episodes("eval")
    if not by_domain(found):
        name = stage.config.domains[0].name
        for episode in found:
            episode.task_id = f"{name}:{episode.task_id}"
            episode.tags = {**episode.tags, DOMAIN: name}
    return found


def outcomes_of(episodes: Iterable[Episode]) -> dict[str, float]:
    """Each task's success, the mean of its trials."""
    return _by_task(episodes, lambda episode: is_success(episode.reward))


def clean_outcomes_of(episodes: Iterable[Episode]) -> dict[str, float]:
    """Each task's success without any violation, of the tasks whose episodes were all audited."""
    return _by_task(episodes, without_violation)


def _by_task(episodes: Iterable[Episode], of: Callable[[Episode], bool | None]) -> dict[str, float]:
    tried: dict[str, list[bool | None]] = defaultdict(list)
    for episode in scored(episodes):
        tried[episode.task_id].append(of(episode))
    return {task: fmean(bool(x) for x in own) for task, own in tried.items() if None not in own}


def _means(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, float]:
    """Those of these figures that all rows have, as means."""
    return {n: fmean(row[n] for row in rows) for n in names if all(n in row for row in rows)}
