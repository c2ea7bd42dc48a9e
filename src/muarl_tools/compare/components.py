"""Where the noise of scores comes from: variance components, by the analysis of variance of balanced repeats.

Method of moments on 0/1 outcomes: mean squares of each source set to their expectations, which makes the estimates
unbiased whatever the distribution (Searle, Casella, McCulloch 1992, chapter 4). Intervals are jackknifed over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muarl.accounts.intervals import Interval
from muarl_tools.compare.attempts import PlayedTask
from muarl_tools.compare.significance import t_quantile

TASK, TRIAL = "task", "trial"
AGENT, USER, BOTH, REST, JUDGE = "agent", "user", "agent and user", "repeat", "judge"

Grid = NDArray[np.float64]
"""Outcomes of one task: agent seeds x user seeds x repeats."""


@dataclass(frozen=True)
class Component:
    """One source of variance: ``variance`` of a single attempt's outcome (below 0 only by estimation), its ``share`` of
    the sum of all (those below 0 as 0), and the 95% interval of the share."""

    name: str
    variance: float
    share: float
    interval: Interval

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"variance": self.variance, "share": self.share, "interval": list(self.interval)}


@dataclass(frozen=True)
class Components:
    """The variance of one attempt's outcome by source. ``design``: what was repeated, in words. ``tasks``: how many.

    ``left_out``: tasks whose repeats are not complete.
    """

    design: str
    tasks: int
    parts: tuple[Component, ...]
    left_out: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Component:
        return next(part for part in self.parts if part.name == name)

    def __contains__(self, name: str) -> bool:
        return any(part.name == name for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        parts = {part.name: part.to_json() for part in self.parts}
        return {"design": self.design, "tasks": self.tasks, "left_out": list(self.left_out), "components": parts}


def trial_components(trials: Sequence[Sequence[bool]]) -> Components | None:
    """Tasks and trials, from repeated trials; None with fewer than two tasks, or where no task has two trials.

    Tasks with one trial say nothing about trials, and are left out here.
    """
    kept = [np.asarray(t, dtype=np.float64) for t in trials if len(t) > 1]
    if len(kept) < 2:
        return None
    sizes = np.array([len(t) for t in kept], dtype=np.float64)
    means, within = np.array([t.mean() for t in kept]), np.array([t.var(ddof=1) for t in kept])

    def estimate(chosen: NDArray[np.int64]) -> dict[str, float]:
        trial = float(within[chosen].mean())
        between = float(means[chosen].var(ddof=1) - (within[chosen] / sizes[chosen]).mean())
        return {TASK: between, TRIAL: trial}

    least, most = int(sizes.min()), int(sizes.max())
    return _shares(estimate, len(kept), f"{least if least == most else f'{least} to {most}'} trials of each task")


def seed_components(attempts: Sequence[PlayedTask]) -> Components | None:
    """Task, agent, user, both together and what no seed decides, from repeats of a grid of seeds (muarl eval --noise).

    "agent": what changes with the agent's seed whoever the user is; "user": the other way round; "agent and user": what
    depends on which of them meet, with all that no seed decides where nothing was repeated with the same seeds. None if
    the attempts are no such grid.
    """
    by_task: dict[str, dict[tuple[int, int, int], float]] = {}
    for a in attempts:
        if a.seed is None or a.user_seed is None:
            return None
        by_task.setdefault(a.task, {})[a.seed, a.user_seed, a.repeat] = float(a.success)
    if not by_task:
        return None
    # Seeds differ from task to task, so the grid is known by its shape: the largest that any task has.
    shapes = {task: _shape(cells) for task, cells in by_task.items()}
    wanted = max(shapes.values(), key=lambda s: s[0] * s[1] * s[2])
    complete = {t: c for t, c in by_task.items() if shapes[t] == wanted and len(c) == wanted[0] * wanted[1] * wanted[2]}
    left_out = tuple(t for t in by_task if t not in complete)
    if len(complete) < 2 or wanted[:2] == (1, 1):
        return None
    grids = np.stack([_grid(cells, wanted) for cells in complete.values()])
    return grid_components(grids, left_out)


def _shape(cells: Mapping[tuple[int, int, int], float]) -> tuple[int, int, int]:
    return len({c[0] for c in cells}), len({c[1] for c in cells}), len({c[2] for c in cells})


def _grid(cells: Mapping[tuple[int, int, int], float], shape: tuple[int, int, int]) -> Grid:
    places = [{value: n for n, value in enumerate(dict.fromkeys(c[axis] for c in cells))} for axis in range(3)]
    out = np.zeros(shape)
    for (agent, user, repeat), value in cells.items():
        out[places[0][agent], places[1][user], places[2][repeat]] = value
    return out


def grid_components(grids: Grid, left_out: tuple[str, ...] = ()) -> Components:
    """The same from outcomes of shape (tasks, agent seeds, user seeds, repeats)."""
    _, agents, users, repeats = grids.shape
    cell = grids.mean(axis=3)
    by_agent, by_user, whole = cell.mean(axis=2), cell.mean(axis=1), cell.mean(axis=(1, 2))
    squares = {}
    if agents > 1:
        squares[AGENT] = users * repeats * by_agent.var(axis=1, ddof=1)
    if users > 1:
        squares[USER] = agents * repeats * by_user.var(axis=1, ddof=1)
    if agents > 1 and users > 1:
        odd = cell - by_agent[:, :, None] - by_user[:, None, :] + whole[:, None, None]
        squares[BOTH] = repeats * (odd**2).sum(axis=(1, 2)) / ((agents - 1) * (users - 1))
    if repeats > 1:
        squares[REST] = ((grids - cell[..., None]) ** 2).sum(axis=(1, 2, 3)) / (agents * users * (repeats - 1))

    def estimate(chosen: NDArray[np.int64]) -> dict[str, float]:
        mean = {name: float(values[chosen].mean()) for name, values in squares.items()}
        rest = mean.get(REST, 0.0)
        found = {} if REST not in mean else {REST: rest}
        both = None if BOTH not in mean else (mean[BOTH] - rest) / repeats
        below = mean.get(BOTH, rest)  # what the mean squares of one side alone contain besides
        if AGENT in mean:
            found[AGENT] = (mean[AGENT] - below) / (users * repeats)
        if USER in mean:
            found[USER] = (mean[USER] - below) / (agents * repeats)
        if both is not None:
            found[BOTH] = both
        noise = found.get(AGENT, 0.0) / agents + found.get(USER, 0.0) / users
        noise += (found.get(BOTH, 0.0) + rest / repeats) / (agents * users)
        found[TASK] = float(whole[chosen].var(ddof=1)) - noise
        return {name: found[name] for name in (TASK, AGENT, USER, BOTH, REST) if name in found}

    repeated = f", each {repeats} times" if repeats > 1 else ""
    design = f"{agents} seeds of the agent with {users} of the user{repeated}"
    return _shares(estimate, grids.shape[0], design, left_out)


def judge_components(verdicts: Mapping[str, Sequence[Sequence[bool]]]) -> Components | None:
    """Task, conversation and judge, from several verdicts on the same conversations.

    ``verdicts``: task id to its conversations, each with all verdicts on it, the same number of each. None where no
    conversation has two, or there are fewer than two tasks.
    """
    kept = {t: [c for c in own if len(c) > 1] for t, own in verdicts.items()}
    kept = {t: own for t, own in kept.items() if own}
    if len(kept) < 2:
        return None
    judge = np.array([np.mean([np.var(c, ddof=1) for c in own]) for own in kept.values()])
    error = np.array([np.mean([np.var(c, ddof=1) / len(c) for c in own]) for own in kept.values()])
    means = [np.array([np.mean(c) for c in own]) for own in kept.values()]
    several = all(len(own) > 1 for own in means)
    between = np.array([m.var(ddof=1) if several else 0.0 for m in means])
    numbers, whole = np.array([len(m) for m in means], dtype=np.float64), np.array([m.mean() for m in means])

    def estimate(chosen: NDArray[np.int64]) -> dict[str, float]:
        found = {JUDGE: float(judge[chosen].mean())}
        noise = (error[chosen] / numbers[chosen]).mean()
        if several:
            found[TRIAL] = float((between[chosen] - error[chosen]).mean())
            noise = (between[chosen] / numbers[chosen]).mean()
        return {TASK: float(whole[chosen].var(ddof=1) - noise), **found}

    least = min(len(c) for own in kept.values() for c in own)
    return _shares(estimate, len(kept), f"{least} verdicts on each conversation")


def _shares(
    estimate: Callable[[NDArray[np.int64]], dict[str, float]],
    tasks: int,
    design: str,
    left_out: tuple[str, ...] = (),
) -> Components:
    """Components with intervals by the jackknife over tasks (Efron and Tibshirani 1993, chapter 11): Student's t around
    the share, leaving out one task at a time. A bootstrap would show no doubt of a component that is estimated as 0."""
    everything = np.arange(tasks)
    found = estimate(everything)
    names = list(found)
    sizes = [max(0.0, found[name]) for name in names]
    whole = sum(sizes)
    raw = _ratio(found, names)
    if tasks > 2 and whole > 0:
        left = np.array([_ratio(estimate(np.delete(everything, i)), names) for i in range(tasks)])
        error = np.sqrt((tasks - 1) / tasks * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
        reach = t_quantile(0.975, tasks - 1) * error
    else:
        reach = np.ones(len(names))
    parts = []
    for i, name in enumerate(names):
        share = sizes[i] / whole if whole > 0 else 0.0
        low, high = min(raw[i] - reach[i], share), max(raw[i] + reach[i], share)
        parts.append(Component(name, found[name], share, (max(0.0, float(low)), min(1.0, float(high)))))
    return Components(design, tasks, tuple(parts), left_out)


def _ratio(found: Mapping[str, float], names: Sequence[str]) -> NDArray[np.float64]:
    """Shares of the sum, those below 0 left so, as only the sum of unbiased parts is without bias."""
    values = np.array([found[name] for name in names])
    whole = values.sum()
    return values / whole if whole > 0 else np.zeros(len(names))
