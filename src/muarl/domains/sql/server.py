"""Tables of a database server, copied through SQLAlchemy into a temporary SQLite database of this process.

Nothing is written to the server, and a run's worlds begin alike however it goes on there. SQLite deletes the copy when
it is closed. No error shows the password or the query of a URL.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote, quote_plus
from uuid import UUID
from weakref import WeakValueDictionary

from pydantic_core import to_jsonable_python

from muarl.basics.errors import ConfigError, DataError, MuarlError
from muarl.basics.extras import is_installed, require
from muarl.domains.sql.tables import CHUNK, SqliteStore, chosen_tables, quoted

_STEADY = {"postgresql": "REPEATABLE READ", "mysql": "REPEATABLE READ", "mariadb": "REPEATABLE READ"}
"""By dialect, the isolation in which a transaction sees the same rows from beginning to end."""
_DECLARED: tuple[tuple[tuple[type[Any], ...], str], ...] = (
    ((bool,), "BOOLEAN"), ((int,), "INTEGER"), ((float, Decimal), "REAL"), ((bytes,), "BLOB"),
    ((str, date, time, timedelta, UUID), "TEXT"),
)  # fmt: skip
_JSON = "JSON TEXT"
"""How a column of the copy is declared that holds lists, objects, or what SQLAlchemy does not know."""

_copies: WeakValueDictionary[tuple[str, tuple[str, ...]], SqliteStore] = WeakValueDictionary()


def copied(url: str, tables: tuple[str, ...], where: str, expected: str | None = None) -> SqliteStore:
    """A copy of tables (none: all), made once in a process. ``expected``: the identity that it must have.

    MissingExtra without SQLAlchemy. ConfigError if the URL is none, its driver is not installed, there is no such
    table, or one has no primary key. DataError if the database cannot be read, or has changed.
    """
    require("sql", where)
    store = _copies.get((url, tables))
    if store is None:
        with _without_secrets(url, where):
            store = _copies[url, tables] = _copy(url, tables, where)
    if expected not in (None, store.identity):
        raise DataError(f"{where}: {shown(url)} has changed since the run began: name a copy that nobody changes")
    return store


def shown(url: str) -> str:
    """A URL as messages may show it: dialect, host and name of the database."""
    if is_installed("sqlalchemy"):
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            parts = make_url(url)
            return f"{parts.drivername}://{parts.host or ''}/{parts.database or ''}"
        except (ArgumentError, ValueError):
            pass
    return f"{url.partition('://')[0]}://..."


def _copy(url: str, tables: tuple[str, ...], where: str) -> SqliteStore:
    import sqlalchemy as sa

    engine = sa.create_engine(url, poolclass=sa.pool.NullPool, hide_parameters=True)
    copy = sqlite3.connect("", check_same_thread=False, isolation_level=None)  # a file that SQLite deletes itself
    seal = hashlib.sha256()
    with ExitStack() as undo, engine.connect() as connection:
        undo.callback(copy.close)
        dialect = engine.dialect.name
        if dialect in _STEADY:
            connection.execution_options(isolation_level=_STEADY[dialect])
        if dialect == "postgresql":
            connection.execution_options(postgresql_readonly=True)
        there = _tables(sa.inspect(connection), tables)
        names = chosen_tables(tables, {name: kind for name, (kind, _) in there.items()}, where)
        copy.execute("BEGIN")
        for name in names:
            _copy_table(connection, copy, name, there[name][1], seal.update, where)
        copy.execute("COMMIT")
        undo.pop_all()
    copy.execute("PRAGMA query_only = ON")
    identity = seal.hexdigest()
    return SqliteStore(copy, f"{where}: {shown(url)}", identity, lambda: None, (copied, (url, tables, where, identity)))


def _tables(inspector: Any, named: tuple[str, ...]) -> dict[str, tuple[str, tuple[str | None, str]]]:
    """By name, "table" or "view", and (schema, name) of it: those of the default schema, and of schemas named."""
    schemas = [None, *dict.fromkeys(name.partition(".")[0] for name in named if "." in name)]
    existing = inspector.get_schema_names()
    tables: dict[str, tuple[str, tuple[str | None, str]]] = {}
    for schema in schemas:
        if schema is None or schema in existing:
            lists = (("table", inspector.get_table_names(schema)), ("view", inspector.get_view_names(schema)))
            for kind, names in lists:
                for name in names:
                    tables.setdefault(name if schema is None else f"{schema}.{name}", (kind, (schema, name)))
    return tables


def _copy_table(
    connection: Any,
    copy: sqlite3.Connection,
    name: str,
    place: tuple[str | None, str],
    seal: Callable[[bytes], None],
    where: str,
) -> None:
    import sqlalchemy as sa

    table = sa.Table(place[1], sa.MetaData(), schema=place[0], autoload_with=connection, resolve_fks=False)
    key = list(table.primary_key.columns)
    if not key:
        raise ConfigError(
            f"{where}: the table {name!r} has no primary key, by which its records could be known: name the tables "
            "that tools need, tables=(...), without it"
        )
    declared = [_declared(column.type) for column in table.columns]
    columns = [f"{quoted(c.name)} {d}" for c, d in zip(table.columns, declared, strict=True)]
    primary = ", ".join(quoted(column.name) for column in key)
    copy.execute(f"CREATE TABLE {quoted(name)} ({', '.join(columns)}, PRIMARY KEY ({primary}))")
    seal(json.dumps([name, columns, primary]).encode())
    insert = f"INSERT INTO {quoted(name)} VALUES ({', '.join('?' * len(columns))})"
    names = [column.name for column in table.columns]
    rows = connection.execution_options(stream_results=True).execute(sa.select(table).order_by(*key))
    for chunk in rows.partitions(CHUNK):
        stored = [_stored(row, declared, names, name) for row in chunk]
        copy.executemany(insert, stored)
        seal(repr(stored).encode())


def _declared(kind: Any) -> str:
    """How the copy declares a column of SQLAlchemy's type."""
    try:
        python = kind.python_type
    except NotImplementedError:
        return _JSON
    if python is Decimal and kind.scale == 0:
        return "INTEGER"
    return next((declared for types, declared in _DECLARED if issubclass(python, types)), _JSON)


def _stored(row: Any, declared: list[str], names: list[str], table: str) -> tuple[Any, ...]:
    try:
        return tuple(None if v is None else _value(v, d) for v, d in zip(row, declared, strict=True))
    except (ValueError, TypeError, OverflowError):
        for value, kind, name in zip(row, declared, names, strict=True):
            try:
                _value(value, kind)
            except (ValueError, TypeError, OverflowError) as problem:
                raise DataError(f"table {table!r}, column {name!r}: {problem}") from None
        raise


def _value(value: Any, declared: str) -> Any:
    """A value as the copy holds it."""
    if declared == "INTEGER":
        number = int(value)
        if number.bit_length() > 63:
            raise OverflowError("a whole number has more than 64 bits")
        return number
    if declared == "REAL":
        if not math.isfinite(value):
            raise ValueError(f"{value} has no form in JSON")
        return float(value)
    if declared == "BOOLEAN":
        return int(bool(value))
    if declared == "BLOB":
        return bytes(value)
    if declared == "TEXT":
        return value if isinstance(value, str) else str(to_jsonable_python(value))
    return json.dumps(to_jsonable_python(value, bytes_mode="hex", fallback=str), ensure_ascii=False)


@contextmanager
def _without_secrets(url: str, where: str) -> Iterator[None]:
    """Errors of SQLAlchemy and of drivers become ours, and say nothing that only the URL's owner may know."""
    from sqlalchemy import exc

    try:
        yield
    except DataError as problem:
        raise DataError(f"{where}: {problem}") from None
    except MuarlError:
        raise
    except exc.NoSuchModuleError:
        scheme = url.partition("://")[0]
        raise ConfigError(f"{where}: SQLAlchemy knows no database {scheme!r}, such as postgresql+psycopg") from None
    except exc.ArgumentError:
        raise ConfigError(f"{where}: the text is no database URL: dialect+driver://user:password@host/name") from None
    except ModuleNotFoundError as problem:
        raise ConfigError(f"{where}: {shown(url)} needs the driver {problem.name}: install it with pip") from None
    except (exc.SQLAlchemyError, sqlite3.Error, OSError, ValueError) as problem:
        text = _scrubbed(str(getattr(problem, "orig", None) or problem), url)
        raise DataError(f"{where}: {shown(url)} cannot be read: {text}") from None


def _scrubbed(text: str, url: str) -> str:
    """The first line of a driver's message without what is secret in the URL."""
    from sqlalchemy.engine import make_url

    parts = make_url(url)
    values = [v for value in parts.query.values() for v in ([value] if isinstance(value, str) else value)]
    secrets = [url, *(str(s) for s in (parts.password, *values) if s)]
    line = text.strip().partition("\n")[0]
    for secret in sorted({form for s in secrets for form in (s, quote(s), quote_plus(s))}, key=len, reverse=True):
        line = line.replace(secret, "***")
    return line
