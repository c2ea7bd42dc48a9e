"""What stands beside success wherever a run is summed up: success without any violation, catastrophic failures and
writes without consent; and the sentences that a reader must not miss.

Everything is read from summary.json, which may be an older version's or somebody else's: what it does not tell is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.accounts.metrics import CLEAN, NOT_CHECKED, SUCCESS_WITHOUT_VIOLATION
from muarl.pages.markup import as_figure

Summary = Mapping[str, Any]

OUTCOME = "outcome"
"""What ``reward`` in summary.json says of a run that learned from the task's outcome alone."""
BEFORE, AFTER, ALONE = "cold_start", "rl", "evaluation"
"""Blocks of summary.json that are evaluations: a quickstart's two, and that of ``muarl eval``."""
FORMER = "decent"
"""What older versions called ``success_without_violation`` in an audit's sum."""
PAYING = ("policy", "communication", "safety")
"""Layers that a reward can pay for (``rl.layers``)."""


@dataclass(frozen=True)
class ShownShare:
    """A share in [0, 1], its 95% interval (None where it has none), and of how many episodes it is."""

    value: float
    interval: tuple[float, float] | None = None
    n: int | None = None

    @property
    def text(self) -> str:
        """The share, in percent with one decimal."""
        return f"{self.value:.1%}"

    @property
    def interval_text(self) -> str:
        """The interval, "" where there is none."""
        return "" if self.interval is None else f"{self.interval[0]:.1%} – {self.interval[1]:.1%}"

    @property
    def short_text(self) -> str:
        """Both, as short as a list needs them: "28.0% (20–37)"."""
        if self.interval is None:
            return self.text
        return f"{self.text} ({100 * self.interval[0]:.0f}–{100 * self.interval[1]:.0f})"

    def overlaps(self, other: ShownShare) -> bool:
        """Whether the two intervals have a value in common; False where one is unknown."""
        if self.interval is None or other.interval is None:
            return False
        return self.interval[0] <= other.interval[1] and other.interval[0] <= self.interval[1]


@dataclass(frozen=True)
class Headline:
    """The figures of one evaluation that no reader should see one by one. Each is None where nobody checked."""

    success: ShownShare | None = None
    clean: ShownShare | None = None
    catastrophic: ShownShare | None = None
    unasked: ShownShare | None = None


def headline_of(summary: Summary, key: str) -> Headline:
    """The figures of the evaluation that stands under ``key`` in a summary."""
    block, audit = _mapping(summary.get(key)), audit_of(summary, key)
    success = as_figure(block.get("success"))
    unasked = as_figure(_mapping(block.get("behaviour")).get("writes_without_consent"))
    return Headline(
        None if success is None else ShownShare(success, _bounds(block.get("interval")), _whole(block.get("episodes"))),
        clean_of(block) or clean_of(audit),
        estimate_of(audit.get("catastrophic")),
        None if unasked is None else ShownShare(unasked),
    )


def audit_of(summary: Summary, key: str) -> Summary:
    """The sum of the audit of that evaluation; empty where there is none."""
    audit = _mapping(summary.get("audit"))
    return audit if key == ALONE and "layers" in audit else _mapping(audit.get(key))


def clean_of(block: Summary) -> ShownShare | None:
    """Success without any violation of an evaluation's block, or of the sum of its audit, which older runs have alone;
    None where it was not checked."""
    return estimate_of(block.get(SUCCESS_WITHOUT_VIOLATION, block.get(FORMER)))


def clean_in(summary: Summary, key: str, domain: str) -> ShownShare | None:
    """The same of one domain, of a run with several."""
    return clean_of(_mapping(_mapping(_mapping(summary.get(key)).get("by_domain")).get(domain)))


def estimate_of(found: Any) -> ShownShare | None:
    """A share from ``{"value", "interval", "n"}``; None from anything else."""
    part = _mapping(found)
    value = as_figure(part.get("value"))
    return None if value is None else ShownShare(value, _bounds(part.get("interval")), _whole(part.get("n")))


def clean_text(share: ShownShare | None) -> str:
    """The share, or "not checked"."""
    return NOT_CHECKED if share is None else share.text


def traded_text(before: Headline, after: Headline) -> str | None:
    """One sentence where success rose at the cost of what matters as much: success without any violation fell, or
    catastrophic failures rose. None where it did not, or nobody checked."""
    if before.success is None or after.success is None or after.success.value <= before.success.value:
        return None
    worse: list[str] = []
    sure = False
    for name, verb, first, second, sign in (
        (CLEAN, "fell", before.clean, after.clean, -1),
        ("catastrophic failures", "rose", before.catastrophic, after.catastrophic, 1),
    ):
        if first is not None and second is not None and sign * (second.value - first.value) > 0:
            worse.append(f"{name} {verb} from {first.text} to {second.text}")
            sure = sure or not first.overlaps(second)
    if not worse:
        return None
    chance = "" if sure else " (the intervals overlap: muarl compare tests the difference)"
    rise = f"Success rose from {before.success.text} to {after.success.text}"
    return f"{rise}, but {' and '.join(worse)}{chance}."


def cost_text(summary: Summary) -> str | None:
    """One sentence on what a reward of the outcome alone has cost: how many successes broke a rule, and what would pay
    for obeying. None where the reward was another, or no success is known to have broken one."""
    key = AFTER if AFTER in summary else ALONE
    found = headline_of(summary, key)
    success, clean = found.success, found.clean
    if summary.get("reward") != OUTCOME or success is None or clean is None or not success.n or success.n != clean.n:
        return None
    solved = round(success.value * success.n)
    broken = solved - round(clean.value * success.n)
    if broken <= 0:
        return None
    layers = {name: estimate_of(_mapping(audit_of(summary, key).get("layers")).get(name)) for name in PAYING}
    kept = {name: share.value for name, share in layers.items() if share is not None and share.value < 1}
    remedy = f" rl.layers.{min(kept, key=lambda name: kept[name])}=0.5 pays for obeying." if kept else ""
    return f"The reward was the task's outcome alone: {broken:,} of {solved:,} successes broke a rule.{remedy}"


def last_lines(summary: Summary) -> Sequence[str]:
    """What a job says of a summary with evaluations before and after, beside its figures: most often nothing."""
    found = traded_text(headline_of(summary, BEFORE), headline_of(summary, AFTER)), cost_text(summary)
    return [line for line in found if line is not None]


def _mapping(value: Any) -> Summary:
    return value if isinstance(value, Mapping) else {}


def _bounds(value: Any) -> tuple[float, float] | None:
    if not isinstance(value, Sequence) or len(value) != 2:
        return None
    low, high = map(as_figure, value)
    return None if low is None or high is None else (low, high)


def _whole(value: Any) -> int | None:
    found = as_figure(value)
    return None if found is None else int(found)
