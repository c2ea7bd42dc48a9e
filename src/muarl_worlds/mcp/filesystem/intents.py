"""What the members of a team want of their shared folder, how they say it, and how each request is served."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from muarl.domains.kit.declaration import DrawContext, RecordDescription, Slot, intent, names, of, one_of, pattern, rows
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record
from muarl.domains.kit.service import Service
from muarl.domains.mcp.domain import ALIAS
from muarl.domains.mcp.scenario import SIZES
from muarl_worlds.mcp.filesystem import world
from muarl_worlds.mcp.filesystem.domain import FilesystemDomain
from muarl_worlds.mcp.filesystem.rehearsal import FilesystemRehearsal

NAME_KIND = pattern(r"(?<!/)[a-z]+-[a-z]+\.txt")
PATH_KIND = pattern(r"[a-z]+/[a-z]+-[a-z]+\.txt")
FOLDER_KIND = names([*world.FOLDERS, world.ARCHIVE, *world.NEW_FOLDERS])


def shown(it: Plan, tool: str, path: str, **more: str) -> list[str]:
    """The lines that a tool answers."""
    answer = it.look(tool, path=path, **more)
    return answer.splitlines() if isinstance(answer, str) else []


def by_name(it: Plan, name: str) -> list[str]:
    """The paths of the files that are called so."""
    found = shown(it, "search_files", ".", pattern=f"**/{name}")
    return [line.removeprefix(f"{ALIAS}/") for line in found if line.endswith(f"/{name}")]


def new_paths(drawn: DrawContext) -> Iterable[Any]:
    """Paths for new files; some are taken."""
    free = [f"{folder}/{name}" for folder in drawn.tables.folders for name in drawn.tables.fresh_names]
    return [{"path": path} for path in [*free, *drawn.tables.files] if not path.startswith(f"{world.ARCHIVE}/")]


def new_names(drawn: DrawContext) -> Iterable[Any]:
    """Names for a file; some are taken by others of its folder."""
    here = [
        file for file in rows_of(drawn, "files") if file.folder == drawn.file.folder and file.name != drawn.file.name
    ]
    return [*rows_of(drawn, "fresh_names"), *here]


def other_folders(drawn: DrawContext) -> Iterable[Any]:
    """Folders that a file is not in, above all those that have a file of its name."""
    others = [folder for folder in rows_of(drawn, "folders") if folder.name != drawn.file.folder]
    taken = [file.folder for file in rows_of(drawn, "files") if file.name == drawn.file.name]
    return [*others, *(4 * [folder for folder in others if folder.name in taken])]


def rows_of(drawn: DrawContext, table: str) -> list[Any]:
    """The records of a table."""
    records = drawn.tables[table]
    return [records[name] for name in records]


FILE = Slot(
    "file",
    PATH_KIND,
    ask="Which file is it?",
    say=["It is {}.", "I mean {}."],
    draw=rows("files", "path"),
    described=RecordDescription(
        kind=NAME_KIND,
        match="name",
        find=by_name,
        phrase="the file {} (I forgot where it is)",
        say="I do not remember the folder. The file is called {}.",
        cue="file|called",
    ),
    asked="(which|what) file|path of the file|which folder is it in",
)
NEW_FILE = Slot(
    "new_file",
    PATH_KIND,
    ask="Which path should the new file have?",
    say=["Its path is {}.", "Call it {}."],
    draw=of(new_paths, "path"),
    asked="(which|what|another|other) path|path of the (new )?file|what should the file be called",
)
TEXT = Slot(
    "text",
    "quoted",
    ask="What should the file say?",
    say=["It should say {}.", "Write {} in it."],
    change=["Actually, it should say {}.", "Wait, I changed my mind. Write {} in it."],
    draw=one_of(*world.TEXTS),
    asked="(what|which).{0,20} (text|content)|what should (it|the file) say",
)
NEW_NAME = Slot(
    "new_name",
    NAME_KIND,
    ask="Which new name should it have?",
    say=["Rename it to {}.", "Then to {}, please."],
    change=["Actually, rename it to {}.", "Wait, better rename it to {}."],
    draw=of(new_names, "name"),
    cue="to|call it",
    strict=True,
    asked=r"(which|what).{0,12} (new |other )?name|another name|call it\?",
)
DAY = Slot(
    "day",
    pattern(r"\d{4}-\d\d-\d\d"),
    ask="Which date should it be?",
    say=["Make it {}.", "The date is {}."],
    change=["Actually, make it {}.", "Sorry, {} is the right date."],
    draw=of(lambda drawn: [day for day in world.DAYS if day != drawn.file.due]),
    asked="(which|what).{0,12} (date|day)|until when|new due date",
)
PERSON = Slot(
    "person",
    "person",
    ask="Who should own it?",
    say=["It should be {}.", "{} should own it."],
    change=["Actually, it should be {}.", "Wait, {} should own it."],
    draw=of(lambda drawn: [one for one in rows_of(drawn, "people") if one.name != drawn.file.owner], "name"),
    asked=r"who (should|is|will)|which person|new owner\?|(what|which).{0,12} name of the (new )?owner",
)
STATE = Slot(
    "state",
    names(world.STATES),
    ask="Which status should it have?",
    say=["Make it {}.", "The status should be {}."],
    change=["Actually, make it {}.", "Sorry, the status should be {}."],
    draw=of(lambda drawn: [state for state in world.STATES if state != drawn.file.status]),
    asked="(which|what).{0,12} status",
    guess=("review",),
)
FOLDER = Slot(
    "folder",
    FOLDER_KIND,
    ask="Which folder is it?",
    phrase="the {} folder",
    say=["I mean the {} folder.", "The {} folder, please."],
    change=["Actually, I mean the {} folder.", "Wait, take the {} folder."],
    draw=of(other_folders, "name"),
    after="folder",
    strict=True,
    asked="(which|what).{0,12} folder|where should",
    guess=(world.ARCHIVE,),
)
NEW_FOLDER = Slot(
    "new_folder",
    FOLDER_KIND,
    ask="What should the folder be called?",
    phrase="the {} folder",
    say=["The {} folder, please.", "Call it the {} folder."],
    change=["Actually, call it the {} folder.", "Wait, I want the {} folder."],
    draw=of(lambda drawn: [*rows_of(drawn, "folders"), *({"name": name} for name in world.NEW_FOLDERS)], "name"),
    asked="(which|what).{0,12} (folder|name)|folder be called|another name",
)
FIELD = Slot(
    "field",
    names(["owner", "status", "due date"]),
    ask="What would you like to know?",
    say=["I want to know the {}.", "The {}, please."],
    asked="(which|what) (detail|line|field)|what would you like to know",
)


def read(it: Plan) -> Record:
    """The lines of the file that a request is about."""
    return Record({"owner": "", "status": "", "due": ""} | world.lines_of(shown(it, "read_file", it.file)))


def read_to_change(it: Plan) -> None:
    """Read the file, unless nothing about it may be changed."""
    it.lines = read(it)
    it.refuse_if(it.file.startswith(f"{world.ARCHIVE}/"), "{file} is in the archive")
    it.refuse_if(it.lines.status == "final", "{file} is final")


def is_taken(it: Plan, path: str) -> bool:
    """Whether there is such a file."""
    folder, _, name = path.rpartition("/")
    return f"[FILE] {name}" in shown(it, "list_directory", folder)


def edit(it: Plan, line: str, value: str) -> None:
    """Change one line of a file."""
    it.line, it.value, old = line, value, it.lines[line]
    it.write(
        "edit_file",
        path=it.file,
        edits=[{"oldText": f"{line}: {old}", "newText": f"{line}: {value}"}],
        propose=["edit {file} and set its line {line} to {value}", "change the {line} of {file} to {value}"],
        done=["{file} is changed.", "Done, the {line} of {file} is {value} now."],
    )


@intent(
    says=["rename {file} to {new_name}", "have {file} renamed to {new_name}", "rename {file}", "rename a file"],
    slots=[FILE, NEW_NAME],
    share=1.4,
    heard=r"\brenam",
)
def rename(it: Plan) -> None:
    read_to_change(it)
    it.target = str(PurePosixPath(it.file).with_name(it.new_name))
    it.unavailable_if(is_taken(it, it.target), NEW_NAME, why="{target} already exists")
    it.write(
        "move_file",
        source=it.file,
        destination=it.target,
        propose=["rename {file} to {new_name}", "move {file} to {new_name}, which renames it"],
        done=["{file} is called {new_name} now.", "{file} is renamed."],
    )


@intent(
    says=[
        "create {new_file} as a new file with the text {text}",
        "write a new file {new_file} with the text {text}",
        "create {new_file} as a new file",
        "write a new file",
    ],
    slots=[NEW_FILE, TEXT],
    heard=r"\b(create|write|make|add|start|save)\b.{0,60}\bfile\b",
)
def create(it: Plan) -> None:
    it.unavailable_if(is_taken(it, it.new_file), NEW_FILE, why="{new_file} already exists")
    it.write(
        "write_file",
        path=it.new_file,
        content=it.text,
        propose=["write the new file {new_file} with the text {text}", "create {new_file}; it will say {text}"],
        done=["{new_file} is written.", "Done, there is a new file {new_file}."],
    )


@intent(
    says=["create {new_folder} as a new folder", "make {new_folder}, which does not exist yet", "create a new folder"],
    slots=[NEW_FOLDER],
    share=0.5,
    heard=r"\b(create|make|add|set up)\b.{0,24}\bfolder\b",
)
def folder(it: Plan) -> None:
    taken = f"[DIR] {it.new_folder}" in shown(it, "list_directory", ".")
    it.unavailable_if(taken, NEW_FOLDER, why="the {new_folder} folder already exists")
    it.write(
        "create_directory",
        path=it.new_folder,
        propose=["create the {new_folder} folder", "make a new folder called {new_folder}"],
        done=["The {new_folder} folder is there.", "Done, there is a {new_folder} folder now."],
    )


@intent(
    says=["change the status of {file} to {state}", "set the status of {file}", "change the status of a file"],
    slots=[FILE, STATE],
    share=1.2,
    heard=r"\b(set|change|put|edit|mark)\b.*\bstatus\b|\bstatus\b.*\bchanged\b",
)
def status(it: Plan) -> None:
    read_to_change(it)
    edit(it, "status", it.state)


@intent(
    says=[
        "change the due date of {file} to {day}",
        "have the due date of {file} moved to {day}",
        "change the due date of {file}",
        "change a due date",
    ],
    slots=[FILE, DAY],
    heard=r"\b(set|change|put|edit|move|postpone|push)\b.*\b(due )?(date|day|deadline)\b|\bdue date\b.*\bmoved\b",
)
def due(it: Plan) -> None:
    read_to_change(it)
    edit(it, "due", it.day)


@intent(
    says=[
        "change the owner of {file} to {person}",
        "give {file} a new owner, {person}",
        "change the owner of {file}",
        "change the owner of a file",
    ],
    slots=[FILE, PERSON],
    heard=r"\b(set|change|put|edit|make|hand)\b.*\bowner\b|\bgive\b.*\bnew owner\b",
)
def owner(it: Plan) -> None:
    read_to_change(it)
    edit(it, "owner", it.person)


@intent(
    says=["move {file} to {folder}", "have {file} moved to {folder}", "move {file}", "move a file"],
    slots=[FILE, FOLDER],
    share=1.5,
    heard=r"\bmov|\bput\b.*\bfolder\b",
)
def move(it: Plan) -> None:
    read_to_change(it)
    it.target = f"{it.folder}/{PurePosixPath(it.file).name}"
    it.unavailable_if(is_taken(it, it.target), FOLDER, why="{target} already exists")
    it.write(
        "move_file",
        source=it.file,
        destination=it.target,
        propose=["move {file} to the {folder} folder", "move {file} into the {folder} folder"],
        done=["{file} is in the {folder} folder now.", "{file} is moved."],
    )


@intent(
    says=["delete {file}", "have {file} deleted", "delete a file"],
    slots=[FILE],
    forbidden=True,
    heard=r"\bdelet|\bremove\b|\bthrow away\b",
)
def delete(it: Plan) -> None:
    it.refuse("files are never deleted here")


@intent(
    says=["find out the {field} of {file}", "look up the {field} of {file}", "find out something about {file}"],
    slots=[FILE, FIELD],
    share=1.6,
    heard=r"\b(know (?:the|who|which|when|what (?!to))|tell me|what is|who is|find out|look up)\b",
)
def question(it: Plan) -> None:
    it.lines = read(it)
    it.found = it.lines["due" if it.field == "due date" else it.field] or "not there"
    it.answer(["The {field} of {file} is {found}.", "{file} has the {field} {found}."], tell="{found}")


SERVICE = Service(
    domain=FilesystemDomain,
    rehearsal=FilesystemRehearsal,
    about="a team's shared folder of text files, which an assistant keeps in order",
    today=world.TODAY,
    intents=(rename, create, folder, status, due, owner, move, delete, question),
    tables=world.make_tables,
    sizes=SIZES,
    free_texts={"files": "text"},
    tiny_tools=FilesystemDomain.tiny_tools,
    vocabulary=("title: ", "\nowner: ", "\nstatus: ", "\ndue: ", "[FILE] ", "[DIR] ", f"{ALIAS}/"),
)
