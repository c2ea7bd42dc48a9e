"""The shared folder: what an episode begins with, and the answers that differ from machine to machine."""

from __future__ import annotations

import re
from pathlib import Path

from muarl.domains.database import Database
from muarl.domains.mcp.scenario import ScenarioDomain


class FilesystemDesk(ScenarioDomain):
    """A team's shared folder. A task's database has the tables "folders" and "files" (path to {"text"})."""

    name = "mcp-filesystem"
    folder = Path(__file__).parent

    def lay_out(self, database: Database, folder: Path) -> None:
        """Make the folders, then the files."""
        for path in database.tables.get("folders", {}):
            (folder / path).mkdir(parents=True, exist_ok=True)
        super().lay_out(database, folder)

    def tidy(self, tool: str, text: str) -> str:
        """Lists in alphabetical order: the server's own follows from how a file system keeps its folders."""
        if tool in ("list_directory", "search_files"):
            return "\n".join(sorted(text.split("\n"), key=lambda line: re.sub(r"^\[\w+\] ", "", line)))
        return text
