"""Results of any program, read into one table: which kind a path is, and who reads it.

Everything is JSON, read within limits (basics/untrusted.py); nothing is unpickled or evaluated. A score is what a file
says; only result files of BFCL and ACEBench, which hold none, are scored here, with the benchmarks' own rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import parse_json
from muarl.records.rows import LineRules, json_lines, text_lines, value_rows
from muarl_tools.compare import benchmark_files, run_files
from muarl_tools.compare.attempts import Results, refuse_copies
from muarl_tools.compare.rows import read_rows
from muarl_worlds.tau import tau2_results
from muarl_worlds.tau.tau1_trajectories import Tau1Conversation

KINDS = (
    "a run or evaluation of muarl (its folder, or a file of episodes)",
    "TAU2's results.json or the folder it stands in",
    "TAU1's trajectories",
    "BFCL's result or score files (or a folder of them)",
    "ACEBench's result or score files (or a folder of them)",
    "JSON lines with task_id and success or reward, as muarl score writes them",
)
LINES_BYTES = 1 << 30
"""Of a file, or a line, of somebody else's, at most."""
LINES = LineRules(most=LINES_BYTES, errors="surrogatepass")


def read_all(words: Sequence[str]) -> list[Results]:
    """Results from PATH or NAME=PATH each, with names that differ. A single folder with evaluations before and after
    training gives both. ConfigError for a name given twice; DataError says what cannot be read."""
    named = [_named(word) for word in words]
    given = [name for name, _ in named if name is not None]
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise ConfigError(f"two runs are called {twice!r}: give each a name of its own")
    found: list[tuple[str | None, Results]] = []
    for name, path in named:
        single = len(named) == 1 and path.is_dir() and run_files.is_run(path)
        for results in run_files.read_stages(path) if single else [read(path)]:
            found.append((name if not single or name is None else f"{name} {results.name}", results))
    taken = _short_names([results for _, results in found])
    return [replace(results, name=name or short) for (name, results), short in zip(found, taken, strict=True)]


def read(path: Path) -> Results:
    """One path's results, named after it. DataError says what the file lacks, or what could be read instead."""
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder")
    found = _read(path)
    return found if found.kind == run_files.KIND else refuse_copies(found)  # a run's are read by their ids


def _read(path: Path) -> Results:
    if path.is_dir():
        return _folder(path)
    if (kind := benchmark_files.kind_of(path)) is not None:
        return benchmark_files.read(kind, path)
    if path.name == "results.json" and tau2_results.folder_of(path) is not None:
        return benchmark_files.tau2(tau2_results.read_folder(path.parent))
    return _file(path)


def _folder(path: Path) -> Results:
    if run_files.is_run(path):
        return run_files.read_run(path)
    if (path / "results.json").is_file():
        if (path / "simulations").is_dir():
            return benchmark_files.tau2(tau2_results.read_folder(path))
        return _file(path / "results.json")
    for kind in benchmark_files.KINDS:
        if benchmark_files.files(kind, path):
            return benchmark_files.read(kind, path)
    raise DataError(f"{path}: there are no results in this folder. It may be {'; '.join(KINDS)}")


def _file(path: Path) -> Results:
    """A file whose contents say what it is."""
    first = _first_line(path)
    if isinstance(first, dict) and {"turns", "stop"} <= set(first):
        return run_files.read_episodes_file(path)
    if isinstance(first, dict) and "traj" not in first and not tau2_results.is_results(first):
        return read_rows(path)
    value = _whole(path) if first is None else first
    if tau2_results.is_results(value):
        return benchmark_files.tau2(tau2_results.results(value, path))
    if not _is_historical(value):
        raise DataError(f"{path}: these are no results that muarl can read. It reads {'; '.join(KINDS)}")
    rows = json_lines(path, LINES) if isinstance(first, dict) else value_rows(value, path)
    return benchmark_files.tau1([Tau1Conversation(row).check() for row in rows], path)


def _is_historical(value: Any) -> bool:
    entries = value if isinstance(value, list) else [value]
    return bool(entries) and all(isinstance(entry, dict) and "traj" in entry for entry in entries)


def _first_line(path: Path) -> Any:
    """The value on the first line that is not empty; None where it is no whole value."""
    first = next(text_lines(path, LINES), None)
    if first is None:
        raise DataError(f"{path}: is empty")
    try:
        return parse_json(first[1])
    except (ValueError, RecursionError):
        return None


def _whole(path: Path) -> Any:
    try:
        if path.stat().st_size > LINES_BYTES:
            raise DataError(f"{path}: is larger than {LINES_BYTES >> 20} MiB, which no results file should be")
        return parse_json(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise DataError(f"{path}: cannot be read: {problem.strerror or problem}") from None
    except UnicodeDecodeError as problem:
        raise DataError(f"{path} is not UTF-8 text: {problem.reason} at byte {problem.start}") from None
    except ValueError as problem:
        raise DataError(f"{path} is not JSON: {problem}") from None


def _named(word: str) -> tuple[str | None, Path]:
    """(name, path) of NAME=PATH or PATH; a path that exists as it is written is one."""
    name, equals, path = word.partition("=")
    if equals and not Path(word).exists() and re.fullmatch(r"[^/\\]+", name):
        if not path:
            raise ConfigError(f"{word!r}: after the name comes the path of the results")
        return name, Path(path)
    return None, Path(word)


def _short_names(found: Sequence[Results]) -> list[str]:
    """What the runs are called where they were given no name: the last parts of their paths that set them apart."""
    names = [results.name for results in found]
    parts = [list(Path(results.path).resolve().parts[:-1]) for results in found]
    for _ in range(max(map(len, parts), default=0)):
        twice = {name for name in names if names.count(name) > 1}
        if not twice:
            break
        for i, name in enumerate(names):
            if name in twice and parts[i]:
                names[i] = f"{parts[i].pop()}/{name}"
    # Where all end alike, such as in /quickstart, the end says nothing.
    split = [name.split("/") for name in names]
    while len(names) > 1 and all(len(s) > 1 for s in split) and len({s[-1] for s in split}) == 1:
        split = [s[:-1] for s in split]
    names = ["/".join(s) for s in split]
    return [name if names.count(name) == 1 else f"{name} ({i + 1})" for i, name in enumerate(names)]
