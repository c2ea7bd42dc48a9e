"""What share of episodes succeeded, succeeded without any violation, and how much of their tasks was done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from muarl.accounts.intervals import Estimate, share_of
from muarl.accounts.metrics import by_domain, clean_outcomes, is_success, scored
from muarl.types.episode import Episode


def by_task(episodes: Iterable[Episode]) -> dict[str, list[bool]]:
    """Task id to the outcome of each scored attempt."""
    out: dict[str, list[bool]] = defaultdict(list)
    for e in scored(episodes):
        out[e.task_id].append(is_success(e.reward))
    return dict(out)


def success_rate(episodes: Iterable[Episode]) -> Estimate:
    """The share of scored episodes that succeeded.

    The interval is that of a mean over tasks (``mean_interval``), because attempts at one task resemble each other.
    """
    return share_of(by_task(episodes).values())


def clean_success_rate(episodes: Iterable[Episode]) -> Estimate | None:
    """The share of scored episodes that succeeded without any violation (``metrics.clean_outcomes``), with the interval
    of ``success_rate``; None where that was not checked."""
    tasks: dict[str, list[bool]] = defaultdict(list)
    for e, clean in clean_outcomes(episodes) or ():
        tasks[e.task_id].append(clean)
    return share_of(tasks.values()) if tasks else None


def task_completion(episodes: Iterable[Episode]) -> Estimate | None:
    """The mean share of what was to be done that scored episodes did (``audit["completion"]`` of their verdicts), with
    the interval of ``success_rate``. Episodes of tasks in which nothing was to be done are left out; None if there are
    no others."""
    tasks: dict[str, list[float]] = defaultdict(list)
    for e in scored(episodes):
        if e.verdict is not None and (share := e.verdict.audit.get("completion")) is not None:
            tasks[e.task_id].append(share)
    return share_of(tasks.values()) if tasks else None


def scores_by_domain(measured: Mapping[str, Iterable[Episode]]) -> dict[str, dict[str, float]]:
    """By domain, success in each of several evaluations (by name): the ``by_domain`` block of summary.json. Empty for
    a run of one domain."""
    scores: dict[str, dict[str, float]] = {}
    for name, episodes in measured.items():
        for domain, own in by_domain(episodes).items():
            if scored(own):
                scores.setdefault(domain, {})[name] = success_rate(own).value
    return scores
