"""``SqlDatabase``: what an author says of a database that there is already."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from muarl.basics.errors import ConfigError, DataError, InfrastructureError
from muarl.domains.database import Database
from muarl.domains.sql.columns import key_of
from muarl.domains.sql.files import open_file, schema_of, tables_of
from muarl.domains.sql.server import copied, shown
from muarl.domains.sql.tables import SqliteStore, SqlTable, chosen_tables

_FILE = "sqlite:///"


@dataclass(frozen=True, repr=False)
class SqlDatabase:
    """A SQL database that there is already: a SQLite file, or a server's by its SQLAlchemy URL. It is only ever read.

    Rows of a file are read when they are asked for. A server's tables are copied once for each process, in one
    transaction, into a temporary file of its own; this takes the extra ``sql``.
    """

    source: Path | str
    """The Path of a SQLite file, relative to the module of the domain class, or a URL such as
    "postgresql+psycopg://user:password@host/shop"."""
    tables: Sequence[str] = ()
    """The tables that tools may see; empty: all."""
    compared: Sequence[str] | None = None
    """The tables whose contents decide the reward (``Database.compared``); None: all."""

    def __post_init__(self) -> None:
        for name in ("tables", "compared"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ConfigError(f"SqlDatabase: {name} must be a tuple of names, such as ({value!r},)")
            if value is not None:
                object.__setattr__(self, name, tuple(value))

    def __repr__(self) -> str:
        source = repr(self.source) if isinstance(self.source, Path) else repr(shown(self.source))
        return f"SqlDatabase({source}, tables={self.tables!r}, compared={self.compared!r})"

    @staticmethod
    def key(*parts: object) -> str:
        """The text by which a record with this primary key is known: "1042" for 1042, "B1/3" for "B1" and 3."""
        return key_of(*parts)

    def open(self, where: str, beside: Callable[[Path], Path]) -> Database:
        """The database. ``where``: what errors begin with. ``beside``: makes a relative path an absolute one.

        DataError if it cannot be read, ConfigError for tables that there are not or that have no key.
        """
        try:
            store = self._store(where, beside)
            there = tables_of(store)
            names = chosen_tables(self.tables, there, where) if self.in_file else list(there)
            tables = {name: SqlTable(store, schema_of(store, name)) for name in names}
        except InfrastructureError as problem:
            raise DataError(str(problem)) from None
        compared = names if self.compared is None else self.compared
        text = "\n".join([store.identity, *sorted(names), "", *sorted(compared)])
        return Database.over(
            tables,
            digest=int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"),
            columns={name: table.schema.names for name, table in tables.items()},
            compared=self.compared,
        )

    @property
    def in_file(self) -> bool:
        """Whether it is a SQLite file, rather than a server's."""
        return isinstance(self.source, Path) or self.source.startswith(_FILE)

    def _store(self, where: str, beside: Callable[[Path], Path]) -> SqliteStore:
        if isinstance(self.source, Path):
            return open_file(beside(self.source.expanduser()), where)
        if self.in_file:
            return open_file(beside(Path(unquote(self.source.removeprefix(_FILE).partition("?")[0]))), where)
        return copied(self.source, tuple(self.tables), where)
