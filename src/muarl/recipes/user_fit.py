"""Which levels of traits make rule-based users most like the people in logs.

Each trait has a figure that rises or falls with its level (users/traits/figures.py). Rule-based users are played
against the scripted expert at several levels, and the level at which their figure is that of the logs is the fitted
one. Since one trait shows a little in the figures of others, this is done twice: the second time with the other traits
at the levels that were found the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot

import numpy as np

from muarl.basics.event_loop import event_loop
from muarl.domains.tasks import Task
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.types.chat import Message
from muarl.users.agenda import AgendaUserFactory
from muarl.users.traits.factory import user_with_traits
from muarl.users.traits.figures import FALLS, Measurements, measure
from muarl.users.traits.levels import TRAITS, TraitRanges, Traits

GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
RESAMPLES = 1000
PASSES = 2

Say = Callable[[str], None]


@dataclass(frozen=True)
class Fit:
    """What a fit of the traits to logs says."""

    levels: Mapping[str, float]
    """By trait, the level."""
    intervals: Mapping[str, tuple[float, float]]
    """By trait, the 95% interval of the level, by chance in the logs and in the simulated conversations."""
    logs: Measurements
    """The figures of the logs."""
    curves: Mapping[str, tuple[float, ...]]
    """By trait, the figure of rule-based users at each level of GRID."""
    beyond: frozenset[str] = field(default_factory=frozenset)
    """Traits whose figure lies outside of what rule-based users show at any level."""


def check_traits(place: Place, task: Task) -> None:
    """ConfigError if the environment has no scripted expert, or no rule-based users that have traits."""
    place.expert_agent()
    user_with_traits(task, place.needed_user(), Traits(), seed=0)


def fit_traits(
    logs: Sequence[Sequence[Message]],
    place: Place,
    tasks: Sequence[Task],
    *,
    seed: int = 0,
    say: Say = lambda text: None,
) -> Fit:
    """Fit the levels of all traits to conversations. ValueError if nobody says anything in them; ConfigError as
    ``check_traits``. ``say``: gets a line about each step."""
    people = measure(logs, resamples=RESAMPLES, seed=seed)
    fitted = dict.fromkeys(TRAITS, 0.0)
    curves: dict[str, list[Measurements]] = {}
    for number in range(PASSES):
        before = dict(fitted)
        for name in TRAITS:
            say(f"pass {number + 1} of {PASSES}: {name.replace('_', ' ')}")
            curves[name] = [simulated(place, tasks, {**before, name: level}, seed) for level in GRID]
            fitted[name] = _level(name, _values(name, curves[name]), people.figures[name])
    ends = {name: _ends(name, people, curves[name], fitted[name]) for name in TRAITS}
    levels = {name: _levels(name, _values(name, curves[name]), ends[name]) for name in TRAITS}
    values = {name: _values(name, curves[name]) for name in TRAITS}
    beyond = frozenset(n for n in TRAITS if ends[n][1] < min(values[n]) or ends[n][0] > max(values[n]))
    return Fit(fitted, levels, people, values, beyond)


def simulated(place: Place, tasks: Sequence[Task], levels: Mapping[str, float], seed: int) -> Measurements:
    """The figures of rule-based users with these levels, who talk with the scripted expert."""
    users = AgendaUserFactory(place.needed_user(), traits=TraitRanges.of(levels))
    with event_loop() as loop:
        played = loop.run(play_in(Places([place]), place.expert_agent(), users, tasks, 1, seed=seed, label="fit"))
    return measure((episode.messages for episode in played.episodes), resamples=RESAMPLES, seed=seed)


def _rising(name: str, curve: Sequence[float]) -> np.ndarray:
    """The curve as one that never falls, turned where it is to fall: chance makes small steps back."""
    values = np.array(curve) * (-1 if name in FALLS else 1)
    return (np.maximum.accumulate(values) + np.minimum.accumulate(values[::-1])[::-1]) / 2


def _level(name: str, curve: Sequence[float], figure: float) -> float:
    """The level at which a figure has this value, between those of GRID in proportion."""
    values = _rising(name, curve)
    target = -figure if name in FALLS else figure
    if values[-1] - values[0] < 1e-9 or target <= values[0]:
        return 0.0
    steps = np.concatenate([[True], np.diff(values) > 1e-12])
    return round(float(np.interp(target, values[steps], np.array(GRID)[steps])), 3)


def _values(name: str, curve: Sequence[Measurements]) -> tuple[float, ...]:
    return tuple(point.figures[name] for point in curve)


def _ends(name: str, people: Measurements, curve: Sequence[Measurements], level: float) -> tuple[float, float]:
    """The interval of a figure of the logs, with the chance in the simulated figure beside the level added to it."""
    near = min(range(len(GRID)), key=lambda i: abs(GRID[i] - level))
    figure, other = people.figures[name], curve[near].figures[name]
    (low, high), (below, above) = people.intervals[name], curve[near].intervals[name]
    return figure - hypot(figure - low, above - other), figure + hypot(high - figure, other - below)


def _levels(name: str, curve: Sequence[float], ends: tuple[float, float]) -> tuple[float, float]:
    low, high = sorted(_level(name, curve, end) for end in ends)
    return low, high
