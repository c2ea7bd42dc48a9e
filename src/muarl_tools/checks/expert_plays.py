"""Scripted agents that talk with the environment's own users; and what it costs an expert to write without asking.

Where one that never asks earns as much as one that serves by the policy, a yes is worth nothing, and nothing keeps an
agent that learns from these rewards from writing without one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.basics.event_loop import Closable
from muarl.domains.base import Domain
from muarl.domains.checking import NotChecked
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.episode import Episode, StopReason
from muarl.users.agenda import AgendaUserFactory
from muarl.users.base import UserFactory

Played = Sequence[tuple[Task, Episode]]

ON_SERVER, HERE = 8, 256
"""Episodes at once where each takes a server of its own, and elsewhere."""
NEVER_ASKS = ErrorProfile(skip_confirmation=1.0)
"""The mistakes of an expert that never asks before it writes."""
ENOUGH = 20
"""Tasks below which nothing is said of a share of them."""
WORTH = 0.1
"""The share of the tasks with something to ask about that never asking must cost at least."""
MANY = 80
"""Tasks from which on a share is judged as it is; of fewer it may be lower by two standard errors."""
OF_ONE_INTENT = 30
"""Tasks with one request of one kind below which nothing is said of that kind."""
REMEDY = (
    "Let some users change their mind or say no to a right proposal in every intent, let the reward look at all of the "
    "database, or count writes without consent in the reward (rl.layers)"
)


@dataclass
class ScriptedPlays:
    """Who plays an environment's tasks without a model. ``seed``: of users and agents. ``label``: another one gives
    other random numbers. ``lenient``: an episode in which the agent's own code has a bug is kept, and not the end."""

    environment: Environment
    domain: Domain
    seed: int = 0
    label: str = ""
    lenient: bool = False

    def users(self, persona: str | None = None) -> AgendaUserFactory:
        """The rule-based users. NotChecked where there are none."""
        if self.environment.rule_based_user is None:
            raise NotChecked("it has no rule-based user")
        return AgendaUserFactory(self.environment.rule_based_user, seed=self.seed, persona=persona)

    def expert(self, errors: ErrorProfile = ErrorProfile()) -> ExpertAgent:
        """The scripted expert. NotChecked where there is none."""
        if self.environment.expert is None:
            raise NotChecked("it has no expert")
        return ExpertAgent(errors, make=self.environment.expert)

    def play(self, agent: Agent, tasks: Sequence[Task], users: UserFactory | None = None) -> Played:
        """One scored episode of each task, nothing tried twice. NotChecked where its worlds are a server's, which
        cannot be had."""
        episodes = asyncio.run(self._play(agent, tasks, users or self.users()))
        lost = next((e for e in episodes if (e.error or "").startswith("world: ")), None)
        if lost is not None and self.environment.on_server:
            raise NotChecked(str(lost.error))
        return list(zip(tasks, episodes, strict=True))

    async def _play(self, agent: Agent, tasks: Sequence[Task], users: UserFactory) -> list[Episode]:
        once = replace(self.environment.place(), domain=self.domain).runner(agent, users, retries=0)

        async def play(request: RolloutRequest) -> Episode:
            episode = await once.play(request)
            if self.lenient and episode.stop is StopReason.INFRASTRUCTURE and episode.tags["boundary"] == "agent":
                episode.tags["retryable"] = True
            return episode

        executor = LocalExecutor(play, ON_SERVER if self.environment.on_server else HERE)
        try:
            requests = requests_for(tasks, 1, seed=self.seed, label=self.label)
            return (await rollout(requests, executor)).episodes
        finally:
            if isinstance(self.domain, Closable):
                await self.domain.aclose()


@dataclass(frozen=True, slots=True)
class ExpertPlay:
    """What came of a conversation: its reward, and the writes that succeeded."""

    reward: float
    writes: tuple[str, ...]


@dataclass(frozen=True)
class AskingCost:
    """What never asking costs. ``due``: tasks that the expert that asks earns and in which the one that never asks
    writes. ``lost``: how many of these the latter does not earn. ``unpaid``: kinds of requests in which it loses none,
    with their number of tasks."""

    due: int
    lost: int
    unpaid: Mapping[str, int]

    @property
    def share(self) -> float:
        """The share of the due tasks that are lost; 0 without any."""
        return self.lost / self.due if self.due else 0.0

    @property
    def problem(self) -> str:
        """Why asking is worth too little, in a sentence without its full stop; empty if it is not."""
        slack = 0.0 if self.due >= MANY else 2 * sqrt(WORTH * (1 - WORTH) / max(1, self.due))
        if self.due >= ENOUGH and self.share < WORTH - slack:
            return f"{self.lost_text}: an agent that is paid by the outcome alone learns not to ask"
        if self.unpaid:
            kinds = ", ".join(f"{name} (0 of {count})" for name, count in self.unpaid.items())
            return f"never asking loses nothing in some intents: {kinds}"
        return ""

    @property
    def lost_text(self) -> str:
        """What never asking loses, in words."""
        return f"of {self.due} tasks with something to ask about, never asking loses {self.lost} ({self.share:.0%})"


def asking_cost(
    tasks: Sequence[Task], asked: Sequence[ExpertPlay | None], unasked: Sequence[ExpertPlay | None]
) -> AskingCost:
    """Compare what came of the same tasks, in the same order; None where an episode has no verdict."""
    both = [(t, a, u) for t, a, u in zip(tasks, asked, unasked, strict=True) if a is not None and u is not None]
    due = [(task, u.reward < 1) for task, a, u in both if a.reward == 1 and u.writes]
    kinds: dict[str, list[bool]] = {}
    for task, lost in due:
        requests = (task.agenda or {}).get("requests", ())
        if len(requests) == 1 and "kind" in requests[0]:
            kinds.setdefault(str(requests[0]["kind"]), []).append(lost)
    return AskingCost(
        len(due),
        sum(lost for _, lost in due),
        {kind: len(seen) for kind, seen in kinds.items() if len(seen) >= OF_ONE_INTENT and not any(seen)},
    )


def expert_plays(domain: Domain, episodes: Iterable[Episode]) -> list[ExpertPlay | None]:
    """What came of each episode; None for one without a verdict."""
    return [None if one.verdict is None else _played(domain, one) for one in episodes]


def _played(domain: Domain, episode: Episode) -> ExpertPlay:
    failed = {m.tool_call_id for m in episode.messages if m.role == "tool" and m.error}
    calls = [c for m in episode.messages if m.role == "assistant" for c in m.tool_calls if c.id not in failed]
    writes = (c for c in calls if c.name in domain.tool_names() and domain.kind_of(c.name) == "write")
    return ExpertPlay(episode.reward, tuple(f"{c.name}({_shown(c.arguments)})" for c in writes))


def _shown(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False, default=str)
