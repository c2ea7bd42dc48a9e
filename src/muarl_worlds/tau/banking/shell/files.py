"""Texts in memory under paths, as a shell's commands see them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from muarl.retrieval.documents import Knowledge


class ShellError(Exception):
    """What a command cannot do. ``code``: its exit status."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


def files_of(knowledge: Knowledge) -> Mapping[str, str]:
    """The documents as Markdown files with an index, named and laid out as TAU2 does."""
    found = {f"{_file_name(d.id)}.md": f"# {d.title}\n\n{d.content}" for d in knowledge.documents}
    listed = "".join(
        f"- **{_file_name(d.id)}.md** - {d.title}\n" for d in sorted(knowledge.documents, key=lambda d: d.id)
    )
    head = f"# Knowledge Base Index\n\n**Total documents:** {len(knowledge)}\n\n## Documents\n\n"
    return dict(sorted({**found, "INDEX.md": head + listed}.items()))


def _file_name(document: str) -> str:
    plain = document.replace("/", "_").replace("\\", "_").replace("..", "_")
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in plain)[:255]


class Files:
    """The files of one conversation: those given, until the first change. ``writes``: whether they may be changed;
    ``most``: characters that all files may have together."""

    def __init__(self, given: Mapping[str, str], *, writes: bool = False, most: int = 1 << 25) -> None:
        self._given, self._own, self.writes, self._most = given, None, writes, most
        self._folders: set[str] = set()
        self._size = 0

    _own: dict[str, str] | None

    @property
    def texts(self) -> Mapping[str, str]:
        """By path, in the order of paths."""
        return self._given if self._own is None else dict(sorted(self._own.items()))

    def plain(self, path: str) -> str:
        """A path without ``./`` and the like; empty for the folder itself. ShellError if it leads out of it."""
        if path.startswith("/") or ".." in path.split("/"):
            raise ShellError(f"{path}: Permission denied")
        found = PurePosixPath(path).as_posix()
        return "" if found == "." else found

    def read(self, path: str) -> str:
        """A file's text. ShellError if there is none."""
        plain = self.plain(path)
        texts = self._given if self._own is None else self._own
        if plain in texts:
            return texts[plain]
        raise ShellError(f"{path}: Is a directory" if self.is_folder(path) else f"{path}: No such file or directory")

    def is_folder(self, path: str) -> bool:
        """Whether files are below it."""
        plain = self.plain(path)
        return not plain or plain in self._folders or any(name.startswith(f"{plain}/") for name in self.texts)

    def below(self, path: str) -> list[str]:
        """The files below a folder, in the order of paths."""
        plain = self.plain(path)
        return [name for name in self.texts if not plain or name.startswith(f"{plain}/")]

    def listed(self, path: str) -> list[str]:
        """The names that a folder has."""
        skip = len(plain) + 1 if (plain := self.plain(path)) else 0
        within = [f for f in self._folders if not plain or f.startswith(f"{plain}/")]
        return sorted({name[skip:].split("/")[0] for name in (*self.below(path), *within)})

    def matching(self, pattern: str) -> list[str]:
        """What a wildcard stands for, in the order of paths; ``*`` does not match a slash or a leading dot."""
        parts = pattern.removeprefix("./").split("/")
        before = "./" if pattern.startswith("./") else ""
        deep = (name.split("/") for name in self.texts if name.count("/") >= len(parts) - 1)
        places = {"/".join(names[: len(parts)]) for names in deep}
        return [before + name for name in sorted(places) if _fits(name.split("/"), parts)]

    def write(self, path: str, text: str) -> None:
        """Make or replace a file. ShellError if files may not be changed, or grow too large."""
        own, plain = self._changed(path), self.plain(path)
        if not plain or self.is_folder(path):
            raise ShellError(f"{path}: Is a directory")
        self._size += len(text) - len(own.get(plain, ""))
        if self._size > self._most:
            self._size -= len(text) - len(own.get(plain, ""))
            raise ShellError(f"{path}: No space left on device")
        own[plain] = text

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        own, plain = self._changed(path), self.plain(path)
        for name in [n for n in own if n == plain or n.startswith(f"{plain}/")]:
            self._size -= len(own.pop(name))
        self._folders = {f for f in self._folders if f != plain and not f.startswith(f"{plain}/")}

    def make_folder(self, path: str) -> None:
        """Make a folder."""
        self._changed(path)
        self._folders.add(self.plain(path))

    def _changed(self, path: str) -> dict[str, str]:
        if not self.writes:
            raise ShellError(f"{path}: Read-only file system")
        if self._own is None:
            self._own, self._size = dict(self._given), sum(map(len, self._given.values()))
        return self._own


def _fits(names: list[str], patterns: list[str]) -> bool:
    return all(
        fnmatch.fnmatchcase(name, pattern) and (not name.startswith(".") or pattern.startswith("."))
        for name, pattern in zip(names, patterns, strict=True)
    )


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text, without what ends them."""
    yield from text.removesuffix("\n").split("\n") if text else ()
