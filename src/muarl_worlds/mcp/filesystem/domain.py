"""The shared folder: its tools, what an episode begins with, and the answers that differ from machine to machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from muarl.domains.database import Database
from muarl.domains.mcp.scenario import ScenarioDomain
from muarl.domains.mcp.tools import OfferedTool


class FilesystemDomain(ScenarioDomain):
    """A team's shared folder. A task's database has the tables "folders" and "files" (path to {"text"})."""

    name = "mcp-filesystem"
    folder = Path(__file__).parent
    public = "filesystem"
    arguments = ("{folder}",)
    offers = (
        OfferedTool("list_directory", kind="read"),
        OfferedTool("read_text_file", named="read_file", kind="read", hidden=("head", "tail")),
        OfferedTool("read_multiple_files", named="read_files", kind="read"),
        OfferedTool("search_files", kind="read", hidden=("excludePatterns",)),
        OfferedTool("directory_tree", kind="read", hidden=("excludePatterns",)),
        OfferedTool("write_file", kind="write"),
        OfferedTool("edit_file", kind="write", hidden=("dryRun",)),
        OfferedTool("move_file", kind="write"),
        OfferedTool("create_directory", kind="write"),
    )
    tiny_tools: ClassVar[tuple[str, ...]] = (
        "list_directory", "read_file", "search_files", "write_file", "edit_file", "move_file", "create_directory",
    )  # fmt: skip

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
