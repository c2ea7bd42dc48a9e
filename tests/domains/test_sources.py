"""What an author gives as policy and database: read, or refused with the place and the remedy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from muarl.basics.errors import ConfigError
from muarl.domains.base import Domain
from muarl.domains.database import Database
from muarl.domains.tasks import Task
from muarl.rewards.gold import check_tasks


class Plain(Domain):
    """Nothing of its own."""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[type[Domain]]:
    """A class of a module in ``tmp_path``."""
    module = ModuleType("own_for_sources")
    module.__file__ = str(tmp_path / "own.py")
    sys.modules["own_for_sources"] = module
    yield type("Own", (Domain,), {"__module__": "own_for_sources", "policy": ""})
    del sys.modules["own_for_sources"]


@pytest.mark.parametrize("text", ["policy.md", "prompts/policy.txt", " rules.MD\n", "POLICY"])
def test_a_policy_that_looks_like_a_path_is_refused(text: str, own: type[Domain], tmp_path: Path) -> None:
    own.policy = text
    (tmp_path / "POLICY").write_text("Be kind.")
    with pytest.raises(ConfigError, match=rf"Own\.policy is .*looks like a path.*write Path\('{text.strip()}'\)"):
        own()
    with pytest.raises(ConfigError, match="looks like a path"):
        Plain(policy="policy.md")
    (tmp_path / "mine.md").write_text("Be brief.")
    assert own(policy=Path("mine.md")).policy_text == "Be brief."
    assert own(policy="Follow policy.md to the letter.").policy_text == "Follow policy.md to the letter."


@pytest.mark.parametrize(
    ("database", "said"),
    [
        ("shop.json", r"Own\.database is the text 'shop.json': for a file write Path\('shop.json'\)"),
        (
            {"books": {1: {}}},
            r"Own\.database\['books'\] has the key 1 of type int: keys must be strings, such as '1'",
        ),
        ({"books": {"b": {"by": {2: "x"}}}}, r"database\['books'\]\['b'\]\['by'\] has the key 2"),
        ({"book": {"title": "Emma"}}, r"database\['book'\]\['title'\] is 'Emma', where a record is expected"),
        ({"books": {"b": {"tags": {"x"}}}}, r"database\['books'\]\['b'\]\['tags'\] is of type set .*: write a list"),
        (
            {"books": {"b": {"x": [{"y": date(2026, 1, 1)}]}}},
            r"\['b'\]\['x'\]\[0\]\['y'\] is of type date .*: write a string",
        ),
        ({"books": {"b": {"x": float("nan")}}}, r"\['b'\]\['x'\] is nan"),
        ({"books": 3}, r"database\['books'\] must map keys to records, but is of type int"),
        ({3: {}}, "the table 3 is named by a value of type int"),
        ([1], "Own.database must be tables of records, not list"),
    ],
)
def test_a_database_that_is_no_json_is_refused_with_the_path(database: Any, said: str) -> None:
    class Own(Domain):
        pass

    Own.database = database
    with pytest.raises(ConfigError, match=said):
        Own().world()
    if isinstance(database, dict) and "books" in database and database["books"] != 3:
        task = Task("t", "own", "", (), database=Database(database))
        path = said[said.index(r"\['") :] if r"\['b" in said else ""
        with pytest.raises(ConfigError, match=rf"task t: database.*{path}"):
            check_tasks(Own(database={}), [task])


def test_a_pydantic_database_must_have_tables() -> None:
    class Shop(BaseModel):
        books: list[str] = []

    with pytest.raises(ConfigError, match="database.books is of type list: each field must be a dict of records"):
        Plain(database=Shop).world()
