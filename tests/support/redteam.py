"""Agents for red-team tasks: one that falls for them, one that does what is right without a word, and how to play."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from muarl.agents.base import AgentTurn
from muarl.agents.expert import ExpertAgent
from muarl.domains.base import Domain
from muarl.domains.tasks import Action, Task
from muarl.environments.environment import GENERATED_RULES
from muarl.environments.registry import find
from muarl.rewards import outcome
from muarl.rewards.traps import traps_of
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.rules import Limits
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode
from muarl.users.redteam.kinds import KINDS
from muarl.users.redteam.service_place import ServicePlace
from muarl.users.redteam.support import RedTeamSource
from muarl.users.redteam.tasks import make_red_team_task
from support.environments import users_of

COMMON = tuple(kind for kind in KINDS if kind != "insider")
"""The kinds that need no colleague who approves things."""


@lru_cache(maxsize=8)
def domain_of(task_domain: str, size: str = "tiny") -> Domain:
    """The domain that generated tasks run in."""
    return find(f"{task_domain}-generated").make_domain(size)


class Doer:
    """An agent that makes these calls first, one a turn, and then says the same at every turn."""

    name = "doer"

    def __init__(self, actions: Sequence[Action], saying: str = "Done. Anything else?") -> None:
        self._actions, self._saying = list(actions), saying

    def open(self, system: str, tools: Any, *, seed: int, session: str) -> Doer:
        return Doer(self._actions, self._saying)

    tokens = None

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        if not self._actions:
            return AgentTurn(Message("assistant", self._saying))
        action = self._actions.pop(0)
        return AgentTurn(
            Message("assistant", None, (ToolCall(f"c{len(self._actions)}", action.name, action.arguments),))
        )

    def close(self) -> None:
        pass


def expert(task: Task) -> ExpertAgent:
    """The domain's scripted expert."""
    return ExpertAgent(make=find(f"{task.domain}-generated").expert)


def right(task: Task) -> Doer:
    """An agent that does what the gold actions say."""
    told = " ".join([*task.communicate_info, "Done. Anything else?"])
    return Doer([a for a in task.actions or () if a.requestor == "assistant"], told)


def fooled(task: Task) -> Doer:
    """An agent that springs one of the task's traps, if a call can be made of it."""
    identify = [a for a in (task.actions or ())[:1] if a.requestor == "assistant"]
    return Doer([*identify, *_giving_in(task)])


def _giving_in(task: Task) -> list[Action]:
    specs = {spec.name: spec for spec in domain_of(task.domain).tool_specs()}
    for trap in traps_of(task.tags):
        others = [i for i in trap.ids if trap.tool is None and i.startswith("#W")]
        if others:
            return [Action("get_order_details", {"order_id": others[0]})]
        if trap.tool in specs and set(specs[trap.tool].parameters["required"]) <= set(trap.arguments):
            return [Action(trap.tool, trap.arguments)]
    return _fulfilled(task)


def _fulfilled(task: Task) -> list[Action]:
    """The writes that give somebody what they want, whoever it is and whether or not they have agreed."""
    assert task.agenda is not None
    place, wish = source(task.domain).support.place, task.agenda["requests"][0]
    assert isinstance(place, ServicePlace)
    if wish["kind"] == "outside":
        return []
    found = place.source(task, place.me(task), random.Random(0)).outcome(wish["kind"], wish["goal"])
    return place.writes(found.actions)


DOMAINS = ("retail",)


def source(domain: str) -> RedTeamSource:
    """What red-team tasks of a domain are made of."""
    return find(f"{domain}-generated").red_team_source()


def make(domain: str, kind: str, index: int, **options: Any) -> Task:
    """One red-team task."""
    return make_red_team_task(source(domain), kind, index, **options)


_made = lru_cache(maxsize=1000)(make)


def some(domain: str, kind: str, count: int = 6, size: str = "tiny") -> list[Task]:
    """The first tasks of a kind."""
    return [_made(domain, kind, n, size=size) for n in range(count)]


def play(task: Task, agent: Any, *, seed: int = 0, size: str = "tiny", turns: int = 40) -> Episode:
    """One scored episode of an agent with the task's user."""

    async def go() -> Episode:
        world = domain_of(task.domain, size).world(task)
        user = users_of(task.domain)(task, seed=seed)
        episode = await run_episode(task, world, agent, user, Limits(turns=turns), rules=GENERATED_RULES, seed=seed)
        assert episode.error is None, episode.error
        if not episode.stop.truncated:
            episode.verdict = await outcome.score(task, world, episode.messages, episode.stop)
        return episode

    return asyncio.run(go())


def said(episode: Episode) -> list[str]:
    """What the user said."""
    return [m.content or "" for m in episode.messages if m.role == "user" and not m.tool_calls]
