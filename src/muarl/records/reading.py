"""Conversations of any program, read: from files, folders and values, whatever their format.

    for conversation in read(Path("logs.jsonl")):
        print(conversation.place, conversation.task_id, len(conversation.messages))

Formats are asked in turn, row by row: those that installed packages bring, then muarl's own, of which the last takes
every row as chat messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import FILE_BYTES
from muarl.records.atif import Trajectories
from muarl.records.chat import ChatRows
from muarl.records.conversation import Format, LeftOutCounts, RecordedConversation
from muarl.records.episodes import Episodes
from muarl.records.otel import SpanLog
from muarl.records.parquet import parquet_rows
from muarl.records.responses import ResponseLog
from muarl.records.rows import (
    LOG_LINES,
    LineRules,
    PlacedRow,
    folder_files,
    is_lines,
    json_lines,
    value_rows,
    whole_value,
)

GROUP = "muarl.records"
"""The entry point group of formats that packages bring: classes like ``Format``."""
FORMATS: tuple[type[Format], ...] = (Trajectories, ResponseLog, SpanLog, Episodes, ChatRows)


def read(
    path: Path,
    left_out: LeftOutCounts | None = None,
    *,
    lines: LineRules = LOG_LINES,
    most: int | None = FILE_BYTES,
) -> Iterator[RecordedConversation]:
    """The conversations of a file of JSON lines, of one JSON value or of Parquet, of all such files in a folder, and of
    whatever else a format knows by its place.

    ``left_out`` counts what is left out; ``lines``: how lines are read; ``most``: bytes of a file that is one value.
    DataError names what is none of that.
    """
    return RecordReader(left_out, lines=lines, most=most).read(path)


class RecordReader:
    """One reading, by formats of its own: see ``read``."""

    def __init__(
        self, left_out: LeftOutCounts | None = None, *, lines: LineRules = LOG_LINES, most: int | None = FILE_BYTES
    ) -> None:
        self._lines, self._most = lines, most
        self.left_out = LeftOutCounts() if left_out is None else left_out
        self.formats: list[Format] = [make(self.left_out) for make in (*_brought(), *FORMATS)]

    def read(self, path: Path) -> Iterator[RecordedConversation]:
        """The conversations of a file or folder."""
        recorded = self._first(f.at(path) for f in self.formats)
        files = folder_files(path) if recorded is None and path.is_dir() else [path]
        yield from self.of_rows(row for file in files for row in self._rows(file)) if recorded is None else recorded

    def of_rows(self, rows: Iterable[PlacedRow]) -> Iterator[RecordedConversation]:
        """Those of rows; the ones that several rows make up together come last."""
        number = 0
        for row in rows:
            number = row.number
            yield from self._first(f.of_row(row) for f in self.formats) or ()
        for one in self.formats:
            for conversation in one.rest(number):
                number += 1
                yield conversation

    def _rows(self, path: Path) -> Iterator[PlacedRow]:
        if not path.is_file():
            raise DataError(f"{path}: there is no such file")
        if path.suffix == ".parquet":
            yield from parquet_rows(path)
        elif is_lines(path):
            yield from json_lines(path, self._lines)
        else:
            yield from value_rows(whole_value(path, self._most), path)

    @staticmethod
    def _first(answers: Iterable[Iterable[RecordedConversation] | None]) -> Iterable[RecordedConversation] | None:
        return next((answer for answer in answers if answer is not None), None)


def _brought() -> Iterator[type[Format]]:
    """The formats of installed packages. ConfigError for one that cannot be imported."""
    for point in metadata.entry_points(group=GROUP):
        try:
            yield point.load()
        except Exception as problem:
            text = f"{type(problem).__name__}: {problem}. Repair or remove the package that brings it"
            raise ConfigError(f"the format {point.name} ({point.value}) cannot be imported: {text}") from None
