"""GorillaFileSystem: a small shell on a tree of files (BFCL gorilla_file_system).

Upstream's oddities are kept: a moved directory's children still go "up" to the old one, ``tail`` takes negative
numbers, "." can be made and removed. In v3, ``echo`` makes files, ``find`` looks at no path and ``cd`` takes whole
paths. What upstream would not finish, or finish only by Python's recursion limit, ends early with an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from muarl.domains.tooling import tool
from muarl_worlds.bfcl.api import Api, LongContext, Revision
from muarl_worlds.bfcl.parts import named
from muarl_worlds.bfcl.tree import (
    Directory,
    File,
    TooManyEntriesError,
    directory_at,
    fill,
    found,
    is_bad,
    put,
    size_of,
    twins,
)

__all__ = ["REVISIONS", "GorillaFileSystem", "GorillaFileSystemV3"]

_UNITS = ("B", "KB", "MB", "GB", "TB")


@named
class GorillaFileSystem(Api):
    """The v4 revision. ``root``: the tree, the only thing compared beside ``long_context``."""

    name = "GorillaFileSystem"

    long_context: bool
    root: Directory
    _current_dir: Directory

    _cat_name: ClassVar[str] = "'{}'"
    _no_path: ClassVar[str] = "path not allowed in destination. Provide only a file or directory name."
    _no_path_cp: ClassVar[str] = _no_path
    _not_empty: ClassVar[str] = "rmdir: cannot remove"

    def load(self, config: Mapping[str, Any], long_context: LongContext | None = None) -> None:
        self.long_context = long_context is not None
        if "root" in config:
            name = list(config["root"])[0]  # noqa: RUF015  (IndexError, not StopIteration, where there is none)
            self.root = fill(Directory(name), config["root"][name]["contents"], long_context)
        else:
            self.root = Directory("/")
        self._current_dir = self.root

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other.long_context = self.long_context
        other.root, other._current_dir = twins(self.root, self._current_dir)
        return other

    @tool
    def pwd(self) -> dict[str, Any]:
        """Show the path of the current directory."""
        names = []
        directory: Directory | None = self._current_dir
        while directory is not None:
            names.append(directory.name)
            directory = directory.parent
        return {"current_working_directory": "/" + "/".join(reversed(names))}

    @tool
    def ls(self, a: bool = False) -> dict[str, Any]:
        """List what is in the current directory.

        a: also show hidden entries, whose names begin with a dot.
        """
        names = list(self._current_dir.contents)
        return {"current_directory_content": names if a else [name for name in names if not name.startswith(".")]}

    @tool(writes=True)
    def cd(self, folder: str) -> dict[str, Any]:
        """Go to another directory.

        folder: a directory in the current one, ".." for the one above, "/" for the root. Only one step at a time.
        """
        folder = folder.rstrip("/") or "/"
        if folder not in (".", "..", "/") and "/" in folder:
            return {"error": f"cd: {folder}: Unsupported path. Only one folder level at a time is supported."}
        if folder == "..":
            return self._go_up("Current directory is already the root. Cannot go back.")
        target = directory_at(self.root, self._current_dir, folder)
        if target is None:
            return {"error": f"cd: '{folder}': No such file or directory"}
        self._current_dir = target
        return {"current_working_directory": target.name}

    @tool(writes=True)
    def mkdir(self, dir_name: str) -> dict[str, Any] | None:
        """Make a new directory in the current one.

        dir_name: its name, which is no path.
        """
        if is_bad(dir_name):
            return {"error": f"mkdir: cannot create directory '{dir_name}': Invalid character"}
        if dir_name in self._current_dir.contents:
            return {"error": f"mkdir: cannot create directory '{dir_name}': File exists"}
        self._current_dir.add_directory(dir_name)
        return None

    @tool(writes=True)
    def touch(self, file_name: str) -> dict[str, Any] | None:
        """Make a new, empty file in the current directory.

        file_name: its name, which is no path.
        """
        if is_bad(file_name):
            return {"error": f"touch: cannot touch '{file_name}': Invalid character"}
        if file_name in self._current_dir.contents:
            return {"error": f"touch: cannot touch '{file_name}': File exists"}
        self._current_dir.add_file(file_name)
        return None

    @tool(writes=True)
    def echo(self, content: str, file_name: str | None = None) -> dict[str, Any] | None:
        """Write text to a file in the current directory, replacing what is in it, or show the text.

        content: the text.
        file_name: the file, which must exist. Without it the text is shown.
        """
        return self._echo(content, file_name, "echo: cannot write to", makes=False)

    @tool
    def cat(self, file_name: str) -> dict[str, Any]:
        """Show what is in a file.

        file_name: a file in the current directory.
        """
        if is_bad(file_name):
            return {"error": f"cat: '{file_name}': Invalid character"}
        shown = self._cat_name.format(file_name)
        if file_name not in self._current_dir.contents:
            return {"error": f"cat: {shown}: No such file or directory"}
        item = self._current_dir.item(file_name)
        return {"file_content": item.content} if isinstance(item, File) else {"error": f"cat: {shown}: Is a directory"}

    @tool
    def find(self, path: str = ".", name: str | None = None) -> dict[str, Any]:
        """Search a directory and everything below it for files and directories.

        path: where to begin; the current directory if left out.
        name: what the names must contain; everything is found without it.
        """
        target = directory_at(self.root, self._current_dir, path)
        if target is None:
            return {"error": f"find: '{path}': No such file or directory"}
        return found(target, path.rstrip("/"), name)

    @tool
    def wc(self, file_name: str, mode: str = "l") -> dict[str, Any]:
        """Count the lines, words or characters of a file.

        file_name: a file in the current directory.
        mode: "l" for lines, "w" for words, "c" for characters.
        """
        if mode not in ("l", "w", "c"):
            return {"error": f"wc: invalid mode '{mode}'"}
        file = self._file(file_name)
        if file is None:
            return {"error": f"wc: {file_name}: No such file or directory"}
        if mode == "l":
            return {"count": len(file.content.splitlines()), "type": "lines"}
        if mode == "w":
            return {"count": len(file.content.split()), "type": "words"}
        return {"count": len(file.content), "type": "characters"}

    @tool
    def sort(self, file_name: str) -> dict[str, Any]:
        """Show the lines of a file in sorted order. The file stays as it is.

        file_name: a file in the current directory.
        """
        file = self._file(file_name)
        if file is None:
            return {"error": f"sort: {file_name}: No such file or directory"}
        return {"sorted_content": "\n".join(sorted(file.content.splitlines()))}

    @tool
    def grep(self, file_name: str, pattern: str) -> dict[str, Any]:
        """Show the lines of a file that contain a text.

        file_name: a file in the current directory.
        pattern: the text, taken as it stands.
        """
        file = self._file(file_name)
        if file is None:
            return {"error": f"grep: {file_name}: No such file or directory"}
        return {"matching_lines": [line for line in file.content.splitlines() if pattern in line]}

    @tool
    def du(self, human_readable: bool = False) -> dict[str, Any]:
        """Show how much the files in the current directory and below it hold.

        human_readable: in B, KB, MB and so on rather than in bytes.
        """
        try:
            size: float = size_of(self._current_dir)
        except TooManyEntriesError:
            return {"error": "du: too many files and directories"}
        if not human_readable:
            return {"disk_usage": f"{size} bytes"}
        for unit in _UNITS:
            if size < 1024:
                return {"disk_usage": f"{size:.2f} {unit}"}
            size /= 1024
        return {"disk_usage": f"{size:.2f} PB"}

    @tool
    def tail(self, file_name: str, lines: int = 10) -> dict[str, Any]:
        """Show the last lines of a file.

        file_name: a file in the current directory.
        lines: how many lines.
        """
        file = self._file(file_name)
        if file is None:
            return {"error": f"tail: {file_name}: No such file or directory"}
        content = file.content.splitlines()
        if lines > len(content):
            lines = len(content)
        return {"last_lines": "\n".join(content[-lines:])}

    @tool
    def diff(self, file_name1: str, file_name2: str) -> dict[str, Any]:
        """Show where two files differ, line by line.

        file_name1: a file in the current directory.
        file_name2: another file in the current directory.
        """
        here = self._current_dir.contents
        both = file_name1 in here and file_name2 in here
        one, other = (self._current_dir.item(file_name1), self._current_dir.item(file_name2)) if both else (None, None)
        if not (isinstance(one, File) and isinstance(other, File)):
            return {"error": f"diff: {file_name1} or {file_name2}: No such file or directory"}
        pairs = zip(one.content.splitlines(), other.content.splitlines(), strict=False)
        return {"diff_lines": "\n".join([f"- {a}\n+ {b}" for a, b in pairs if a != b])}

    @tool(writes=True)
    def mv(self, source: str, destination: str) -> dict[str, Any]:
        """Move or rename a file or a directory.

        source: the name of what is moved, in the current directory.
        destination: a directory in the current one to move it into, or its new name.
        """
        here = self._current_dir
        if source not in here.contents:
            return {"error": f"mv: cannot move '{source}': No such file or directory"}
        item = here.item(source)
        if "/" in destination:
            return {"error": f"mv: {self._no_path}"}
        if destination not in here.contents:
            del here.contents[source]
            put(here, destination, item, share=True)
            return {"result": f"'{source}' moved to '{destination}'"}
        target = here.item(destination)
        if not isinstance(target, Directory):
            return {"error": f"mv: cannot move '{source}' to '{destination}': Not a directory"}
        if f"{source}" in target.contents:
            return {"error": f"mv: cannot move '{source}' to '{destination}/{source}': File exists"}
        del here.contents[source]
        put(target, source, item, share=True)
        return {"result": f"'{source}' moved to '{destination}/{source}'"}

    @tool(writes=True)
    def rm(self, file_name: str) -> dict[str, Any]:
        """Remove a file, or a directory with everything in it.

        file_name: its name in the current directory.
        """
        if file_name not in self._current_dir.contents:
            return {"error": f"rm: cannot remove '{file_name}': No such file or directory"}
        del self._current_dir.contents[file_name]
        return {"result": f"'{file_name}' removed"}

    @tool(writes=True)
    def rmdir(self, dir_name: str) -> dict[str, Any]:
        """Remove an empty directory.

        dir_name: its name in the current directory.
        """
        if dir_name not in self._current_dir.contents:
            return {"error": f"rmdir: cannot remove '{dir_name}': No such file or directory"}
        item = self._current_dir.item(dir_name)
        if not isinstance(item, Directory):
            return {"error": f"rmdir: cannot remove '{dir_name}': Not a directory"}
        if item.contents:
            return {"error": f"{self._not_empty} '{dir_name}': Directory not empty"}
        del self._current_dir.contents[dir_name]
        return {"result": f"'{dir_name}' removed"}

    @tool(writes=True)
    def cp(self, source: str, destination: str) -> dict[str, Any]:
        """Copy a file or a directory.

        source: the name of what is copied, in the current directory.
        destination: a directory in the current one to copy it into, or the copy's name.
        """
        here = self._current_dir
        if source not in here.contents:
            return {"error": f"cp: cannot copy '{source}': No such file or directory"}
        item = here.item(source)
        if "/" in destination:
            return {"error": f"cp: {self._no_path_cp}"}
        if destination not in here.contents:
            put(here, destination, item)
            return {"result": f"'{source}' copied to '{destination}'"}
        target = here.item(destination)
        if not isinstance(target, Directory):
            return {"error": f"cp: cannot copy '{source}' to '{destination}': Not a directory"}
        # Upstream looks for the whole path among the names here, so that only _put notices a name that is taken.
        if f"{destination}/{source}" in target.contents:
            return {"error": f"cp: cannot copy '{source}' to '{destination}/{source}': File exists"}
        put(target, source, item)
        return {"result": f"'{source}' copied to '{destination}/{source}'"}

    def _file(self, name: Any) -> File | None:
        """The file of that name in the current directory, None if there is none."""
        item = self._current_dir.item(name) if name in self._current_dir.contents else None
        return item if isinstance(item, File) else None

    def _go_up(self, at_root: str) -> dict[str, Any]:
        if self._current_dir.parent is None:
            return {"error": at_root}
        self._current_dir = self._current_dir.parent
        return {}

    def _echo(self, content: Any, name: Any, cannot: str, *, makes: bool) -> dict[str, Any] | None:
        """Write to a file or show. ``makes``: a file that does not exist is made."""
        if name is None:
            return {"terminal_output": content}
        if is_bad(name):
            return {"error": f"{cannot} '{name}': Invalid character"}
        if not name:
            return {"terminal_output": content}
        if name in self._current_dir.contents:
            item = self._current_dir.item(name)
            if not isinstance(item, File):
                raise AttributeError("'Directory' object has no attribute '_write'")
            item.content = content
        elif makes:
            self._current_dir.add_file(name, content)
        else:
            return {"error": f"{cannot} '{name}': No such file"}
        return None


@named
class GorillaFileSystemV3(GorillaFileSystem):
    """The v3 revision."""

    _cat_name = "{}"
    _no_path = "no path allowed in destination. Only file name and folder name is supported for this operation."
    _no_path_cp = "don't allow path in destination. Only file name and folder name is supported for this operation."
    _not_empty = "rmdir: failed to remove"

    @tool(writes=True)
    def cd(self, folder: str) -> dict[str, Any]:
        """Go to another directory.

        folder: a directory in the current one, ".." for the one above, "/" for the root.
        """
        if folder == "..":
            return self._go_up("Cuurent directory is already the root. Cannot go back.")
        target = directory_at(self.root, self._current_dir, folder)
        if target is None:
            return {"error": f"cd: {folder}: No such directory. You cannot use path to change directory."}
        self._current_dir = target
        return {"current_working_directory": target.name}

    @tool(writes=True)
    def echo(self, content: str, file_name: str | None = None) -> dict[str, Any] | None:
        """Write text to a file in the current directory, replacing what is in it, or show the text.

        content: the text.
        file_name: the file, which is made if it does not exist. Without it the text is shown.
        """
        return self._echo(content, file_name, "echo: cannot touch", makes=True)

    @tool
    def find(self, path: str = ".", name: str | None = None) -> dict[str, Any]:
        """Search the current directory and everything below it for files and directories.

        path: what the paths in the answer begin with.
        name: what the names must contain; everything is found without it.
        """
        return found(self._current_dir, path.rstrip("/"), name)


REVISIONS: Mapping[Revision, type[Api]] = {"v3": GorillaFileSystemV3, "v4": GorillaFileSystem}
