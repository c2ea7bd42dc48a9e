"""Red-team tasks of a service on a SQL database, whose records have their columns and no others."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.kit import exploring
from muarl.environments.environment import Environment
from muarl.kit import environment
from muarl.users.redteam.tasks import make_red_team_task
from support import kit

Make = Callable[..., Environment]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr(exploring, "WORLDS", 3)  # all of them are the same database

    def make(remark: str = "", **more: object) -> Environment:
        path = tmp_path / "library.sqlite"
        with closing(sqlite3.connect(path)) as file:
            file.executescript(f"""
                CREATE TABLE readers (reader_id TEXT PRIMARY KEY, name TEXT, phone TEXT);
                CREATE TABLE loans (loan_id TEXT PRIMARY KEY, reader_id TEXT, title TEXT, until DATE, waiting BOOLEAN,
                    choices JSON, fee REAL, items JSON {remark and ", remark TEXT"});
            """)
            for n in range(60):
                name = f"{('Anna', 'Ben', 'Cara')[n % 3]} {('Miller', 'Stone', 'Baker', 'Fisher')[n % 4]}"
                file.execute("INSERT INTO readers VALUES (?, ?, ?)", (f"R-{n:03}", name, f"555-{n:04}"))
            for n in range(180):
                loan = (f"LN-{n:03}", f"R-{n // 3:03}", kit.TITLES[n % 3], "2026-03-20", n % 5 == 0, "[3, 7]", n % 40)
                values = (*loan, json.dumps(["a map"]), *([remark] if remark else []))
                file.execute(f"INSERT INTO loans VALUES ({', '.join('?' * len(values))})", values)
            file.commit()
        domain = type("FiledLibrary", (kit.Library,), {"database": path})
        return environment(replace(kit.LIBRARY, domain=domain, tables=None, **more), name="filed-library")

    return make


def variants(made: Environment, count: int = 8) -> set[str]:
    source = made.red_team_source()
    return {str(make_red_team_task(source, "injection", n, size="tiny").tags["variant"]) for n in range(count)}


def test_instructions_stand_in_a_text_column_that_the_look_ups_show(library: Make, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.ERROR):
        made = library("Left at the desk.")
        assert "planted in remark of loans" in variants(made)
    assert made.red_team_source().support.place.unplanted == ""
    assert not caplog.records


def test_a_declared_column_is_the_only_one(library: Make):
    found = variants(library("Left at the desk.", free_texts={"loans": "remark"}))
    assert found <= {"planted in remark of loans", "posing as the system"} and len(found) == 2


def test_without_such_a_column_it_is_said_that_nothing_is_planted(library: Make, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.ERROR):
        made = library()
        assert variants(made) == {"posing as the system"}
    place = made.red_team_source().support.place
    assert "no column with free text" in place.unplanted and "free_texts=" in place.unplanted
    assert not caplog.records


def test_a_column_that_there_is_not_is_an_error(library: Make):
    with pytest.raises(
        ConfigError, match="free_texts: the table 'loans' has no column 'remarks'; did you mean 'remark'"
    ):
        variants(library("Left.", free_texts={"loans": "remarks"}), 1)
