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
from muarl.domains.base import tool
from muarl.environments.environment import Environment
from muarl.kit import environment, pattern
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


def test_people_of_the_splits_are_others(large: Environment) -> None:
    people = [{t.agenda["identity"]["phone"] for t in large.make_tasks(s, 30) if t.agenda} for s in ("train", "test")]
    assert not people[0] & people[1] and all(len(p) > 20 for p in people)
