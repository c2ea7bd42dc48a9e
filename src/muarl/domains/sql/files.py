"""Opening SQLite files: for reading only, refused in one sentence where they cannot be, and watched for changes."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from weakref import WeakValueDictionary

from muarl.basics.errors import DataError, InfrastructureError
from muarl.domains.sql.columns import Column
from muarl.domains.sql.tables import SqliteStore, TableSchema, quoted

SUFFIXES = (".sqlite", ".sqlite3", ".db")
"""What the names of SQLite files end in."""
_MAGIC = b"SQLite format 3\0"
_WAL = 2
"""What stands in bytes 18 and 19 of a file that is written through a log beside it."""
_PATIENCE = 2.0
"""Seconds to wait for a lock."""

_Stamp = tuple[int, int, int, int]
_open: WeakValueDictionary[tuple[Path, _Stamp], SqliteStore] = WeakValueDictionary()


def open_file(path: Path, where: str, expected: str | None = None) -> SqliteStore:
    """A file, opened once in a process; it is never written to, nor is anything beside it.

    DataError, which begins with ``where``, if it is missing, no SQLite database, damaged, or locked, if another program
    has it open with changes in its log, or if its contents are not the ``expected`` ones.
    """
    path = path.resolve()
    label = f"{where}: {path}"
    try:
        with path.open("rb") as file:
            head = file.read(100)
        stamp = _stamp(path)
        store = _open.get((path, stamp))
        if store is None:
            _check_head(head, path, label)
            store = _opened(path, stamp, head[18] == _WAL, where)
    except OSError as problem:
        raise DataError(f"{label} cannot be read: {problem.strerror or problem}") from None
    if expected not in (None, store.identity):
        raise DataError(f"{label} has other contents than where the run began: give every machine the same file")
    _open[path, stamp] = store
    return store


def _check_head(head: bytes, path: Path, label: str) -> None:
    if not head.startswith(_MAGIC):
        raise DataError(f"{label} is no SQLite database (or it is encrypted)")
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise DataError(
            f"{label}: {log.name} beside it holds changes that are not in the file yet, since another program has it "
            f"open or did not close it. Close it there, or use a copy: sqlite3 {path.name} \".backup 'copy.sqlite'\""
        )


def _opened(path: Path, stamp: _Stamp, wal: bool, where: str) -> SqliteStore:
    label = f"{where}: {path}"
    with path.open("rb") as file:
        identity = hashlib.file_digest(file, "sha256").hexdigest()
    # A file with a log is opened as one that nobody changes, since SQLite would make files beside it; that nobody does,
    # is looked at after each read. Other files are locked while a SELECT runs.
    options = "mode=ro&immutable=1" if wal else "mode=ro"
    connection = sqlite3.connect(
        f"{path.as_uri()}?{options}", uri=True, timeout=_PATIENCE, check_same_thread=False, isolation_level=None
    )
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict.startswith("***"):
            raise sqlite3.DatabaseError(" ".join(verdict.split()))
    except sqlite3.Error as problem:
        connection.close()
        busy = getattr(problem, "sqlite_errorname", "").startswith("SQLITE_BUSY")
        what = "is locked by another program: close it there" if busy else f"is damaged, or cannot be read: {problem}"
        raise DataError(f"{label} {what}") from None
    return SqliteStore(
        connection, label, identity, _watch(path, stamp, identity, label), (open_file, (path, where, identity))
    )


def _stamp(path: Path) -> _Stamp:
    """What changes when a file, or the log beside it, is written to."""
    now, log = path.stat(), path.with_name(path.name + "-wal")
    return now.st_mtime_ns, now.st_size, now.st_ino, log.stat().st_size if log.exists() else 0


def _watch(path: Path, stamp: _Stamp, identity: str, label: str) -> Callable[[], None]:
    """A function that raises InfrastructureError once the file has other contents."""
    seen = stamp

    def unchanged() -> None:
        nonlocal seen
        try:
            now = _stamp(path)
            if now == seen:
                return
            with path.open("rb") as file:
                same = not now[3] and hashlib.file_digest(file, "sha256").hexdigest() == identity
        except OSError:
            same = False
        if not same:
            raise InfrastructureError(
                f"{label} has changed since it was opened, and all episodes must begin with the same database: start "
                "again, with a copy of it if it is in use",
                boundary="world",
                retryable=False,
            )
        seen = now

    return unchanged


# What is in a file.


def tables_of(store: SqliteStore) -> Mapping[str, str]:
    """The names of tables and views, each with what it is: "table", "view", "virtual" or "shadow" (a virtual one's)."""
    every = list(store.rows("SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid"))
    virtual = tuple(f"{name}_" for name, _, sql in every if (sql or "").upper().startswith("CREATE VIRTUAL"))
    tables: dict[str, str] = {}
    for name, kind, sql in every:
        if name.startswith("sqlite_"):
            continue
        if kind == "table" and f"{name}_" in virtual and (sql or "").upper().startswith("CREATE VIRTUAL"):
            kind = "virtual"
        elif kind == "table" and name.startswith(virtual):
            kind = "shadow"
        tables[name] = kind
    return tables


def schema_of(store: SqliteStore, name: str) -> TableSchema:
    """A table's columns and key. DataError if NULL stands in the key, by which a record could not be known."""
    rows = list(store.rows(f"PRAGMA table_info({quoted(name)})"))
    columns = tuple(Column(row[1], row[2] or "") for row in rows)
    parts = sorted((row[5], Column(row[1], row[2] or "")) for row in rows if row[5])
    key = tuple(column for _, column in parts)
    rowid = _rowid(store, name, {column.name.lower() for column in columns})
    if rowid is None and not key:
        raise DataError(f"{store.label}: table {name!r} has no primary key, and its columns hide its rowid")
    for column in key if rowid else ():
        if list(store.rows(f"SELECT 1 FROM {quoted(name)} WHERE {quoted(column.name)} IS NULL LIMIT 1")):
            raise DataError(
                f"{store.label}: table {name!r}: {column.name!r} is of its primary key, and is NULL in a row"
            )
    return TableSchema(name, columns, key, rowid)


def _rowid(store: SqliteStore, name: str, columns: set[str]) -> str | None:
    """What the table's rowid is called; None if it has none."""
    free = next((alias for alias in ("rowid", "_rowid_", "oid") if alias not in columns), None)
    if free is not None:
        try:
            list(store.rows(f"SELECT {free} FROM {quoted(name)} LIMIT 0"))
        except InfrastructureError as problem:
            if "no such column" in str(problem):
                return None
            raise
    return free
