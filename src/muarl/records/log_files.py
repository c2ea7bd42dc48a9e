"""Files of logged conversations, whatever their format: rows with the place of each, for errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.untrusted import FILE_BYTES, parse_json
from muarl.records.formats.logs import LogRow

NO_ROW = "must be an object with messages (or turns, for an episode of muarl)"


def rows_of_file(path: Path) -> Iterator[LogRow]:
    """The rows of a file of JSON lines, of one JSON value (an object, or a list of them) or of Parquet, and of all such
    files in a folder. DataError names what is none of that."""
    if path.is_dir():
        files = sorted(f for f in path.iterdir() if f.suffix in (".json", ".jsonl", ".parquet"))
        if not files:
            raise DataError(f"{path}: the folder holds no logs (*.json, *.jsonl, *.parquet)")
        for file in files:
            yield from rows_of_file(file)
    elif not path.is_file():
        raise DataError(f"{path}: there is no such file")
    elif path.suffix == ".parquet":
        yield from parquet_rows(path)
    elif is_lines(path):
        yield from lines_of(path)
    else:
        yield from rows_in(whole_value(path), path)


def lines_of(path: Path, *, unfinished_ok: bool = False) -> Iterator[LogRow]:
    """The objects of a file of JSON lines, line by line. ``unfinished_ok``: a last line without its end, which a run
    leaves that still writes, ends the file."""
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            place = f"{path}, line {number}"
            try:
                row = parse_json(line)
            except ValueError as problem:
                if unfinished_ok and not line.endswith("\n"):
                    return
                raise DataError(f"{place}: not JSON: {problem}. Fix or remove that line.") from None
            if not isinstance(row, Mapping):
                raise DataError(f"{place}: {NO_ROW}")
            yield LogRow(row, place, number)


def is_lines(path: Path) -> bool:
    """Whether a file has a JSON object on its first line, and is not one JSON value of several lines."""
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        first = next((line for line in lines if line.strip()), "")
        rest = next((line for line in lines if line.strip()), "")
    if not first:
        raise DataError(f"{path}: is empty")
    try:
        found = parse_json(first)
    except ValueError:
        return first.strip() not in ("{", "[") and not first.lstrip().startswith("[")
    return isinstance(found, Mapping) and not ({"simulations", "tasks"} <= set(found) and not rest)


def whole_value(path: Path) -> Any:
    """A file's one JSON value."""
    try:
        if path.stat().st_size > FILE_BYTES:
            raise ValueError(f"over {FILE_BYTES >> 20} MiB as one value; write a conversation a line")
        return parse_json(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as problem:
        raise DataError(f"{path}: neither JSON lines nor one JSON value: {problem}") from None


def rows_in(found: Any, path: Path) -> Iterator[LogRow]:
    """The conversations that one JSON value holds."""
    if isinstance(found, Mapping):
        yield LogRow(found, str(path), 1)
        return
    if not isinstance(found, list):
        raise DataError(f"{path}: must hold conversations: objects with messages, one a line")
    for i, row in enumerate(found):
        if not isinstance(row, Mapping):
            raise DataError(f"{path}, entry {i}: must be an object with messages")
        yield LogRow(row, f"{path}, entry {i}", i)


def parquet_rows(path: Path) -> Iterator[LogRow]:
    """The rows of a Parquet file, as ``muarl export --as rows`` writes them. ConfigError without pyarrow."""
    from muarl.basics.extras import require
    from muarl.records.formats.rows import read_parquet

    require("parquet", f"reading {path.name}")
    import pyarrow

    try:
        for number, row in enumerate(read_parquet(path), 1):
            yield LogRow(row, f"{path}, row {number}", number)
    except pyarrow.ArrowException as problem:
        raise DataError(f"{path}: not a Parquet file that can be read: {problem}") from None
