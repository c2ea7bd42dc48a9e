"""Rows with their place: the objects of JSON lines, of one JSON value, and of Parquet, and where each stands.

Files of lines are read line by line, so that their length does not matter. Every error names the file, and what is
within it the row.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.untrusted import FILE_BYTES, parse_json

AN_OBJECT = "must be an object"


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """An object of a file."""

    value: Mapping[str, Any]
    place: str
    """Where it stands, for errors."""
    number: int
    """Its line, from 1, or its number in a list, from 0."""
    path: Path
    """The file."""
    line: bool = False
    """Whether it is a line of its own."""


@dataclass(frozen=True, slots=True)
class LineRules:
    """How lines are read."""

    unfinished_ok: bool = False
    """A last line without its end, which a run leaves that still writes, ends the file."""
    errors: str = "strict"
    """What becomes of bytes that are no UTF-8, as Python calls it: "surrogateescape" keeps them, "surrogatepass" keeps
    halves of characters, "strict" is a DataError."""
    most: int | None = None
    """Bytes of a line at most; None: any number."""
    expected: str = AN_OBJECT
    """What is said of a line with another value."""
    remedy: str = ""
    """What is said behind the problem of a line that is no JSON."""


AS_WRITTEN = LineRules()


def json_lines(path: Path, rules: LineRules = AS_WRITTEN) -> Iterator[PlacedRow]:
    """The objects of a file of JSON lines; empty lines are passed over. DataError names file and line of anything
    else."""
    for number, line in text_lines(path, rules):
        place = f"{path}, line {number}"
        try:
            value = parse_json(line)
        except ValueError as problem:
            if rules.unfinished_ok and not line.endswith("\n"):
                return
            raise DataError(f"{place}: not JSON: {problem}{rules.remedy}") from None
        if not isinstance(value, dict):
            raise DataError(f"{place}: {rules.expected}")
        yield PlacedRow(value, place, number, path, line=True)


def text_lines(path: Path, rules: LineRules = AS_WRITTEN) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not empty, each with its number from 1. DataError if it cannot be read, or of a line
    of more than ``rules.most`` bytes, which is never read whole."""
    start = number = 0
    try:
        with open(path, "rb") as file:
            while raw := file.readline(-1 if rules.most is None else rules.most + 1):
                number += 1
                if rules.most is not None and len(raw) > rules.most:
                    text = f"is longer than {rules.most >> 20} MiB, which no such line should be."
                    raise DataError(f"{path}, line {number}: {text}")
                line = raw.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode("utf-8", rules.errors)
                if line.strip():
                    yield number, line
                start += len(raw)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except UnicodeDecodeError as problem:
        raise DataError(f"{path} is not UTF-8 text: {problem.reason} at byte {start + problem.start}") from None
    except OSError as problem:
        raise DataError(f"{path}: cannot be read: {problem.strerror or problem}") from None


def field(row: Any, name: str, kind: type[Any], words: str, place: str) -> Any:
    """A field of that kind. DataError if the row is no object, or the field is missing or of another kind."""
    if not isinstance(row, Mapping):
        raise DataError(f"{place}: must be an object")
    if name not in row:
        raise DataError(f"{place}: it lacks the field {name}")
    if not isinstance(row[name], kind):
        raise DataError(f"{place}: {name} must be {words}, not {type(row[name]).__name__}")
    return row[name]


def text_field(row: Mapping[str, Any], name: str, place: str) -> str:
    """A field that is text. DataError if it is missing or another value."""
    value = row.get(name)
    if not isinstance(value, str):
        raise DataError(f"{place}: {name} must be a string, not {type(value).__name__}")
    return value


def items(row: Mapping[str, Any], name: str, place: str) -> Iterator[tuple[Any, str]]:
    """The items of a list field, each with its place."""
    for i, item in enumerate(field(row, name, list, "a list", place)):
        yield item, f"{place}, {name}[{i}]"


# ---- files of logs


NO_ROW = "must be an object with messages (or turns, for an episode of muarl)"
LOG_LINES = LineRules(errors="surrogateescape", expected=NO_ROW, remedy=". Fix or remove that line.")
"""How lines of conversations are read that anybody may have written."""


def is_lines(path: Path) -> bool:
    """Whether a file has a JSON object on its first line, and is not one JSON value of several lines. DataError if it
    is empty."""
    first = next(text_lines(path, LOG_LINES), None)
    if first is None:
        raise DataError(f"{path}: is empty")
    _, line = first
    try:
        return isinstance(parse_json(line), dict)
    except ValueError:
        return line.strip() not in ("{", "[") and not line.lstrip().startswith("[")


def whole_value(path: Path, most: int | None = FILE_BYTES) -> Any:
    """A file's one JSON value, of so many bytes at most."""
    try:
        if most is not None and path.stat().st_size > most:
            raise ValueError(f"over {most >> 20} MiB as one value; write a conversation a line")
        return parse_json(path.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError) as problem:
        raise DataError(f"{path}: neither JSON lines nor one JSON value: {problem}") from None


def value_rows(value: Any, path: Path) -> Iterator[PlacedRow]:
    """The objects that one JSON value holds: itself, or those of a list."""
    if isinstance(value, Mapping):
        yield PlacedRow(value, str(path), 1, path)
        return
    if not isinstance(value, list):
        raise DataError(f"{path}: must hold conversations: objects with messages, one a line")
    for i, row in enumerate(value):
        if not isinstance(row, Mapping):
            raise DataError(f"{path}, entry {i}: must be an object with messages")
        yield PlacedRow(row, f"{path}, entry {i}", i, path)


def folder_files(path: Path) -> list[Path]:
    """The files of a folder that may hold conversations. DataError if there are none."""
    files = sorted(f for f in path.iterdir() if f.suffix in (".json", ".jsonl", ".parquet"))
    if not files:
        raise DataError(f"{path}: the folder holds no logs (*.json, *.jsonl, *.parquet)")
    return files
