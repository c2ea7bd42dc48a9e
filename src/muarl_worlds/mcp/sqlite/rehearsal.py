"""The library's tools without their server."""

from __future__ import annotations

import sqlite3

from muarl.domains.base import Domain
from muarl.domains.tooling import tool
from muarl_worlds.mcp.sqlite.domain import TABLES, fill


class SqliteRehearsal(Domain):
    """Answers as the server does."""

    name = "mcp-sqlite"
    _file: sqlite3.Connection | None = None
    """The world's tables as a database in memory; None: they have changed since."""

    @tool
    def read_query(self, query: str) -> str:
        """Run a SELECT statement."""
        if self._file is None:
            self._file = self._opened()
        return str([dict(row) for row in self._file.execute(query)])

    @tool(writes=True)
    def update_database(self, query: str) -> str:
        """Run an INSERT, UPDATE or DELETE statement."""
        file, self._file = self._opened(), None
        changed = file.execute(query).rowcount
        for name in TABLES:
            table = self.db[name]
            rows = {str(row["id"]): dict(row) for row in file.execute(f"SELECT * FROM {name}")}
            for key in [key for key in table if key not in rows]:
                del table[key]
            for key, row in rows.items():
                if key not in table or table.peek(key) != row:
                    table[key] = row
        file.close()
        return str([{"affected_rows": changed}])

    def _opened(self) -> sqlite3.Connection:
        file = sqlite3.connect(":memory:", check_same_thread=False)
        file.row_factory = sqlite3.Row
        fill(file, {name: dict(self.db[name].scan()) for name in TABLES})
        return file
