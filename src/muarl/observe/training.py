"""What a run's training rows say of its learning as a whole: how many steps moved the weights, and how many could not.

A group of rollouts whose rewards are all equal has no advantage to learn from. A step that consists of such groups
leaves the weights as they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muarl.pages.markup import as_figure
from muarl.signs import PHASE, REMEDIES, Row, no_update, signs


def training_summary(rows: Iterable[Row]) -> dict[str, Any]:
    """The ``training`` block of summary.json, from a run's rows of figures: ``steps``; ``steps_without_update``;
    ``groups`` that were kept, and of those ``groups_equal``, whose rewards were all the same (left out where an older
    run did not count them); ``signs`` that something went wrong, causes first (``muarl.signs``)."""
    steps = [row for row in rows if row.get("phase") == PHASE]
    out: dict[str, Any] = {"steps": len(steps), "steps_without_update": sum(map(no_update, steps))}
    out["groups"] = _sum(steps, "groups_kept")
    if steps and all("groups_equal" in row for row in steps):
        out["groups_equal"] = _sum(steps, "groups_equal")
    return out | {"signs": [sign.to_json() for sign in signs(steps)]}


def _sum(rows: Iterable[Row], name: str) -> int:
    """The sum of a figure; what is none counts as 0, since a row may be somebody else's."""
    return int(sum(as_figure(row.get(name)) or 0.0 for row in rows))


def differing_text(groups: int, equal: int) -> str:
    """How many groups had something to learn from, in words."""
    return f"{groups - equal} of {groups} groups had differing rewards"


def what_went_wrong(rows: Iterable[Row]) -> list[str]:
    """Sentences for whoever looks at a training: its signs, causes first, each with its remedy, and how many steps
    updated nothing. The remedy for those is told only where no sign names another cause. Empty if all is well."""
    rows = list(rows)
    found = signs(rows)
    idle = idle_text(rows, remedy=not found)
    return [sign.line for sign in found] + ([] if idle is None else [idle])


def idle_text(rows: Iterable[Row], *, remedy: bool = True) -> str | None:
    """One sentence on steps that updated nothing, and one on what to do; None if every step did."""
    found = training_summary(rows)
    steps, idle = found["steps"], found["steps_without_update"]
    if not idle:
        return None
    groups = f" ({differing_text(found['groups'], found['groups_equal'])})" if "groups_equal" in found else ""
    if idle == steps:
        text = f"No step of the training updated the weights{groups}: the agent is the one it began with."
    else:
        text = f"{idle} of {steps} training steps updated nothing{groups if idle > steps / 2 else ''}."
    return f"{text} {REMEDIES['no-signal']}" if remedy else text
