"""The scripted agent of the shared folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from muarl.domains.mcp.domain import ALIAS
from muarl.domains.mcp.scenario import read_files
from muarl.domains.mcp.scenarios.filesystem.tasks import lines_of, target_of, write_of
from muarl.domains.mcp.serving import DeskExpert, Say, Write
from muarl.domains.mcp.talk import Frame

TALK = read_files(Path(__file__).parent).talk
LINES = {"status": "state", "due": "day", "owner": "person"}


class FilesystemExpert(DeskExpert):
    """Serves one conversation about the shared folder."""

    talk = TALK
    guesses: ClassVar[Mapping[str, str]] = {"state": "review", "folder": "archive"}

    def serve(self, frame: Frame) -> Write | Say:
        """What a request needs."""
        kind = frame.intent
        if kind == "delete":
            self.refuse(frame, "files are never deleted here")
            return Say("I cannot do that, there is no tool for it.")
        if kind == "folder":
            return self.propose(frame, write_of("folder", {"folder": self.need(frame, "folder")}, {}))
        if kind == "create":
            return self._create(frame)
        lines = self._read(frame)
        path = frame.slots["file"]
        if kind == "question":
            field = self.need(frame, "field")
            return Say(f"The {field} of {path} is {lines.get('due' if field == 'due date' else field, 'not there')}.")
        if path.startswith("archive/"):
            self.refuse(frame, f"{path} is in the archive")
        elif lines.get("status") == "final":
            self.refuse(frame, f"{path} is final")
        self.need(frame, LINES.get(kind) or ("folder" if kind == "move" else "new_name"))
        if kind in ("move", "rename"):
            self._check_free(frame)
        return self.propose(frame, write_of(kind, frame.slots, lines))

    def _read(self, frame: Frame) -> dict[str, str]:
        """The lines of the file that a request is about."""
        while True:
            if "file" not in frame.slots and "named" in frame.slots:
                name = frame.slots["named"]
                found = self.look("search_files", path=".", pattern=f"**/{name}").text.split("\n")
                hits = [line.removeprefix(f"{ALIAS}/") for line in found if line.endswith(f"/{name}")]
                if len(hits) != 1:
                    del frame.slots["named"]
                else:
                    frame.slots["file"] = hits[0]
            path = self.need(frame, "file")
            seen = self.look("read_file", path=path)
            if not seen.error:
                return lines_of(seen.text)
            self.gone(frame, "file", f"there is no file {path}")

    def _create(self, frame: Frame) -> Write:
        path = self.need(frame, "file")
        if self._taken(path):
            self.gone(frame, "file", f"{path} already exists", "Which other path should I use?")
        self.need(frame, "text")
        return self.propose(frame, write_of("create", frame.slots, {}))

    def _check_free(self, frame: Frame) -> None:
        target = target_of(frame.intent, frame.slots)
        if self._taken(target):
            slot = "folder" if frame.intent == "move" else "new_name"
            self.gone(frame, slot, f"{target} already exists", "Which other name should it have?")

    def _taken(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return f"[FILE] {name}" in self.look("list_directory", path=folder or ".").text.split("\n")

    def slipped(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """A path with its last letter missing."""
        if name != "read_file":
            return None
        path = PurePosixPath(arguments["path"])
        return {"path": str(path.with_name(f"{path.stem[:-1]}{path.suffix}"))}
