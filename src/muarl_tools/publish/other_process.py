"""Measuring an environment of one's own in another process, which also notes which files its code reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import muarl_tools
from muarl.basics.errors import ConfigError, MuarlError
from muarl.environments.environment import Environment
from muarl.environments.registry import load_reference
from muarl_tools.checks.environment.other_process import fingerprint
from muarl_tools.publish.measuring import EnvironmentFigures, measure

CODE = "from muarl_tools.publish.other_process import answer; answer()"
DEADLINE = 3600.0
"""Seconds that the other process may take."""
SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share", "/usr/local/lib")
"""Folders of the operating system, whose files a program may read anywhere."""


@dataclass(frozen=True, slots=True)
class MeasuredElsewhere:
    """What another process measured, and what it needed for it."""

    measured: EnvironmentFigures
    """The figures."""

    tasks: Sequence[str]
    """The fingerprints of the tasks that were played."""

    read: frozenset[Path]
    """Files that it read, besides Python's and those of installed packages."""

    modules: Mapping[str, Path]
    """The modules that were imported from files outside installed packages: their files by name."""


def measured_elsewhere(
    reference: str, *, size: str | None, tasks: int, seed: int, hash_seed: int, folder: Path
) -> MeasuredElsewhere:
    """Measure the environment of a reference to a file in another process, whose current folder is ``folder`` and whose
    hashes come from ``hash_seed``. ConfigError where it cannot be loaded or measured there."""
    asked: dict[str, Any] = {"path": [str(Path(p).absolute()) for p in sys.path], "reference": reference}
    asked |= {"size": size, "tasks": tasks, "seed": seed}
    environ = {
        **os.environ,
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONPATH": str(Path(muarl_tools.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", CODE], input=json.dumps(asked), capture_output=True, text=True, env=environ,
            timeout=DEADLINE, check=False, cwd=folder,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{reference} was not measured within {DEADLINE:.0f} s: give fewer --tasks") from None
    try:
        told = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ConfigError(f"{reference} could not be measured in another process: {last}") from None
    if "error" in told:
        raise ConfigError(told["error"])
    modules = {name: Path(file) for name, file in told["modules"].items()}
    measured, read = EnvironmentFigures.of_json(told["measured"]), frozenset(map(Path, told["read"]))
    return MeasuredElsewhere(measured, told["tasks"], read, modules)


def answer() -> None:
    """What the other process does: reads what is wanted from its standard input, prints a line of JSON."""
    asked = json.load(sys.stdin)
    sys.path.extend(place for place in asked["path"] if place not in sys.path)
    reads = _Reads()
    sys.addaudithook(reads.note)
    try:
        environment = load_reference(asked["reference"])
        measured = measure(environment, size=asked["size"], tasks=asked["tasks"], seed=asked["seed"])
        played = environment.make_tasks(measured.split, asked["tasks"], size=asked["size"], seed=asked["seed"])
        _look_at_all(environment)
    except MuarlError as problem:
        sys.stdout.write("\n" + json.dumps({"error": str(problem)}) + "\n")
        return
    installed = _installed(Path(asked["reference"].rpartition(":")[0]).parent)
    modules = {n: str(p) for n, m in list(sys.modules.items()) if (p := _file_of(m)) and not _below(p, installed)}
    read = sorted(str(p) for p in reads.files() if not _below(p, installed))
    told: dict[str, Any] = {"measured": asdict(measured), "read": read, "modules": modules}
    told["tasks"] = [fingerprint(task) for task in played]
    sys.stdout.write("\n" + json.dumps(told) + "\n")


def _look_at_all(environment: Environment) -> None:
    """Look at a task of each size and split, so that the files of those that were not measured are read, too."""
    for size in environment.sizes or (None,):
        place = environment.place(size)
        for split in environment.splits:
            for task in environment.make_tasks(split, 1, size=size):
                place.system_prompt(task)
                place.tools(task)


class _Reads:
    """The files that this process opens, by Python's audit events. SQLite's come as connections."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.written: set[str] = set()

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            name, _, flags = arguments
            if isinstance(name, (str, bytes, os.PathLike)):
                writes = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
                (self.written if writes else self.read).add(_absolute(os.fsdecode(name)))
        elif event == "sqlite3.connect" and isinstance(arguments[0], (str, bytes, os.PathLike)):
            name = os.fsdecode(arguments[0])
            if name.startswith("file:"):
                name = unquote(name.removeprefix("file:").partition("?")[0])
            if name and name != ":memory:":
                self.read.add(_absolute(name))

    def files(self) -> set[Path]:
        """Those that were there to be read: not what this process wrote itself, and no compiled code."""
        names = (name for name in self.read - self.written if not name.endswith(".pyc"))
        return {path for name in names if (path := Path(name)).is_file()}


def _installed(own: Path) -> tuple[Path, ...]:
    """Folders that are the system's, Python's or an installed package's. ``own``: the environment's folder, which is
    none of them though Python may find modules there."""
    python = (sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(os.__file__).parent))
    places = {Path(place).resolve() for place in (*python, *SYSTEM, *filter(os.path.isdir, sys.path))}
    return tuple(place for place in places if not own.resolve().is_relative_to(place))


def _absolute(name: str) -> str:
    """The whole path, without ".." in it, but with symbolic links as they are: what they lead to is copied."""
    return os.path.normpath(Path(name).absolute())


def _below(path: Path, places: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(place) or path.resolve().is_relative_to(place) for place in places)


def _file_of(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if isinstance(file, str) and file.endswith(".py") else None
