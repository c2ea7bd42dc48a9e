"""The airline domain: TAU2's tools over an airline's database, with the policy and options of the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from muarl.basics.errors import DataError
from muarl.domains.database import Database
from muarl_worlds.tau.airline.records import Flight, Reservation, User
from muarl_worlds.tau.airline.tools import AirlineTools

_as_json = json.JSONEncoder(default=str).encode


class Airline(AirlineTools):
    """TAU2's airline.

    ``database``: a Database, or tables (flights, users, reservations) in TAU2's schema; without it and without a
    ``policy`` those of the installed benchmark are used (DataError says how to install it). ``render(tool_name,
    value)`` writes observations in another style than TAU2's JSON. The other options are those of ``Domain``.
    """

    name = "airline"

    @property
    def policy_text(self) -> str:
        """The policy given, else the installed benchmark's. DataError if that is not installed."""
        if not self._policy_text:
            from muarl_worlds.data import read_text

            self._policy_text = read_text("tau2", "domains/airline/policy.md")
        return self._policy_text

    @property
    def base(self) -> Database:
        """The database given, else the installed benchmark's. DataError if that is not installed."""
        if self._base is None:
            given = self._given_database
            if given is None:
                from muarl_worlds.data import read_json

                given = read_json("tau2", "domains/airline/db.json")
            self._base = given if isinstance(given, Database) else airline_database(given)
        return self._base

    def render(self, tool_name: str, value: Any) -> str:
        """TAU2's text (strings as they are, records as a line of ASCII JSON), or what the user's ``render`` gives."""
        if self._render is not None:
            return self._render(tool_name, value)
        return value if isinstance(value, str) else _as_json(value)


_TABLES: Mapping[str, type[BaseModel]] = {"flights": Flight, "users": User, "reservations": Reservation}


def airline_database(tables: Mapping[str, Any]) -> Database:
    """An airline database as TAU2 holds it in memory: fields in its models' order, balances as floats, nulls filled in.

    Unknown fields of records are dropped, as TAU2 drops them. DataError names the record and the field.
    """
    checked: dict[str, dict[str, Any]] = {}
    for table, model in _TABLES.items():
        records = tables.get(table) if isinstance(tables, Mapping) else None
        if not isinstance(records, Mapping):
            problem = "lacks" if records is None else "has no records in"
            raise DataError(f"airline database: it {problem} the table {table!r}")
        checked[table] = {key: _checked(table, key, model, record) for key, record in records.items()}
    return Database(checked)


def _checked(table: str, key: str, model: type[BaseModel], record: Any) -> dict[str, Any]:
    try:
        return model.model_validate(record).model_dump()
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        text = f"lacks the field {field!r}" if first["type"] == "missing" else f"is malformed: {first['msg']}"
        if first["type"] != "missing" and field:
            text = f"has a malformed field {field!r}: {first['msg']}"
        raise DataError(f"airline database: {table}[{key!r}] {text}") from None
