"""Words in conversations: a filter's episodes are read in order, for a bounded time, until a page of them is found.

The index holds no texts, since with them it would be as large as the run. A line is parsed only if its bytes have the
words, and so some tens of thousands of episodes are looked through in a second.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from muarl.basics.untrusted import parse_json
from muarl_tools.view.queries import PAGE, Filter, IndexedEpisode, Spot, beside, episode, in_order
from muarl_tools.view.rows import clean, without_tokens

SECONDS = 2.0
"""A page's search gives up after this; it says how far it came, and another continues from there."""
AROUND = 60
"""Characters shown before and after what was found."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class TextHit:
    """What was found: who said it, and the text around it."""

    who: str
    before: str
    words: str
    after: str


@dataclass(frozen=True)
class SearchPage:
    """A page of a search. ``seen``: how many of the filter's episodes have been looked through, those skipped included;
    ``complete``: these were all."""

    found: tuple[tuple[IndexedEpisode, TextHit], ...]
    seen: int
    complete: bool


class Lines:
    """The lines of a run's files of episodes; one file is kept open."""

    def __init__(self, db: sqlite3.Connection, run: Path) -> None:
        self._names: dict[int, str] = dict(db.execute("SELECT id, name FROM files"))
        self._run, self._number = run, -1
        self._file: BinaryIO | None = None

    def __call__(self, at: Spot) -> bytes:
        """An episode's line; empty if it cannot be read."""
        try:
            if self._file is None or at.file != self._number:
                self.close()
                self._file = open(self._run / self._names[at.file], "rb")  # noqa: SIM115 - kept for the next one
                self._number = at.file
            self._file.seek(at.start)
            return self._file.read(at.length)
        except (OSError, KeyError):
            return b""

    def close(self) -> None:
        """Close the file that is open."""
        if self._file is not None:
            self._file.close()
        self._file, self._number = None, -1


def search(
    db: sqlite3.Connection,
    run: Path,
    wanted: Filter,
    skip: int = 0,
    *,
    seconds: float = SECONDS,
    now: Clock = time.monotonic,
) -> SearchPage:
    """The next page of a filter's episodes that hold ``wanted.text``, from the ``skip``th of them all on."""
    end = now() + seconds
    found: list[tuple[IndexedEpisode, TextHit]] = []
    seen = skip
    with closing(Lines(db, run)) as lines:
        for at in in_order(db, wanted, skip=skip):
            seen += 1
            hit = look(lines(at), at.name, wanted.text)
            row = None if hit is None else episode(db, at.key)
            if hit is not None and row is not None:
                found.append((row, hit))
            if len(found) >= PAGE or now() > end:
                return SearchPage(tuple(found), seen, False)
    return SearchPage(tuple(found), seen, True)


def next_hits(
    db: sqlite3.Connection, run: Path, wanted: Filter, at: IndexedEpisode, *, seconds: float = SECONDS / 4
) -> tuple[int | None, int | None]:
    """``queries.neighbours`` in a search; None, too, where the next one is too far to be found in time."""
    out: list[int | None] = []
    with closing(Lines(db, run)) as lines:
        for after in (False, True):
            end = time.monotonic() + seconds
            key = None
            for spot in beside(db, wanted, at, after=after):
                if look(lines(spot), spot.name, wanted.text) is not None:
                    key = spot.key
                    break
                if time.monotonic() > end:
                    break
            out.append(key)
    return out[0], out[1]


def look(line: bytes, name: str, text: str) -> TextHit | None:
    """Where an episode's messages, thoughts, calls or results first hold a text, in whatever case; ``name``: the
    episode that the line must be."""
    if not line or not text:
        return None
    # What JSON writes as it is can be looked for in the bytes, which is a hundred times as fast.
    plain = text.isascii() and text.isprintable() and not set(text) & {'"', "\\"}
    if plain and text.lower().encode() not in line.lower():
        return None
    try:
        data = parse_json(without_tokens(line)[0])
        if clean(data["id"]) != name:
            return None
        for who, said in _texts(data):
            if hit := _find(who, said, text):
                return hit
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return None


def _texts(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Everything that was said, and by whom."""
    for turn in data["turns"]:
        message = turn["message"]
        who = str(message.get("role"))
        for part in (message.get("reasoning"), message.get("content")):
            if isinstance(part, str):
                yield who, part
        for call in message.get("tool_calls") or ():
            yield who, str(call.get("name"))
            yield who, str(call.get("raw") or json.dumps(call.get("arguments"), ensure_ascii=False))


def _find(who: str, said: str, text: str) -> TextHit | None:
    at = said.lower().find(text.lower())
    if at < 0:
        return None
    # Some letters are longer in lower case; then the place may be off by a few.
    end = at + len(text)
    before, after = said[max(0, at - AROUND) : at], said[end : end + AROUND]
    return TextHit(
        who,
        ("…" if at > AROUND else "") + " ".join(before.split()) + (" " if before[-1:].isspace() else ""),
        said[at:end],
        (" " if after[:1].isspace() else "") + " ".join(after.split()) + ("…" if end + AROUND < len(said) else ""),
    )
