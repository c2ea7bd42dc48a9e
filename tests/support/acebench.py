"""Generated phone and travel tasks for tests: drawn once, played by an agent against the agenda user, and scored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.domains.acebench import generator, phrases
from muarl.domains.acebench.expert import AceExpert
from muarl.domains.acebench.generated import generated_acebench
from muarl.domains.base import Task
from muarl.domains.experts import Habits
from muarl.episode import Episode
from muarl.recipes.setting import GENERATED_RULES
from muarl.rewards import outcome
from muarl.rollout import LocalExecutor, Player, requests_for, rollout
from muarl.users.agenda import AgendaUserFactory
from muarl.users.agenda_acebench import AgendaUser
from support.callers import Conversation

OWNER = {"name": "Nora", "password": "tulip182"}
TRAVELLER = {"name": "Nora", "user_id": "user25", "password": "tulip182"}

SEND = {"to": "Omar", "text": "Dinner is at seven", "room": "the oldest message", "room_number": 2}
DELETE = {"which": "the message from Petra", "number": 4}
REMIND = {"title": "Dentist", "note": "Bring cash", "time": "2024-06-14 08:30"}
READ = {"from": "Petra", "number": 4}
ORDER = {"merchant": "Golden Wok", "product": "fried rice", "quantity": 2}
ASKED_FOR = {**ORDER, "source": "Petra", "number": 4}
TODO = {**ORDER, "title": "Errands", "to": "Omar", "text": "I paid () yuan", "filled": "I paid 40.0 yuan"}
FORGET = {"title": "Dentist"}
BOOK = {
    "origin": "Oslo", "destination": "Rome", "date": "2024-07-21", "cabin": "Economy Class", "bags": 2,
    "payment": "bank",
}  # fmt: skip
MOVE = {"reservation_id": "res_40", "date": "2024-07-23"}
CABIN = {"reservation_id": "res_41", "cabin": "Business Class", "payment": "cash"}
BAGS = {"reservation_id": "res_42", "bags": 2, "payment": "bank"}
CANCEL = {"reservation_id": "res_43", "reason": "I am ill"}
WISHES = {
    "send": SEND, "delete": DELETE, "remind": REMIND, "read": READ, "order": ORDER, "todo": TODO, "forget": FORGET,
    "book": BOOK, "move": MOVE, "cabin": CABIN, "bags": BAGS, "cancel": CANCEL,
    "question": {"reservation_id": "res_40"},
}  # fmt: skip
ON_THE_PHONE = ("send", "delete", "remind", "read", "order", "todo", "forget")


@cache
def made(size: str, split: str, count: int, seed: int = 0) -> tuple[Task, ...]:
    return tuple(generator.tasks(split, count, size=size, seed=seed))


def play(
    agent: Agent, tasks: Sequence[Task], size: str = "tiny", *, user_seed: int = 1, persona: str | None = None
) -> list[Episode]:
    """One scored episode of every task."""
    player = Player(
        make_world=generated_acebench(size).world,
        agent=agent,
        make_user=AgendaUserFactory(seed=user_seed, persona=persona),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        rules=GENERATED_RULES,
    )
    played = rollout(requests_for(tasks, 1, seed=0), LocalExecutor(player.play))
    return asyncio.run(played).episodes


def expert(tasks: Sequence[Task], size: str = "tiny", **habits: float) -> list[Episode]:
    return play(ExpertAgent(Habits(**habits), AceExpert), tasks, size)


def request(kind: str, wish: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """One request of an agenda; what is not given is as plain as can be."""
    plain = {"kind": kind, "intent": kind, "then": None, "fallback": None, "unknown": [], "answer": None}
    return {**plain, **more, "wish": dict(WISHES[kind] if wish is None else wish)}


def agenda_task(*requests: Mapping[str, Any], **agenda: Any) -> Task:
    """A task that only an agenda user can read: it has no world."""
    phone = not requests or requests[0]["kind"] in ON_THE_PHONE
    plain = {
        "persona": "terse", "identity": OWNER if phone else TRAVELLER, "tells": ["name", "password"],
        "wrong_password": None, "upfront": True, "reminds": False,
    }  # fmt: skip
    return Task("made-up", "acebench", "", None, agenda={**plain, "requests": list(requests), **agenda})


class Talk(Conversation):
    """A conversation with the caller of these requests."""

    def __init__(self, *requests: Mapping[str, Any], seed: int = 0, **agenda: Any) -> None:
        super().__init__(AgendaUser(agenda_task(*requests, **agenda), seed=seed))


def agrees(text: str) -> bool:
    return text in phrases.YES
