"""The library's database: its tools, how an episode's is made, what may be done to it, what of it counts in the end."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.database import Database
from muarl.domains.mcp.launch import ServerLimits
from muarl.domains.mcp.scenario import ScenarioDomain
from muarl.domains.mcp.tools import OfferedTool

FILE = "library.db"
TABLES = ("books", "members", "loans")
MOST_ROWS = 10_000
SCHEMA = (Path(__file__).parent / "schema.sql").read_text(encoding="utf-8")


class SqliteDomain(ScenarioDomain):
    """A lending library. A task's database has its three tables, id to row."""

    name = "mcp-sqlite"
    folder = Path(__file__).parent
    public = "sqlite"
    arguments = ("--db-path", f"{{folder}}/{FILE}")
    # An agent can write a query that never ends: it is told so, and the server is started again.
    slow_reads = "answer"
    bounds = ServerLimits(call=10)
    offers = (
        OfferedTool("read_query", kind="read"),
        OfferedTool("write_query", "update_database", "write"),
        OfferedTool("list_tables", kind="read"),
        OfferedTool("describe_table", kind="read"),
    )
    tiny_tools: ClassVar[tuple[str, ...]] = ("read_query", "update_database")

    def lay_out(self, database: Database, folder: Path) -> None:
        """Make the database file."""
        with closing(sqlite3.connect(folder / FILE)) as file:
            file.execute("PRAGMA synchronous = OFF")
            fill(file, database.tables)
            file.commit()

    def read_state(self, folder: Path) -> Any:
        """All rows. Loans without their ids, which only say in what order they were entered; so with new members'."""
        with closing(sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True)) as file:
            file.row_factory = sqlite3.Row
            names = [
                r[0] for r in file.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'trigger', 'view')")
            ]
            rows = {
                t: [dict(r) for r in file.execute(f"SELECT * FROM {t} LIMIT {MOST_ROWS}")] for t in TABLES if t in names
            }
        people = {m["id"]: m["name"] for m in rows.get("members", ())}
        for loan in rows.get("loans", ()):
            del loan["id"]
            loan["member_id"] = people.get(loan["member_id"], loan["member_id"])
        for member in rows.get("members", ()):
            del member["id"]
        found: dict[str, Any] = {t: sorted(rows[t], key=str) for t in rows}
        return {**found, "names": sorted(names)}

    def failed(self, tool: str, text: str) -> bool:
        """This server says in words only that a statement failed."""
        return text.startswith(("Database error: ", "Error: "))

    def guard(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        """A write is an INSERT, UPDATE or DELETE of one of the three tables: nothing reaches beyond the file."""
        if tool != "update_database":
            return None
        query = str(arguments.get("query", ""))
        tables = "|".join(TABLES)
        pattern = rf"\s*(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+\"?(?:{tables})\b"
        if re.match(pattern, query, re.IGNORECASE):
            return None
        return f"give one INSERT, UPDATE or DELETE statement on {', '.join(TABLES[:-1])} or {TABLES[-1]}."


def fill(file: sqlite3.Connection, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Make the three tables in an empty database."""
    file.executescript(SCHEMA)
    for table in TABLES:
        rows = list(tables.get(table, {}).values())
        if rows:
            columns = list(rows[0])
            insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
            file.executemany(insert, [[row[column] for column in columns] for row in rows])
