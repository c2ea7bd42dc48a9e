"""The audit of an evaluation: every episode's findings, by rules and, where one is named, by a judge; and their sum.

A run's findings.jsonl has a line for each: "file" (of RUN/episodes, without .jsonl), "episode", "task_id", and then the
finding's own fields (``audit.Finding``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muarl.accounts.budgets import Budget
from muarl.audit.episodes import findings_in
from muarl.audit.findings import Finding, write_findings
from muarl.audit.summary import AuditSummary, note_violations
from muarl.audit.transcript import Transcript, transcript_of
from muarl.basics.event_loop import event_loop
from muarl.domains.tasks import Task
from muarl.environments.places import Places
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.rewards.judge import Completer
from muarl.types.episode import Episode, StopReason

if TYPE_CHECKING:
    from muarl.audit.judge import Judgement

FILE = "findings.jsonl"

JUDGED = "audit_judge"
"""The tag with what a judge has said of an episode, so that a resumed evaluation need not ask again."""


@dataclass
class EvaluationAudit:
    """An evaluation's audit."""

    summary: AuditSummary
    findings: list[tuple[Mapping[str, Any], tuple[Finding, ...]]] = field(default_factory=list)


def write_audits(run: RunDirectory, audits: Sequence[EvaluationAudit]) -> None:
    """Write the run's findings.jsonl, whole or not at all."""
    write_findings(run.path / FILE, (one for audited in audits for one in audited.findings))


def audit_episodes(
    places: Places,
    tasks: Sequence[Task],
    episodes: Sequence[Episode],
    *,
    name: str = "audit",
    file: str = "eval",
    judge: Completer | None = None,
    budget: Budget | None = None,
    progress: Progress | None = None,
    concurrency: int = 16,
) -> EvaluationAudit:
    """Audit episodes of these tasks, and note in their verdicts how many violations there are. ``judge``: a model that
    is asked as well; where it fails or the budget is spent, the rules' findings stand alone, and the summary says for
    how many."""
    tasks_by_id = {task.id: task for task in tasks}
    seen = [e for e in episodes if e.stop is not StopReason.INFRASTRUCTURE]
    transcripts = [_transcript(places, tasks_by_id[e.task_id], e) for e in seen]
    findings = {e.id: findings_in(transcript) for e, transcript in zip(seen, transcripts, strict=True)}
    audited = EvaluationAudit(AuditSummary(name))
    if judge is not None:
        with_policies = [
            (s, e.system or _told(places, tasks_by_id[e.task_id])) for e, s in zip(seen, transcripts, strict=True)
        ]
        judged = _judge(judge, with_policies, budget, progress, concurrency, audited.summary)
        findings = {name: judged[name].upon(f) if name in judged else f for name, f in findings.items()}
    for episode in episodes:
        own = findings.get(episode.id, ())
        where = {"file": file, "episode": episode.id, "task_id": episode.task_id}
        audited.findings.append((where, own))
        task = tasks_by_id[episode.task_id]
        rules = places.of(task).audit_rules(places.own(task))
        seen_by_judge = episode.tags.get(JUDGED) is not None
        note_violations(episode, own, rules, seen_by_judge)
        audited.summary.add(episode, own, where, rules=rules, judged=seen_by_judge)
    return audited


def _transcript(places: Places, task: Task, episode: Episode) -> Transcript:
    place, own = places.of(task), places.own(task)
    return transcript_of(episode, own, domain=place.domain, rules=place.audit_rules(own))


def _told(places: Places, task: Task) -> str:
    return places.of(task).system_prompt(places.own(task))


def _judge(
    model: Completer,
    transcripts: Sequence[tuple[Transcript, str]],
    budget: Budget | None,
    progress: Progress | None,
    concurrency: int,
    summary: AuditSummary,
) -> dict[str, Judgement]:
    """What a judge says, by episode; asked about those only that it has not seen."""
    from muarl.audit.judge import AuditJudge, judge_all  # most audits are by rules alone

    judgements = {s.episode.id: _read(s.episode) for s, _ in transcripts if s.episode.tags.get(JUDGED) is not None}
    waiting = [(s, policy) for s, policy in transcripts if s.episode.id not in judgements]

    def ask(done: Any) -> tuple[list[Judgement | None], list[str]]:
        turn = (budget or Budget()).turn
        with event_loop() as loop:
            return loop.run(judge_all(AuditJudge(model), waiting, concurrency=concurrency, turn=turn, done=done))

    answers: list[Judgement | None] = []
    failures: list[str] = []
    if waiting and progress is not None:
        with progress.phase("auditing", len(waiting), "episodes") as phase:
            answers, failures = ask(phase.advance)
        if failures:
            progress.say(f"The audit's judge did not answer for {len(failures)} episodes. First: {failures[0]}")
    elif waiting:
        answers, failures = ask(lambda: None)
    for (transcript, _), answer in zip(waiting, answers, strict=True):
        if answer is not None:
            judgements[transcript.episode.id] = answer
            transcript.episode.tags[JUDGED] = {
                "findings": [f.to_json() for f in answer.findings],
                "cleared": sorted([rule, message] for rule, message in answer.cleared),
            }
    summary.judged, summary.unjudged = len(judgements), len(failures)
    return judgements


def _read(episode: Episode) -> Judgement:
    from muarl.audit.judge import Judgement

    judged = episode.tags[JUDGED]
    cleared = frozenset((str(rule), int(message)) for rule, message in judged["cleared"])
    return Judgement(tuple(Finding.from_json(f) for f in judged["findings"]), cleared)
