"""What users want done with files (GorillaFileSystem)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from muarl.domains.generated import Infeasible
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record, plain
from muarl_worlds.bfcl import pools
from muarl_worlds.bfcl.recipes import Scene, asked, drawn, quotable, recipe, slot

FILES = "GorillaFileSystem"
ROOT = "the root folder"


def _folders(scene: Scene) -> list[Record]:
    """Every folder of the live tree: what users call it (``folder``), and what it holds."""

    def below(path: str, folder: Any) -> Iterator[Record]:
        yield Record({"folder": path or ROOT, "holds": folder.contents})
        for name, item in folder.contents.items():
            if hasattr(item, "contents"):
                yield from below(f"{path}/{name}" if path else name, item)

    return list(below("", scene.tables[FILES].root))


def a_file(*, alone: bool = False, fits: Callable[[str], object] | None = None) -> Callable[[Scene], Record]:
    """Draws a file somewhere. ``alone``: no other file holds its name; ``fits``: what its text must be like.

    In tiny worlds it lies in the root folder or right below, since a path of several names is no one word to copy.
    """

    def draw(scene: Scene) -> Record:
        found = [
            Record({"file": name, "folder": folder.folder, "holds": folder.holds, "text": str(item.content)})
            for folder in _folders(scene)
            for name, item in plain(folder.holds).items()
            if not hasattr(item, "contents") and not ("/" in folder.folder and scene.size.name == "tiny")
        ]
        if alone:
            found = [f for f in found if sum(f.file in other.file for other in found) == 1]
        file: Record = scene.pick(found)
        if fits is not None and not fits(file.text):
            raise Infeasible
        return file

    return draw


def _free(pool: tuple[str, ...]) -> Callable[[Any], list[str]]:
    """The names of a pool that nothing has in the folder that a request is about."""
    return lambda d: [n for n in d.few(pool) if n not in (d.file if "file" in d.slots else d.folder).holds]


def _inner(d: Any) -> list[str]:
    inner = [name for name, item in plain(d.file.holds).items() if hasattr(item, "contents")]
    return [name for name in inner if d.file.file not in d.file.holds[name].contents]


def _empty(d: Any) -> list[Record]:
    return [
        Record({"folder": folder.folder, "into": name})
        for folder in _folders(d)
        for name, item in plain(folder.holds).items()
        if hasattr(item, "contents") and not item.contents
    ]


def _mentioned(d: Any) -> list[str]:
    lines = d.file.text.splitlines()
    return [s for s in pools.SUBJECTS if sum(s in line for line in lines) == 1]


_NAME, QUOTED = r"\w+\.\w+", r'[^"]+'
FILE = slot("file", _NAME, a_file(), "file")
QUOTABLE = drawn(FILE, a_file(fits=quotable), "file")
FOLDER = slot("folder", r"the root folder|\w+(?:/\w+)*", lambda d: d.file.folder)
INTO = slot("into", r"\w+", _inner)
WORD = slot("word", r"\w+", _mentioned)
SENTENCE = slot("text", QUOTED, lambda d: pools.sentence(d.rng))
WRITTEN = asked(
    SENTENCE, "What should the file say?", 'It should say "{}".', 'Write "{}" into it.', 'The text is "{}".',
    guess=("To be written", "A note"),
)  # fmt: skip
NEW_FILE = asked(
    slot("new_file", _NAME, _free(pools.NEW_FILES)), "What should the copy be called?", "The copy is called {}.",
    "Call the copy {}.", guess=("copy_of_it.txt",),
)  # fmt: skip
NEW_FOLDER = asked(
    slot("new_folder", r"\w+", _free(pools.NEW_FOLDERS)), "What should the new folder be called?",
    "The new folder is called {}.", "Call the new folder {}.", guess=("new_folder",),
)  # fmt: skip
NEW_NAME, NEW_PLACE = (FILE, FOLDER, NEW_FILE), (FILE, FOLDER, NEW_FOLDER)


def goes_to(it: Plan, folder: str) -> None:
    """Change to a folder, one level at a time, from wherever the conversation has come to."""
    wanted = [] if folder == ROOT else folder.split("/")
    while it.cwd != wanted[: len(it.cwd)]:
        it.do("cd", folder="..")
        it.cwd = it.cwd[:-1]
    for name in wanted[len(it.cwd) :]:
        it.do("cd", folder=name)
        it.cwd = [*it.cwd, name]


def reads(it: Plan) -> str:
    """Read the file that a request is about; its text."""
    goes_to(it, it.folder)
    return str(it.look("cat", file_name=it.file).file_content)


@recipe(
    FILES, "in {folder}, move {file} into the folder {into}", "move {file} from {folder} into its folder {into}",
    "put {file}, which is in {folder}, into the folder {into} there", slots=(FILE, FOLDER, INTO), tiny=True,
    weight=1.5,
)  # fmt: skip
def file_move(it: Plan) -> None:
    goes_to(it, it.folder)
    it.do("mv", source=it.file, destination=it.into)


@recipe(
    FILES, "in {folder}, make the folder {new_folder} and move {file} into it",
    "create the folder {new_folder} in {folder} and move {file} there",
    "move {file} into a new folder {new_folder} within {folder}",
    "in {folder}, make a new folder and move {file} into it", "put {file} into a new folder within {folder}",
    slots=NEW_PLACE, open=True, tiny=True,
)  # fmt: skip
def file_collect(it: Plan) -> None:
    goes_to(it, it.folder)
    it.do("mkdir", dir_name=it.new_folder)
    it.do("mv", source=it.file, destination=it.new_folder)


@recipe(
    FILES, "in {folder}, make the folder {new_folder} and put a copy of {file} into it",
    "keep a copy of {file} from {folder} in a new folder {new_folder} there", slots=NEW_PLACE, open=True,
)  # fmt: skip
def file_safe_copy(it: Plan) -> None:
    goes_to(it, it.folder)
    it.do("mkdir", dir_name=it.new_folder)
    it.do("cp", source=it.file, destination=it.new_folder)


@recipe(
    FILES, "in {folder}, copy {file} to {new_file}", "make a copy of {file} in {folder} and call it {new_file}",
    "duplicate {file} in {folder} as {new_file}", "in {folder}, make a copy of {file}",
    "copy {file} in {folder} under another name", slots=NEW_NAME, open=True, tiny=True,
)  # fmt: skip
def file_copy(it: Plan) -> None:
    goes_to(it, it.folder)
    it.do("cp", source=it.file, destination=it.new_file)


@recipe(
    FILES, "in {folder}, rename {file} to {new_file}", "give {file} in {folder} the name {new_file}", slots=NEW_NAME,
    open=True,
)  # fmt: skip
def file_rename(it: Plan) -> None:
    goes_to(it, it.folder)
    it.do("mv", source=it.file, destination=it.new_file)


@recipe(
    FILES, "in {folder}, delete {file}", "delete {file} from {folder}", "get rid of {file} in {folder}",
    slots=(FILE, FOLDER), tiny=True,
)  # fmt: skip
def file_delete(it: Plan) -> None:
    goes_to(it, it.folder)
    it.do("rm", file_name=it.file)


@recipe(
    FILES, "find {file}, wherever it is, and delete it", "track down {file} and delete it",
    "search all folders for {file} and remove it", slots=(drawn(FILE, a_file(alone=True), "file"),),
)  # fmt: skip
def file_hunt(it: Plan) -> None:
    goes_to(it, ROOT)
    found = it.look("find", path=".", name=it.file)
    goes_to(it, "/".join(found.matches[0].split("/")[1:-1]) or ROOT)
    it.do("rm", file_name=it.file)


@recipe(
    FILES, 'create {new_file} in {folder} with the text "{text}"',
    'in {folder}, make a new file {new_file} that says "{text}"',
    "create the file {new_file} in {folder} and write a note into it",
    "in {folder}, make a new file {new_file} with a short text",
    slots=(drawn(FOLDER, _folders, "folder"), NEW_FILE, WRITTEN), open=True,
)  # fmt: skip
def file_write(it: Plan) -> None:
    goes_to(it, it.folder)
    it.do("touch", file_name=it.new_file)
    it.do("echo", content=it.text, file_name=it.new_file)


@recipe(
    FILES, 'replace what {file} in {folder} says by "{text}"',
    'in {folder}, overwrite {file} so that it says "{text}" and nothing else', slots=(FILE, FOLDER, SENTENCE),
    open=True,
)  # fmt: skip
def file_overwrite(it: Plan) -> None:
    goes_to(it, it.folder)
    it.do("echo", content=it.text, file_name=it.file)


@recipe(
    FILES, "read {file} in {folder} and write the same text into a new file {new_file} next to it",
    "in {folder}, create {new_file} and write into it what {file} says", slots=NEW_NAME, open=True,
)  # fmt: skip
def file_retype(it: Plan) -> None:
    text = reads(it)
    it.do("touch", file_name=it.new_file)
    it.do("echo", content=text, file_name=it.new_file)


@recipe(
    FILES, "tell me how many characters {file} in {folder} has", "count the characters of {file} in {folder} for me",
    slots=(drawn(FILE, a_file(fits=lambda text: len(text) >= 20), "file"), FOLDER),
)  # fmt: skip
def file_count(it: Plan) -> None:
    goes_to(it, it.folder)
    it.seen = it.look("wc", file_name=it.file, mode="c")
    it.answer("{file} has {seen.count} characters.", tell="{seen.count}")


@recipe(
    FILES, "tell me which line of {file} in {folder} mentions the {word}",
    "look into {file} in {folder} and tell me what it says about the {word}", slots=(FILE, FOLDER, WORD),
)  # fmt: skip
def file_grep(it: Plan) -> None:
    goes_to(it, it.folder)
    it.line = it.look("grep", file_name=it.file, pattern=it.word).matching_lines[0]
    it.answer('It says: "{line}"', tell="{line}")


@recipe(
    FILES, "tell me the last line of {file} in {folder}", "show me how {file} in {folder} ends, the last line will do",
    slots=(drawn(FILE, a_file(fits=lambda text: quotable(text.rpartition("\n")[2])), "file"), FOLDER),
)  # fmt: skip
def file_last(it: Plan) -> None:
    goes_to(it, it.folder)
    it.seen = it.look("tail", file_name=it.file, lines=1)
    it.answer('The last line is: "{seen.last_lines}"', tell="{seen.last_lines}")


@recipe(
    FILES, "in {folder}, remove the empty folder {into}", "delete the folder {into} in {folder}, it is empty anyway",
    slots=(drawn(INTO, _empty, "into"), drawn(FOLDER, lambda d: d.into.folder)), narrow=True, weight=0.5,
)  # fmt: skip
def file_rmdir(it: Plan) -> None:
    goes_to(it, it.folder)
    it.do("rmdir", dir_name=it.into)
