"""Described scenarios for tests: tasks drawn once, whole episodes with the agenda user, a small file to spoil."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.audit.figures import audit
from muarl.domains import scenarios
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Task
from muarl.domains.desk.spec import Script
from muarl.domains.experts import Habits
from muarl.domains.generated import generated
from muarl.episode import Episode
from muarl.recipes.setting import GENERATED_RULES
from muarl.rewards import outcome
from muarl.rollout import LocalExecutor, Player, requests_for, rollout
from muarl.users.agenda import AgendaUserFactory

SCENARIOS = tuple(scenarios.FOLDERS)


@cache
def _drawn(name: str, size: str, split: str) -> tuple[list[Task], Iterator[Task]]:
    return [], generated(f"{name}-generated").iter_tasks(split, size=size, seed=0)


def made(name: str, size: str = "medium", split: str = "test", count: int = 60) -> tuple[Task, ...]:
    """The first tasks of a split; all tests share them."""
    tasks, more = _drawn(name, size, split)
    while len(tasks) < count:
        tasks.append(next(more))
    return tuple(tasks[:count])


def script(name: str) -> Script:
    return scenarios.desk(name).script


def rules(name: str) -> AuditRules:
    auth, open_tools, _ = scenarios.AUDIT[name]
    return AuditRules(auth_tools=frozenset({auth}), open_tools=frozenset(open_tools))


def play(
    name: str, agent: Agent, tasks: Sequence[Task], size: str = "medium", *, seed: int = 1, persona: str | None = None
) -> list[Episode]:
    """One scored and audited episode of every task."""
    domain = generated(f"{name}-generated").domain(size)
    player = Player(
        make_world=domain.world,
        agent=agent,
        make_user=AgendaUserFactory(seed=seed, persona=persona),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        audit=lambda task, world, episode: audit(episode, task, domain.kind_of, rules(name)),
        rules=GENERATED_RULES,
        retries=0,
    )
    played = rollout(requests_for(tasks, 1, seed=0), LocalExecutor(player.play))
    episodes = asyncio.run(played).episodes
    assert not any(e.error for e in episodes), [e.error for e in episodes if e.error]
    return episodes


def expert(name: str, tasks: Sequence[Task], size: str = "medium", **habits: float) -> list[Episode]:
    return play(name, ExpertAgent(Habits(**habits), generated(f"{name}-generated").expert), tasks, size)


def mean(episodes: Sequence[Episode]) -> float:
    return sum(e.reward for e in episodes) / len(episodes)


def said(episode: Episode, role: str = "assistant") -> list[str]:
    return [m.content or "" for m in episode.messages if m.role == role and not m.tool_calls]


def calls(episode: Episode, prefix: str = "") -> list[Any]:
    return [c for m in episode.messages for c in m.tool_calls if c.name.startswith(prefix)]


LIBRARY: Mapping[str, Any] = yaml.safe_load("""
about: a library
today: "2026-03-14"
identify:
  tool: find_reader
  table: readers
  id: reader_id
  fields:
    name: {kind: person, field: name, asked: 'name'}
    phone: {kind: phone, field: phone, wrong: true, asked: 'phone'}
  parts: {name: "My name is {name}.", phone: "My phone is {phone}."}
  ask: ["May I have your name and phone number?"]
  retry: ["I could not find you. Could you check name and phone number?"]
  say: ["I'm {name}, {phone}."]
kinds:
  phone: {pattern: '555-\\d{4}'}
  loan_id: {pattern: 'LN-\\d{3}'}
  title: {names: titles}
  why: {own: true, words: {lost: [I lost it], damaged: [it got wet]}}
slots:
  loan:
    kind: loan_id
    phrase: loan {}
    ask: ["Which loan is it?"]
    asked: 'which loan'
    draw: {rows: loans, field: loan_id, own: true}
    described:
      kind: title
      phrase: my loan of {}
      cue: 'loan of|the one of'
      say: ["The one of {}."]
      look: list_loans
      with: {reader_id: $caller.reader_id}
      list: loans
      match: title
      id: loan_id
  days:
    kind: number
    ask: ["How many days?"]
    asked: 'how many'
    change: ["Actually, make it {}."]
    draw: {values: [3, 7, 30]}
  why:
    kind: why
    ask: ["Why: lost or damaged?"]
    asked: 'why'
    change: ["No, {}."]
intents:
  extend:
    share: 2
    heard: '\\bextend'
    say: ["extend {loan} by {days} days", "extend {loan}", "extend a loan"]
    slots: [loan, days]
    steps:
      - {look: list_loans, with: {reader_id: $caller.reader_id}, as: all}
      - {pick: l, from: $all.loans, where: {loan_id: $loan}, refuse: "loan {loan} is not yours"}
      - refuse: "{l.title} is waited for by somebody else"
        when: {l.waiting: true}
      - unavailable: days
        when: {days: {above: 14}}
        offer: $l.choices
      - write: extend_loan
        with: {loan_id: $loan, days: $days}
        propose: ["extend {l.title} by {days} days"]
        done: ["{l.title} is yours until {result.until|date}."]
  report:
    share: 1
    heard: '\\breport'
    say: ["report {loan}, {why}", "report a book"]
    slots: [loan, why]
    steps:
      - transfer: The reader reports a loss.
  ask_title:
    share: 1
    heard: '\\btitle of'
    say: ["know the title of {loan}"]
    slots: [loan]
    steps:
      - {look: list_loans, with: {reader_id: $caller.reader_id}, as: all}
      - {pick: l, from: $all.loans, where: {loan_id: $loan}, refuse: "loan {loan} is not yours"}
      - answer: ["It is {l.title}, {l.fee|money} so far."]
        tell: ["{l.fee|plain}"]
outside: [a lecture]
""")
"""A small and whole ``intents.yaml``, as data."""
TITLES = {"titles": ("Green Tides", "Old Maps", "Night Trains")}


def library(**changes: Any) -> dict[str, Any]:
    """The library's file with changes: ``{"slots.loan.kind": "title"}`` as ``slots__loan__kind="title"``."""
    data = copy.deepcopy(dict(LIBRARY))
    for path, value in changes.items():
        *parts, last = path.split("__")
        place = data
        for part in parts:
            place = place[int(part) if isinstance(place, list) else part]
        place[int(last) if isinstance(place, list) else last] = value
    return data


def written(folder: Path, data: Any) -> Path:
    path = folder / "intents.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, allow_unicode=True, sort_keys=False))
    return path
