"""Agents of known strength on tasks of Beta-distributed difficulty, and how well comparisons of them do.

    PYTHONPATH=src:tests python -m support.simulated_agents

measures what docs/history/compare.md reports: coverage of intervals, false findings, power.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from muarl.accounts.strata import holm
from muarl_tools.compare.attempts import PlayedTask, Results
from muarl_tools.compare.components import grid_components
from muarl_tools.compare.differences import paired_bootstrap, same_tasks_interval
from muarl_tools.compare.power import difference_variance, needed
from muarl_tools.compare.significance import sign_flip_counts, stratified

Outcomes = NDArray[np.bool_]


@dataclass(frozen=True)
class Strength:
    """Difficulty: a task's chance of success is Beta(mean * spread, (1 - mean) * spread), so a small spread means tasks
    that nearly always succeed or fail. ``lead``: how much likelier the better agent succeeds, on the mean.
    ``own``: standard deviation, by task, of how the second agent differs from the first besides."""

    mean: float = 0.6
    spread: float = 2.0
    lead: float = 0.0
    own: float = 0.0

    def chances(self, random: np.random.Generator, tasks: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Each task's chance of the first and the second agent. The mean difference is ``lead`` exactly: a share of it
        is lost where a chance would leave [0, 1], and the lead is scaled for that."""
        first = random.beta(self.mean * self.spread, (1 - self.mean) * self.spread, tasks)
        # Drawn towards 1 by a factor: the mean of (1 - p) is 1 - mean, so the mean gain is the lead.
        second = first + self.lead / (1 - self.mean) * (1 - first)
        room = np.minimum(second, 1 - second)
        return first, second + np.clip(random.choice([-1.0, 1.0], tasks) * self.own, -room, room)


def outcomes(random: np.random.Generator, chances: NDArray[np.float64], trials: int) -> Outcomes:
    """(tasks, trials)."""
    return random.random((len(chances), trials)) < chances[:, None]


def as_results(name: str, found: Outcomes, *, seeds: bool = False) -> Results:
    """A run with these outcomes."""
    attempts = [
        PlayedTask(f"task-{t}", n, bool(good), 100 + n if seeds else None)
        for t, row in enumerate(found)
        for n, good in enumerate(row)
    ]
    return Results(name, f"{name}.jsonl", "simulated", tuple(attempts))


def coverage(random: np.random.Generator, how: Strength, tasks: int, trials: int, repeats: int) -> float:
    """The share of intervals of a difference that hold the true one, over tasks like these."""
    hits = 0
    for n in range(repeats):
        first, second = (outcomes(random, p, trials) for p in how.chances(random, tasks))
        low, high = paired_bootstrap((second.mean(axis=1) - first.mean(axis=1)).tolist(), resamples=1000, seed=n)
        hits += low <= how.lead <= high
    return hits / repeats


def same_tasks_coverage(random: np.random.Generator, how: Strength, tasks: int, trials: int, repeats: int) -> float:
    """The same on these very tasks, whose true difference is their own."""
    hits = 0
    for _ in range(repeats):
        p, q = how.chances(random, tasks)
        found = same_tasks_interval(outcomes(random, q, trials).tolist(), outcomes(random, p, trials).tolist())
        assert found is not None
        hits += found[0] <= float((q - p).mean()) <= found[1]
    return hits / repeats


def differs(first: Outcomes, second: Outcomes) -> float:
    """The p-value over tasks of the same number of trials."""
    return sign_flip_counts((first.sum(axis=1) - second.sum(axis=1)).tolist())


def false_findings(
    random: np.random.Generator, how: Strength, agents: int, tasks: int, trials: int, repeats: int
) -> float:
    """How often any pair of equally good agents is told apart, after Holm's correction at 0.05."""
    wrong = 0
    for _ in range(repeats):
        runs = []
        chance, _ = how.chances(random, tasks)
        for _ in range(agents):
            room = np.minimum(chance, 1 - chance)
            own = np.clip(random.choice([-1.0, 1.0], tasks) * how.own, -room, room)  # as good, but on other tasks
            runs.append(outcomes(random, chance + own, trials))
        p_values = [differs(runs[i], runs[j]) for i in range(agents) for j in range(i)]
        wrong += min(holm(p_values)) <= 0.05
    return wrong / repeats


def power_of(
    random: np.random.Generator, how: Strength, tasks: int, trials: int, repeats: int, *, these_tasks: bool = False
) -> float:
    """How often the better agent is found to be better."""
    found = 0
    for _ in range(repeats):
        first, second = (outcomes(random, p, trials) for p in how.chances(random, tasks))
        if these_tasks:
            counts = zip(second.sum(axis=1).tolist(), first.sum(axis=1).tolist(), strict=True)
            p = stratified([(a, trials, b, trials) for a, b in counts])
        else:
            p = differs(second, first)
        found += p <= 0.05 and second.mean() > first.mean()
    return found / repeats


def planned(
    random: np.random.Generator, how: Strength, tasks: int, trials: int, *, pilots: int = 200
) -> dict[str, int]:
    """How many trials, or tasks, a difference of the lead needs by pilots of this size: the mean of the answers that
    are a number."""
    answers: dict[str, list[float]] = {"trials_same_tasks": [], "trials": [], "tasks": []}
    for _ in range(pilots):
        first, second = (outcomes(random, p, trials).tolist() for p in how.chances(random, tasks))
        found = needed(difference_variance(second, first, seeded=False), how.lead).to_json()
        for name, values in answers.items():
            values.append(np.inf if found[name] is None else found[name])
    finite = {name: [v for v in values if np.isfinite(v)] for name, values in answers.items()}
    return {name: round(fmean(values)) for name, values in finite.items() if values}


def grids(random: np.random.Generator, tasks: int, agents: int, users: int, repeats: int = 1) -> NDArray[np.float64]:
    """Outcomes whose components are known: of the variance 0.25, tasks have 0.04, agents' seeds 0.0225, users' 0.01,
    and the rest belongs to pairs of seeds: repeats of a pair have the same outcome."""
    chance = (
        0.5
        + 0.2 * random.choice([-1, 1], (tasks, 1, 1))
        + 0.15 * random.choice([-1, 1], (tasks, agents, 1))
        + 0.1 * random.choice([-1, 1], (tasks, 1, users))
    )
    once = (random.random((tasks, agents, users)) < chance).astype(np.float64)
    return np.repeat(once[..., None], repeats, axis=3)


TRUE_SHARES = {"task": 0.16, "agent": 0.09, "user": 0.04, "agent and user": 0.71}


def component_coverage(random: np.random.Generator, tasks: int, repeats: int) -> dict[str, float]:
    """The share of intervals of components that hold the true share."""
    hits = dict.fromkeys(TRUE_SHARES, 0)
    for _ in range(repeats):
        found = grid_components(grids(random, tasks, 3, 3))
        for name, true in TRUE_SHARES.items():
            low, high = found[name].interval
            hits[name] += low <= true <= high
    return {name: n / repeats for name, n in hits.items()}


def main(repeats: Sequence[str] = ()) -> None:
    """Print what docs/history/compare.md reports."""
    count, random, began = int(repeats[0]) if repeats else 2000, np.random.default_rng(0), time.perf_counter()
    say = sys.stdout.write
    say(f"{count} simulations each\n\ncoverage of 95% intervals of a difference of 5 points\n")
    for tasks, trials in ((20, 1), (20, 4), (50, 1), (50, 4), (114, 4), (400, 1)):
        how = Strength(lead=0.05, own=0.1)
        line = f"  {tasks} tasks, {trials} trials: {coverage(random, how, tasks, trials, count):.3f}"
        if trials > 1:
            line += f"; on these very tasks {same_tasks_coverage(random, how, tasks, trials, count):.3f}"
        say(line + "\n")
    say("\nany false finding among equally good agents\n")
    for agents, tasks, trials in ((2, 50, 1), (2, 50, 4), (2, 114, 4), (4, 50, 4), (6, 114, 4)):
        same = false_findings(random, Strength(), agents, tasks, trials, count)
        other = false_findings(random, Strength(own=0.2), agents, tasks, trials, count)
        say(f"  {agents} agents, {tasks} tasks, {trials} trials: {same:.3f}; good at different tasks {other:.3f}\n")
    say("\npower where 80% was planned, for 6 points\n")
    for name, how, tasks, trials in (
        ("tasks", Strength(lead=0.06, own=0.15), 50, 4),
        ("trials", Strength(lead=0.06), 100, 4),
        ("trials_same_tasks", Strength(lead=0.06), 50, 4),
    ):
        plan = planned(random, how, tasks, trials)[name]
        n, m = (plan, trials) if name == "tasks" else (tasks, plan)
        got = power_of(random, how, n, m, count, these_tasks=name == "trials_same_tasks")
        say(f"  from {tasks} tasks with {trials} trials: {plan} {name}; power {got:.3f}\n")
    say("\ncoverage of intervals of shares of variance, 3 x 3 seeds\n")
    for tasks in (20, 50, 100):
        found = component_coverage(random, tasks, count // 4)
        say(f"  {tasks} tasks: " + ", ".join(f"{name} {share:.3f}" for name, share in found.items()) + "\n")
        say(f"  (mean {fmean(found.values()):.3f})\n")
    say(f"\n{time.perf_counter() - began:.0f} s\n")


if __name__ == "__main__":
    main(sys.argv[1:])
