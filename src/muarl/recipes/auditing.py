"""The audit of an evaluation: every episode's findings, by rules and, where one is named, by a judge; and their sum.

A run's findings.jsonl has a line for each: "file" (of RUN/episodes, without .jsonl), "episode", "task_id", and then the
finding's own fields (``audit.Finding``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muarl.audit import Finding, findings_in, scene_of, write_findings
from muarl.audit.judge import AuditJudge, Judgement, judge_all
from muarl.audit.rules import rules_of
from muarl.audit.scene import Scene
from muarl.audit.summary import AuditSummary
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Task
from muarl.episode import Episode, StopReason
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.recipes.common import judge_endpoint
from muarl.recipes.setting import Setting
from muarl.rewards.judge import make_judge
from muarl.rollout import Budget

FILE = "findings.jsonl"

JUDGED = "audit_judge"
"""The tag with what a judge has said of an episode, so that a resumed evaluation need not ask again."""


@dataclass
class Audited:
    """An evaluation's audit."""

    summary: AuditSummary
    findings: list[tuple[Mapping[str, Any], tuple[Finding, ...]]] = field(default_factory=list)


def write_audits(run: RunDirectory, audits: Sequence[Audited]) -> None:
    """Write the run's findings.jsonl, whole or not at all."""
    write_findings(run.path / FILE, (one for audited in audits for one in audited.findings))


def rules_in(setting: Setting, task: Task) -> AuditRules:
    """The rules by which a task is audited in a setting; who works alone has nobody to ask or to tell."""
    rules = rules_of(task, setting.domain)
    if setting.rules.solo:
        return replace(rules, consent=False, obligations=(), auth_tools=frozenset())
    return rules


def audit_episodes(
    setting: Setting,
    tasks: Sequence[Task],
    episodes: Sequence[Episode],
    *,
    name: str = "audit",
    file: str = "eval",
    judge: str | None = None,
    budget: Budget | None = None,
    progress: Progress | None = None,
    concurrency: int = 16,
) -> Audited:
    """Audit episodes of these tasks. ``judge``: a model that is asked as well (endpoint:MODEL); where it fails or the
    budget is spent, the rules' findings stand alone, and the summary says for how many."""
    known = {task.id: task for task in tasks}
    seen = [e for e in episodes if e.stop is not StopReason.INFRASTRUCTURE]
    scenes = [
        scene_of(e, known[e.task_id], domain=setting.domain, rules=rules_in(setting, known[e.task_id])) for e in seen
    ]
    found = {e.id: findings_in(scene) for e, scene in zip(seen, scenes, strict=True)}
    audited = Audited(AuditSummary(name))
    if judge is not None:
        told = [(s, e.system or setting.told(known[e.task_id])) for e, s in zip(seen, scenes, strict=True)]
        judged = _judge(judge, told, budget, progress, concurrency, audited.summary)
        found = {name: judged[name].upon(f) if name in judged else f for name, f in found.items()}
    for episode in episodes:
        own = found.get(episode.id, ())
        where = {"file": file, "episode": episode.id, "task_id": episode.task_id}
        audited.findings.append((where, own))
        rules = rules_in(setting, known[episode.task_id])
        audited.summary.add(episode, own, where, rules=rules, judged=episode.tags.get(JUDGED) is not None)
    return audited


def _judge(
    spec: str,
    scenes: Sequence[tuple[Scene, str]],
    budget: Budget | None,
    progress: Progress | None,
    concurrency: int,
    summary: AuditSummary,
) -> dict[str, Judgement]:
    """What a judge says, by episode; asked about those only that it has not seen."""
    known = {s.episode.id: _read(s.episode) for s, _ in scenes if s.episode.tags.get(JUDGED) is not None}
    waiting = [(s, policy) for s, policy in scenes if s.episode.id not in known]
    judge = AuditJudge(getattr(make_judge(spec), "model"))  # noqa: B009  a judge of that name is an endpoint's

    async def ask(done: Any) -> tuple[list[Judgement | None], list[str]]:
        turn = (budget or Budget()).turn
        try:
            return await judge_all(judge, waiting, concurrency=concurrency, turn=turn, done=done)
        finally:
            endpoint = judge_endpoint(spec)
            if endpoint is not None:
                await endpoint.aclose()

    answers: list[Judgement | None] = []
    failures: list[str] = []
    if waiting and progress is not None:
        with progress.phase("auditing", len(waiting), "episodes") as phase:
            answers, failures = asyncio.run(ask(phase.advance))
        if failures:
            progress.say(f"The audit's judge did not answer for {len(failures)} episodes. First: {failures[0]}")
    elif waiting:
        answers, failures = asyncio.run(ask(lambda: None))
    for (scene, _), answer in zip(waiting, answers, strict=True):
        if answer is not None:
            known[scene.episode.id] = answer
            scene.episode.tags[JUDGED] = {
                "findings": [f.to_json() for f in answer.findings],
                "cleared": sorted([rule, message] for rule, message in answer.cleared),
            }
    summary.judged, summary.unjudged = len(known), len(failures)
    return known


def _read(episode: Episode) -> Judgement:
    kept = episode.tags[JUDGED]
    cleared = frozenset((str(rule), int(message)) for rule, message in kept["cleared"])
    return Judgement(tuple(Finding.from_json(f) for f in kept["findings"]), cleared)
