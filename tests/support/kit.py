"""Services for tests: tasks drawn once, whole episodes with the rule-based user, and a small library to change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.audit.metrics import audit
from muarl.domains.base import Domain
from muarl.domains.kit.worlds import Tables, Worlds
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.domains.tooling import tool
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.kit import (
    Fact,
    Identity,
    Intent,
    Maker,
    Plan,
    RecordDescription,
    Service,
    Slot,
    environment,
    intent,
    names,
    one_of,
    own,
    pattern,
    shift,
    words,
)
from muarl.rewards import outcome
from muarl.rollouts.episode_runner import EpisodeRunner, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.episode import Episode
from muarl.users.agenda import AgendaUserFactory

SERVICES = ("food-delivery", "hotel", "bank", "clinic", "insurance")
"""The services in ``muarl_worlds/services``, by the names of their domains."""


def _intents(name: str) -> Any:
    on_server, of_tau2 = name.startswith("mcp-"), name in ("retail", "airline", "telecom")
    package = f"mcp.{name[4:]}" if on_server else f"{'tau' if of_tau2 else 'services'}.{name.replace('-', '_')}"
    return import_module(f"muarl_worlds.{package}.intents")


def folder(name: str) -> Path:
    return Path(str(_intents(name).__file__)).parent


def service(name: str) -> Service:
    """A service by its domain's name; those on MCP servers begin with "mcp-"."""
    return _intents(name).SERVICE


def env(name: str) -> Environment:
    return find(name if name.startswith("mcp-") else f"{name}-generated")


@cache
def rehearsed(name: str, size: str) -> Environment:
    """The environment of a service on a server with the tools of its rehearsal, so that no server is needed."""
    policy = env(name).make_domain(size).policy_text
    return replace(env(name), domain=service(name).rehearsal(policy=policy), on_server=False)


@cache
def _drawn(environment: Environment, size: str, split: str, seed: int) -> tuple[list[Task], Iterator[Task]]:
    return [], environment.iter_tasks(split, size=size, seed=seed)


def made(
    name: str | Environment, size: str = "medium", split: str = "test", count: int = 60, seed: int = 0
) -> tuple[Task, ...]:
    """The first tasks of a split; all tests share them."""
    tasks, more = _drawn(env(name) if isinstance(name, str) else name, size, split, seed)
    while len(tasks) < count:
        tasks.append(next(more))
    return tuple(tasks[:count])


def play(
    name: str | Environment,
    agent: Agent,
    tasks: Sequence[Task],
    size: str = "medium",
    *,
    seed: int = 1,
    persona: str | None = None,
) -> list[Episode]:
    """One scored and audited episode of every task."""
    played = env(name) if isinstance(name, str) else name
    domain, rules = played.make_domain(size), played.audit_rules()
    runner = EpisodeRunner(
        make_world=domain.world,
        agent=agent,
        make_user=AgendaUserFactory(played.rule_based_user, seed=seed, persona=persona),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        audit=lambda task, world, episode: audit(episode, task, domain.kind_of, rules, world=world),
        rules=played.rules,
        retries=0,
    )
    episodes = asyncio.run(rollout(requests_for(tasks, 1, seed=0), LocalExecutor(runner.play))).episodes
    assert not any(e.error for e in episodes), [e.error for e in episodes if e.error]
    return episodes


def expert(name: str | Environment, tasks: Sequence[Task], size: str = "medium", **errors: float) -> list[Episode]:
    make = (env(name) if isinstance(name, str) else name).expert
    return play(name, ExpertAgent(ErrorProfile(**errors), make=make), tasks, size)


def writes(name: str) -> set[str]:
    """The names of a service's tools that write."""
    return {tool for tool, kind in service(name).tool_kinds.items() if kind == "write"}


def tables(name: str, seed: str, size: str) -> Tables:
    """A made world."""
    called = service(name)
    return Worlds(called).made(seed, "train", called.size(size))[0]


def mean(episodes: Sequence[Episode]) -> float:
    return sum(e.reward for e in episodes) / len(episodes)


def said(episode: Episode, role: str = "assistant") -> list[str]:
    return [m.content or "" for m in episode.messages if m.role == role and not m.tool_calls]


def calls(episode: Episode, prefix: str = "") -> list[Any]:
    return [c for m in episode.messages for c in m.tool_calls if c.name.startswith(prefix)]


# a library, declared with nothing but what has no default

TODAY = "2026-03-14"
TITLES = ("Green Tides", "Old Maps", "Night Trains", "Salt and Iron", "The Long Field", "Paper Boats")


class Library(Domain):
    """A library's loans."""

    name = "library"
    policy = "Extend loans for their readers only, by 14 days at most, and not where somebody waits for the book."

    @tool
    def find_reader(self, name: str, phone: str) -> dict[str, Any]:
        """Find a reader.

        name: the full name
        phone: the number on the card
        """
        for _, reader in self.db.readers.scan():
            if (reader["name"], reader["phone"]) == (name, phone):
                return dict(reader)
        raise ValueError("no such reader")

    @tool
    def list_loans(self, reader_id: str) -> dict[str, Any]:
        """A reader's loans.

        reader_id: the reader
        """
        return {"loans": [dict(loan) for _, loan in self.db.loans.scan() if loan["reader_id"] == reader_id]}

    @tool
    def get_loan(self, loan_id: str) -> dict[str, Any]:
        """A loan.

        loan_id: the loan
        """
        if loan_id not in self.db.loans:
            raise ValueError("no such loan")
        return dict(self.db.loans[loan_id])

    @tool(writes=True)
    def extend_loan(self, loan_id: str, days: int) -> dict[str, Any]:
        """Extend a loan.

        loan_id: the loan
        days: by how many days
        """
        loan = self.db.loans[loan_id]
        loan["until"] = shift(loan["until"], days)
        return dict(loan)

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the reader over to a person.

        summary: what it is about
        """
        return "Transfer successful"


def library_tables(make: Maker) -> dict[str, dict[str, Any]]:
    readers: dict[str, Any] = {}
    loans: dict[str, Any] = {}
    for _ in range(make.people):
        reader = {"reader_id": make.id("reader", "R-", 3), "name": make.name(), "phone": make.id("phone", "555-", 4)}
        readers[reader["reader_id"]] = reader
        for title in make.rng.sample(TITLES, 3):
            loan = make.id("loan", "LN-", 3)
            loans[loan] = {
                "loan_id": loan, "reader_id": reader["reader_id"], "title": title, "until": make.date(TODAY, 1, 20),
                "waiting": make.chance(0.3), "choices": [3, 7], "fee": make.amount(1, 40), "items": ["a map", "a disc"],
            }  # fmt: skip
    return {"readers": readers, "loans": loans}


IDENTITY = Identity(
    tool="find_reader",
    table="readers",
    key="reader_id",
    facts=(
        Fact("name", "person", tells="My name is {name}."),
        Fact("phone", pattern(r"555-\d{4}"), tells="My phone is {phone}.", wrong=True),
    ),
    ask="What is your name and phone number?",
    say="I'm {name}, {phone}.",
)
LOAN = Slot(
    "loan",
    pattern(r"LN-\d{3}"),
    ask="Which loan is it?",
    phrase="loan {}",
    draw=own("loans", "loan_id", mark="title"),
    described=RecordDescription(
        kind=names(TITLES),
        match="title",
        id="loan_id",
        look="list_loans",
        records="loans",
        given={"reader_id": "reader_id"},
        phrase="my loan of {}",
        say="The one of {}.",
    ),
)
DAYS = Slot("days", "number", ask="How many days?", draw=one_of(3, 7, 30), change="Actually, make it {}.")
WHY = Slot(
    "why",
    words({"lost": ["I lost it"], "damaged": ["it got wet"]}, own=True),
    ask="Why is that: lost or damaged?",
    change="No, {}.",
)


def own_loan(it: Plan) -> None:
    """The loan that the reader speaks of."""
    it.all = it.look("list_loans", reader_id=it.user.reader_id)
    it.l = it.pick(it.all.loans, loan_id=it.loan) or it.refuse("loan {loan} is not yours")


@intent(says=["extend {loan} by {days} days", "extend {loan}", "extend a loan"], slots=[LOAN, DAYS], share=2)
def extend(it: Plan) -> None:
    own_loan(it)
    it.refuse_if(it.l.waiting, "somebody else waits for {l.title}")
    it.unavailable_if(it.days > 14, DAYS, it.l.choices)
    it.write(
        "extend_loan",
        loan_id=it.loan,
        days=it.days,
        propose="extend {l.title}, loan {loan}, by {days} days",
        done="{l.title} is yours until {result.until|date}.",
    )


@intent(says=["report {loan}, because {why}", "report a problem with a book"], slots=[LOAN, WHY])
def report(it: Plan) -> None:
    it.transfer("The reader reports loan {loan}: {why}.")


@intent(says=["know the fee of {loan}", "hear what {loan} has cost so far"], slots=[LOAN])
def ask_fee(it: Plan) -> None:
    own_loan(it)
    it.answer("It is {l.title} with {l.items|list}, {l.fee|money} so far.", tell="{l.fee|plain}")


LIBRARY = Service(
    domain=Library,
    about="a library",
    today=TODAY,
    identity=IDENTITY,
    intents=(extend, report, ask_fee),
    tables=library_tables,
)
LIBRARY_ENV = environment(LIBRARY, name="library")


def planned(plan: Any, slots: Sequence[Slot] = (LOAN, DAYS), says: str = "extend a loan", **more: Any) -> Intent:
    """An intent with a plan of a test's own."""
    return intent(says=says, slots=slots, **more)(plan)


def library(*intents: Intent, **changes: Any) -> Service:
    """The library with these intents (none: its own) and changes."""
    return replace(LIBRARY, **({"intents": intents} if intents else {}), **changes)
