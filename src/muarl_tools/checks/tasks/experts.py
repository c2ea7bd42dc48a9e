"""What scripted experts earn who talk with the environment's own users: one that serves by the policy, and one that
never asks before it writes.

Where the first fails, a task calls something else right than the policy does. Of the second: checks/expert_plays.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from muarl.domains.checking import CheckFinding
from muarl.domains.scripted_expert import ErrorProfile
from muarl_tools.checks.expert_plays import (
    ENOUGH,
    NEVER_ASKS,
    REMEDY,
    AskingCost,
    ExpertPlay,
    ScriptedPlays,
    asking_cost,
    expert_plays,
)
from muarl_tools.checks.tasks.sources import TaskSource

EXPERT, UNASKED = "expert", "expert-unasked"
MOST_IDLE = 0.25
"""The share of tasks that trivial agents may earn without a warning."""
Key = tuple[str, str]


def play_experts(source: TaskSource) -> Mapping[str, Mapping[Key, ExpertPlay]]:
    """By expert, what came of each task (by split and id). Empty where the environment has no scripted expert or no
    rule-based user, or where a task has no agenda for such a user."""
    environment = source.environment
    if environment is None or environment.expert is None or environment.rule_based_user is None:
        return {}
    keys, tasks = [(split, task.id) for split, task in source.tasks], [task for _, task in source.tasks]
    if not tasks or any(task.agenda is None or "requests" not in task.agenda for task in tasks):
        return {}
    plays = ScriptedPlays(environment, source.domain)
    found: dict[str, dict[Key, ExpertPlay]] = {}
    for name, errors in {EXPERT: ErrorProfile(), UNASKED: NEVER_ASKS}.items():
        episodes = [episode for _, episode in plays.play(plays.expert(errors), tasks)]
        came = zip(keys, expert_plays(source.domain, episodes), strict=True)
        found[name] = {key: play for key, play in came if play is not None}
    return found


def expert_fails(source: TaskSource, played: Mapping[str, Mapping[Key, ExpertPlay]]) -> Iterator[CheckFinding]:
    """A finding for each task that the expert does not earn."""
    by_id = {(split, task.id): task for split, task in source.tasks}
    for (split, name), one in played.get(EXPERT, {}).items():
        if one.reward == 1:
            continue
        task = by_id[split, name]
        gold = [a.name for a in task.actions or () if source.domain.kind_of(a.name) == "write"]
        did = "; ".join(one.writes) or "nothing was written"
        evidence = (
            f"an expert that serves by the policy and asks before it writes earns {one.reward:g}: {did}; "
            f"gold actions write {', '.join(gold) or 'nothing'}"
        )
        remedy = "Read what the policy asks for here: gold actions, the user's agenda or the expert is wrong"
        yield CheckFinding(evidence, name, remedy, "expert-fails", "warning", split)


def cost_of_not_asking(source: TaskSource, played: Mapping[str, Mapping[Key, ExpertPlay]]) -> AskingCost | None:
    """What never asking costs; None where no expert was played, or the policy asks for no consent."""
    if not source.audit.consent or not played:
        return None
    keys = [(split, task.id) for split, task in source.tasks]
    asked, unasked = ([played[name].get(key) for key in keys] for name in (EXPERT, UNASKED))
    return asking_cost([task for _, task in source.tasks], asked, unasked)


def asking_unpaid(cost: AskingCost | None) -> Iterator[CheckFinding]:
    """Whether never asking costs about nothing, in all or in some kinds of requests."""
    if cost is not None and cost.problem:
        yield CheckFinding(cost.problem, "", REMEDY, "asking-unpaid", "warning")


def idle_earns(baselines: Iterable[tuple[str, int, int, int]]) -> Iterator[CheckFinding]:
    """Trivial agents that earn more than a share of the tasks, where there are enough of them. ``baselines``: (agent,
    tasks with reward 1, tasks that only a judge can decide, tasks)."""
    over = [(name, won, total) for name, won, _, total in baselines if total >= ENOUGH and won > MOST_IDLE * total]
    if over:
        told = ", ".join(f"{name} {won} of {total} ({won / total:.0%})" for name, won, total in over)
        remedy = (
            "Before training: look at the tasks under earned-by-nothing, draw fewer refusals, or let the reward ask "
            "for what a good refusal says. Report scores beside these figures"
        )
        yield CheckFinding(told, "", remedy, "idle-earns", "warning")
