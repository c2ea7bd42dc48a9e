"""What a domain's author gave as ``policy`` and ``database``, read and checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.domains.database import Database
from muarl.errors import ConfigError, DataError


def as_database(given: Any, owner: type[Any]) -> Database:
    """Whatever an author gave as ``database``, as a Database. ConfigError or DataError says what is wrong."""
    if isinstance(given, Database):
        return given
    if given is None:
        return Database({})
    if isinstance(given, type) and hasattr(given, "model_fields"):
        given = given()
    if hasattr(given, "model_dump"):
        return Database.from_model(given)
    if isinstance(given, Path):
        path = _beside(owner, "database", given)
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise DataError(f"{owner.__name__}.database: {path} cannot be read as JSON: {problem}") from None
    if isinstance(given, Mapping):
        try:
            return Database(given)
        except TypeError as problem:
            raise ConfigError(f"{owner.__name__}: {problem}") from None
    raise ConfigError(f"{owner.__name__}.database must be tables of records, not {type(given).__name__}")


def policy_text(cls: type[Any]) -> str:
    """The policy of a domain class. DataError if its file cannot be read."""
    if isinstance(cls.policy, str):
        return cls.policy
    path = _beside(cls, "policy", cls.policy)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise DataError(f"{cls.__name__}.policy: {path} cannot be read: {problem.strerror}") from None


def _beside(cls: type[Any], attribute: str, path: Path) -> Path:
    """A relative path is meant from the module of the class that set the attribute."""
    if path.is_absolute():
        return path
    owner = next((c for c in cls.__mro__ if attribute in vars(c)), cls)
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    return (Path(file).parent if file else Path()) / path
