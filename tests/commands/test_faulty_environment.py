"""Mistakes in the code of somebody's own environment are told as theirs, with the line, and not as muarl's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.environments import registry
from support.parking import write_parking

FAULTY = """
from dataclasses import replace
from muarl import Message
from muarl.users.base import UserTurn
from parking import *


class Resident:
    def __init__(self, answer):
        self.answer = answer

    async def reply(self, conversation):
        return self.answer()


class Clerk:
    def __init__(self, *, seed, error_profile):
        pass

    def act(self, new):
        return "hello"


def fail(*args, **kwargs):
    return {}["nothing"]


def office(answer, **more):
    user = lambda task, *, seed, persona=None: Resident(answer)
    return replace(PARKING, **{"rule_based_user": user, **more})


TEXT = office(lambda: "hello")
TURN = office(lambda: UserTurn("hello"))
ROLE = office(lambda: UserTurn(Message("assistant", "hello")))
RAISES = office(fail)
EXPERT = office(None, rule_based_user=PARKING.rule_based_user, expert=Clerk)
class Unprepared(ParkingOffice):
    def world(self, task=None):
        return fail()


WORLD = office(None, domain=Unprepared)
TASKS = office(None, tasks=lambda split, index, seed: fail())
USER = office(None, rule_based_user=lambda task, *, seed, persona=None: fail())
"""


@pytest.fixture(autouse=True)
def faulty(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with faulty.py and the office it takes everything else from."""
    monkeypatch.setattr(registry, "_approved", set())
    write_parking(repository / "docs" / "domains.md", tmp_path)
    (tmp_path / "faulty.py").write_text(FAULTY)
    monkeypatch.chdir(tmp_path)
    yield
    registry._load.cache_clear()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("TEXT", "user Resident: reply returned a str, and must return UserTurn(Message('user', TEXT))"),
        ("TURN", "user Resident: reply returned a UserTurn with a str"),
        ("ROLE", "user Resident: reply returned a message with the role 'assistant'"),
        (
            "RAISES",
            "cannot be scored on task parking-test-0-0: user: unexpected KeyError: 'nothing' (faulty.py, line 25)",
        ),
        ("EXPERT", "expert Clerk: act returned a str, and must return Message('assistant', TEXT)"),
    ],
)
def test_what_a_user_or_an_expert_does_wrong_is_one_message(name: str, told: str) -> None:
    result = CliRunner().invoke(app, ["generate", f"./faulty.py:{name}", "--count", "2"])
    assert result.exit_code == 2 and told in result.stderr and "defect" not in result.stderr, result.stderr


@pytest.mark.parametrize("name", ["TASKS", "USER"])
def test_a_bug_in_tasks_or_users_is_one_message(name: str) -> None:
    result = CliRunner().invoke(app, ["generate", f"./faulty.py:{name}", "--count", "2"])
    assert result.exit_code == 2 and "has a bug: KeyError: 'nothing'" in result.stderr and "defect" not in result.stderr
    assert "faulty.py, line 25)" in result.stderr


def test_an_evaluation_by_a_checkpoint_of_another_domain_says_so_first() -> None:
    result = CliRunner().invoke(app, ["eval", "./parking.py:PARKING", "--tasks", "2", "model.max_context=64"])
    assert result.exit_code == 2 and "model.max_context is 64" in result.stderr
    assert "Note: the checkpoint base was not made on parking and knows few of its words" in result.stderr
    assert "or another --agent." in result.stderr


def test_a_trace_says_whose_code_it_ends_in() -> None:
    result = CliRunner().invoke(app, ["generate", "./faulty.py:WORLD", "--count", "2"])
    assert "faulty.py, line 25" in result.stderr and "defect of muarl" not in result.stderr, result.stderr
