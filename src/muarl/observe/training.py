"""What a run's training rows say of its learning as a whole: how many steps moved the weights, and how many could not.

A group of rollouts whose rewards are all equal has no advantage to learn from. A step that consists of such groups
leaves the weights as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muarl.observe.markup import as_figure

PHASE = "rl"
"""The phase of training's rows."""

Row = Mapping[str, Any]


def no_update(row: Row) -> bool:
    """Whether a step left the weights as they were, since nothing in it gave a gradient."""
    return bool(row.get("update/skipped")) or row.get("samples") == 0


def training_summary(rows: Iterable[Row]) -> dict[str, int]:
    """The ``training`` block of summary.json, from a run's rows of figures: ``steps``; ``steps_without_update``;
    ``groups`` that were kept, and of those ``groups_equal``, whose rewards were all the same (left out where an older
    run did not count them)."""
    steps = [row for row in rows if row.get("phase") == PHASE]
    out = {"steps": len(steps), "steps_without_update": sum(map(no_update, steps))}
    out["groups"] = _sum(steps, "groups_kept")
    if steps and all("groups_equal" in row for row in steps):
        out["groups_equal"] = _sum(steps, "groups_equal")
    return out


def _sum(rows: Iterable[Row], name: str) -> int:
    """The sum of a figure; what is none counts as 0, since a row may be somebody else's."""
    return int(sum(as_figure(row.get(name)) or 0.0 for row in rows))


def differing_text(groups: int, equal: int) -> str:
    """How many groups had something to learn from, in words."""
    return f"{groups - equal} of {groups} groups had differing rewards"


def idle_text(rows: Iterable[Row]) -> str | None:
    """One sentence on steps that updated nothing; None if every step did."""
    found = training_summary(rows)
    steps, idle = found["steps"], found["steps_without_update"]
    if not idle:
        return None
    groups = f" ({differing_text(found['groups'], found['groups_equal'])})" if "groups_equal" in found else ""
    if idle == steps:
        return f"No step of the training updated the weights{groups}: the agent is the one it began with. {REMEDY}"
    return f"{idle} of {steps} training steps updated nothing{groups if idle > steps / 2 else ''}. {REMEDY}"


REMEDY = (
    "A group teaches only if some of its rollouts earn more than others: choose tasks that the agent solves sometimes, "
    "a larger rl.group_size, more cold start, or rl.shaping."
)


class IdleSteps:
    """Counts the steps in a row that updated nothing, and says so after the third, sixth, twelfth, ..."""

    FIRST = 3

    def __init__(self) -> None:
        self._row, self._next = 0, self.FIRST

    def note(self, row: Row) -> str | None:
        """A warning if one is due after this step."""
        if not no_update(row):
            self._row, self._next = 0, self.FIRST
            return None
        self._row += 1
        if self._row < self._next:
            return None
        self._next *= 2
        return f"The last {self._row} steps updated nothing: none of their groups gave a gradient. {REMEDY}"


GAP = 0.05
"""Nats a token by which sampler and learner may disagree before somebody is told: with the same weights and arithmetic
it is less than 0.00001, and from about 0.2 on ratios leave the clip's range without any learning."""


class GapWatch:
    """Tells once of a sampler and a learner that disagree and are not corrected for. ``corrects``: a correction is on,
    which is the remedy."""

    def __init__(self, *, corrects: bool) -> None:
        self._quiet = corrects

    def note(self, row: Row) -> str | None:
        """The warning, if this step is the first to call for it."""
        gap = as_figure(row.get("update/logprob_gap_mean"))
        if self._quiet or gap is None or gap <= GAP:
            return None
        self._quiet = True
        clipped = as_figure(row.get("update/clip_fraction"))
        share = f" ({clipped:.1%} of the tokens were clipped)" if clipped and row.get("update/updates") == 1 else ""
        return (
            f"Sampler and learner disagree by {gap:.3f} nats a token{share}, and nothing corrects for it: set "
            "rl.correction=token, or let both compute in one number format that is fine enough (engine.dtype, "
            "learner.precision, model.dtype)."
        )
