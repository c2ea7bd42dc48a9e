"""The shared folder's tools without their server, as far as plans and right answers need them."""

from __future__ import annotations

from typing import Any

from muarl.domains.base import Domain
from muarl.domains.mcp.domain import ALIAS
from muarl.domains.tooling import tool
from muarl_worlds.mcp.filesystem.world import files_in, record


class FilesystemRehearsal(Domain):
    """Answers as the server does."""

    name = "mcp-filesystem"

    @tool
    def list_directory(self, path: str) -> str:
        """List a folder."""
        if path == ".":
            return "\n".join(f"[DIR] {name}" for name in sorted(self.db["folders"]))
        if path not in self.db["folders"]:
            raise ValueError(f"ENOENT: no such file or directory, scandir '{path}'")
        return "\n".join(f"[FILE] {name}" for name in sorted(files_in(self.db, path)))

    @tool
    def read_file(self, path: str) -> str:
        """Read a file."""
        return str(self._file(path)["text"])

    @tool
    def search_files(self, path: str, pattern: str) -> str:
        """Find files by their names."""
        name = pattern.removeprefix("**/")
        found = sorted(f"{ALIAS}/{one}" for one in self.db["files"] if one.endswith(f"/{name}"))
        return "\n".join(found) or "No matches found"

    @tool(writes=True)
    def write_file(self, path: str, content: str) -> str:
        """Write a file."""
        self.db["files"][path] = record(path, content)
        return f"Successfully wrote to {path}"

    @tool(writes=True)
    def edit_file(self, path: str, edits: list[dict[str, str]]) -> str:
        """Replace lines of a file."""
        file = self._file(path)
        for edit in edits:
            if edit["oldText"] not in file["text"]:
                raise ValueError(f"Could not find exact match for edit:\n{edit['oldText']}")
            file["text"] = file["text"].replace(edit["oldText"], edit["newText"], 1)
        return "edited"

    @tool(writes=True)
    def move_file(self, source: str, destination: str) -> str:
        """Move or rename a file."""
        if destination in self.db["files"]:
            raise ValueError(f"the destination {destination} exists")
        self.db["files"][destination] = record(destination, self._file(source)["text"])
        del self.db["files"][source]
        return f"Successfully moved {source} to {destination}"

    @tool(writes=True)
    def create_directory(self, path: str) -> str:
        """Create a folder."""
        self.db["folders"][path] = {"name": path}
        return f"Successfully created directory {path}"

    def _file(self, path: str) -> Any:
        if path not in self.db["files"]:
            raise ValueError(f"ENOENT: no such file or directory, open '{path}'")
        return self.db["files"][path]
