"""Worlds on a SQLite file against the usual way: a copy of the file for each episode, and a hash of its rows after it.

Run: python benches/sqlite_worlds.py [--rows N] [--json FILE]. Both look up ten orders of a customer and cancel one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from muarl.domains.base import Domain
from muarl.domains.tooling import tool
from muarl.types.chat import ToolCall


class Shop(Domain):
    """Orders of customers."""

    @tool
    def orders_of(self, customer_id: int) -> list[dict[str, Any]]:
        """The orders of a customer."""
        return self.db["orders"].where(customer_id=customer_id)

    @tool(writes=True)
    def cancel(self, order_id: int) -> dict[str, Any]:
        """Cancel an order."""
        order = self.db["orders"][str(order_id)]
        order["status"] = "cancelled"
        return order


def write(path: Path, rows: int) -> None:
    """A file with so many orders, ten for each customer."""
    with closing(sqlite3.connect(path)) as file:
        file.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, status TEXT, price DECIMAL(8, 2))"
        )
        file.execute("CREATE INDEX orders_of ON orders (customer_id)")
        orders = ((n, n % (rows // 10), "open", n % 80 / 2) for n in range(rows))
        file.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders)
        file.commit()


def seconds(run: Callable[[], Any], count: int = 1, repeats: int = 5) -> float:
    """The median over repeats of the mean time of one call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times)


def measure(folder: Path, rows: int) -> dict[str, Any]:
    path, mine = folder / "shop.sqlite", folder / "copy.sqlite"
    write(path, rows)
    opening = seconds(lambda: Shop(database=path).base)
    domain = Shop(database=path)
    calls = [ToolCall("1", "orders_of", {"customer_id": 7}), ToolCall("2", "cancel", {"order_id": 7})]

    def ours() -> str:
        world = domain.world()
        for call in calls:
            assert not world.call("assistant", call).error
        return world.digest()

    def usual() -> str:
        shutil.copy(path, mine)
        with closing(sqlite3.connect(mine)) as file:
            file.execute("SELECT * FROM orders WHERE customer_id = 7").fetchall()
            file.execute("UPDATE orders SET status = 'cancelled' WHERE id = 7")
            file.commit()
            return hashlib.sha256(
                repr(file.execute("SELECT * FROM orders ORDER BY id").fetchall()).encode()
            ).hexdigest()

    ours()
    whole, other = seconds(ours, 200), seconds(usual)
    return {
        "rows": rows,
        "file_bytes": path.stat().st_size,
        "opening_seconds": opening,
        "world_seconds": seconds(domain.world, 2000),
        "look_up_seconds": seconds(lambda: domain.base.tables["orders"]["7"], 2000),
        "whole_table_seconds": seconds(lambda: sum(1 for _ in domain.base.view()["orders"].values())),
        "episode_seconds": whole,
        "copy_and_hash_seconds": other,
        "ratio": other / whole,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), given.rows)
    for name, value in found.items():
        print(f"{name:<28}{value * 1e6:>14.1f} us" if name.endswith("seconds") else f"{name:<28}{value:>14,.0f}")
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
