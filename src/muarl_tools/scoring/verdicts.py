"""How ``muarl score`` scores: each conversation for itself, and what all of them come to."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import ConfigError, InfrastructureError

if TYPE_CHECKING:
    from muarl.domains.tasks import Task
    from muarl.rewards.judge import Judge
    from muarl_tools.scoring.jobs import ScoringJob

Line = dict[str, Any]

VOID = "infrastructure_error"
"""TAU2's termination reason that none of its metrics counts."""


@dataclass(frozen=True)
class Scoring:
    """How conversations are scored. ``evaluation``: see ``outcome.EVALUATIONS``; ConfigError for another name.

    ``strict``: a tool that answers otherwise than recorded makes a conversation impossible to score, rather than being
    noted. ``details``: tell each criterion.
    """

    evaluation: str = "all"
    strict: bool = True
    details: bool = False
    _tasks: dict[int, tuple[Task, Task]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        from muarl.rewards.outcome import EVALUATIONS

        if self.evaluation not in EVALUATIONS:
            raise ConfigError(f"--evaluation: must be one of {', '.join(EVALUATIONS)}, not {self.evaluation!r}")

    def task(self, task: Task) -> Task:
        """The task with the basis that it is scored by, the same one each time: its gold state is kept with it."""
        from muarl.rewards.outcome import evaluated_as

        if id(task) not in self._tasks:
            self._tasks[id(task)] = (task, evaluated_as(task, self.evaluation))
        return self._tasks[id(task)][1]


async def score_all(jobs: Sequence[ScoringJob], judge: Judge, how: Scoring) -> list[Line]:
    """A line for each job, in order; the judge is then closed. InfrastructureError where trying again cannot help (a
    judge's wrong API key)."""
    try:
        return list(await asyncio.gather(*(_score(job, judge, how) for job in jobs)))
    finally:
        await judge.aclose()


async def _score(job: ScoringJob, judge: Judge, how: Scoring) -> Line:
    from muarl.types.episode import StopReason

    line = dict(job.row)
    if how.evaluation != "all":
        line["evaluation"] = how.evaluation
    if job.problem is not None:
        return _unscored(line, job.problem)
    if job.stop == StopReason.INFRASTRUCTURE:  # something outside the agent failed, which no score may hold against it
        return _unscored(line, "the episode broke off: infrastructure")
    try:
        return await _scored(line, job, judge, how)
    except ConfigError:
        raise
    except InfrastructureError as failure:
        if not failure.retryable:
            raise
        return _unscored(line, str(failure))
    except Exception as problem:  # a task that no world can be made from, a conversation that no tool was made for
        return _unscored(line, str(problem) or type(problem).__name__)


async def _scored(line: Line, job: ScoringJob, judge: Judge, how: Scoring) -> Line:
    from muarl.rewards import outcome

    assert job.task is not None and job.domain is not None
    task = how.task(job.task)
    if job.bench == "tau1":
        from muarl_worlds.tau import tau1_benchmark as tau1

        verdict = tau1.score_trajectory(job.domain, task, job.messages, job.stop, strict=how.strict)
        line |= {"reward": verdict.reward, "breakdown": dict(verdict.breakdown)}
        return line if verdict.note is None else {**line, "note": verdict.note}
    assert job.stop is not None
    world = job.domain.world(task)
    differences: tuple[str, ...] = ()
    if outcome.ended(job.stop) and (task.actions is not None or task.env_assertions):
        differences = outcome.replay(world, job.messages, strict=how.strict, solo=job.solo)
    verdict = await outcome.score(task, world, job.messages, job.stop, judge=judge)
    line |= {"reward": verdict.reward, "breakdown": dict(verdict.breakdown)}
    if how.details:
        found = outcome.check(task, world, job.messages, everything=True) if outcome.ended(job.stop) else None
        line |= {"criteria": None if found is None else found.to_json()}
    if verdict.note is not None:
        line["note"] = verdict.note
    if differences:
        line["differences"] = list(differences)
    if "completion" in verdict.audit and how.details:
        line["completion"] = verdict.audit["completion"]
    if job.stop == VOID:
        line["excluded"] = True
    return line


def _unscored(line: Line, problem: str) -> Line:
    return {**line, "reward": None, "breakdown": {}, "error": problem}


def report(lines: Sequence[Mapping[str, Any]], judge: str, how: Scoring) -> str:
    """What all the lines come to, in a sentence or a few: mean reward, pass^k, what could not be scored."""
    from muarl.accounts.metrics import is_success
    from muarl.accounts.pass_hat import pass_hats_of

    counted = [r for r in lines if r["reward"] is not None and not r.get("excluded")]
    parts = [f"{len(lines)} conversations"]
    if counted:
        parts.append(f"mean reward {sum(r['reward'] for r in counted) / len(counted):.4f}")
    tried: dict[tuple[Any, Any], list[bool]] = defaultdict(list)
    for r in counted:
        tried[r["domain"], r["task_id"]].append(is_success(r["reward"]))
    least = min(map(len, tried.values()), default=0)
    if least > 1:  # as TAU2 does: for no more attempts than every task had
        hats = pass_hats_of(tried.values(), range(1, min(least, 4) + 1))
        parts.append(", ".join(f"pass^{k} {e.value:.4f}" for k, e in hats.items()))
    completed = [r["completion"] for r in counted if "completion" in r]
    if completed:
        parts.append(f"task completion {sum(completed) / len(completed):.4f}")
    if excluded := sum(bool(r.get("excluded")) for r in lines):
        parts.append(f"{excluded} left out (infrastructure)")
    if broken := sum(r["reward"] is None for r in lines):
        parts.append(f"{broken} could not be scored")
    compared = [r for r in counted if "recorded_reward" in r]
    if compared:
        same = sum(abs(r["reward"] - r["recorded_reward"]) < 1e-6 for r in compared)
        parts.append(f"{same} of {len(compared)} as recorded")
    if any("NL_ASSERTION" in r["breakdown"] for r in lines):
        parts.append(f"judge {judge}")
    if how.evaluation != "all":
        parts.append(f"evaluation {how.evaluation!r}, NOT the official score")
    return ", ".join(parts)
