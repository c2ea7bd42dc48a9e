"""AReaL-tau2-data on this machine: the file of tasks and the snapshots, installed whole and checked, or not at all.

There is no list of files to pin them to, since nobody here has seen them: every task and snapshot is read when they are
installed, and their sums are kept, so that a file that changes afterwards is noticed.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.files import write_text
from muarl.basics.untrusted import parse_json
from muarl.domains.database import Database
from muarl_worlds import data
from muarl_worlds.tau.areal_tau2.rows import DATABASES, NAME, TASKS_FILE, ArealFile

SOURCE = "inclusionAI/AReaL-tau2-data"
SUMS = "installed.json"
KNOWN_SUM = "5af43e8c58d58b4b3eb38cdd4650a3e93c89fa6d25382c2ef9981d8420d90f41"
"""The sha256 of TASKS_FILE at revision 1322eae, as okoge-kaz/miles has pinned it."""
DATABASE_BYTES = 256 << 20
"""Of a snapshot, at most."""
REMEDY = f"run `muarl data add {NAME} --from DIR` again"


class Snapshot(Database):
    """The database of some tasks, which goes to other processes by its name."""

    __slots__ = ("source",)

    source: tuple[str, str]
    """Domain, and the name of the file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return snapshot, self.source


def copy_into(source: Path, staging: Path) -> None:
    """Check the tasks and snapshots of a folder, and copy what they need. DataError names file, line and field of the
    first thing that is wrong, and what to do."""
    root = next((r for r in (source, source / "AReaL-tau2-data") if (r / TASKS_FILE).is_file()), None)
    if root is None:
        if not source.is_dir():
            raise DataError(f"--from {source}: no such folder")
        raise DataError(
            f"--from {source}: it has no {TASKS_FILE}. Download the data set first: hf download {SOURCE} "
            f"--repo-type dataset --local-dir DIR"
        )
    wanted: dict[tuple[str, str], str] = {}
    for one in ArealFile(root / TASKS_FILE):
        file = root / DATABASES / one.snapshot
        if not file.is_file():
            raise DataError(f"{one.place}: its db_path names {file}, which is not there: download all of {SOURCE}")
        wanted.setdefault((one.domain, one.snapshot), one.place)
    if not wanted:
        raise DataError(f"{root / TASKS_FILE}: holds no task")
    for (domain, name), place in wanted.items():
        try:
            read_database(domain, root / DATABASES / name)
        except DataError as problem:
            raise DataError(f"{place}: its db_path: {problem}") from None
    files = [TASKS_FILE, *sorted({f"{DATABASES}/{name}" for _, name in wanted})]
    for name in [*files, *(f for f in ("README.md", "LICENSE") if (root / f).is_file())]:
        target = staging / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target)
    write_text(staging / SUMS, json.dumps({file: data.sha256_of(staging / file) for file in files}, indent=1) + "\n")


def read_database(domain: str, file: Path) -> Database:
    """A snapshot in TAU2's schema of the domain. DataError names file, record and field."""
    from muarl_worlds.tau.airline.domain import airline_database
    from muarl_worlds.tau.retail.domain import retail_database
    from muarl_worlds.tau.telecom.records import telecom_database

    make = {"airline": airline_database, "retail": retail_database, "telecom": telecom_database}[domain]
    try:
        if file.stat().st_size > DATABASE_BYTES:
            raise DataError(f"{file}: is larger than {DATABASE_BYTES >> 20} MiB, which no snapshot should be")
        text = file.read_text(encoding="utf-8")
        tables = tomllib.loads(text) if file.suffix == ".toml" else parse_json(text)
    except OSError as problem:
        raise DataError(f"{file}: {problem.strerror or problem}") from None
    except ValueError as problem:  # broken JSON or TOML, or no UTF-8
        raise DataError(f"{file}: neither JSON nor TOML: {problem}") from None
    if not isinstance(tables, Mapping):
        raise DataError(f"{file}: must hold the tables of {domain}")
    try:
        return make(tables)
    except (DataError, KeyError, TypeError, ValueError, AttributeError) as problem:
        raise DataError(f"{file}: {problem}") from None


def snapshot(domain: str, name: str) -> Database:
    """An installed snapshot, one object in each process. DataError if it is not installed, or was changed."""
    return _snapshot(domain, name, installed())


@cache
def _snapshot(domain: str, name: str, folder: Path) -> Database:
    made = read_database(domain, folder / DATABASES / name)
    kept = object.__new__(Snapshot)
    for slot in Database.__slots__:
        setattr(kept, slot, getattr(made, slot))
    kept.source = (domain, name)
    return kept


def installed() -> Path:
    """The installed folder, its files checked once for as long as they stay as they are. DataError says what to do."""
    folder = data.home() / NAME
    if not (folder / SUMS).is_file():
        raise DataError(
            f"the tasks of {NAME} are not installed in {data.home()}: download {SOURCE} and run "
            f"`muarl data add {NAME} --from DIR`"
        )
    stamp = max(f.stat().st_mtime_ns for f in folder.rglob("*"))
    _check(folder, stamp)
    return folder


@cache
def _check(folder: Path, stamp: int) -> None:
    try:
        sums = json.loads((folder / SUMS).read_text(encoding="utf-8"))
        for file, known in sums.items():
            if not (folder / file).is_file() or data.sha256_of(folder / file) != known:
                raise DataError(f"{folder / file} is missing, or not as it was installed: {REMEDY}")
    except (OSError, ValueError, AttributeError) as problem:
        raise DataError(f"{folder / SUMS}: {problem}: {REMEDY}") from None


def about() -> list[str]:
    """What is installed, line by line: tasks by domain and snapshot, ids that stand twice, fields that are not known,
    and whether it is the revision whose sum is known."""
    folder = installed()
    file = ArealFile(folder / TASKS_FILE)
    tasks, by_snapshot = Counter[str](), Counter[str]()
    for one in file:
        tasks[one.domain] += 1
        by_snapshot[one.snapshot] += 1
    lines = [f"{tasks.total():,} tasks: {', '.join(f'{d} {n:,}' for d, n in tasks.items())}"]
    lines += [f"  {n:,} on {name}" for name, n in sorted(by_snapshot.items())]
    if file.repeated:
        lines.append(f"{file.repeated} tasks have the id of an earlier one: theirs end in #2, #3 and so on")
    lines += [
        f"unknown field {name} in {n:,} tasks: kept in the file, and not used" for name, n in file.unknown.items()
    ]
    known = json.loads((folder / SUMS).read_text(encoding="utf-8"))[TASKS_FILE] == KNOWN_SUM
    lines.append(f"{TASKS_FILE}: {'the' if known else 'not the'} file whose sum others have published (1322eae)")
    return lines
