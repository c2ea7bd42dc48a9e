"""A shop in a SQLite file, as large as a test wants it, and a domain over it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from muarl.domains.base import Domain, World
from muarl.domains.database import Database
from muarl.domains.sql.declared import SqlDatabase
from muarl.domains.sql.tables import SqlTable
from muarl.domains.tooling import tool
from muarl.types.chat import ToolCall, ToolResult

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);
CREATE TABLE orders (
    id TEXT PRIMARY KEY, customer_id INTEGER REFERENCES customers, status TEXT NOT NULL, price DECIMAL(8, 2)
);
CREATE INDEX orders_of ON orders (customer_id);
CREATE TABLE log (text TEXT);
"""


class Shop(Domain):
    """Orders of a shop."""

    name = "sqlite-shop"

    @tool
    def orders_of(self, customer_id: int) -> list[str]:
        """The orders of a customer.

        customer_id: the customer.
        """
        return [order["id"] for order in self.db["orders"].where(customer_id=customer_id)]

    @tool
    def get_order(self, order_id: str) -> dict[str, Any]:
        """Look up an order.

        order_id: the order.
        """
        if order_id not in self.db["orders"]:
            raise ValueError(f"there is no order {order_id}")
        return self.db["orders"][order_id]

    @tool(writes=True)
    def cancel(self, order_id: str) -> dict[str, Any]:
        """Cancel an order.

        order_id: the order.
        """
        order = self.get_order(order_id)
        order["status"] = "cancelled"
        self.db["log"][f"cancelled {order_id}"] = {"text": order_id}
        return order

    @tool(writes=True)
    def misspell(self, order_id: str) -> str:
        """Write to a column that there is not.

        order_id: the order.
        """
        self.db["orders"][order_id]["statsu"] = "cancelled"
        return "done"


def write_shop(path: Path, orders: int = 10) -> Path:
    """A file with so many orders of a tenth as many customers; returns its path."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA synchronous = OFF")
        file.executescript(SCHEMA)
        people = max(1, orders // 10)
        names = ((n, f"Person {n}", f"p{n}@example.org") for n in range(people))
        file.executemany("INSERT INTO customers VALUES (?, ?, ?)", names)
        rows = ((f"#B{n}", n % people, "open" if n % 3 else "shipped", n % 40 / 2) for n in range(orders))
        file.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
        file.commit()
    return path


def change(path: Path, statement: str) -> None:
    """What another program does to a file."""
    with closing(sqlite3.connect(path)) as file:
        file.execute(statement)
        file.commit()


def opened(path: Path, **options: Any) -> Database:
    """The database of a file."""
    return SqlDatabase(path, **options).open("Shop.database", lambda p: p)


def call(world: World, name: str, **arguments: Any) -> ToolResult:
    """The result of a call of the agent's."""
    return world.call("assistant", ToolCall("1", name, arguments))


def checksum(path: Path) -> str:
    """What stands for the bytes of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def rows_read(base: Database) -> Iterator[list[int]]:
    """A list whose only number counts the rows that SQLite gives from now on."""
    table = next(t for t in base.tables.values() if isinstance(t, SqlTable))
    count = [0]

    def counted(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        count[0] += 1
        return row

    table.store.connection.row_factory = counted
    yield count
    table.store.connection.row_factory = None
