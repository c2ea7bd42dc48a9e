"""Generated telecom tasks for tests: drawn once, played by an agent against the agenda user, and scored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.audit.figures import audit
from muarl.audit.rules import TELECOM
from muarl.chat import Message
from muarl.domains.base import Task, World
from muarl.domains.experts import Habits
from muarl.domains.telecom import generator, phrases
from muarl.domains.telecom.customers import SIZES, make_carrier
from muarl.domains.telecom.expert import TelecomExpert
from muarl.domains.telecom.faults import Place, breaking
from muarl.domains.telecom.generated import generated_telecom
from muarl.domains.telecom.records import telecom_database
from muarl.episode import Episode
from muarl.recipes.setting import GENERATED_RULES
from muarl.rewards import outcome
from muarl.rollout import LocalExecutor, Player, requests_for, rollout
from muarl.users.agenda import AgendaUserFactory
from muarl.users.agenda_telecom import AgendaUser
from support.callers import Conversation

CARRIER = make_carrier("tests 2", SIZES["tiny"])
"""Its first customer has a paid bill, one that is not due yet, and no overdue one."""
_WHO = CARRIER.tables["customers"][CARRIER.main_customers[0]]
_LINE = CARRIER.tables["lines"][_WHO["line_ids"][0]]
_LIMIT = CARRIER.tables["plans"][_LINE["plan_id"]]["data_limit_gb"]
PLACE = Place(
    _WHO["full_name"], _LINE["phone_number"], _WHO["customer_id"], _LINE["line_id"], _LIMIT, CARRIER.spare_bill, 2.0
)
IDENTITY = {"name": PLACE.name, "phone": PLACE.phone, "dob": _WHO["date_of_birth"]}
OTHER_PHONE = next(n["phone_number"] for n in CARRIER.tables["lines"].values() if n is not _LINE)

TROUBLE = {"abroad": None, "amount": 2.0, "pays": True}
WISHES: Mapping[str, Mapping[str, Any]] = {
    "no_service": TROUBLE, "mobile_data": TROUBLE, "mms": TROUBLE, "refuel": {"amount": 2.0}, "roaming_on": {},
    "roaming_off": {}, "pay": {}, "suspend": {"reason": "lost phone"}, "question": {"topic": "usage"},
    "outside": {"topic": "a new number"},
}  # fmt: skip


@cache
def made(size: str, split: str, count: int, seed: int = 0) -> tuple[Task, ...]:
    return tuple(generator.tasks(split, count, size=size, seed=seed))


def play(agent: Agent, tasks: Sequence[Task], size: str = "tiny", *, user_seed: int = 1) -> list[Episode]:
    """One scored and audited episode of every task."""
    domain = generated_telecom(size)
    player = Player(
        make_world=domain.world,
        agent=agent,
        make_user=AgendaUserFactory(seed=user_seed),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        audit=lambda task, world, episode: audit(episode, task, domain.kind_of, TELECOM),
        rules=GENERATED_RULES,
    )
    played = rollout(requests_for(tasks, 1, seed=0), LocalExecutor(player.play))
    return asyncio.run(played).episodes


def expert(tasks: Sequence[Task], size: str = "tiny", **habits: float) -> list[Episode]:
    return play(ExpertAgent(Habits(**habits), TelecomExpert), tasks, size)


def request(kind: str, wish: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """One request of an agenda; what is not given is as plain as can be."""
    plain = {"kind": kind, "intent": kind, "then": None, "fallback": None, "answer": None}
    return {**plain, **more, "wish": {**WISHES[kind], **(wish or {})}}


def agenda_task(*requests: Mapping[str, Any], faults: Sequence[str] = (), **agenda: Any) -> Task:
    """A task at the tests' own carrier; ``faults`` are wrong with the caller's phone or line."""
    plain = {"persona": "terse", "identity": IDENTITY, "wrong_phone": None, "upfront": True, "reminds": False}
    abroad = any(r["wish"].get("abroad") for r in requests)
    return Task(
        "made-up", "telecom", "", None, initial_actions=tuple(breaking(faults, PLACE, abroad)),
        database=telecom_database(CARRIER.tables), agenda={**plain, "requests": list(requests), **agenda},
    )  # fmt: skip


class Talk(Conversation):
    """A conversation with an agenda user who has a phone: ``opening`` is what it says to the greeting, ``hear`` what it
    answers once it has done what it does; ``did`` are the tools it used for that."""

    def __init__(self, *requests: Mapping[str, Any], seed: int = 0, faults: Sequence[str] = (), **agenda: Any) -> None:
        task = agenda_task(*requests, faults=faults, **agenda)
        self.world: World = generated_telecom("tiny").world(task)
        self.did: list[str] = []
        super().__init__(AgendaUser(task, seed=seed))

    def hear(self, text: str | None) -> str:
        self.did = []
        self.messages.append(Message("assistant", text))
        for _ in range(30):
            message = asyncio.run(self.user.reply(self.messages)).message
            assert message.role == "user" and bool(message.content) is not bool(message.tool_calls)
            self.messages.append(message)
            if not message.tool_calls:
                return message.content or ""
            (call,) = message.tool_calls
            assert call.requestor == "user"
            self.did.append(call.name)
            result = self.world.call("user", call)
            self.messages.append(Message("tool", result.content, tool_call_id=call.id, requestor="user"))
        raise AssertionError(f"it uses its phone without end: {self.did}")

    def phone(self, field: str) -> Any:
        return self.world.toolkit("user").db.device.peek(field)


def agrees(text: str) -> bool:
    return text in phrases.YES


def works(text: str) -> bool:
    return any(w in text for w in phrases.WORKS)


def fails(text: str) -> bool:
    return any(w in text for w in phrases.FAILS)
