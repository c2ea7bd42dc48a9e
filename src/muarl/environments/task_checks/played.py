"""What scripted experts earn who talk with the environment's own users: one that serves by the policy, and one that
never asks before it writes.

Where the first fails, a task calls something else right than the policy does. Where the second earns as much, a yes is
worth nothing, and nothing keeps an agent that learns from these rewards from writing without one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muarl.agents.expert import ExpertAgent
from muarl.domains.base import Domain
from muarl.domains.error_profile import ErrorProfile
from muarl.environments.playing import play
from muarl.environments.task_checks.findings import OverallFinding, TaskFinding
from muarl.environments.task_checks.sources import TaskSource
from muarl.environments.usual import configured
from muarl.episode import Episode
from muarl.users.agenda import AgendaUserFactory

EXPERT, UNASKED = "expert", "expert-unasked"
PROFILES: Mapping[str, ErrorProfile] = {EXPERT: ErrorProfile(), UNASKED: ErrorProfile(skip_confirmation=1.0)}
"""Experts by name: without errors, and one that writes without asking."""
ENOUGH = 20
"""Tasks below which nothing is said of a share of them."""
WORTH = 0.05
"""The share of them that not asking must cost at least."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ExpertPlay:
    """What came of a conversation: its reward, and the writes that succeeded."""

    reward: float
    writes: tuple[str, ...]


def play_experts(source: TaskSource) -> Mapping[str, Mapping[Key, ExpertPlay]]:
    """By expert, what came of each task (by split and id). Empty where the environment has no scripted expert or no
    rule-based user, or where a task has no agenda for such a user."""
    environment = source.environment
    if environment is None or environment.expert is None or environment.rule_based_user is None:
        return {}
    keys, tasks = [(split, task.id) for split, task in source.tasks], [task for _, task in source.tasks]
    if not tasks or any(task.agenda is None or "requests" not in task.agenda for task in tasks):
        return {}
    place = replace(configured(environment), domain=source.domain)
    users = AgendaUserFactory(environment.rule_based_user)
    found: dict[str, dict[Key, ExpertPlay]] = {}
    for name, errors in PROFILES.items():
        agent = ExpertAgent(errors, environment.expert)
        episodes = asyncio.run(play(place, agent, users, tasks, 1, seed=0)).episodes
        scored = ((key, one) for key, one in zip(keys, episodes, strict=True) if one.verdict is not None)
        found[name] = {key: _played(source.domain, one) for key, one in scored}
    return found


def _played(domain: Domain, episode: Episode) -> ExpertPlay:
    failed = {m.tool_call_id for m in episode.messages if m.role == "tool" and m.error}
    calls = [c for m in episode.messages if m.role == "assistant" for c in m.tool_calls if c.id not in failed]
    writes = (c for c in calls if c.name in domain.tool_names() and domain.kind_of(c.name) == "write")
    return ExpertPlay(episode.reward, tuple(f"{c.name}({_shown(c.arguments)})" for c in writes))


def _shown(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False, default=str)


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


def asking_unpaid(source: TaskSource, played: Mapping[str, Mapping[Key, ExpertPlay]]) -> Iterator[OverallFinding]:
    """Whether an expert that never asks earns about as much as one that does, in tasks where there is something to ask
    about."""
    if not source.audit.consent or not played:
        return
    asked, unasked = played[EXPERT], played[UNASKED]
    served = [key for key, one in asked.items() if one.reward == 1 and one.writes]
    kept = sum(key in unasked and unasked[key].reward == 1 for key in served)
    if len(served) < ENOUGH or len(served) - kept >= WORTH * len(served):
        return
    evidence = (
        f"of {len(served)} tasks in which the expert asks, writes and earns the reward, it earns {kept} "
        f"({kept / len(served):.0%}) without asking"
    )
    yield OverallFinding(
        "asking-unpaid", "warning", evidence, "Let users change their mind or say no to what is proposed, let the "
        "reward look at all of the database, or count writes without consent in the reward (rl.layers)",
    )  # fmt: skip


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
