"""The mock domain: TAU2's tools over a list of tasks and an inbox, with whatever a task lays over them first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muarl.basics.errors import DataError
from muarl.domains.base import Domain, World
from muarl.domains.database import Database, View
from muarl.types.chat import Requestor
from muarl_worlds.tau.mock.records import MockDB, inbox_database, mock_database
from muarl_worlds.tau.mock.tools import MockTools, MockUserTools

FOLDER = "domains/mock"
SIDES: tuple[Requestor, ...] = ("assistant", "user")


class MockInbox(MockUserTools):
    """The user's toolkit. ``database``: the inbox, without one the installed benchmark's."""

    @property
    def base(self) -> Database:
        """The inbox given, else the installed benchmark's. DataError if that is not installed."""
        if self._base is None:
            self._base = _database(self._given_database, "user_db.json", inbox_database)
        return self._base


class Mock(MockTools):
    """TAU2's mock domain.

    ``database``: a Database, or tables (tasks, users) in TAU2's schema; ``inbox``: the user's (notifications). Without
    them, and without a ``policy``, those of the installed benchmark are used (DataError says how to install it). The
    other options are those of ``Domain``.
    """

    name = "mock"
    user_toolkit = MockInbox

    def __init__(self, *, inbox: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self._user = MockInbox(database=inbox, semantics=self.semantics)

    @property
    def policy_text(self) -> str:
        """The policy given, else the installed benchmark's. DataError if that is not installed."""
        if not self._policy_text:
            from muarl_worlds.data import read_text

            self._policy_text = read_text("tau2", f"{FOLDER}/policy.md")
        return self._policy_text

    @property
    def base(self) -> Database:
        """The database given, else the installed benchmark's. DataError if that is not installed."""
        if self._base is None:
            self._base = _database(self._given_database, "db.json", mock_database)
        return self._base

    def render(self, tool_name: str, value: Any) -> str:
        """TAU2's text (strings as they are, records as a line of ASCII JSON), or what the caller's ``render`` gives."""
        if self._render is not None:
            return self._render(tool_name, value)
        return value if isinstance(value, str) else json.dumps(value, default=str)

    def prepare(self, world: World) -> None:
        """Lay the task's own data over both sides and run its initial actions. DataError names what is wrong with them.

        In "official" semantics one side's data make both sides share that side's database, as TAU2 does by mistake.
        """
        task = world.task
        if task is None:
            return
        for side in SIDES:
            if (partial := (task.initial_data or {}).get(side)) is not None:
                self._lay_over(world, side, partial)
        for action in task.initial_actions:
            kit = world.toolkit(action["env_type"])
            function = None if action["func_name"].startswith("_") else getattr(kit, action["func_name"], None)
            if function is None or hasattr(Domain, action["func_name"]):
                raise DataError(f"mock task {task.id!r}: initial action {action['func_name']!r} is no function here")
            function(**action["arguments"])

    def _lay_over(self, world: World, side: Requestor, partial: Mapping[str, Any]) -> None:
        kit = world.toolkit(side)
        tables = kit.db.to_tables()
        read = mock_database if set(tables) == set(MockDB.model_fields) else inbox_database
        kit.db = View(read(_merged(tables, partial)))
        if self.semantics == "official":
            for other in SIDES:
                world.toolkit(other).db = kit.db


def _merged(old: Any, new: Any) -> Any:
    """``new`` over ``old``: objects key by key, at every depth; anything else is replaced."""
    if isinstance(old, dict) and isinstance(new, Mapping):
        return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return new


def _database(given: Any, file: str, read: Any) -> Database:
    if given is None:
        from muarl_worlds.data import read_json

        given = read_json("tau2", f"{FOLDER}/{file}")
    return given if isinstance(given, Database) else read(given)
