"""What users want done with files (GorillaFileSystem)."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from muarl.domains.bfcl import pools
from muarl.domains.bfcl.recipes import NOTHING, Draw, Memory, Missing, Plan, Recipe, Slots, Step, quoted
from muarl.domains.bfcl.scenes import limited
from muarl.domains.drawing import Infeasible

FILES = "GorillaFileSystem"
ROOT = "the root folder"


def folders_of(draw: Draw) -> Iterator[tuple[str, Any]]:
    """Every folder of the live tree: what users call it, and the folder itself."""

    def below(path: str, folder: Any) -> Iterator[tuple[str, Any]]:
        yield path or ROOT, folder
        for name, item in folder.contents.items():
            if hasattr(item, "contents"):
                yield from below(f"{path}/{name}" if path else name, item)

    return below("", draw.state[FILES]["root"])


def file_in(draw: Draw, *, alone: bool = False) -> tuple[Slots, Any]:
    """A file somewhere: where it is and how it is called, and the folder. ``alone``: no other file holds its name.

    In tiny worlds it lies in the root folder or right below, since a path of several names is no one word to copy.
    """
    found = [
        ({"folder": path, "file": name}, folder)
        for path, folder in folders_of(draw)
        for name, item in folder.contents.items()
        if not hasattr(item, "contents") and not ("/" in path and draw.size.name == "tiny")
    ]
    if alone:
        names = [slots["file"] for slots, _ in found]
        found = [f for f in found if sum(f[0]["file"] in name for name in names) == 1]
    slots, folder = draw.pick(found)
    return dict(slots), folder


def text_of(folder: Any, name: str) -> str:
    """What a file says."""
    return str(folder.contents[name].content)


def goes_to(folder: str, memory: Memory) -> Generator[Step, Any, None]:
    """The calls that change to a folder, one level at a time, from wherever the conversation has come to."""
    wanted = [] if folder == ROOT else folder.split("/")
    cwd: list[str] = memory.setdefault("cwd", [])
    while cwd != wanted[: len(cwd)]:
        yield "cd", {"folder": ".."}
        cwd.pop()
    for name in wanted[len(cwd) :]:
        yield "cd", {"folder": name}
        cwd.append(name)


def reads(slots: Slots, memory: Memory) -> Generator[Step, Any, str]:
    """The calls that read a file; its text."""
    yield from goes_to(slots["folder"], memory)
    seen = yield "cat", {"file_name": slots["file"]}
    return str(seen["file_content"])


def _new(draw: Draw, folder: Any, pool: tuple[str, ...]) -> str:
    return str(draw.pick([name for name in limited(pool, draw.size) if name not in folder.contents]))


def _draw_move(draw: Draw) -> Slots:
    slots, folder = file_in(draw)
    inner = [n for n, item in folder.contents.items() if hasattr(item, "contents")]
    inner = [n for n in inner if slots["file"] not in folder.contents[n].contents]
    return {**slots, "into": draw.pick(inner)}


def _move(slots: Slots, memory: Memory) -> Plan:
    yield from goes_to(slots["folder"], memory)
    yield "mv", {"source": slots["file"], "destination": slots["into"]}
    return NOTHING


def _draw_new_folder(draw: Draw) -> Slots:
    slots, folder = file_in(draw)
    return {**slots, "new_folder": _new(draw, folder, pools.NEW_FOLDERS)}


def _collect(tool: str) -> Any:
    def plan(slots: Slots, memory: Memory) -> Plan:
        yield from goes_to(slots["folder"], memory)
        yield "mkdir", {"dir_name": slots["new_folder"]}
        yield tool, {"source": slots["file"], "destination": slots["new_folder"]}
        return NOTHING

    return plan


def _draw_new_name(draw: Draw) -> Slots:
    slots, folder = file_in(draw)
    return {**slots, "new_file": _new(draw, folder, pools.NEW_FILES)}


def _to_new_name(tool: str) -> Any:
    def plan(slots: Slots, memory: Memory) -> Plan:
        yield from goes_to(slots["folder"], memory)
        yield tool, {"source": slots["file"], "destination": slots["new_file"]}
        return NOTHING

    return plan


def _delete(slots: Slots, memory: Memory) -> Plan:
    yield from goes_to(slots["folder"], memory)
    yield "rm", {"file_name": slots["file"]}
    return NOTHING


def _draw_anywhere(draw: Draw) -> Slots:
    return {"file": file_in(draw, alone=True)[0]["file"]}


def _find_and_delete(slots: Slots, memory: Memory) -> Plan:
    yield from goes_to(ROOT, memory)
    found = yield "find", {"path": ".", "name": slots["file"]}
    folder = "/".join(str(found["matches"][0]).split("/")[1:-1])
    yield from goes_to(folder or ROOT, memory)
    yield "rm", {"file_name": slots["file"]}
    return NOTHING


def _draw_write(draw: Draw) -> Slots:
    path, folder = draw.pick(list(folders_of(draw)))
    return {"folder": path, "new_file": _new(draw, folder, pools.NEW_FILES), "text": pools.sentence(draw.rng)}


def _write(slots: Slots, memory: Memory) -> Plan:
    yield from goes_to(slots["folder"], memory)
    yield "touch", {"file_name": slots["new_file"]}
    yield "echo", {"content": slots["text"], "file_name": slots["new_file"]}
    return NOTHING


def _draw_overwrite(draw: Draw) -> Slots:
    return {**file_in(draw)[0], "text": pools.sentence(draw.rng)}


def _overwrite(slots: Slots, memory: Memory) -> Plan:
    yield from goes_to(slots["folder"], memory)
    yield "echo", {"content": slots["text"], "file_name": slots["file"]}
    return NOTHING


def _copy_text(slots: Slots, memory: Memory) -> Plan:
    text = yield from reads(slots, memory)
    yield "touch", {"file_name": slots["new_file"]}
    yield "echo", {"content": text, "file_name": slots["new_file"]}
    return NOTHING


def _draw_count(draw: Draw) -> Slots:
    slots, folder = file_in(draw)
    if len(text_of(folder, slots["file"])) < 20:
        raise Infeasible
    return slots


def _count(slots: Slots, memory: Memory) -> Plan:
    yield from goes_to(slots["folder"], memory)
    seen = yield "wc", {"file_name": slots["file"], "mode": "c"}
    return f"{slots['file']} has {seen['count']} characters.", str(seen["count"])


def _draw_grep(draw: Draw) -> Slots:
    slots, folder = file_in(draw)
    lines = text_of(folder, slots["file"]).splitlines()
    words = [s for s in pools.SUBJECTS if sum(s in line for line in lines) == 1]
    return {**slots, "word": draw.pick(words)}


def _grep(slots: Slots, memory: Memory) -> Plan:
    yield from goes_to(slots["folder"], memory)
    seen = yield "grep", {"file_name": slots["file"], "pattern": slots["word"]}
    line = str(seen["matching_lines"][0])
    return f'It says: "{line}"', line


def _draw_last(draw: Draw) -> Slots:
    slots, folder = file_in(draw)
    quoted(text_of(folder, slots["file"]).rpartition("\n")[2])
    return slots


def _last(slots: Slots, memory: Memory) -> Plan:
    yield from goes_to(slots["folder"], memory)
    seen = yield "tail", {"file_name": slots["file"], "lines": 1}
    return f'The last line is: "{seen["last_lines"]}"', str(seen["last_lines"])


def _draw_empty(draw: Draw) -> Slots:
    pairs = [
        {"folder": path, "into": name}
        for path, folder in folders_of(draw)
        for name, item in folder.contents.items()
        if hasattr(item, "contents") and not item.contents
    ]
    return dict(draw.pick(pairs))


def _rmdir(slots: Slots, memory: Memory) -> Plan:
    yield from goes_to(slots["folder"], memory)
    yield "rmdir", {"dir_name": slots["into"]}
    return NOTHING


_WRITTEN = Missing(
    (
        "create the file {new_file} in {folder} and write a note into it",
        "in {folder}, make a new file {new_file} with a short text",
    ),
    "What should the file say?",
    ('It should say "{text}".', 'Write "{text}" into it.', 'The text is "{text}".'),
    ("To be written", "A note"),
)
_COPY_NAME = Missing(
    ("in {folder}, make a copy of {file}", "copy {file} in {folder} under another name"),
    "What should the copy be called?",
    ("The copy is called {new_file}.", "Call the copy {new_file}."),
    ("copy_of_it.txt",),
)
_FOLDER_NAME = Missing(
    ("in {folder}, make a new folder and move {file} into it", "put {file} into a new folder within {folder}"),
    "What should the new folder be called?",
    ("The new folder is called {new_folder}.", "Call the new folder {new_folder}."),
    ("new_folder",),
)

RECIPES = (
    Recipe(
        "file_move", (FILES,), _draw_move, _move,
        (
            "in {folder}, move {file} into the folder {into}", "move {file} from {folder} into its folder {into}",
            "put {file}, which is in {folder}, into the folder {into} there",
        ),
        tiny=True, weight=1.5,
    ),
    Recipe(
        "file_collect", (FILES,), _draw_new_folder, _collect("mv"),
        (
            "in {folder}, make the folder {new_folder} and move {file} into it",
            "create the folder {new_folder} in {folder} and move {file} there",
            "move {file} into a new folder {new_folder} within {folder}",
        ),
        open=True, tiny=True, missing={"new_folder": _FOLDER_NAME},
    ),
    Recipe(
        "file_safe_copy", (FILES,), _draw_new_folder, _collect("cp"),
        (
            "in {folder}, make the folder {new_folder} and put a copy of {file} into it",
            "keep a copy of {file} from {folder} in a new folder {new_folder} there",
        ),
        open=True,
    ),
    Recipe(
        "file_copy", (FILES,), _draw_new_name, _to_new_name("cp"),
        (
            "in {folder}, copy {file} to {new_file}", "make a copy of {file} in {folder} and call it {new_file}",
            "duplicate {file} in {folder} as {new_file}",
        ),
        open=True, tiny=True, missing={"new_file": _COPY_NAME},
    ),
    Recipe(
        "file_rename", (FILES,), _draw_new_name, _to_new_name("mv"),
        ("in {folder}, rename {file} to {new_file}", "give {file} in {folder} the name {new_file}"),
        open=True,
    ),
    Recipe(
        "file_delete", (FILES,), lambda draw: file_in(draw)[0], _delete,
        ("in {folder}, delete {file}", "delete {file} from {folder}", "get rid of {file} in {folder}"),
        tiny=True,
    ),
    Recipe(
        "file_hunt", (FILES,), _draw_anywhere, _find_and_delete,
        (
            "find {file}, wherever it is, and delete it", "track down {file} and delete it",
            "search all folders for {file} and remove it",
        ),
    ),
    Recipe(
        "file_write", (FILES,), _draw_write, _write,
        (
            'create {new_file} in {folder} with the text "{text}"',
            'in {folder}, make a new file {new_file} that says "{text}"',
        ),
        open=True, missing={"text": _WRITTEN},
    ),
    Recipe(
        "file_overwrite", (FILES,), _draw_overwrite, _overwrite,
        (
            'replace what {file} in {folder} says by "{text}"',
            'in {folder}, overwrite {file} so that it says "{text}" and nothing else',
        ),
        open=True,
    ),
    Recipe(
        "file_retype", (FILES,), _draw_new_name, _copy_text,
        (
            "read {file} in {folder} and write the same text into a new file {new_file} next to it",
            "in {folder}, create {new_file} and write into it what {file} says",
        ),
        open=True,
    ),
    Recipe(
        "file_count", (FILES,), _draw_count, _count,
        ("tell me how many characters {file} in {folder} has", "count the characters of {file} in {folder} for me"),
    ),
    Recipe(
        "file_grep", (FILES,), _draw_grep, _grep,
        (
            "tell me which line of {file} in {folder} mentions the {word}",
            "look into {file} in {folder} and tell me what it says about the {word}",
        ),
    ),
    Recipe(
        "file_last", (FILES,), _draw_last, _last,
        ("tell me the last line of {file} in {folder}", "show me how {file} in {folder} ends, the last line will do"),
    ),
    Recipe(
        "file_rmdir", (FILES,), _draw_empty, _rmdir,
        ("in {folder}, remove the empty folder {into}", "delete the folder {into} in {folder}, it is empty anyway"),
        narrow=True, weight=0.5,
    ),
)  # fmt: skip
