"""The report of one evaluation: its scores with their uncertainty, as a table, as JSON and as part of summary.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from muarl.accounts.breakdowns import breakdown, by_fault, by_stratum, by_trait
from muarl.accounts.intervals import Estimate
from muarl.accounts.metrics import (
    CLEAN,
    NOT_CHECKED,
    SUCCESS_WITHOUT_VIOLATION,
    agent_tokens,
    agent_turns,
    behaviour,
    by_domain,
    is_success,
    scored,
)
from muarl.accounts.pass_hat import pass_hat_label, pass_hats
from muarl.accounts.strata import Outcome, StratumResult, strata_of, tested
from muarl.accounts.success import clean_success_rate, success_rate, task_completion
from muarl.basics.untrusted import visible
from muarl.types.episode import Episode

if TYPE_CHECKING:
    from rich.table import Table

PRINTED = 120
"""Columns of a report as plain text."""
TAGS = ("intent", "persona", "difficulty")
"""The tags of episodes by whose values success is broken down."""
COMPLETION = "task completion (share of what was to be done)"
"""What task completion is called in the table."""
NO_COMPLETION = "do_nothing_completion"
"""The baseline of task completion, by name."""

LABELS = {
    "writes_without_consent": "writes without consent (of writes)",
    "needless_transfers": "needless transfers (of episodes)",
    "grounded": "by the right document (of changes and answers)",
    "tool_error_rate": "tool errors (of calls)",
    "calls": "tool calls, an episode",
    "calls_general_share": "calculate, think or transfer (of calls)",
    "malformed_calls": "malformed calls, an episode",
    "audit/searches": "searches of documents, an episode",
    "audit/documented": "changes and answers by documents, an episode",
    "audit/repeated_calls": "repeated calls, an episode",
    "audit/access_before_authentication": "access before authentication, an episode",
    "audit/foreign_access": "access to others' data, an episode",
    "audit/questions": "questions to the user, an episode",
    "audit/writes": "changes to the database, an episode",
    "audit/transfers": "transfers, an episode",
    "audit/failed_calls": "calls failed by the system, an episode",
    "audit/failed_calls_tried_again": "calls made again after the system failed, an episode",
    "audit/timed_out_writes": "writes that timed out, an episode",
    "audit/timed_out_writes_checked": "timed-out writes looked at before they were repeated, an episode",
    "audit/blind_repeats": "timed-out writes repeated without a look, an episode",
    "audit/failed_calls_told": "failed calls of which the user was told, an episode",
    "audit/failed_calls_handed_over": "failed calls that ended in a hand-over, an episode",
    "truncated": "cut by a limit (of episodes)",
    "turns": "agent turns, an episode",
    "agent_tokens": "tokens the agent wrote, an episode",
    "agent_tokens_per_turn": "tokens the agent wrote, a turn",
    "diversity": "diversity (distinct of all its 4-grams)",
}
"""What the table calls figures of behaviour whose names do not say what they are shares or means of."""
UNCOUNTED = ("agent_tokens", "agent_tokens_per_turn")
"""Figures that are 0 where nobody counted, as of scripted agents."""

Row = tuple[str, str, str, str]
"""Measure, value, 95% interval, and what doing nothing scores."""


@dataclass(frozen=True)
class EvaluationReport:
    """One evaluation: the score, its uncertainty, the baselines to read it against, and how the agent behaved."""

    name: str
    success: Estimate
    tasks: int
    episodes: int
    excluded: int
    """Infrastructure failures, in no figure here."""
    pass_hat: Mapping[int, Estimate]
    tokens_per_episode: float
    turns: float
    behaviour: Mapping[str, float]
    by_tag: Mapping[str, Mapping[str, Estimate]]
    by_stop: Mapping[str, Estimate]
    baselines: Mapping[str, float] = field(default_factory=dict)
    """Name to success of trivial baselines, such as "do_nothing" and "always_transfer", on the same tasks."""
    by_domain: Mapping[str, EvaluationReport] = field(default_factory=dict)
    """The same of each domain of a run with several; else empty."""
    success_without_violation: Estimate | None = None
    """None where the episodes were not audited."""
    completion: Estimate | None = None
    """``task_completion``; that of doing nothing is the baseline "do_nothing_completion"."""
    strata: Mapping[str, StratumResult] = field(default_factory=dict)
    """By stratum of users, whether success differs between its values; their shares stand in ``by_tag``."""

    @classmethod
    def of(
        cls,
        episodes: Iterable[Episode],
        *,
        name: str = "evaluation",
        baselines: Mapping[str, float | Iterable[Episode]] | None = None,
        domain_baselines: Mapping[str, Mapping[str, float]] | None = None,
        tags: Sequence[str] = TAGS,
    ) -> EvaluationReport:
        """Measure episodes. ValueError names an episode that was neither scored nor an infrastructure failure.

        ``baselines``: each a success, or the episodes to measure it on; "do_nothing" has a column of its own.
        ``domain_baselines``: the same of each domain, by domain.
        """
        everything = list(episodes)
        floors = domain_baselines or {}
        whole = cls._of(everything, name, baselines or {}, tags)
        parts = {d: cls._of(own, d, floors.get(d, {}), tags) for d, own in by_domain(everything).items()}
        return replace(whole, by_domain=parts)

    @classmethod
    def _of(
        cls,
        everything: Sequence[Episode],
        name: str,
        baselines: Mapping[str, float | Iterable[Episode]],
        tags: Sequence[str],
    ) -> EvaluationReport:
        scored_episodes = scored(everything)
        by_tag = {tag: breakdown(scored_episodes, lambda e, tag=tag: e.tags.get(tag)) for tag in tags}  # type: ignore[misc]
        completion = task_completion(scored_episodes)
        outcomes = [Outcome(e.task_id, is_success(e.reward), strata_of(e)) for e in scored_episodes]
        strata = by_stratum(outcomes)
        of_strata = {f"user's {name}": shares for name, shares in strata.items()}
        return cls(
            name=name,
            success=success_rate(scored_episodes),
            tasks=len({e.task_id for e in scored_episodes}),
            episodes=len(scored_episodes),
            excluded=len(everything) - len(scored_episodes),
            pass_hat=pass_hats(scored_episodes),
            tokens_per_episode=fmean(map(agent_tokens, scored_episodes)) if scored_episodes else 0.0,
            turns=fmean(map(agent_turns, scored_episodes)) if scored_episodes else 0.0,
            behaviour=behaviour(scored_episodes)
            | ({} if completion is None else {"audit/completion": completion.value}),
            by_tag={tag: parts for tag, parts in by_tag.items() if parts}
            | by_trait(scored_episodes)
            | by_fault(scored_episodes)
            | of_strata,
            by_stop=breakdown(scored_episodes, lambda e: e.stop.value),
            baselines={
                key.replace(" ", "_"): float(b) if isinstance(b, (int, float)) else success_rate(b).value
                for key, b in baselines.items()
            },
            success_without_violation=clean_success_rate(scored_episodes),
            completion=completion,
            strata=tested(outcomes, strata),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON. ``success`` and ``interval`` are numbers at the top, as summary.json has them."""

        def parts(estimates: Mapping[Any, Estimate]) -> dict[str, Any]:
            return {str(k): e.to_json() for k, e in estimates.items()}

        return {
            "name": self.name,
            "success": self.success.value,
            "interval": list(self.success.interval),
            SUCCESS_WITHOUT_VIOLATION: None if (clean := self.success_without_violation) is None else clean.to_json(),
            "completion": None if self.completion is None else self.completion.to_json(),
            "tasks": self.tasks,
            "episodes": self.episodes,
            "excluded": self.excluded,
            "pass_hat": parts(self.pass_hat),
            "tokens_per_episode": self.tokens_per_episode,
            "turns": self.turns,
            "behaviour": dict(self.behaviour),
            "by_tag": {tag: parts(values) for tag, values in self.by_tag.items()},
            **({"strata": {name: result.to_json() for name, result in self.strata.items()}} if self.strata else {}),
            "by_stop": parts(self.by_stop),
            "baselines": dict(self.baselines),
            **(
                {"by_domain": {name: part.to_json() for name, part in self.by_domain.items()}} if self.by_domain else {}
            ),
        }

    def scores(self) -> list[Row]:
        """The first of the rows: success, success without any violation, task completion, and pass^k."""
        nothing = self.baselines.get("do_nothing")
        out = [_row(f"success ({self.episodes} episodes, {self.tasks} tasks)", self.success, nothing)]
        clean = self.success_without_violation
        out.append((CLEAN, NOT_CHECKED, "", "") if clean is None else _row(CLEAN, clean))
        if self.completion is not None:
            out.append(_row(COMPLETION, self.completion, self.baselines.get(NO_COMPLETION)))
        # A do-nothing agent is the same at each attempt, so its pass^k is its success for every k.
        return out + [_row(pass_hat_label(self.pass_hat, k), e, nothing) for k, e in self.pass_hat.items()]

    def rows(self) -> list[Row]:
        """The table's rows: (measure, value, 95% interval, do nothing)."""
        out = self.scores()
        floors = {name: value for name, value in self.baselines.items() if name != NO_COMPLETION}
        out += [(name.replace("_", " "), f"{value:.1%}", "", "") for name, value in floors.items()]
        for name, part in self.by_domain.items():
            out += [(f"{name}: {label}", a, b, c) for label, a, b, c in part.scores()]
        for tag, values in self.by_tag.items():
            out += [_row(f"{tag}: {value} ({e.n})", e) for value, e in values.items()]
        out += [
            (f"stopped by {reason.replace('_', ' ')}", f"{e.n / self.episodes:.1%}", "", "")
            for reason, e in self.by_stop.items()
        ]
        for name, value in self.behaviour.items():
            if name == "audit/completion":  # it stands beside success
                continue
            if not name.startswith("stop/") and (value or name not in UNCOUNTED):
                plain = name.replace("audit/", "").replace("_", " ")
                out.append((LABELS.get(name, plain), f"{value:.3g}", "", ""))
        if self.excluded:
            out.append(("excluded (infrastructure)", str(self.excluded), "", ""))
        return out

    def warnings(self) -> list[str]:
        """One sentence for each stratum of users by which success differs, and in which domain of several."""
        out = [result.warning for result in self.strata.values() if result.warning is not None]
        return out + [f"{name}: {text}" for name, part in self.by_domain.items() for text in part.warnings()]

    def to_markdown(self) -> str:
        """The table in Markdown, and the warnings."""
        lines = ["| measure | value | 95% interval | do nothing |", "|---|---:|---:|---:|"]
        lines += ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in self.rows()]
        return "\n".join(lines) + "\n" + "".join(f"\nWarning: {text}.\n" for text in self.warnings())

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=PRINTED, color_system=None, force_terminal=False, legacy_windows=False)
        with console.capture() as text:
            console.print(self.to_table())
            for warning in self.warnings():
                console.print(f"Warning: {warning}.", markup=False, highlight=False)
        return visible(text.get().rstrip())

    def to_table(self) -> Table:
        """The table for a terminal, as rich prints it; ``print`` of the report gives it as plain text."""
        from rich.table import Table
        from rich.text import Text

        table = Table("measure", title=Text(self.name), title_justify="left")
        for heading in ("value", "95% interval", "do nothing"):
            table.add_column(heading, justify="right")
        for row in self.rows():
            table.add_row(*(Text(cell) for cell in row))
        return table


def _row(label: str, e: Estimate, nothing: float | None = None) -> Row:
    interval = f"{e.interval[0]:.1%} – {e.interval[1]:.1%}"
    return label, f"{e.value:.1%}", interval, "" if nothing is None else f"{nothing:.1%}"


def evaluate_summary(episodes: Iterable[Episode]) -> dict[str, Any]:
    """The block of summary.json for one evaluation: "success", "interval" [low, high], "success_without_violation" (an
    estimate, null: not checked), "completion" (an estimate, null: nothing was to be done), "tasks", "episodes",
    "excluded", "tokens_per_episode", "turns", "pass_hat", "behaviour", "by_tag", "by_stop"; of users with strata also
    "strata" (by stratum "p", "p_holm", "warning"); of several domains' episodes also "by_domain", with the same of
    each."""
    report = EvaluationReport.of(episodes).to_json()
    parts = {name: _block(part) for name, part in report.pop("by_domain", {}).items()}
    return _block(report) | ({"by_domain": parts} if parts else {})


def _block(report: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in report.items() if k not in ("name", "baselines")}


def score_text(block: Mapping[str, Any]) -> str:
    """What an evaluation's block comes to, for a line: "success 64.0% (95% interval 54.2% to 72.7%), without any
    violation 46.0% (95% interval 36.6% to 55.7%)"; "without any violation: not checked" where nothing was audited."""
    success = f"success {_spoken(block['success'], block['interval'])}"
    clean, called = block.get(SUCCESS_WITHOUT_VIOLATION), CLEAN.removeprefix("success ")
    clean_text = (
        f"{called}: {NOT_CHECKED}" if clean is None else f"{called} {_spoken(clean['value'], clean['interval'])}"
    )
    return f"{success}, {clean_text}"


def _spoken(value: float, interval: Sequence[float]) -> str:
    return f"{value:.1%} (95% interval {interval[0]:.1%} to {interval[1]:.1%})"
