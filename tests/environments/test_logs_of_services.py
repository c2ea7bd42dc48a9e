"""Logs of services that are declared with the kit become tasks without a database: what the tools have shown is enough,
or the conversation is refused and says why."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.agents.base import AgentTurn
from muarl.agents.expert import ExpertAgent
from muarl.agents.idle import IdleAgent
from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.environments.environment import Environment
from muarl.environments.log_tasks import DroppedLog, shown_by_all, task_of
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.environments.registry import find
from muarl.environments.task_files import FiledTask, read_tasks
from muarl.kit import environment
from muarl.types.chat import Message, ToolCall, ToolSpec, to_openai
from muarl.types.episode import Episode
from muarl.users.scripted import ScriptedUserFactory
from support import kit

CLINIC = "clinic-generated"


class Again:
    """An agent that does what the agent of a log did."""

    tokens = None
    name = "again"

    def __init__(self, messages: Sequence[Message]) -> None:
        self._left = [m for m in messages if m.role == "assistant"]

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> Again:
        return Again(self._left)

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        return AgentTurn(self._left.pop(0) if self._left else Message("assistant", "Goodbye."))

    def close(self) -> None:
        """Nothing is held."""


def served(where: Environment, size: str | None, count: int) -> tuple[Place, list[Episode]]:
    """Conversations of the expert's with rule-based users."""
    place = where.place(size)
    tasks = where.make_tasks("train", count, size=size)
    agent = ExpertAgent(make=where.expert)  # type: ignore[arg-type]
    return place, asyncio.run(play_in(Places([place]), agent, place.users(), tasks, 1, seed=0)).episodes


@cache
def clinic() -> tuple[Place, list[Episode]]:
    return served(find(CLINIC), "medium", 12)


def log_line(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
    spoken = [to_openai(m) for m in messages]
    specs = [{"type": "function", "function": {"name": t.name, "parameters": dict(t.parameters)}} for t in tools]
    return json.dumps({"messages": spoken, "tools": specs}) + "\n"


def check_round_trip(place: Place, made: Sequence[tuple[Any, Sequence[Message]]]) -> int:
    """Doing what the log's agent did earns everything, doing nothing does not; how many tasks there are."""
    for task, messages in made:
        users = ScriptedUserFactory()
        good = asyncio.run(play_in(Places([place]), Again(messages), users, [task], 1, seed=0)).episodes[0]
        idle = asyncio.run(play_in(Places([place]), IdleAgent(), users, [task], 1, seed=0)).episodes[0]
        assert (good.reward, idle.reward) == (1.0, 0.0), (task.id, good.error)
    return len(made)


def test_a_log_alone_makes_tasks_that_can_be_played(tmp_path: Path) -> None:
    place, episodes = clinic()
    log, out = tmp_path / "live.jsonl", tmp_path / "tasks.jsonl"
    log.write_text("".join(log_line(e.messages, place.domain.tool_specs()) for e in episodes))
    said = CliRunner().invoke(app, ["tasks", "from-log", str(log), "-d", CLINIC, "--out", str(out)])
    assert said.exit_code == 0 and "12 conversations: 12 new tasks" in said.output, said.output
    filed = read_tasks(out)
    assert not any("in this task's world" in note for f in filed for note in f.notes)
    made = [(f.task, e.messages) for f, e in zip(filed, episodes, strict=True) if f.task.actions]
    assert check_round_trip(place, made) >= 8


def test_a_small_world_knows_only_what_was_shown() -> None:
    place, episodes = clinic()
    filed = made_of(episodes[0].messages)
    assert isinstance(filed, FiledTask) and filed.task.database is not None
    patients = filed.task.database.tables["patients"]
    assert len(patients) == 1
    world = place.domain.world(filed.task)
    others = world.call("assistant", ToolCall("1", "list_appointments", {"patient_id": "PT-00000"}))
    assert others.error and "not found" in others.content
    own = world.call("assistant", ToolCall("2", "list_appointments", {"patient_id": next(iter(patients))}))
    assert not own.error


def made_of(messages: Sequence[Message], others: Any = None) -> FiledTask | DroppedLog:
    place, _ = clinic()
    return task_of(messages, place.domain, "clinic", observer=find(CLINIC).seen_in_logs(), others=others)


def without(messages: Sequence[Message], tool: str) -> list[Message]:
    """A conversation without the calls of a tool, as if its agent knew what they tell."""
    gone = {c.id for m in messages for c in m.tool_calls if c.name == tool}
    kept = [m for m in messages if m.tool_call_id not in gone]
    return [m for m in kept if not m.tool_calls or any(c.id not in gone for c in m.tool_calls)]


def changing(tool: str) -> Sequence[Message]:
    """The first conversation in which a tool is called."""
    return next(e.messages for e in clinic()[1] if any(c.name == tool for m in e.messages for c in m.tool_calls))


def test_a_change_to_what_was_never_shown_is_refused_and_counted(tmp_path: Path) -> None:
    place, _ = clinic()
    whole = changing("renew_prescription")
    blind = without(whole, "list_prescriptions")
    refused = made_of(blind)
    assert isinstance(refused, DroppedLog)
    assert "cannot be rebuilt: message" in refused.reason and "renew_prescription" in refused.reason
    assert "not found" in refused.reason
    log, out = tmp_path / "live.jsonl", tmp_path / "tasks.jsonl"
    log.write_text(log_line(blind, place.domain.tool_specs()))
    said = CliRunner().invoke(app, ["tasks", "from-log", str(log), "-d", CLINIC, "--out", str(out)])
    assert "1 conversations: 0 new tasks" in said.output and "1 left out: its database cannot be" in said.output
    assert "line 1: message" in " ".join(said.output.split())


def test_what_another_conversation_has_shown_helps_where_it_fits() -> None:
    place, episodes = clinic()
    whole = changing("renew_prescription")
    blind = without(whole, "list_prescriptions")
    observer = find(CLINIC).seen_in_logs()
    assert observer is not None
    together = shown_by_all([blind, *(e.messages for e in episodes)], place.domain, observer)
    filed = made_of(blind, together)
    assert isinstance(filed, FiledTask) and any("other conversations of the log" in n for n in filed.notes)
    assert check_round_trip(place, [(filed.task, blind)]) == 1
    assert not any("other conversations" in n for n in made_of(whole, together).notes)  # type: ignore[union-attr]
    torn = [[replace(m, content=m.content.replace('"refills_left": ', '"refills_left": 1')) if m.content else m
             for m in whole], *(e.messages for e in episodes)]  # fmt: skip
    assert isinstance(made_of(blind, shown_by_all(torn, place.domain, observer)), DroppedLog)


def test_a_record_that_was_shown_after_its_change_only_is_refused() -> None:
    whole = list(changing("renew_prescription"))
    calls = next(n for n, m in enumerate(whole) if any(c.name == "list_prescriptions" for c in m.tool_calls))
    late = [*without(whole, "list_prescriptions"), *whole[calls : calls + 2], Message("assistant", "Done.")]
    refused = made_of(late)
    assert isinstance(refused, DroppedLog) and "cannot be rebuilt" in refused.reason


@pytest.mark.slow
def test_a_service_of_ones_own() -> None:
    place, episodes = served(kit.LIBRARY_ENV, "small", 12)
    assert library_tasks(kit.LIBRARY_ENV, place, episodes) >= 4


@pytest.mark.slow
def test_a_service_on_a_sql_database(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.executescript("""
            CREATE TABLE readers (reader_id TEXT PRIMARY KEY, name TEXT, phone TEXT);
            CREATE TABLE loans (loan_id TEXT PRIMARY KEY, reader_id TEXT, title TEXT, until DATE, waiting BOOLEAN,
                choices JSON, fee REAL, items JSON);
        """)
        for n in range(40):
            name = f"{('Anna', 'Ben', 'Cara', 'Dora')[n % 4]} {('Miller', 'Stone', 'Baker')[n % 3]}"
            file.execute("INSERT INTO readers VALUES (?, ?, ?)", (f"R-{n:03}", name, f"555-{n:04}"))
            for k in range(3):
                loan = (f"LN-{3 * n + k:03}", f"R-{n:03}", kit.TITLES[k], "2026-03-20", n % 5 == 0, "[3, 7]", 2.5, "[]")
                file.execute("INSERT INTO loans VALUES (?, ?, ?, ?, ?, ?, ?, ?)", loan)
        file.commit()
    there = type("Filed", (kit.Library,), {"name": "filed", "database": path, "__module__": __name__})
    shop = environment(replace(kit.LIBRARY, domain=there, tables=None), name="filed")
    place, episodes = served(shop, None, 12)
    assert library_tasks(shop, place, episodes) >= 4


def library_tasks(where: Environment, place: Place, episodes: Sequence[Episode]) -> int:
    observer = where.seen_in_logs()
    name = where.make_tasks("train", 1)[0].domain
    filed = [task_of(e.messages, place.domain, name, observer=observer) for e in episodes]
    fit = [(f.task, e.messages) for f, e in zip(filed, episodes, strict=True) if isinstance(f, FiledTask)]
    assert all(task.database is not None and len(task.database.tables["loans"]) <= 3 for task, _ in fit)
    return check_round_trip(place, [(task, messages) for task, messages in fit if task.actions])


def test_a_domain_of_which_nothing_is_declared_says_what_must_be_given() -> None:
    from muarl.environments.log_tasks import check_own

    place = find("bank-knowledge-generated").place()
    with pytest.raises(ConfigError, match=r"give the database as it was.*JSON object of tables.*kit\.md.*observer"):
        check_own("bank", place.domain, find("bank-knowledge-generated").seen_in_logs(), None)
