"""Logs in any of the formats that are read, as rows that muarl reads: chat messages with tools, or an episode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muarl.records.formats import atif, otel, responses


@dataclass(frozen=True, slots=True)
class LogRow:
    """A row of a log: an object, where it stands (for errors), and its number there."""

    value: Mapping[str, Any]
    place: str
    number: int


def conversations(rows: Iterable[LogRow], lost: Counter[str]) -> Iterator[LogRow]:
    """The conversations of a log: ATIF trajectories, OTLP exports of GenAI spans and logged responses put into rows of
    chat messages (a trajectory of ours into an episode's), all other rows as they are.

    Spans and responses make up a conversation together, and so come last. ``lost`` counts, by kind, what has no place
    in a conversation. DataError for what is malformed.
    """
    spans, answered = otel.SpanLog(lost), responses.ResponseLog(lost)
    number = 0
    for row in rows:
        number = row.number
        if otel.is_export(row.value):
            spans.add(row.value, row.place)
        elif atif.is_trajectory(row.value):
            yield LogRow(atif.row_of(row.value, row.place, lost), row.place, number)
        elif responses.is_logged(row.value):
            answered.add(row.value, row.place)
        else:
            yield row
    for log in (answered, spans):
        for value, place in log.conversations():
            number += 1
            yield LogRow(value, place, number)


def what_is_lost(lost: Mapping[str, int]) -> str:
    """A sentence about what was left out; empty if nothing was."""
    if not lost:
        return ""
    return "Left out, as a conversation has no place for it: " + ", ".join(f"{n} {what}" for what, n in lost.items())
