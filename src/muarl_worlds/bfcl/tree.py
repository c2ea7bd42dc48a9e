"""The tree of BFCL's file system: files and directories, compared by names and contents.

It is a tree only until something is moved or copied. As upstream has it, what is moved or copied becomes a new
directory with the old one's entries: their ``parent`` is still the old directory, a copy's sub-directories and files
are the original's own, and a directory that is copied into itself holds itself. Everything here ends on such graphs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from muarl_worlds.bfcl.api import LongContext

__all__ = [
    "DEEPEST_SHOWN", "MOST_ENTRIES", "MOST_SHOWN", "MOST_TEXT", "Directory", "File", "TooManyEntriesError",
    "directory_at", "fill", "found", "is_bad", "put", "size_of", "twins", "walk",
]  # fmt: skip

MOST_ENTRIES = 100_000
"""How many entries a walk visits. Copies of directories share what they hold, so a few calls can make a tree of any
size; the largest world of the benchmark has some 200 entries."""

MOST_TEXT = 4_000_000
"""How many characters of paths ``find`` makes; the benchmark's largest world has some thousand."""

MOST_SHOWN = 4_000_000
"""About how many characters ``to_json`` shows; the benchmark's largest world has some ten thousand."""

DEEPEST_SHOWN = 100
"""How many levels of directories ``to_json`` shows."""

# How deep upstream's searches get before Python's recursion limit ends them, and what they then say (Python 3.11).
_DEEPEST_FIND, _TOO_DEEP_FIND = 980, "maximum recursion depth exceeded while calling a Python object"
_DEEPEST_SIZE, _TOO_DEEP_SIZE = 490, "maximum recursion depth exceeded"

_FORBIDDEN = '|/\\?%*:"><'


class TooManyEntriesError(Exception):
    """A walk has visited ``MOST_ENTRIES``."""


class File:
    """A file: ``content`` is text, or whatever was written to it. Equal to a file of the same name and content."""

    __slots__ = ("content", "name")

    def __init__(self, name: Any, content: Any = "") -> None:
        self.name, self.content = name, content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, File) and bool(self.name == other.name and self.content == other.content)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<<File: {self.name}, Content: {self.content}>>"

    def to_json(self) -> dict[str, Any]:
        """Name and content."""
        return {"content": self.content, "name": self.name}


class Directory:
    """A directory: ``contents`` maps names to files and directories. Equal to one of equal name and contents."""

    __slots__ = ("contents", "name", "parent")

    def __init__(self, name: Any, parent: Directory | None = None) -> None:
        self.name, self.parent = name, parent
        self.contents: dict[Any, File | Directory] = {}

    def add_file(self, name: Any, content: Any = "") -> None:
        """Put a new file in. ValueError if the name is taken."""
        if name in self.contents:
            raise ValueError(f"File '{name}' already exists in directory '{self.name}'.")
        self.contents[name] = File(name, content)

    def add_directory(self, name: Any) -> Directory:
        """Put a new, empty directory in and return it. ValueError if the name is taken."""
        if name in self.contents:
            raise ValueError(f"Directory '{name}' already exists in directory '{self.name}'.")
        made = self.contents[name] = Directory(name, self)
        return made

    def item(self, name: Any) -> File | Directory | None:
        """The entry of that name, None if there is none. "." is always the directory itself."""
        return self if name == "." else self.contents.get(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Directory) and _equal(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """As upstream writes it, cut where ``to_json`` cuts."""
        return _Shown().text(self)

    def to_json(self) -> dict[str, Any]:
        """Name and contents, all the way down.

        Where a directory holds itself, below ``DEEPEST_SHOWN`` levels and after ``MOST_SHOWN`` characters, the contents
        are the text "...".
        """
        return _Shown().directory(self)


class _Shown:
    """What has been shown of a tree so far."""

    def __init__(self) -> None:
        self._characters = 0
        self._above: set[int] = set()  # the dicts of contents that are being shown: two directories can share one

    def directory(self, directory: Directory) -> dict[str, Any]:
        """As JSON."""
        if not self._opens(directory):
            return {"contents": "...", "name": directory.name}
        contents: dict[Any, Any] = {}
        for name, item in directory.contents.items():
            if isinstance(item, Directory):
                contents[name] = self.directory(item)
            else:
                contents[name] = item.to_json() if self._fits(item) else {"content": "...", "name": item.name}
        self._above.discard(id(directory.contents))
        return {"contents": contents, "name": directory.name}

    def text(self, directory: Directory) -> str:
        """As Python writes it."""
        shown = "..."
        if self._opens(directory):
            shown = ", ".join(
                f"{name!r}: {self.text(item) if isinstance(item, Directory) else item if self._fits(item) else '...'}"
                for name, item in directory.contents.items()
            )
            self._above.discard(id(directory.contents))
        parent = directory.parent.name if directory.parent is not None else None
        return f"<Directory: {directory.name}, Parent: {parent}, Contents: {{{shown}}}>"

    def _opens(self, directory: Directory) -> bool:
        key = id(directory.contents)
        if key in self._above or len(self._above) >= DEEPEST_SHOWN or self._characters > MOST_SHOWN:
            return False
        self._above.add(key)
        self._characters += 50 * len(directory.contents)
        self._characters += sum(len(name) for name in directory.contents if isinstance(name, str))
        return True

    def _fits(self, file: File) -> bool:
        if isinstance(file.content, str):
            self._characters += len(file.content)
        return self._characters <= MOST_SHOWN


def _equal(one: Directory, other: Directory) -> bool:
    """Compare pair by pair, no pair twice: directories that hold themselves are equal if no difference can be found."""
    waiting: list[tuple[Directory, Directory]] = [(one, other)]
    seen: set[tuple[int, int]] = set()
    while waiting:
        a, b = waiting.pop()
        if a.name != b.name:
            return False
        if a.contents is b.contents:
            continue
        if len(a.contents) != len(b.contents):
            return False
        for name, item in a.contents.items():
            twin = b.contents.get(name)
            if item is twin:
                continue
            if isinstance(item, Directory) and isinstance(twin, Directory):
                if (pair := (id(item), id(twin))) not in seen:
                    seen.add(pair)
                    waiting.append((item, twin))
            elif item != twin:
                return False
    return True


def walk(top: Directory, deepest: int) -> Iterator[tuple[int, Any, File | Directory]]:
    """Everything below a directory as (depth from 0, name, item), each directory before what it holds.

    RecursionError where a directory is inside itself, or more than ``deepest`` levels down. TooManyEntriesError.
    """
    left = MOST_ENTRIES
    above = {id(top)}
    levels = [(top, iter(top.contents.items()))]
    while levels:
        for name, item in levels[-1][1]:
            left -= 1
            if left < 0:
                raise TooManyEntriesError
            yield len(levels) - 1, name, item
            if isinstance(item, Directory):
                if id(item) in above or len(levels) >= deepest:
                    raise RecursionError
                above.add(id(item))
                levels.append((item, iter(item.contents.items())))
                break
        else:
            above.discard(id(levels.pop()[0]))


def twins(*originals: Directory) -> tuple[Directory, ...]:
    """Copies of directories and of all that can be reached from them; what is shared among them stays shared."""
    made: dict[int, Any] = {}  # by id, for directories, their dicts of contents (which two can share) and files
    waiting: list[Directory] = []

    def twin(original: Directory) -> Directory:
        known = made.get(id(original))
        if known is None:
            known = made[id(original)] = object.__new__(Directory)
            known.name = original.name
            waiting.append(original)
        return known

    out = tuple(twin(original) for original in originals)
    while waiting:
        directory = waiting.pop()
        other = made[id(directory)]
        other.parent = None if directory.parent is None else twin(directory.parent)
        contents = made.get(id(directory.contents))
        if contents is None:
            contents = made[id(directory.contents)] = {}
            for name, item in directory.contents.items():
                if isinstance(item, Directory):
                    contents[name] = twin(item)
                elif (file := made.get(id(item))) is not None:
                    contents[name] = file
                else:
                    content = item.content if type(item.content) is str else copy.deepcopy(item.content)
                    contents[name] = made[id(item)] = File(item.name, content)
        other.contents = contents
    return out


def put(directory: Directory, name: Any, item: File | Directory | None, *, share: bool = False) -> None:
    """Make a new entry of what is moved (``share``: a directory keeps its very contents) or copied."""
    if isinstance(item, Directory):
        made = directory.add_directory(name)
        made.contents = item.contents if share else item.contents.copy()
    elif item is not None:
        directory.add_file(name, item.content)


def found(top: Directory, base: str, name: Any) -> dict[str, Any]:
    """What ``find`` answers: the paths, ``base`` before them, of all below a directory whose name contains ``name``."""
    matches: list[str] = []
    bases = [base]
    made = 0
    try:
        for depth, item_name, item in walk(top, _DEEPEST_FIND):
            matching, below = name is None or name in item_name, isinstance(item, Directory)
            if matching or below:
                path = f"{bases[depth]}/{item_name}"
                made += len(path)
                if made > MOST_TEXT:
                    raise TooManyEntriesError
                if matching:
                    matches.append(path)
                if below:
                    bases[depth + 1 :] = [path]
    except RecursionError:
        raise RuntimeError(_TOO_DEEP_FIND) from None
    except TooManyEntriesError:
        return {"error": "find: too many files and directories"}
    return {"matches": matches}


def is_bad(name: Any) -> bool:
    """Whether a name has a character that is not allowed. TypeError for what can contain nothing."""
    return any(character in name for character in _FORBIDDEN)


def directory_at(root: Directory, here: Directory, path: Any) -> Directory | None:
    """The directory at a path from ``here`` or, with "/" before it, from ``root``; None if there is none.

    AttributeError for a path that is no text: upstream calls its ``strip`` first, so that is what the error names.
    """
    if path is None or path == ".":
        return here
    if path == "/":
        return root
    names = path.strip("/").split("/")
    item: File | Directory | None = root if path.startswith("/") else here
    for name in names:
        item = item.item(name) if isinstance(item, Directory) else None
    return item if isinstance(item, Directory) else None


def size_of(top: Directory) -> int:
    """The bytes of all files below a directory, as often as each is there. TooManyEntriesError."""
    sizes: dict[int, int] = {}
    total = 0
    try:
        for _, _, item in walk(top, _DEEPEST_SIZE):
            if isinstance(item, File):
                size = sizes.get(id(item))
                if size is None:
                    size = sizes[id(item)] = len(item.content.encode("utf-8"))
                total += size
    except RecursionError:
        raise RuntimeError(_TOO_DEEP_SIZE) from None
    return total


def fill(directory: Directory, entries: Mapping[str, Any], long_context: LongContext | None) -> Directory:
    """Put a scenario's entries into a directory. In long_context entries, files get more text, and directories without
    others in them get empty files."""
    innermost = True
    for name, entry in entries.items():
        if entry["type"] == "directory":
            innermost = False
            directory.contents[name] = fill(Directory(name, directory), entry["contents"], long_context)
        elif entry["type"] == "file":
            content = entry["content"]
            if long_context is not None and name not in long_context["FILES_TAIL_USED"]:
                content += long_context["FILE_CONTENT_EXTENSION"]
            directory.contents[name] = File(name, content)
    if innermost and long_context is not None:
        for name in long_context["POPULATE_FILE_EXTENSION"]:
            directory.add_file(name)
    return directory
