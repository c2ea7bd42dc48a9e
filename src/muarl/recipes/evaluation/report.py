"""What an evaluation found, for the machine (summary.json) and for people (report.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muarl.accounts.budgets import RolloutEnd
from muarl.accounts.evaluation_report import EvaluationReport, evaluate_summary
from muarl.accounts.metrics import DOMAIN, usage_metrics
from muarl.accounts.pass_hat import pass_hat_label, with_few_tasks
from muarl.accounts.success import scores_by_domain, task_completion
from muarl.audit.summary import AuditSummary
from muarl.config.section import UserConfig
from muarl.config.sections import EvalConfig, RunConfig
from muarl.domains.tasks import Task
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.observe.headline import HARDER_USERS, cost_text
from muarl.pages.table import to_markdown
from muarl.recipes.evaluation.auditing import EvaluationAudit
from muarl.recipes.evaluation.harder_users import HarderEvaluation, excluded_by
from muarl.recipes.evaluation.next_turns import text as turns_text
from muarl.recipes.evaluation.user_review import TAG, UserReview
from muarl.report.audit_tables import headline, markdown
from muarl.report.difficulty import difficulty_table
from muarl.runs.roles import Judges
from muarl.types.episode import AGENT_GUARD, Episode, Usage
from muarl.user_errors.errors import RULES

SHOWN = 50
"""User errors that report.md lists one by one; the episodes file has them all."""


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found."""

    config: RunConfig
    places: Places
    agent: str
    user: str
    tasks: Sequence[Task]
    episodes: Sequence[Episode]
    planned: int
    """How many episodes there were to be."""
    end: RolloutEnd = RolloutEnd.COMPLETE
    """Whether a budget kept some from being played."""
    judged: Usage = Usage()
    """What judges used (in a resumed run also what searches used before)."""
    floors: Mapping[str, float] = field(default_factory=dict)
    """Success of "do_nothing" and "always_transfer" on the same tasks, without those that were not asked."""
    domain_floors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The same in each domain."""
    review: UserReview = field(default_factory=UserReview)
    audited: EvaluationAudit = field(default_factory=lambda: EvaluationAudit(AuditSummary()))
    searched: Usage = Usage()
    """What models of searches used."""
    harder: Mapping[str, HarderEvaluation] = field(default_factory=dict)
    """By level, the evaluations with users who are harder to serve."""
    trained_on_benchmark: bool = False
    """Whether the agent, as far as is known, was trained on tasks of a benchmark that it is measured on."""

    @property
    def all_episodes(self) -> list[Episode]:
        """Those with harder users, too."""
        return [*self.episodes, *(episode for one in self.harder.values() for episode in one.episodes)]

    @property
    def ended(self) -> RolloutEnd:
        """Whether a budget kept some episodes from being played, those with harder users included."""
        ends = (self.end, *(one.end for one in self.harder.values()))
        return next((end for end in ends if end is not RolloutEnd.COMPLETE), RolloutEnd.COMPLETE)

    def counts(self, verb: str) -> str:
        """How many episodes were played; for the verb "played": "10 of 10 played; with hard users 7 of 10"."""
        harder = (f"with {level} users {len(one.episodes)} of {one.planned}" for level, one in self.harder.items())
        return "; ".join([f"{len(self.episodes)} of {self.planned} {verb}", *harder])


def needs_judge(task: Task) -> bool:
    """Whether a task's score hangs on assertions about words."""
    return bool(task.nl_assertions) and "NL_ASSERTION" in task.reward_basis


def summary_of(evaluation: Evaluation, seconds: float) -> dict[str, Any]:
    """The whole of summary.json."""
    config, episodes = evaluation.config, evaluation.episodes
    return {
        "agent": evaluation.agent,
        "domain": evaluation.places.name,
        "split": config.eval.split,
        "evaluation": evaluate_summary(episodes),
        **(
            {HARDER_USERS: {level: one.to_json() for level, one in evaluation.harder.items()}}
            if evaluation.harder
            else {}
        ),
        "completion": _completion(episodes),
        "do_nothing": evaluation.floors.get("do_nothing"),
        **{name: share for name, share in evaluation.floors.items() if name != "do_nothing"},
        **_by_domain(evaluation),
        "user_eval": evaluation.user,
        "audit": evaluation.audited.summary.to_json() | {"judge": config.eval.audit_judge},
        **_guard(episodes),
        "user_errors": _user_errors(evaluation),
        "judge": config.eval.judge,
        "benchmark": None if len(evaluation.places) > 1 else _about(evaluation, *evaluation.places),
        "ended": evaluation.ended.value,
        "planned": evaluation.planned,
        "excluded_by": excluded_by(episodes),
        "trained_on_benchmark": evaluation.trained_on_benchmark,
        "usage": usage_metrics(episodes),
        "judge_usage": evaluation.judged.to_json() if Judges.of(config.eval, config.domains).models else None,
        "cost": _cost(evaluation),
        "seed": config.seed,
        "seconds": seconds,
    }


def _guard(episodes: Sequence[Episode]) -> dict[str, Any]:
    """What a guard has done about the agent's calls, in all episodes together; nothing where there was none."""
    tags = [e.tags[AGENT_GUARD] for e in episodes if isinstance(e.tags.get(AGENT_GUARD), Mapping)]
    if not tags:
        return {}
    findings = sum((Counter(tag["findings"]) for tag in tags), Counter[str]())
    return {
        AGENT_GUARD: {
            "held_back": sum(tag["held_back"] for tag in tags),
            "given_up": sum(tag["given_up"] for tag in tags),
            "episodes": sum(tag["held_back"] > 0 for tag in tags),
            "findings": dict(sorted(findings.items())),
        }
    }


def _by_domain(evaluation: Evaluation) -> dict[str, Any]:
    """Scores by domain, with what a benchmark's must be read with; nothing for a single domain."""
    scores: dict[str, dict[str, Any]] = {
        k: dict(v) for k, v in scores_by_domain({"evaluation": evaluation.episodes}).items()
    }
    for place in evaluation.places:
        if place.name not in scores:
            continue
        about, own = _about(evaluation, place), [e for e in evaluation.episodes if evaluation.places.of(e) is place]
        scores[place.name] |= {"do_nothing": None, **evaluation.domain_floors.get(place.name, {})}
        scores[place.name] |= {"completion": _completion(own)}
        scores[place.name] |= {} if about is None else {"benchmark": about}
    return {"by_domain": scores} if scores else {}


def _about(evaluation: Evaluation, place: Place) -> Any:
    """What a benchmark's scores must be read with; None for other tasks."""
    settings, places = evaluation.config.eval, evaluation.places
    tasks = [places.own(task) for task in evaluation.tasks if places.of(task) is place]
    played = [e for e in evaluation.episodes if places.of(e) is place and e.verdict is not None]
    scored = played if len(places) == 1 else [_own(episode) for episode in played]
    return place.about_scores(settings.split, settings.trials, settings.seed, tasks, scored)


def _completion(episodes: Sequence[Episode]) -> float | None:
    estimate = task_completion(episodes)
    return None if estimate is None else estimate.value


def _own(episode: Episode) -> Episode:
    """An episode of a mixture with the id that its task has in its own domain."""
    return replace(episode, task_id=episode.task_id.removeprefix(f"{episode.tags[DOMAIN]}:"))


def _cost(evaluation: Evaluation) -> dict[str, float | None]:
    """US dollars by side; None where a model was asked whose price nobody gave, or that did not say what it took."""
    judged, searched, config = evaluation.judged, evaluation.searched, evaluation.config
    if not Judges.of(config.eval, config.domains).models:  # then it is of searches before the run was resumed
        judged, searched = Usage(), searched + judged
    sides = {
        "agent": sum((e.agent_usage for e in evaluation.all_episodes), Usage()),
        "user": sum((e.user_usage for e in evaluation.all_episodes), Usage()),
        "judge": judged,
        **({"search": searched} if searched.requests else {}),
    }
    asked = {name: _dollars(usage, name, config.eval, config.eval_user) for name, usage in sides.items()}
    total = [v for v in asked.values() if v is not None]
    return {**asked, "total": sum(total) if len(total) == len(asked) else None}


def _dollars(usage: Usage, side: str, ev: EvalConfig, user: UserConfig) -> float | None:
    if usage.uncounted:
        return None
    if usage.cost or not usage.requests:
        return usage.cost
    section = ev.endpoint if side == "agent" else user.endpoint
    if side == "agent" and ev.agent != "endpoint":
        return 0.0  # a model of this machine's own
    free = side in ("judge", "search") or section is None
    return None if free or not (section.prompt_price or section.completion_price) else 0.0  # type: ignore[union-attr]


def _user_errors(evaluation: Evaluation) -> dict[str, Any]:
    """How many users failed, by which rules, and the scores without their episodes."""
    scored = [e for e in evaluation.episodes if e.verdict is not None]
    clean = [e for e in scored if e.id not in evaluation.review.flagged]
    return {
        "episodes": len(evaluation.review.flagged),
        "share": len(evaluation.review.flagged) / len(scored) if scored else 0.0,
        "by_rule": evaluation.review.by_rule,
        "judge": evaluation.config.eval.user_judge,
        "unjudged": evaluation.review.unjudged,
        "without": evaluate_summary(clean) if clean else None,
    }


def report_text(evaluation: Evaluation, report: EvaluationReport, summary: dict[str, Any]) -> str:
    """The whole of report.md."""
    parts = [f"# {report.name}\n", _table(("", ""), _facts(evaluation, summary)), report.to_markdown()]
    if (levels := difficulty_table(summary)) is not None:
        parts.append(to_markdown(levels))
    parts.append(markdown(evaluation.audited.summary))
    if (cost := cost_text(summary)) is not None:
        parts.insert(1, f"{cost}\n")
    if evaluation.ended is not RolloutEnd.COMPLETE:
        parts.insert(1, f"**Not complete**: {evaluation.ended.why}.\n")
    if evaluation.review.flagged or evaluation.review.unjudged:
        parts += list(_users(evaluation, report, summary))
    return "\n".join(parts)


def _facts(evaluation: Evaluation, summary: dict[str, Any]) -> list[tuple[str, str]]:
    config = evaluation.config
    facts = [
        ("agent", evaluation.agent),
        ("user", evaluation.user),
        ("judge of assertions", config.eval.judge if any(map(needs_judge, evaluation.tasks)) else "not needed"),
        (
            "tasks",
            f"{evaluation.places.name}, {config.eval.split} split: {len(evaluation.tasks)}, "
            f"{_trials(config.eval.trials)}",
        ),
        ("episodes", evaluation.counts("played")),
        ("failed, not scored", _failed(summary)),
        ("cost", _cost_text(summary["cost"])),
    ]
    if (guard := summary.get(AGENT_GUARD)) is not None:
        done = f"held back {guard['held_back']} replies in {guard['episodes']} episodes"
        facts.append(("guard", f"{done}; {guard['given_up']} times the agent insisted"))
    name, share, interval = headline(evaluation.audited.summary)[0]
    facts.insert(-1, (name, f"{share} ({interval})" if interval else share))
    benchmark = summary["benchmark"]
    if benchmark is not None:
        limits = {"steps": benchmark["steps"], "agent turns": benchmark["turns"], "errors": benchmark["tool_errors"]}
        limits["messages with calls in a row"] = benchmark["agent_calls"]
        facts.insert(4, ("limits", ", ".join(f"{n} {name}" for name, n in limits.items() if n is not None)))
        if benchmark["seeds"]:
            facts.insert(5, ("seeds of the trials", ", ".join(map(str, benchmark["seeds"]))))
        facts.append(("calls reach it by", benchmark["mode"]))
        if "retrieval" in benchmark:
            facts.append(("documents found by", benchmark["retrieval"]))
        facts += [(name.replace("_", " "), f"{value:.4g}") for name, value in benchmark["figures"].items()]
    for name, turns in summary.get("next_turns", {}).items():
        facts.append((f"in the expert's turns, {name}", turns_text(turns)))
    if evaluation.trained_on_benchmark:
        facts.append(("trained on the benchmark", "yes: this score means nothing"))
    return facts


def _failed(summary: dict[str, Any]) -> str:
    """Failures by side, of the evaluation and of those with harder users: "user 1; agent 2 (with hard users)"."""
    parts = {"": summary["excluded_by"]}
    parts |= {f" (with {level} users)": block["excluded_by"] for level, block in summary.get(HARDER_USERS, {}).items()}
    told = (", ".join(f"{name} {n}" for name, n in sides.items()) + where for where, sides in parts.items() if sides)
    return "; ".join(told) or "none"


def _trials(count: int) -> str:
    return f"{count} trial{'' if count == 1 else 's'}"


def _cost_text(cost: dict[str, float | None]) -> str:
    texts = [f"{side} {'unknown' if spent is None else f'${spent:.4f}'}" for side, spent in cost.items()]
    return "; ".join(texts)


def _users(evaluation: Evaluation, report: EvaluationReport, summary: dict[str, Any]) -> Iterator[str]:
    """The section on users who failed: scores with and without their episodes, the rules, and each finding."""
    errors = summary["user_errors"]
    yield "## Users who failed\n"
    yield (
        f"In {errors['episodes']} of {report.episodes} scored episodes the simulated user made an error "
        f"({errors['share']:.1%}). An agent can hardly be blamed for those; they count in the scores above.\n"
    )
    if errors["unjudged"]:
        yield f"The judge of users did not answer for {errors['unjudged']} conversations.\n"
    without = errors["without"]
    if without is not None:
        rows = [("episodes", str(report.episodes), str(without["episodes"]))]
        rows.append(("success", _share(report.success.value, report.success.interval), _estimate(without)))
        for k, estimate in report.pass_hat.items():
            other = without["pass_hat"].get(str(k))
            clean = with_few_tasks(_estimate(other), other["n"], without["pass_hat"]["1"]["n"]) if other else "–"
            rows.append((pass_hat_label(report.pass_hat, k), _share(estimate.value, estimate.interval), clean))
        yield _table(("measure", "all", "without those"), rows)
    if errors["by_rule"]:
        yield _table(("rule", "finds", "episodes"), [(r, RULES[r], str(n)) for r, n in errors["by_rule"].items()])
        yield _table(("episode", "message", "rule", "what"), list(_findings(evaluation))[:SHOWN])


def _findings(evaluation: Evaluation) -> Iterator[tuple[str, str, str, str]]:
    for episode in evaluation.episodes:
        if episode.id in evaluation.review.flagged:
            for error in episode.tags.get(TAG, ()):
                yield episode.id, str(error["turn"]), error["rule"], error["detail"]


def _estimate(block: dict[str, Any]) -> str:
    return _share(block.get("value", block.get("success", 0.0)), block["interval"])


def _share(value: float, interval: Sequence[float]) -> str:
    return f"{value:.1%} ({interval[0]:.1%} – {interval[1]:.1%})"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in row) + " |\n" for row in lines)
