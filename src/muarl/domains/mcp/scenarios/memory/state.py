"""The contacts: the file that an episode begins with, and what of it counts in the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from muarl.domains.database import Database, thaw
from muarl.domains.mcp.scenario import ScenarioDomain

FILE = "memory.jsonl"


class MemoryDesk(ScenarioDomain):
    """A firm's contacts. A task's database has the tables "entities" (name to {"entityType", "observations"}) and
    "relations" (number to {"from", "to", "relationType"})."""

    name = "mcp-memory"
    folder = Path(__file__).parent

    def lay_out(self, database: Database, folder: Path) -> None:
        """Write the graph as the server keeps it: a line of JSON for each entity and relation."""
        tables = database.tables
        lines = [{"type": "entity", "name": n, **thaw(e)} for n, e in tables.get("entities", {}).items()]
        lines += [{"type": "relation", **thaw(r)} for r in tables.get("relations", {}).values()]
        text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
        (folder / FILE).write_text(text, encoding="utf-8")

    def read_state(self, folder: Path) -> Any:
        """All entities and relations; their order, and that of observations, does not count."""
        text = (folder / FILE).read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        for line in lines:
            if "observations" in line:
                line["observations"] = sorted(line["observations"])
        return sorted(lines, key=lambda line: json.dumps(line, sort_keys=True))
