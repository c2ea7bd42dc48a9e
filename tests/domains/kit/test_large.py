"""A service whose tasks take place in a large SQLite file: they cost the rows that they are about."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muarl.audit.episodes import audit_episode
from muarl.domains.kit.records import rows as records
from muarl.domains.overlay import POOL, Overlay
from muarl.domains.tooling import tool
from muarl.environments.environment import Environment
from muarl.kit import Plan, Slot, environment, intent, of, pattern, rows
from muarl.rewards.gold import check_tasks
from support import kit
from support.sqlite_shop import rows_read

READERS = 20_000
LOAN = replace(kit.LOAN, kind=pattern(r"LN-\d{6}"))
NAME, PHONE = kit.IDENTITY.facts


class LargeLibrary(kit.Library):
    """The library, with tools that search by index."""

    name = "large-library"

    @tool
    def find_reader(self, name: str, phone: str) -> dict[str, Any]:
        """Find a reader.

        name: the full name
        phone: the number on the card
        """
        for reader in self.db["readers"].where(name=name, phone=phone):
            return dict(reader)
        raise ValueError("no such reader")

    @tool
    def list_loans(self, reader_id: str) -> dict[str, Any]:
        """A reader's loans.

        reader_id: the reader
        """
        return {"loans": self.db["loans"].where(reader_id=reader_id)}


def write(path: Path) -> Path:
    names = [f"{first} {last}" for first in ("Anna", "Ben", "Cara") for last in ("Miller", "Stone", "Baker")]
    with closing(sqlite3.connect(path)) as file:
        file.executescript("""
            CREATE TABLE readers (reader_id TEXT PRIMARY KEY, name TEXT, phone TEXT);
            CREATE INDEX readers_by_phone ON readers (phone);
            CREATE TABLE loans (loan_id TEXT PRIMARY KEY, reader_id TEXT, title TEXT, until DATE, waiting BOOLEAN,
                choices JSON, fee REAL, items JSON);
            CREATE INDEX loans_of ON loans (reader_id);
        """)
        readers = ((f"R-{n:05}", names[n % 9], f"555-{n:05}") for n in range(READERS))
        file.executemany("INSERT INTO readers VALUES (?, ?, ?)", readers)
        loans = (
            (
                f"LN-{n:06}",
                f"R-{n // 3:05}",
                kit.TITLES[n % 3],
                "2026-03-20",
                n % 5 == 0,
                "[3, 7]",
                n % 40,
                json.dumps(["a map"]),
            )
            for n in range(3 * READERS)
        )
        file.executemany("INSERT INTO loans VALUES (?, ?, ?, ?, ?, ?, ?, ?)", loans)
        file.commit()
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    path = write(tmp_path_factory.mktemp("large") / "library.sqlite")
    domain = type("FiledLibrary", (LargeLibrary,), {"database": path})
    intents = tuple(replace(i, slots=tuple(LOAN if s is kit.LOAN else s for s in i.slots)) for i in kit.LIBRARY.intents)
    identity = replace(kit.IDENTITY, facts=(NAME, replace(PHONE, kind=pattern(r"555-\d{5}"))))
    service = replace(kit.LIBRARY, domain=domain, intents=intents, identity=identity, tables=None)
    return environment(service, name="large-library")


@pytest.mark.slow
def test_tasks_and_audits_read_the_rows_that_they_are_about(large: Environment) -> None:
    domain = large.make_domain()
    first = large.make_tasks("test", 1)  # what the plans do is explored once
    with rows_read(domain.base) as count:
        tasks = large.make_tasks("test", 20)
        assert check_tasks(domain, tasks) == 0
        episodes = kit.expert(large, tasks, "tiny")
        found = [
            audit_episode(e, t, domain=domain, rules=large.audit_rules()) for e, t in zip(episodes, tasks, strict=True)
        ]
    assert kit.mean(episodes) == 1.0
    assert not [finding for findings in found for finding in findings if finding.weight == "violation"]
    assert any(kit.calls(episode, "extend_loan") for episode in episodes)
    assert count[0] < 20 * 1000
    assert tasks[0].actions == first[0].actions


ANY = Slot("any", LOAN.kind, ask="Which book is it?", phrase="book {}", draw=rows("loans", "loan_id"))
OTHER = Slot(
    "other",
    pattern(r"TN-\d{6}"),
    ask="Which other one?",
    phrase="not {}",
    draw=of(lambda drawn: [{"id": f"T{loan.loan_id[1:]}"} for loan in records(drawn.tables.loans)], "id"),
)


@intent(says=["know until when {any} is out, {other}", "know when a book is back"], slots=[ANY, OTHER])
def ask_until(it: Plan) -> None:
    it.l = it.look("get_loan", loan_id=it.any)
    it.answer("It is out until {l.until|date}.", tell="{l.until|date}")


@pytest.mark.slow
def test_values_of_any_record_are_drawn_without_going_through_the_table(large: Environment) -> None:
    service = large.rule_based_user.keywords["service"]
    made = environment(replace(service, intents=(*service.intents, ask_until)), name="large-library")
    with rows_read(made.make_domain().base) as count:
        tasks = made.make_tasks("test", 30)
        episodes = kit.expert(made, tasks, "tiny")
    assert count[0] < 6 * READERS  # where each draw goes through the table, one alone reads half of that
    asked = [r["goal"]["any"] for t in tasks for r in (t.agenda or {})["requests"] if r["kind"] == "ask_until"]
    assert len(set(asked)) == len(asked) > 3
    assert kit.mean(episodes) == 1.0


def test_samples_come_from_all_over_the_table(large: Environment) -> None:
    loans = large.make_domain().base.tables["loans"]
    found = [key for key, _ in loans.sample()]
    assert len(set(found)) == len(found) == POOL and found[0] == "LN-000000" and found[-1] == "LN-059999"
    kept = Overlay(loans, {found[1]: None, "LN-1": {"loan_id": "LN-1"}}).sample()
    assert [key for key, _ in kept] == [found[0], *found[2:], "LN-1"]


def test_people_of_the_splits_are_others(large: Environment) -> None:
    people = [{t.agenda["identity"]["phone"] for t in large.make_tasks(s, 30) if t.agenda} for s in ("train", "test")]
    assert not people[0] & people[1] and all(len(p) > 20 for p in people)
