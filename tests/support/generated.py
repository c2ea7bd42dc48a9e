"""Generated retail tasks for tests: drawn once, played by an agent against the agenda user, and scored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.audit.figures import audit
from muarl.domains.base import Task
from muarl.domains.experts import Habits
from muarl.domains.retail import generator
from muarl.domains.retail.generated import generated_retail
from muarl.episode import Episode
from muarl.recipes.setting import GENERATED_RULES
from muarl.rewards import outcome
from muarl.rollout import LocalExecutor, Player, requests_for, rollout
from muarl.users.agenda import AgendaUserFactory

IDENTITY = {
    "first_name": "Mia", "last_name": "Berg", "zip": "12345", "email": "mia.berg1000@example.com",
    "user_id": "mia_berg_1000",
}  # fmt: skip


@cache
def made(size: str, split: str, count: int, seed: int = 0) -> tuple[Task, ...]:
    return tuple(generator.tasks(split, count, size=size, seed=seed))


def play(agent: Agent, tasks: Sequence[Task], size: str = "tiny", *, user_seed: int = 1) -> list[Episode]:
    """One scored and audited episode of every task."""
    domain = generated_retail(size)
    player = Player(
        make_world=domain.world,
        agent=agent,
        make_user=AgendaUserFactory(seed=user_seed),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        audit=lambda task, world, episode: audit(episode, task, domain.kind_of),
        rules=GENERATED_RULES,
    )
    played = rollout(requests_for(tasks, 1, seed=0), LocalExecutor(player.play))
    return asyncio.run(played).episodes


def expert(tasks: Sequence[Task], size: str = "tiny", **habits: float) -> list[Episode]:
    return play(ExpertAgent(Habits(**habits)), tasks, size)


def request(kind: str, wish: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """One request of an agenda; what is not given is as plain as can be."""
    return {"kind": kind, "intent": kind, "then": None, "fallback": None, "unknown": [], "answer": None, **more} | {
        "wish": dict(wish)
    }


def agenda_task(*requests: Mapping[str, Any], **agenda: Any) -> Task:
    """A task that only an agenda user can read: it has no database."""
    plain = {"persona": "terse", "identity": IDENTITY, "wrong_zip": None, "upfront": True, "reminds": False}
    return Task("made-up", "retail", "", None, agenda={**plain, "requests": list(requests), **agenda})
