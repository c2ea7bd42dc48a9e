"""The index of a run's episodes: a SQLite file that says where each stands in its JSON lines, and what to find it by.

The index is a cache. It lies outside the run's folder, which is only ever read, holds no texts, and grows with the run:
what was appended is read from where the last reading ended; a file that was replaced is read again. Deleted, broken or
of another version, it is made anew. Several processes may share one.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Callable, Container, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from muarl.basics.files import size_text
from muarl.basics.untrusted import parse_json
from muarl_tools.view.rows import COLUMNS, LONGEST_NAME, clean, finding_of, place_of, row_of, values_of

VERSION = 7
"""Of the tables below; another one's file is made anew."""
CHUNK = 16 << 20
"""Bytes read between two commits, so that pages show what there is while a large run is read."""
LONGEST = 32 << 20
"""Bytes of a line that is read: an episode of a hundred thousand tokens has some 4 MiB."""
_PRINT = 64

_SCHEMA = f"""
CREATE TABLE files (id INTEGER PRIMARY KEY, name TEXT UNIQUE, inode INTEGER, done INTEGER, mtime INTEGER, print BLOB,
                    broken INTEGER, problem TEXT);
CREATE TABLE episodes (key INTEGER PRIMARY KEY, name TEXT, task TEXT, grp TEXT, stage TEXT, step INTEGER,
    moment INTEGER, reward REAL, solved INTEGER, without_violation INTEGER, stop TEXT, domain TEXT, intent TEXT,
    persona TEXT, difficulty TEXT,
    messages INTEGER, turns INTEGER, tokens INTEGER, calls INTEGER, tool_errors INTEGER, general INTEGER, tools TEXT,
    user_errors INTEGER, cost REAL, seconds REAL, advantage REAL, mark INTEGER,
    file INTEGER, start INTEGER, length INTEGER);
CREATE INDEX by_moment ON episodes (moment, file, start);
CREATE INDEX by_task ON episodes (task, moment, solved, intent, persona, difficulty);
CREATE INDEX by_group ON episodes (grp);
CREATE INDEX by_file ON episodes (file);
CREATE TABLE tasks (name TEXT PRIMARY KEY, start INTEGER, length INTEGER) WITHOUT ROWID;
CREATE TABLE findings (mark INTEGER, severity INTEGER, layer TEXT, rule TEXT, start INTEGER, length INTEGER);
CREATE INDEX by_mark ON findings (mark, severity);
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER);
INSERT INTO meta VALUES ('version', 0);
PRAGMA user_version = {VERSION};
"""
_WIDTH = COLUMNS.count(",") + 4
_INSERT = f"INSERT OR REPLACE INTO episodes ({COLUMNS}, file, start, length) VALUES ({', '.join('?' * _WIDTH)})"
_TASK = "INSERT OR REPLACE INTO tasks (name, start, length) VALUES (?, ?, ?)"
_FINDING = "INSERT INTO findings (mark, layer, rule, severity, start, length) VALUES (?, ?, ?, ?, ?, ?)"
TASKS, FINDINGS = "tasks.jsonl", "findings.jsonl"
"""Files beside the folder of episodes; the index calls those in it episodes/NAME."""


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How far the index is: bytes read of bytes there are; ``broken`` lines that are no episodes, and the first."""

    done: int
    size: int
    broken: int = 0
    problem: str | None = None

    @property
    def complete(self) -> bool:
        """True if everything has been read."""
        return self.done >= self.size


def cache_folder() -> Path:
    """Where indexes are kept: the user's cache folder, or a temporary one where that cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    folder = (Path(base) if base.startswith("/") else Path.home() / ".cache") / "muarl" / "view"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        own = Path(tempfile.gettempdir()) / f"muarl-view-{os.getuid() if hasattr(os, 'getuid') else 0}"
        own.mkdir(mode=0o700, exist_ok=True)
        if hasattr(os, "getuid") and own.stat().st_uid != os.getuid():  # somebody else's folder under our name
            return Path(tempfile.mkdtemp(prefix="muarl-view-"))
        return own


class Store:
    """The index of one run. ``run``: its folder. ``path``: the index's file, by default one in the cache folder."""

    def __init__(self, run: Path, path: Path | None = None) -> None:
        self.run = run.resolve()
        if path is None:
            name = hashlib.blake2b(str(self.run).encode(), digest_size=8).hexdigest()
            path = cache_folder() / f"{name}.sqlite"
        self.path = path
        self._prepare()

    # Connections: one for each use, since threads must not share them.

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        db.execute("PRAGMA synchronous = OFF")  # a cache: what a crash spoils is made anew
        return db

    def _prepare(self) -> None:
        for attempt in range(2):
            try:
                with closing(self._open()) as db:
                    db.execute("PRAGMA journal_mode = WAL")
                    db.execute("BEGIN IMMEDIATE")
                    found = db.execute("PRAGMA user_version").fetchone()[0]
                    if found == VERSION:
                        db.execute("SELECT count(*) FROM files").fetchone()
                        db.execute("COMMIT")
                        return
                    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                        if not name.startswith("sqlite_"):
                            db.execute(f'DROP TABLE "{name}"')
                    for statement in _SCHEMA.split(";"):
                        db.execute(statement)
                    db.execute("COMMIT")
                    return
            except sqlite3.DatabaseError as problem:
                if attempt or "locked" in str(problem):
                    raise
                self._remove()

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to ask; an index that was deleted or spoilt meanwhile is made anew (and still empty)."""
        if not self.path.exists():
            self._prepare()
        with closing(self._open()) as db:
            yield db

    @property
    def version(self) -> int:
        """A number that changes whenever the index does."""
        with self.reading() as db:
            found: int = db.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()[0]
            return found

    # Growing.

    def progress(self) -> IndexProgress:
        """How much of the run's episodes and findings is in the index."""
        sizes = {name: path.stat().st_size for name, path in self._files().items() if name != TASKS}
        with self.reading() as db:
            known = db.execute("SELECT name, done, broken, problem FROM files WHERE name <> ?", (TASKS,)).fetchall()
        done = sum(min(d, sizes[n]) for n, d, _, _ in known if n in sizes)
        # An unfinished last line is no part of what there is to read.
        size = sum(sizes.values())
        waiting = sum(sizes[n] - d for n, d, _, _ in known if n in sizes and sizes[n] > d and self._tail(n, d))
        problem = next((f"{n}: {p}" for n, _, b, p in known if b), None)
        return IndexProgress(done, size - waiting, sum(b for _, _, b, _ in known), problem)

    def _tail(self, name: str, done: int) -> bool:
        """True if what follows is one unfinished line."""
        try:
            with open(self.run / name, "rb") as file:
                file.seek(done)
                rest = file.read(CHUNK)
                return b"\n" not in rest and len(rest) < CHUNK
        except OSError:
            return False

    def _files(self) -> dict[str, Path]:
        """The files to read by their name in the index: tasks, the episodes in the order of the run, what was found."""
        folder = self.run / "episodes"
        found = [p for p in folder.glob("*.jsonl") if p.is_file()] if folder.is_dir() else []
        found.sort(key=lambda p: (place_of(p.stem).moment, p.name))
        named = [
            (TASKS, self.run / TASKS),
            *((f"episodes/{p.name}", p) for p in found),
            (FINDINGS, self.run / FINDINGS),
        ]
        return {clean(name): path for name, path in named if path.is_file()}

    def refresh(self) -> bool:
        """Read everything that is new; True if anything was. A chunk at a time, each a transaction of its own."""
        return any([*self.steps()])

    def steps(self) -> Iterator[bool]:
        """``refresh``, giving way after every chunk; each item says whether something changed."""
        try:
            files = self._files()
            yield self._forget(files)
            with self.reading() as db:
                known = set(db.execute("SELECT name, inode, done, mtime FROM files"))
            for name, path in files.items():
                try:
                    status = path.stat()
                except FileNotFoundError:
                    continue
                # Most files of a large run never change again.
                if (name, status.st_ino, status.st_size, status.st_mtime_ns) not in known:
                    yield from self._read(name, path)
        except sqlite3.DatabaseError as problem:
            if "locked" in str(problem):
                return  # another process is at it
            self._remove()
            self._prepare()
            yield True

    def _forget(self, names: Container[str]) -> bool:
        with closing(self._open()) as db:
            gone = [(i, name) for i, name in db.execute("SELECT id, name FROM files") if name not in names]
            if gone:
                db.execute("BEGIN IMMEDIATE")
                for number, name in gone:
                    self._empty(db, name, number)
                    db.execute("DELETE FROM files WHERE id = ?", (number,))
                self._commit(db)
            return bool(gone)

    @staticmethod
    def _empty(db: sqlite3.Connection, name: str, number: int) -> None:
        """Forget what a file said."""
        if name == TASKS:
            db.execute("DELETE FROM tasks")
        elif name == FINDINGS:
            db.execute("DELETE FROM findings")
        else:
            db.execute("DELETE FROM episodes WHERE file = ?", (number,))

    def _read(self, name: str, path: Path) -> Iterator[bool]:
        """Read what is new in one file."""
        while True:
            try:
                with open(path, "rb") as file, closing(self._open()) as db:
                    status = os.fstat(file.fileno())
                    row = db.execute("SELECT inode, done FROM files WHERE name = ?", (name,)).fetchone()
                    db.execute("BEGIN IMMEDIATE")
                    number, done = self._known(db, name, file, status)
                    more, end = self._chunk(db, file, name, number, done)
                    file.seek(max(0, end - _PRINT))
                    db.execute(
                        "UPDATE files SET done = ?, mtime = ?, print = ? WHERE id = ?",
                        (end, status.st_mtime_ns, file.read(min(end, _PRINT)), number),
                    )
                    if row is not None and row[1] == end:  # nothing but an unfinished line, or a touched file
                        db.execute("COMMIT")
                        return
                    self._commit(db)
            except FileNotFoundError:
                return
            yield True
            if not more:
                return

    def _known(self, db: sqlite3.Connection, name: str, file: Any, status: os.stat_result) -> tuple[int, int]:
        """The file's number and how much of it has been read; 0 if it is new, or no longer the file that was read."""
        row = db.execute("SELECT id, inode, done, mtime, print FROM files WHERE name = ?", (name,)).fetchone()
        if row is None:
            made = db.execute(
                "INSERT INTO files (name, inode, done, mtime, print, broken) VALUES (?, ?, 0, 0, x'', 0)",
                (name, status.st_ino),
            )
            return int(made.lastrowid or 0), 0
        number, inode, done, mtime, seen = row
        file.seek(max(0, done - _PRINT))
        # A file that changed without growing has been edited; one that grew must still hold what was read last.
        grown = done < status.st_size or mtime == status.st_mtime_ns
        if inode == status.st_ino and grown and done <= status.st_size and file.read(len(seen)) == seen:
            return number, done
        self._empty(db, name, number)
        db.execute(
            "UPDATE files SET inode = ?, done = 0, print = x'', broken = 0, problem = NULL WHERE id = ?",
            (status.st_ino, number),
        )
        return number, 0

    def _chunk(self, db: sqlite3.Connection, file: Any, name: str, number: int, done: int) -> tuple[bool, int]:
        """Index whole lines from ``done`` on, about a chunk of them; (whether there is more, where it ended)."""
        statement, parse = _reader(name, number)
        file.seek(done)
        rows, broken, problem = [], 0, None
        at, more = done, False
        while True:
            line, length = _next(file)
            if not length:  # the end, or a line without its own
                break
            if line is None or line.strip():
                try:
                    if line is None:
                        raise ValueError(f"a line of {size_text(length)}, more than {size_text(LONGEST)}")
                    rows.append((*parse(line), at, length))
                except ValueError as reason:
                    broken += 1
                    problem = problem or f"at byte {at}: {reason}"[:300]
            at += length
            if at - done >= CHUNK:
                more = True
                break
        db.executemany(statement, rows)
        if broken:
            db.execute(
                "UPDATE files SET broken = broken + ?, problem = coalesce(problem, ?) WHERE id = ?",
                (broken, clean(problem), number),
            )
        return more, at

    @staticmethod
    def _commit(db: sqlite3.Connection) -> None:
        db.execute("UPDATE meta SET value = value + 1 WHERE name = 'version'")
        db.execute("COMMIT")

    # Texts.

    def line(self, name: str, start: int, length: int) -> bytes | None:
        """The bytes of a line that the index points to; None if the file is gone or too short."""
        try:
            with open(self.run / name, "rb") as file:
                file.seek(start)
                found = file.read(length)
        except OSError:
            return None
        return found if len(found) == length else None


def _next(file: BinaryIO) -> tuple[bytes | None, int]:
    """The next line and its length; None for a line longer than ``LONGEST``, 0 for one that has no end yet."""
    line = file.readline(LONGEST + 1)
    if line.endswith(b"\n") and len(line) <= LONGEST:
        return line, len(line)
    length = len(line)
    while line and not line.endswith(b"\n"):
        line = file.readline(1 << 20)
        length += len(line)
    return None, length if line else 0


def _reader(name: str, number: int) -> tuple[str, Callable[[bytes], tuple[Any, ...]]]:
    """How a file's lines become rows: the statement, and what makes its values but for where the line stands."""
    if name == TASKS:
        return _TASK, lambda line: (_task_name(line),)
    if name == FINDINGS:
        return _FINDING, lambda line: finding_of(line)[0]
    stem = name.removeprefix("episodes/").removesuffix(".jsonl")
    place = place_of(stem)
    return _INSERT, lambda line: (*values_of(row_of(line, stem, place)), number)


def _task_name(line: bytes) -> str:
    row = parse_json(line)
    if not isinstance(row, dict):
        raise ValueError("not an object")
    return clean(row.get("id"))[:LONGEST_NAME]
