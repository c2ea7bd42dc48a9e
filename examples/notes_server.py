"""A folder of notes behind an MCP server for files (docs/kit.md, "Tools on a server").

muarl domains show examples/notes_server.py:NOTES
"""

from typing import ClassVar

from muarl import Domain, tool
from muarl.domains.mcp.client import ServerTool
from muarl.domains.mcp.domain import McpDomain
from muarl.domains.mcp.launch import over_stdio
from muarl.domains.mcp.tools import OfferedTool
from muarl.kit import Maker, Plan, Service, Slot, WorldSize, environment, intent, pattern, rows


def listed(*arguments: str) -> dict:
    return {"type": "object", "properties": {a: {"type": "string"} for a in arguments}, "required": [*arguments]}


class Notes(McpDomain):
    """A folder of notes, on a server for files. No server is asked what it offers: it is written down."""

    name = "notes"
    policy = "Show notes, and archive those that say 'done'. Say what you will do, and wait for a yes."
    launch = over_stdio("files", "npx", "@modelcontextprotocol/server-filesystem", "{folder}", keeps="folder")
    listing: ClassVar = {
        "read_text_file": ServerTool("read_text_file", "Read a file.", listed("path")),
        "create_directory": ServerTool("create_directory", "Create a folder.", listed("path")),
        "move_file": ServerTool("move_file", "Move a file.", listed("source", "destination")),
    }
    offers = (
        OfferedTool("read_text_file", named="read_file", kind="read"),
        OfferedTool("create_directory", kind="write"),
        OfferedTool("move_file", kind="write"),
    )


class NotesRehearsal(Domain):
    """The same tools in this process."""

    name = "notes"

    @tool
    def read_file(self, path: str) -> str:
        """Read a file."""
        if path not in self.db.files:
            raise ValueError(f"there is no {path}")
        return self.db.files[path]["text"]

    @tool(writes=True)
    def create_directory(self, path: str) -> str:
        """Create a folder."""
        return f"created {path}"

    @tool(writes=True)
    def move_file(self, source: str, destination: str) -> str:
        """Move a file."""
        self.db.files[destination] = {"path": destination, "text": self.read_file(source)}
        del self.db.files[source]
        return f"moved {source}"


def notes(make: Maker) -> dict:
    rng = make.rng
    paths = make.some("note", lambda: f"{rng.choice(('tea', 'rent', 'trip'))}-{rng.randint(10, 99)}.txt", 4)
    return {"files": {path: {"path": path, "text": rng.choice(("done\n", "not yet\n"))} for path in paths}}


NAME = pattern(r"[a-z]+-\d\d\.txt")
NOTE = Slot("note", NAME, ask="Which note is it?", phrase="the note {}", draw=rows("files", "path"))


@intent(says=("archive {note}", "put {note} into the archive", "archive a note"), slots=[NOTE])
def archive(it: Plan) -> None:
    it.text = it.look("read_file", path=it.note)
    it.refuse_unless(it.text.startswith("done"), "{note} is not done yet")
    it.write("create_directory", path="archive", propose="move {note} into the archive", done="It is archived.")
    it.then("move_file", source=it.note, destination=f"archive/{it.note}")


NOTES = environment(
    Service(
        domain=Notes,
        rehearsal=NotesRehearsal,
        about="a folder of notes",
        today="2026-03-14",
        intents=(archive,),
        tables=notes,
        sizes=(WorldSize("small", people=1, tasks_per_world=1),),
        free_texts={"files": "text"},
    ),
    domain=lambda size: Notes(),
    on_server=True,
)
