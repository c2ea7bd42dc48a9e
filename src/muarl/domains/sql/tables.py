"""Tables whose records are rows of an SQLite database, read when they are asked for; which of them a domain reads."""

from __future__ import annotations

import itertools
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.authoring import nearest
from muarl.domains.frozen import FrozenDict
from muarl.domains.overlay import POOL, LazyTable, has_fields, strange_column, strange_key
from muarl.domains.sql.columns import Column, candidates, key_of, record_of


def chosen_tables(names: Sequence[str], kinds: Mapping[str, str], where: str) -> list[str]:
    """The tables named, or all. ``kinds``: what there is by name, "table" or something else ("view").

    ConfigError for one that there is not, or that is no table.
    """
    tables = [name for name, kind in kinds.items() if kind == "table"]
    for name in names:
        kind = kinds.get(name)
        if kind is None:
            listed = ", ".join(tables) or "none"
            raise ConfigError(f"{where}: there is no table {name!r}{nearest(name, tables)}; tables: {listed}")
        if kind != "table":
            what = kind if kind == "view" else f"{kind} table"
            raise ConfigError(
                f"{where}: {name!r} is a {what}, whose rows have no key of their own: name the tables that it is made "
                "of, and let the tool put their rows together"
            )
    return list(dict.fromkeys(names)) or tables


CHUNK = 500
"""Rows that are taken from SQLite at once."""


class SqliteStore:
    """An open SQLite database that nobody writes to through it; several threads may read.

    ``label``: what errors call it. ``identity``: a text that stands for its contents. ``unchanged`` raises if these are
    no longer what they were. ``again``: a function of a module, with arguments, that opens it in another process.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        label: str,
        identity: str,
        unchanged: Callable[[], None],
        again: tuple[Callable[..., SqliteStore], tuple[Any, ...]],
    ) -> None:
        self.connection, self.label, self.identity = connection, label, identity
        self._unchanged, self._again = unchanged, again
        self._lock = threading.Lock()
        weakref.finalize(self, connection.close)

    def __reduce__(self) -> Any:
        return self._again

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows that a SELECT gives, some at a time.

        InfrastructureError if they cannot be read, or are no longer those of the beginning.
        """
        with self._reading():
            cursor = self.connection.execute(statement, parameters)
            chunk = cursor.fetchmany(CHUNK)
        while chunk:
            yield from chunk
            if len(chunk) < CHUNK:
                return
            with self._reading():
                chunk = cursor.fetchmany(CHUNK)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except sqlite3.Error as problem:
            self._unchanged()
            busy = getattr(problem, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
            why = "another program keeps it locked" if busy else f"it cannot be read: {problem}"
            raise InfrastructureError(f"{self.label}: {why}", boundary="world", retryable=busy) from None
        self._unchanged()  # afterwards: what was read before a change is as it was


@dataclass(frozen=True)
class TableSchema:
    """A table."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    """The columns of its primary key; none: rows are known by their rowid, under ``rowid``."""
    rowid: str | None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The columns that say by which text a row is known."""
        return self.key or (Column(self.rowid or "rowid", "INTEGER"),)

    @property
    def order(self) -> str:
        """SQL of the order in which rows were entered, or of the key where SQLite keeps rows by it."""
        return self.rowid or ", ".join(quoted(column.name) for column in self.key)


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


class SqlTable(LazyTable):
    """A table of a ``SqliteStore``: text keys to read-only records. Nothing is kept: each look-up is a SELECT."""

    def __init__(self, store: SqliteStore, schema: TableSchema) -> None:
        self.store, self.schema = store, schema
        self._kinds = [(column.name, column.kind) for column in schema.columns]
        self._keys = len(schema.key_columns)
        self._key_sql = key = [quoted(column.name) for column in schema.key] or [schema.order]
        self._from = f"FROM {quoted(schema.name)}"
        self._select = f"SELECT {', '.join([*key, *map(quoted, schema.names)])} {self._from}"
        self._length: int | None = None
        self._sample: list[tuple[str, FrozenDict]] | None = None

    def __reduce__(self) -> Any:
        return (SqlTable, (self.store, self.schema))

    def __getitem__(self, key: str) -> FrozenDict:
        for row in self._at(self._select, key):
            return self._record(row)
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return any(True for _ in self._at(f"SELECT {', '.join(self._key_sql)} {self._from}", key))

    def __iter__(self) -> Iterator[str]:
        for row in self.store.rows(f"SELECT {', '.join(self._key_sql)} {self._from} ORDER BY {self.schema.order}"):
            yield key_of(*row)

    def __len__(self) -> int:
        if self._length is None:
            ((self._length,),) = self.store.rows(f"SELECT count(*) {self._from}")
        return self._length

    def scan(self) -> Iterator[tuple[str, FrozenDict]]:
        """(key, record) of every row, in the order in which they were entered."""
        for row in self.store.rows(f"{self._select} ORDER BY {self.schema.order}"):
            yield key_of(*row[: self._keys]), self._record(row)

    def sample(self) -> Sequence[tuple[str, FrozenDict]]:
        """(key, record) of up to ``POOL`` rows from all over the table, found by their rowids."""
        if self._sample is None:
            self._sample = list(self._sampled())
        return self._sample

    def _sampled(self) -> Iterator[tuple[str, FrozenDict]]:
        rowid, count = self.schema.rowid, len(self)
        if count <= POOL:
            yield from self.scan()
        elif rowid is None:
            for key in list(itertools.islice(self, 0, None, -(-count // POOL))):
                yield key, self[key]
        else:
            ((first, last),) = self.store.rows(f"SELECT min({rowid}), max({rowid}) {self._from}")
            select = f"{self._select} WHERE {rowid} >= ? ORDER BY {rowid} LIMIT 1"
            records: dict[str, FrozenDict] = {}
            for number in range(POOL):
                for row in self.store.rows(select, (first + (last - first) * number // (POOL - 1),)):
                    records[key_of(*row[: self._keys])] = self._record(row)
            yield from records.items()

    def matching(self, equal: Mapping[str, Any]) -> Iterator[tuple[str, FrozenDict]]:
        """(key, record) of the rows with these values in these columns. KeyError for a column that there is not."""
        kinds = dict(self._kinds)
        asked, values = [], []
        for name, value in equal.items():
            if name not in kinds:
                raise strange_column(self.schema.name, name, kinds)
            if kinds[name] != "json" and _is_plain(value):
                asked.append(f"{quoted(name)} IN (?, ?)" if isinstance(value, str) else f"{quoted(name)} IS ?")
                values += [value, _bytes(value)] if isinstance(value, str) else [value]
        restricted = f" WHERE {' AND '.join(asked)}" if asked else ""
        for row in self.store.rows(f"{self._select}{restricted} ORDER BY {self.schema.order}", values):
            record = self._record(row)
            if has_fields(record, equal):  # SQL may find more: it may ignore case, and reads numbers in texts
                yield key_of(*row[: self._keys]), record

    def _at(self, select: str, key: object) -> Iterator[tuple[Any, ...]]:
        """The rows, at most one but in tables with keys of mixed types, that are known by a key."""
        if not isinstance(key, str):
            raise strange_key(self.schema.name, key)
        parts = candidates(key, self.schema.key_columns)
        if parts is None:
            return
        asked = (f"{name} IN ({', '.join('?' * len(v))})" for name, v in zip(self._key_sql, parts, strict=True))
        values = [value for part in parts for value in part]
        for row in self.store.rows(f"{select} WHERE {' AND '.join(asked)}", values):
            if key_of(*row[: self._keys]) == key:
                yield row

    def _record(self, row: tuple[Any, ...]) -> FrozenDict:
        try:
            return record_of(self._kinds, row[self._keys :])
        except ValueError as problem:
            where = f"{self.store.label}: table {self.schema.name!r}, record {key_of(*row[: self._keys])!r}"
            raise InfrastructureError(f"{where}: {problem}", boundary="world", retryable=False) from None


def _is_plain(value: Any) -> bool:
    """Whether SQLite can be asked for a value."""
    small = not isinstance(value, int) or value.bit_length() < 64
    return small and (value is None or isinstance(value, (str, int, float)))


def _bytes(text: str) -> bytes | None:
    """The bytes that a text may stand for."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None
