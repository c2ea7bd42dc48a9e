"""metrics.jsonl of a run that may still be running: read from where the last look ended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from muarl.basics.untrusted import parse_json

Row = Mapping[str, Any]

LONGEST, MOST_FIGURES, WORD = 1 << 20, 2000, 1000
"""Bytes of a line that is read, figures of a row, characters of a word in it: a step's row has some hundred figures."""
MOST_ROWS = 100_000
"""Rows that are kept; of more, every other one goes, and goes again."""


class RunMetrics:
    """The rows of metrics.jsonl, kept in memory. Lines that are broken or too long are passed over, and counted in
    ``broken``; ``thinned``: some rows were left out, so that sums are too low."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._inode = self._done = 0
        self._rows: dict[tuple[str, Any], Row] = {}
        self.broken = 0
        self.thinned = False
        self.version = 0

    def rows(self) -> list[Row]:
        """Every row so far, in order; of a step that a resumed run wrote twice, the later row."""
        with self._lock:
            self._read()
            return list(self._rows.values())

    def _read(self) -> None:
        try:
            with open(self._path, "rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._done:
                    self._inode, self._done, self.broken, self.thinned = status.st_ino, 0, 0, False
                    self._rows.clear()
                if status.st_size == self._done:
                    return
                file.seek(self._done)
                while line := file.readline(LONGEST + 1):
                    kept = line
                    while line and not line.endswith(b"\n"):  # a line that is too long, or has no end yet
                        line = file.readline(LONGEST)
                    if not line:
                        break
                    self._done = file.tell()
                    self._keep(kept)
                self.version += 1
        except OSError:
            return

    def _keep(self, line: bytes) -> None:
        try:
            row = parse_json(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or len(row) > MOST_FIGURES:
            self.broken += bool(line.strip())
            return
        key = str(row.get("phase", "")), repr(row.get("step"))
        self._rows.pop(key, None)
        self._rows[key] = {k: v for k, v in row.items() if not isinstance(v, str) or len(v) <= WORD}
        if len(self._rows) > MOST_ROWS:
            self.thinned = True
            for old in list(self._rows)[1:-1:2]:
                del self._rows[old]
