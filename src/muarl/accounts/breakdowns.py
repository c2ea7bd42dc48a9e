"""Success by kind of episode: by a tag, by the traits and strata of users, by the faults of systems."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from muarl.accounts.intervals import Estimate, share_of
from muarl.accounts.metrics import scored
from muarl.accounts.strata import Outcome, StratumResult, tested
from muarl.accounts.success import success_rate
from muarl.types.episode import FAULTS, Episode


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


def _part(episode: Episode, trait: str) -> str | None:
    user_traits = episode.tags.get("traits")
    level = user_traits.get(trait) if isinstance(user_traits, Mapping) else None
    if not isinstance(level, (int, float)):
        return None
    return next((f"{most - 0.25:g} to {most:g}" for most in (0.25, 0.5, 0.75) if level <= most), "0.75 to 1")


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
