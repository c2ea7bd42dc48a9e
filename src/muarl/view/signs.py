"""What an operator should look at first: the failure signs of training against simulated users, found by rule.

The rules are coarse on purpose: each names its figures, so that a reader can see for themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from muarl.observe.charts import Point, number, percent, smooth
from muarl.observe.training import GAP, idle_text
from muarl.view.metrics import points

ENOUGH = 8
"""Steps before anything is said, but of steps that updated nothing."""


def signs(rows: list[Mapping[str, Any]]) -> list[str]:
    """Sentences about a run's training rows (of one phase), each with its remedy; empty if nothing stands out."""
    out = [text] if (text := idle_text(rows)) is not None else []
    kl, entropy = ends(rows, "kl_k3", "update/kl_k3", "kl"), ends(rows, "entropy")
    if kl and kl.last > 0.1 and kl.last > 5 * kl.middle:
        out.append(
            f"KL rises fast: {number(kl.middle)} for most of the run, now {number(kl.last)} per token. Raise "
            "rl.kl_coef, or lower rl.lr."
        )
    if entropy and entropy.first > 0 and entropy.last < 0.05 * entropy.first:
        out.append(
            f"Entropy has collapsed from {number(entropy.first)} to {number(entropy.last)}: the agent hardly varies "
            "any more, and groups of equal attempts teach nothing. Stop here, or go back and lower rl.lr."
        )
    for name, word in (("groups/all_correct", "all"), ("groups/all_wrong", "none")):
        found = ends(rows, name)
        if found and found.last > 0.9:
            out.append(
                f"Of {percent(found.last)} of the tasks {word} of the attempts succeed, which teaches nothing: choose "
                f"{'harder' if word == 'all' else 'easier'} tasks, or set rl.dynamic_sampling."
            )
    repeats = ends(rows, "audit/repeated_calls")
    if repeats and repeats.last > 1 and repeats.last > 2 * repeats.first:
        out.append(
            f"Tool calls are repeated {number(repeats.last)} times a conversation, {number(repeats.first)} at first: "
            "look for loops in the longest episodes."
        )
    cut = ends(rows, "truncated")
    if cut and cut.last > 0.2 and cut.last > cut.first:
        out.append(f"{percent(cut.last)} of the conversations run into a limit: see why under stop reasons.")
    lost, gap = ends(rows, "excluded"), ends(rows, "update/logprob_gap_mean")
    size = ends(rows, "episodes")
    if lost and size and lost.last > 0.1 * (size.last + lost.last):
        out.append(
            f"{number(lost.last)} conversations a step fail for reasons outside the agent (user, tools, endpoints): "
            "see the episodes that stopped for “infrastructure”."
        )
    spoilt = ends(rows, "user_errors")
    if spoilt and spoilt.last > 0.2:
        out.append(
            f"In {percent(spoilt.last)} of the conversations the simulated user breaks a rule, which the agent pays "
            "for: see their episodes (trouble: the user failed), and choose a better model for user.endpoint."
        )
    if gap and gap.last > GAP:
        out.append(
            f"Sampler and learner disagree by {number(gap.last)} a token in log-probability: check that both use the "
            "same weights and precision."
        )
    if any((row.get("update/nonfinite") or 0) > 0 for row in rows[-ENOUGH:]):
        out.append("Some updates were skipped because a gradient was not finite: lower rl.lr or rl.grad_clip.")
    return out


class Ends:
    """Where a figure's line began and ended, smoothed, and its median before the last quarter."""

    def __init__(self, line: list[Point]) -> None:
        smoothed = smooth(line)
        self.first, self.last = smoothed[0][1], smoothed[-1][1]
        self.middle = median(y for _, y in line[: max(1, len(line) * 3 // 4)])


def ends(rows: list[Mapping[str, Any]], *names: str, least: int = ENOUGH) -> Ends | None:
    """The ends of the first of these figures that the rows have; None where there are fewer than ``least`` points."""
    line = points(rows, *names)
    return Ends(line) if len(line) >= least else None
