"""What scripted experts earn who talk with the environment's own users: one that serves by the policy, and one that
never asks before it writes.

Where the first fails, a task calls something else right than the policy does. Of the second: muarl_tools/asking.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from muarl.agents.expert import ExpertAgent
from muarl.domains.scripted_expert import ErrorProfile
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.users.agenda import AgendaUserFactory
from muarl_tools.asking import ENOUGH, REMEDY, AskingCost, ExpertPlay, asking_cost, expert_plays
from muarl_tools.asking import UNASKED as NEVER_ASKS
from muarl_tools.check_tasks.findings import OverallFinding, TaskFinding
from muarl_tools.check_tasks.sources import TaskSource

EXPERT, UNASKED = "expert", "expert-unasked"
PROFILES: Mapping[str, ErrorProfile] = {EXPERT: ErrorProfile(), UNASKED: NEVER_ASKS}
"""Experts by name: without errors, and one that writes without asking."""
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
    places = Places([replace(environment.place(), domain=source.domain)])
    users = AgendaUserFactory(environment.rule_based_user)
    found: dict[str, dict[Key, ExpertPlay]] = {}
    for name, errors in PROFILES.items():
        agent = ExpertAgent(errors, make=environment.expert)
        episodes = asyncio.run(play_in(places, agent, users, tasks, 1, seed=0)).episodes
        plays = zip(keys, expert_plays(source.domain, episodes), strict=True)
        found[name] = {key: play for key, play in plays if play is not None}
    return found


def expert_fails(source: TaskSource, played: Mapping[str, Mapping[Key, ExpertPlay]]) -> Iterator[TaskFinding]:
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
        yield TaskFinding("expert-fails", "warning", name, split, evidence, remedy)


def cost_of_not_asking(source: TaskSource, played: Mapping[str, Mapping[Key, ExpertPlay]]) -> AskingCost | None:
    """What never asking costs; None where no expert was played, or the policy asks for no consent."""
    if not source.audit.consent or not played:
        return None
    keys = [(split, task.id) for split, task in source.tasks]
    asked, unasked = ([played[name].get(key) for key in keys] for name in (EXPERT, UNASKED))
    return asking_cost([task for _, task in source.tasks], asked, unasked)


def asking_unpaid(cost: AskingCost | None) -> Iterator[OverallFinding]:
    """Whether never asking costs about nothing, in all or in some kinds of requests."""
    if cost is not None and cost.problem:
        yield OverallFinding("asking-unpaid", "warning", cost.problem, REMEDY)


def idle_earns(earned: Mapping[str, Mapping[Key, float | None]], most: float) -> Iterator[OverallFinding]:
    """Trivial agents that earn more than a share of the tasks, where there are enough of them."""
    rows: Sequence[tuple[str, int, int]] = [
        (name, sum(r == 1 for r in rewards.values()), len(rewards)) for name, rewards in earned.items() if rewards
    ]
    over = [(name, won, total) for name, won, total in rows if total >= ENOUGH and won > most * total]
    if over:
        told = ", ".join(f"{name} {won} of {total} ({won / total:.0%})" for name, won, total in over)
        yield OverallFinding(
            "idle-earns", "warning", told, "Before training: look at the tasks under earned-by-nothing, draw fewer "
            "refusals, or let the reward ask for what a good refusal says. Report scores beside these figures",
        )  # fmt: skip
