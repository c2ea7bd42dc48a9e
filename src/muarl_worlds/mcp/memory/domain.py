"""The contacts: their tools, the file that an episode begins with, and what of it counts in the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.database import Database
from muarl.domains.frozen import thaw
from muarl.domains.mcp.scenario import ScenarioDomain
from muarl.domains.mcp.tools import OfferedTool

FILE = "memory.jsonl"


class MemoryDomain(ScenarioDomain):
    """A firm's contacts. A task's database has the tables "entities" (name to {"entityType", "observations"}) and
    "relations" (number to {"from", "to", "relationType"})."""

    name = "mcp-memory"
    folder = Path(__file__).parent
    public = "memory"
    env: ClassVar = {"MEMORY_FILE_PATH": f"{{folder}}/{FILE}"}
    offers = (
        OfferedTool("open_nodes", kind="read"),
        OfferedTool("search_nodes", kind="read"),
        OfferedTool("read_graph", kind="read"),
        OfferedTool("create_entities", kind="write"),
        OfferedTool("add_observations", kind="write"),
        OfferedTool("create_relations", kind="write"),
        OfferedTool("delete_entities", kind="write"),
        OfferedTool("delete_observations", kind="write"),
        OfferedTool("delete_relations", kind="write"),
    )
    tiny_tools: ClassVar[tuple[str, ...]] = (
        "open_nodes", "search_nodes", "create_entities", "add_observations", "create_relations", "delete_entities",
        "delete_observations", "delete_relations",
    )  # fmt: skip

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
