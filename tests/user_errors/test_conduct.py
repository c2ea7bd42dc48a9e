"""Rules about how users behave: recall on seeded faults, false alarms on clean users, and single cases."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import pytest

from muarl.agents import probes
from muarl.agents.base import Agent
from muarl.agents.idle import IdleAgent
from muarl.agents.probes import STALLS, InquisitiveAgent, MistakenAgent
from muarl.domains.scripted_expert import SLOPPY
from muarl.domains.tasks import Task
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.environments.registry import find
from muarl.user_errors.conduct import CONDUCT, RULES, find_all
from support.faulty_users import WRONG, FaultyUsers

DOMAINS = ("retail-generated", "airline-generated", "telecom-generated", "clinic-generated")
RATES = {"never_stops": 1.0, "loops": 1.0, "front_loads": 1.0, "overtells": 1.0, "pretends": 1.0,
         "omits_actions": 0.5}  # fmt: skip
"""Faults that are a habit rather than a slip; others are committed in three of ten messages."""
ONCE = ("never_stops", "loops")
"""Faults that are found once a conversation."""


@dataclass
class Measured:
    """Of one fault: how many messages (or conversations) had it, how many of those were found, how many findings of
    its rule there were elsewhere."""

    committed: int = 0
    found: int = 0
    elsewhere: int = 0
    missed: list[str] = field(default_factory=list)


@cache
def place(name: str) -> Place:
    return find(name).place()


@cache
def drawn_tasks(name: str, count: int, seed: int) -> tuple[Task, ...]:
    return tuple(find(name).make_tasks("test", count, seed=seed))


def agent_for(kind: str, where: Place, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """The agent against which a fault shows."""
    if kind != "agrees_wrongly":
        return IdleAgent(STALLS) if kind == "never_stops" else where.expert_agent()
    right = probes.with_another_number

    def wrong(text: str) -> str:
        made = right(text)
        if made != text:
            WRONG.add(made)
        return made

    monkeypatch.setattr(probes, "with_another_number", wrong)
    return MistakenAgent(where.expert_agent())


def measure(kind: str, name: str, tasks: int, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Play a user with a fault against an agent, and look for the fault."""
    where = place(name)
    users = FaultyUsers(where.users(), kind, RATES.get(kind, 0.3))
    drawn = drawn_tasks(name, tasks, 11)
    played = asyncio.run(play_in(Places([where]), agent_for(kind, where, monkeypatch), users, drawn, 1, seed=2))
    out = Measured()
    made: dict[str, set[int]] = {}
    for task_id, number in users.committed:
        made.setdefault(task_id, set()).add(number)
    for task, episode in zip(drawn, played.episodes, strict=True):
        assert episode.error is None, episode.error
        own = [i for i, m in enumerate(episode.messages) if m.role == "user"]
        numbers = {turn: n for n, turn in enumerate(own)}
        errors = find_all(task, episode.messages, user_tools=where.user_tools(task))
        found_by = {kind, "omits_actions"} if kind == "pretends" else {kind}  # of an action of the user's own tools
        hits = {numbers[e.turn] for e in errors if e.rule in found_by}
        wanted = {n for n in made.get(task.id, ()) if n < len(own)}
        if kind in ONCE:
            if kind == "loops" and len(wanted) < 3:
                continue
            out.committed += bool(wanted)
            out.found += bool(wanted and hits)
            out.elsewhere += bool(hits and not wanted)
        else:
            out.committed += len(wanted)
            out.found += len(wanted & hits)
            out.elsewhere += len(hits - wanted)
        if wanted and not (hits if kind in ONCE else wanted <= hits):
            out.missed.append(f"{task.id}: {[episode.messages[own[n]].content for n in sorted(wanted - hits)][:2]}")
    return out


RECALL = {
    "contradicts": 0.75, "invents": 1.0, "leaks": 1.0, "breaks_character": 1.0, "unknown_tool": 1.0,
    "agrees_and_stops": 0.9, "stops_early": 0.75, "agrees_wrongly": 0.35, "never_stops": 1.0, "front_loads": 0.8,
    "overtells": 0.6, "repeats": 0.7, "loops": 1.0, "empty": 1.0, "pretends": 0.6,
    "incoherent": 0.75, "omits_actions": 0.85,
}  # fmt: skip
"""The share of seeded faults that each rule must find, over all domains."""


def test_every_rule_is_measured() -> None:
    assert RECALL.keys() == RULES.keys() - {"judge"}
    assert CONDUCT.keys() <= RULES.keys()


TASKS = {"pretends": 30, "omits_actions": 60, "agrees_and_stops": 12, "agrees_wrongly": 8, "overtells": 8, "repeats": 8}
"""Tasks of each domain in which a fault has its place, where 4 are too few."""


@pytest.mark.parametrize("kind", RECALL)
def test_seeded_faults_are_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("telecom-generated",) if kind in ("pretends", "omits_actions") else DOMAINS
    parts = {name: measure(kind, name, TASKS.get(kind, 4), monkeypatch) for name in names}
    committed, found = sum(p.committed for p in parts.values()), sum(p.found for p in parts.values())
    told = {name: (p.found, p.committed, p.elsewhere) for name, p in parts.items()}
    assert committed >= 8, told
    assert found >= RECALL[kind] * committed, "\n".join(m for p in parts.values() for m in p.missed)


@pytest.mark.parametrize("name", DOMAINS)
def test_clean_users_are_left_alone(name: str) -> None:
    where = place(name)
    drawn = drawn_tasks(name, 4, 21)
    expert = where.expert_agent()
    agents = (
        expert, where.expert_agent(SLOPPY), InquisitiveAgent(expert), MistakenAgent(expert),
        IdleAgent(), IdleAgent(STALLS), IdleAgent(probes.CLAIMS),
    )  # fmt: skip
    alarms: Counter[str] = Counter()
    messages = 0
    for agent in agents:
        played = asyncio.run(play_in(Places([where]), agent, where.users(), drawn, 1, seed=4))
        for task, episode in zip(drawn, played.episodes, strict=True):
            messages += sum(m.role == "user" for m in episode.messages)
            alarms.update(e.rule for e in find_all(task, episode.messages, user_tools=where.user_tools(task)))
    assert messages > 80
    assert sum(alarms.values()) <= 0.01 * messages, alarms
