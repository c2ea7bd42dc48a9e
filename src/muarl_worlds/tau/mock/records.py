"""The records of TAU2's mock domain, as its data model checks them. Class names stand in error texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from muarl.basics.errors import DataError
from muarl.domains.database import Database

TaskStatus = Literal["pending", "completed"]


class Task(BaseModel):
    """One task on the list."""

    task_id: str
    title: str
    description: str | None = None
    status: TaskStatus


class User(BaseModel):
    """Somebody with tasks, by their ids."""

    user_id: str
    name: str
    tasks: list[str]


class MockDB(BaseModel):
    """The agent's side."""

    model_config = ConfigDict(extra="forbid")

    tasks: dict[str, Task]
    users: dict[str, User]


class Notification(BaseModel):
    """A message in the user's inbox."""

    model_config = ConfigDict(extra="forbid")

    notification_id: str
    message: str
    status: Literal["unread", "read"] = "unread"
    task_id: str | None = None


class MockUserDB(BaseModel):
    """The user's side."""

    model_config = ConfigDict(extra="forbid")

    notifications: dict[str, Notification] = {}


def mock_database(tables: Mapping[str, Any]) -> Database:
    """The agent's database from TAU2's tables "tasks" and "users". DataError says what is malformed."""
    return _checked(MockDB, tables)


def inbox_database(tables: Mapping[str, Any]) -> Database:
    """The user's database from TAU2's table "notifications". DataError says what is malformed."""
    return _checked(MockUserDB, tables)


def _checked(model: type[BaseModel], tables: Mapping[str, Any]) -> Database:
    try:
        return Database(model.model_validate(dict(tables)).model_dump())
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(f"mock database: {where}: {first['msg']}") from None
    except (TypeError, ValueError):
        raise DataError("mock database: it must be an object of tables") from None
