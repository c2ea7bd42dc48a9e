"""A fresh world and its digest against the usual way: deep copy of the database, sha256 over all of it as JSON.

Run: python benches/worlds.py [--json FILE]. Uses TAU2's shop where its data is installed (muarl data add tau2), else a
generated shop of the same size. Our side pays for its three writing tool calls too; the usual way is timed without any.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.domains.database import Database
from muarl.environments.registry import find
from muarl.types.chat import ToolCall
from muarl_worlds.tau.retail.domain import Retail


def shop() -> tuple[str, Database]:
    """A retail database of official size, and where it is from."""
    try:
        from muarl_worlds.tau import tau2_benchmark as tau2

        return "TAU2 retail", tau2.domain("retail").base
    except DataError:
        made = find("retail-generated").task("train", 0, size="official").database
        assert made is not None
        return "generated, official size", made


def writes(database: Database) -> list[ToolCall]:
    """Three writing calls that succeed: two new addresses and a cancellation."""
    orders = database.tables["orders"]
    pending = [key for key, order in orders.items() if order["status"] == "pending"][:2]
    place = {"address1": "1 New St", "address2": "", "city": "A", "state": "B", "country": "C", "zip": "1"}
    user = orders[pending[0]]["user_id"]
    return [
        ToolCall("1", "modify_user_address", {"user_id": user, **place}),
        ToolCall("2", "modify_pending_order_address", {"order_id": pending[0], **place}),
        ToolCall("3", "cancel_pending_order", {"order_id": pending[1], "reason": "no longer needed"}),
    ]


def seconds(run: Callable[[], Any], count: int, repeats: int = 7) -> float:
    """The median over repeats of the mean time of one call."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times)


def measure() -> dict[str, Any]:
    name, database = shop()
    domain = Retail(database=database, policy="")
    calls = writes(database)
    tables = database.to_tables()

    def ours() -> str:
        world = domain.world()
        for call in calls:
            world.call("assistant", call)
        return world.digest()

    def usual() -> str:
        mine = copy.deepcopy(tables)
        return hashlib.sha256(json.dumps(mine, sort_keys=True).encode()).hexdigest()

    first = domain.world()
    assert all(not first.call("assistant", call).error for call in calls)
    creation, whole, full = seconds(domain.world, 2000), seconds(ours, 200), seconds(usual, 1, 5)
    return {
        "database": name,
        "records": sum(len(t) for t in tables.values()),
        "json_bytes": len(json.dumps(tables)),
        "python": platform.python_version(),
        "world_seconds": creation,
        "world_three_writes_digest_seconds": whole,
        "deepcopy_json_sha256_seconds": full,
        "ratio": full / whole,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    found = measure()
    print(f"database: {found['database']}, {found['records']} records, {found['json_bytes'] / 1e6:.1f} MB of JSON")
    print(f"{'a world alone':<44}{found['world_seconds'] * 1e6:>12.1f} us")
    print(f"{'a world, three writes, digest':<44}{found['world_three_writes_digest_seconds'] * 1e6:>12.1f} us")
    print(f"{'deep copy and sha256 of the whole JSON':<44}{found['deepcopy_json_sha256_seconds'] * 1e6:>12.1f} us")
    print(f"{'ratio':<44}{found['ratio']:>12.0f} x")
    print(json.dumps(found))
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
