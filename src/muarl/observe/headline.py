"""What stands beside success wherever a run is summed up: success without any violation, catastrophic failures and
writes without consent; how many training steps moved the weights; and the sentences that a reader must not miss.

Everything is read from summary.json and a run's rows of figures, which may be an older version's or somebody else's:
what they do not tell is None. A group of rollouts whose rewards are all equal has no advantage to learn from. A step
that consists of such groups leaves the weights as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.accounts.metrics import CLEAN, NOT_CHECKED, SUCCESS_WITHOUT_VIOLATION
from muarl.basics.json_values import as_figure, bounds, mapping
from muarl.sign_rules import Row, no_update
from muarl.signs import PHASE, REMEDIES, signs

Summary = Mapping[str, Any]

OUTCOME = "outcome"
"""What ``reward`` in summary.json says of a run that learned from the task's outcome alone."""
BEFORE, AFTER, ALONE = "cold_start", "rl", "evaluation"
"""Blocks of summary.json that are evaluations: a quickstart's two, and that of ``muarl eval``."""
HARDER_USERS = "harder_users"
"""The block with an evaluation on the same tasks with users of each level of ``eval.harder_users``."""
FORMER = "decent"
"""What older versions called ``success_without_violation`` in an audit's sum."""
TRAINED_ON = "the agent was trained on the benchmark's own tasks, so its score means nothing"
"""What is said of a summary that says so (``is_trained_on``)."""
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
    partial: str = ""
    """How many of the planned episodes were scored, and how many failed; empty where all were, or nobody says."""


def headline_of(summary: Summary, key: str) -> Headline:
    """The figures of the evaluation that stands under ``key`` in a summary."""
    planned = summary.get("planned") if key == ALONE else None
    return _headline(mapping(summary.get(key)), audit_of(summary, key), planned)


def _headline(block: Summary, audit: Summary, planned: Any = None) -> Headline:
    """``audit``: has the catastrophic failures. ``planned``: how many episodes there were to be."""
    success = as_figure(block.get("success"))
    unasked = as_figure(mapping(block.get("behaviour")).get("writes_without_consent"))
    return Headline(
        None if success is None else ShownShare(success, bounds(block.get("interval")), _whole(block.get("episodes"))),
        clean_of(block) or clean_of(audit),
        estimate_of(audit.get("catastrophic")),
        None if unasked is None else ShownShare(unasked),
        _partial(_whole(block.get("episodes")), _whole(block.get("excluded")), _whole(planned)),
    )


def _partial(scored: int | None, failed: int | None, planned: int | None) -> str:
    """Such as "9 of 10 scored, 1 failed"; empty where all were scored, or where an older summary does not tell."""
    if scored is None or failed is None or scored >= (planned := scored + failed if planned is None else planned):
        return ""
    return f"{scored:,} of {planned:,} scored" + (f", {failed:,} failed" if failed else "")


def by_difficulty(summary: Summary) -> list[tuple[str, Headline]]:
    """The figures of a job's last evaluation, with easy users, and with those that are harder to serve; empty where
    there were none such."""
    harder = mapping(summary.get(HARDER_USERS))
    if not harder:
        return []
    easy = headline_of(summary, AFTER if AFTER in summary else ALONE)
    blocks = {level: mapping(block) for level, block in harder.items()}
    return [("easy", easy), *((level, _headline(b, b, b.get("planned"))) for level, b in blocks.items())]


def harder_success(summary: Summary) -> dict[str, float] | None:
    """By level ("typical", "hard"), the success of a job's last evaluation with such users; None where it had none."""
    harder = by_difficulty(summary)[1:]
    return {level: headline.success.value for level, headline in harder if headline.success is not None} or None


def audit_of(summary: Summary, key: str) -> Summary:
    """The sum of the audit of that evaluation; empty where there is none."""
    audit = mapping(summary.get("audit"))
    return audit if key == ALONE and "layers" in audit else mapping(audit.get(key))


def clean_of(block: Summary) -> ShownShare | None:
    """Success without any violation of an evaluation's block, or of the sum of its audit, which older runs have alone;
    None where it was not checked."""
    return estimate_of(block.get(SUCCESS_WITHOUT_VIOLATION, block.get(FORMER)))


def clean_in(summary: Summary, key: str, domain: str) -> ShownShare | None:
    """The same of one domain, of a run with several."""
    return clean_of(mapping(mapping(mapping(summary.get(key)).get("by_domain")).get(domain)))


def estimate_of(estimate: Any) -> ShownShare | None:
    """A share from ``{"value", "interval", "n"}``; None from anything else."""
    part = mapping(estimate)
    value = as_figure(part.get("value"))
    return None if value is None else ShownShare(value, bounds(part.get("interval")), _whole(part.get("n")))


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
    headline = headline_of(summary, key)
    success, clean = headline.success, headline.clean
    if summary.get("reward") != OUTCOME or success is None or clean is None or not success.n or success.n != clean.n:
        return None
    solved = round(success.value * success.n)
    broken = solved - round(clean.value * success.n)
    if broken <= 0:
        return None
    layers = {name: estimate_of(mapping(audit_of(summary, key).get("layers")).get(name)) for name in PAYING}
    shares = {name: share.value for name, share in layers.items() if share is not None and share.value < 1}
    remedy = f" rl.layers.{min(shares, key=lambda name: shares[name])}=0.5 pays for obeying." if shares else ""
    return f"The reward was the task's outcome alone: {broken:,} of {solved:,} successes broke a rule.{remedy}"


def last_lines(summary: Summary) -> Sequence[str]:
    """What a job says of a summary with evaluations before and after, beside its figures: most often nothing."""
    trained = f"Warning: {TRAINED_ON}." if is_trained_on(summary) else None
    lines = trained, traded_text(headline_of(summary, BEFORE), headline_of(summary, AFTER)), cost_text(summary)
    return [line for line in lines if line is not None]


def is_trained_on(summary: Summary) -> bool:
    """Whether the agent was trained on tasks of the benchmark that it was measured on, as far as that was known."""
    return summary.get("trained_on_benchmark") is True


def _whole(value: Any) -> int | None:
    number = as_figure(value)
    return None if number is None else int(number)


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
    training_signs = signs(rows)
    idle = idle_text(rows, remedy=not training_signs)
    return [sign.line for sign in training_signs] + ([] if idle is None else [idle])


def idle_text(rows: Iterable[Row], *, remedy: bool = True) -> str | None:
    """One sentence on steps that updated nothing, and one on what to do; None if every step did."""
    training = training_summary(rows)
    steps, idle = training["steps"], training["steps_without_update"]
    if not idle:
        return None
    groups = f" ({differing_text(training['groups'], training['groups_equal'])})" if "groups_equal" in training else ""
    if idle == steps:
        text = f"No step of the training updated the weights{groups}: the agent is the one it began with."
    else:
        text = f"{idle} of {steps} training steps updated nothing{groups if idle > steps / 2 else ''}."
    return f"{text} {REMEDIES['no-signal']}" if remedy else text
