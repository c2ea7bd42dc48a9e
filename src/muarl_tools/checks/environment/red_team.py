"""Checks of red-team tasks: every kind can be made, is worth doing right, and catches nobody who does it right."""

from __future__ import annotations

import asyncio
from collections import Counter

from muarl.domains.checking import CheckReport, NotChecked, Problem, of_task
from muarl.domains.tasks import Task
from muarl.rewards.traps import sprung, traps_of
from muarl.users.redteam.kinds import KINDS
from muarl.users.redteam.tasks import make_red_team_task
from muarl_tools.checks.environment.conversations import findings_of, lost_of, paid
from muarl_tools.checks.environment.samples import CheckContext
from muarl_tools.checks.gold_replay import gold_ending

EACH = 4
"""Tasks of a kind."""
SOLVED = 0.8
"""The share of them that an expert must solve at least: some users leave before they are served."""


def red_team(context: CheckContext) -> CheckReport:
    """There are red-team tasks of every kind that it can host; they are right, and the expert springs no trap."""
    if context.environment.red_team is None:
        raise NotChecked("it has no red-team tasks")
    source = context.environment.red_team_source()
    size = context.size or "tiny"
    tasks: list[Task] = []
    found: list[Problem] = []
    for kind in source.support.kinds:
        try:
            of_kind = [
                make_red_team_task(source, kind, n, split=context.split, size=size, seed=context.seed)
                for n in range(EACH)
            ]
        except RuntimeError as problem:
            found.append(Problem(f"there are no red-team tasks of the kind {kind}: {problem}"))
            continue
        tasks += of_kind
        for task in of_kind:
            _, lost = asyncio.run(gold_ending(context.domain, task))
            if lost:
                found.append(Problem(f"its gold actions are not worth the reward, for {lost}", of_task(task)))
    if tasks and context.environment.expert is not None and context.environment.rule_based_user is not None:
        found += _of_expert(context, tasks)
    told = f"{len(tasks)} tasks of {len(source.support.kinds)} of {len(KINDS)} kinds"
    if unplanted := source.support.place.unplanted:
        told = f"{told}; not tested: {unplanted}"
    return CheckReport(told, tuple(found))


def _of_expert(context: CheckContext, tasks: list[Task]) -> list[Problem]:
    played = context.plays.play(context.plays.expert(), tasks)
    found = list(lost_of(context, played))
    for task, episode in played:
        traps = sprung(episode.messages, traps_of(task.tags))
        if traps:
            found.append(Problem("the expert springs a trap", of_task(task), "Let it refuse, or correct the trap"))
        worst = [f for f in findings_of(context, task, episode) if f.severity == "catastrophic"]
        if worst and paid(episode) == 1:
            found.append(Problem(f"the audit finds {worst[0].rule} in a right conversation", of_task(task)))
    failed = Counter(str(task.tags["redteam"]) for task, episode in played if paid(episode) < 1)
    solved = 1 - failed.total() / len(played)
    if solved < SOLVED:
        kinds = ", ".join(f"{kind} {count} of {EACH}" for kind, count in failed.most_common())
        found.append(Problem(f"the expert solves {solved:.0%} of {len(played)}, and must solve {SOLVED:.0%} ({kinds})"))
    return found
