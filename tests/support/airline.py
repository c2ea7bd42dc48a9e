"""Generated airline tasks for tests: drawn once, played by an agent against the agenda user, and scored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.audit.figures import audit
from muarl.audit.rules import AIRLINE
from muarl.domains.airline import generator, phrases
from muarl.domains.airline.expert import AirlineExpert
from muarl.domains.airline.generated import generated_airline
from muarl.domains.base import Task
from muarl.domains.experts import Habits
from muarl.episode import Episode
from muarl.recipes.setting import GENERATED_RULES
from muarl.rewards import outcome
from muarl.rollout import LocalExecutor, Player, requests_for, rollout
from muarl.users.agenda import AgendaUserFactory
from muarl.users.agenda_airline import AgendaUser
from support.callers import Conversation

IDENTITY = {"first_name": "Mia", "last_name": "Berg", "user_id": "mia_berg_1007"}
NINA = {"first_name": "Nina", "last_name": "Costa", "dob": "1985-03-02"}
IVAN = {"first_name": "Ivan", "last_name": "Haas", "dob": "1990-04-05"}

CANCEL = {"reservation_id": "K3M8T2", "reason": "health"}
MOVE = {"reservation_id": "P4Q1R9", "date": "2024-05-21", "payment": "gift_card"}
CABIN = {"reservation_id": "B5C6D7", "cabin": "business", "payment": "credit_card"}
BAGS = {"reservation_id": "E1F2G3", "bags": 3, "payment": "credit_card"}
PERSON = {"reservation_id": "H4J5K6", "passenger": NINA}
CERTIFICATE = {"reservation_id": "L7M8N9"}
PRICE = {"reservation_id": "S1T2U3"}
BOOK = {
    "origin": "JFK", "destination": "SEA", "date": "2024-05-22", "cabin": "economy", "passengers": [IVAN], "bags": 2,
    "insurance": True, "payment": "gift_card",
}  # fmt: skip
WISHES = {
    "cancel": CANCEL, "flights": MOVE, "cabin": CABIN, "bags": BAGS, "passenger": PERSON, "compensation": CERTIFICATE,
    "question": PRICE, "book": BOOK,
}  # fmt: skip


@cache
def made(size: str, split: str, count: int, seed: int = 0) -> tuple[Task, ...]:
    return tuple(generator.tasks(split, count, size=size, seed=seed))


def play(agent: Agent, tasks: Sequence[Task], size: str = "tiny", *, user_seed: int = 1) -> list[Episode]:
    """One scored and audited episode of every task."""
    domain = generated_airline(size)
    player = Player(
        make_world=domain.world,
        agent=agent,
        make_user=AgendaUserFactory(seed=user_seed),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        audit=lambda task, world, episode: audit(episode, task, domain.kind_of, AIRLINE),
        rules=GENERATED_RULES,
    )
    played = rollout(requests_for(tasks, 1, seed=0), LocalExecutor(player.play))
    return asyncio.run(played).episodes


def expert(tasks: Sequence[Task], size: str = "tiny", **habits: float) -> list[Episode]:
    return play(ExpertAgent(Habits(**habits), AirlineExpert), tasks, size)


def request(kind: str, wish: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """One request of an agenda; what is not given is as plain as can be."""
    plain = {"kind": kind, "intent": kind, "then": None, "fallback": None, "unknown": [], "answer": None}
    return {**plain, **more, "wish": dict(WISHES[kind] if wish is None else wish)}


def agenda_task(*requests: Mapping[str, Any], **agenda: Any) -> Task:
    """A task that only an agenda user can read: it has no database."""
    plain = {"persona": "terse", "identity": IDENTITY, "wrong_id": None, "upfront": True, "reminds": False}
    return Task("made-up", "airline", "", None, agenda={**plain, "requests": list(requests), **agenda})


class Talk(Conversation):
    """A conversation with the caller of these requests."""

    def __init__(self, *requests: Mapping[str, Any], seed: int = 0, **agenda: Any) -> None:
        super().__init__(AgendaUser(agenda_task(*requests, **agenda), seed=seed))


def agrees(text: str) -> bool:
    return text in phrases.YES
