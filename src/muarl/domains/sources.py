"""What a domain's author gave as ``policy`` and ``database``, read and checked."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import parse_json
from muarl.domains.database import Database

_PATH = re.compile(r"\S{1,250}\.(?:md|markdown|txt|text|rst|html|json|jinja2?|ya?ml)", re.IGNORECASE)
"""Text that looks like the name of a file, rather than a policy."""
_WORD = re.compile(r"[^\s=@:]*")


def as_database(source: Any, owner: type[Any]) -> Database:
    """Whatever an author gave as ``database``, as a Database.

    ConfigError or DataError says what is wrong, and where in the database: a value that is no JSON, or a record that is
    a bare text or number, which mostly stands one level too high.
    """
    where = f"{owner.__name__}.database"
    if isinstance(source, str) and "://" not in source:
        if not _WORD.fullmatch(source):  # it may hold a password
            raise ConfigError(f"{where} is a text: give tables of records, a Path, or a database URL (docs/domains.md)")
        raise ConfigError(f"{where} is the text {source[:60]!r}: for a file write Path({source[:60]!r})")
    if source is None:
        return Database({})
    if not isinstance(source, Mapping | Database):  # tables in memory need nothing of SQL
        from muarl.domains.sql.declared import SqlDatabase
        from muarl.domains.sql.files import SUFFIXES

        if isinstance(source, str) or (isinstance(source, Path) and source.suffix.lower() in SUFFIXES):
            source = SqlDatabase(source)
        if isinstance(source, SqlDatabase):
            return source.open(where, lambda path: beside(owner, "database", path))
    if isinstance(source, type) and hasattr(source, "model_fields"):
        source = source()
    if hasattr(source, "model_dump"):
        for name in type(source).model_fields:
            if not isinstance(getattr(source, name), Mapping):
                kind = type(getattr(source, name)).__name__
                raise ConfigError(
                    f"{where}.{name} is of type {kind}: each field must be a dict of records by their keys"
                )
        return Database.from_model(source)
    if isinstance(source, Path):
        path = beside(owner, "database", source)
        try:
            source = parse_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise DataError(f"{where}: {path} cannot be read as JSON: {problem}") from None
    if not isinstance(source, (Database, Mapping)):
        raise ConfigError(f"{where} must be tables of records, not {type(source).__name__}")
    if not isinstance(source, Database):
        check_json(source, where)
        return Database(source)
    check_json(source.to_check(), where)
    source.sound = True
    return source


def check_json(tables: Mapping[Any, Any], where: str) -> None:
    """ConfigError names the path of the first value that a database cannot hold, and the remedy."""
    problem = _what_is_wrong(tables)
    if problem is not None:
        raise ConfigError(f"{where}{problem}")


def _what_is_wrong(tables: Mapping[Any, Any]) -> str | None:
    for name, table in tables.items():
        if not isinstance(name, str):
            return f": the table {name!r} is named by a value of type {type(name).__name__}: names must be strings"
        if not isinstance(table, Mapping):
            return f"[{name!r}] must map keys to records, but is of type {type(table).__name__}"
        for key, record in table.items():
            if not isinstance(key, str):
                return _strange_key(f"[{name!r}]", key)
            if not isinstance(record, (dict, list)) and not hasattr(record, "model_dump"):
                text = f"[{name!r}][{key!r}] is {record!r:.60}, where a record is expected (a dict)"
                return f"{text}: tables hold records by their keys, such as {{{name!r}: {{'1': {{{key!r}: ...}}}}}}"
            problem = _no_json(record, f"[{name!r}][{key!r}]")
            if problem is not None:
                return problem
    return None


def _no_json(value: Any, path: str) -> str | None:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return None
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                return _strange_key(path, key)
            if type(inner) is not str and (problem := _no_json(inner, f"{path}[{key!r}]")) is not None:
                return problem
        return None
    if isinstance(value, (list, tuple)):
        return next((p for i, v in enumerate(value) if (p := _no_json(v, f"{path}[{i}]")) is not None), None)
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{path} is {value}, which JSON has no form for: write None"
    if isinstance(value, (str, int)) or hasattr(value, "model_dump"):
        return None
    remedy = "a list" if isinstance(value, (set, frozenset)) else "a string, a number, a list or a dict"
    return f"{path} is of type {kind.__name__} ({value!r:.60}), which JSON has no form for: write {remedy}"


def _strange_key(path: str, key: Any) -> str:
    return f"{path} has the key {key!r} of type {type(key).__name__}: keys must be strings, such as {str(key)!r}"


def policy_text(cls: type[Any], source: Path | str) -> str:
    """The policy that an author gave to a domain class or an instance. DataError if its file cannot be read,
    ConfigError for the name of a file that is given as text."""
    where = f"{cls.__name__}.policy"
    if isinstance(source, str):
        name = source.strip()
        word = 0 < len(name) <= 250 and len(name.split()) == 1
        if word and (_PATH.fullmatch(name) or beside(cls, "policy", Path(name)).is_file()):
            raise ConfigError(
                f"{where} is the text {source!r}, which looks like a path: for a file write Path({name!r})"
            )
        return source
    path = beside(cls, "policy", source)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError(f"{where}: {path} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None


def beside(cls: type[Any], attribute: str, path: Path) -> Path:
    """A path that an author gave: a relative one is meant from the module of the class that set the attribute."""
    if path.is_absolute():
        return path
    owner = next((c for c in cls.__mro__ if attribute in vars(c)), cls)
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    return (Path(file).parent if file else Path()) / path
