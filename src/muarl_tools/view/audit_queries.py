"""What pages ask the index about findings of the audit: those of some episodes, and what a file's come to."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from muarl_tools.view.queries import IndexedEpisode

GRAVE = 2
"""The severity of a catastrophic finding in the index."""
SUMMED = 20_000
"""Findings that are summed up while somebody waits. Evaluations sum theirs up themselves, in summary.json."""
MOST = 400
"""Findings of one episode that are shown."""


class RuleMark(NamedTuple):
    """A rule that found something in an episode: how bad at worst (2: catastrophic), and how often."""

    rule: str
    layer: str
    severity: int
    times: int


def marks(db: sqlite3.Connection, found: Iterable[IndexedEpisode]) -> dict[int, list[RuleMark]]:
    """By episode (its ``mark``) the rules that found something in it, the worst first."""
    wanted = [e.mark for e in found]
    out: dict[int, list[RuleMark]] = {}
    sql = (
        "SELECT mark, rule, layer, max(severity), count(*) FROM findings "
        f"WHERE mark IN ({', '.join('?' * len(wanted))}) GROUP BY mark, rule, layer ORDER BY 4 DESC, 5 DESC, rule"
    )
    for mark, *row in db.execute(sql, wanted):
        out.setdefault(mark, []).append(RuleMark(*row))
    return out


def places(db: sqlite3.Connection, mark: int) -> list[tuple[int, int]]:
    """Where an episode's findings stand in findings.jsonl: start and length of each line."""
    sql = "SELECT start, length FROM findings WHERE mark = ? ORDER BY start LIMIT ?"
    return [(int(start), int(length)) for start, length in db.execute(sql, (mark, MOST))]


@dataclass
class Sum:
    """What the findings of one stage's files come to. ``tasks``: for every task, of each audited episode whether it
    has a catastrophic finding. ``bad``: episodes with a violation, by layer. ``rules``: by rule its layer, severity at
    worst, and the number of episodes."""

    stage: str
    episodes: int = 0
    tasks: dict[str, list[bool]] = field(default_factory=dict)
    bad: dict[str, int] = field(default_factory=dict)
    rules: dict[str, tuple[str, int, int]] = field(default_factory=dict)


def sums(db: sqlite3.Connection) -> dict[str, Sum]:
    """For every stage that has findings what they come to. An audit looks at whole files, so every episode of a file
    counts that has findings at all, but for those that infrastructure ended. Empty if there are more than ``SUMMED``.
    """
    found = db.execute("SELECT mark, layer, rule, severity FROM findings LIMIT ?", (SUMMED + 1,)).fetchall()
    if not 0 < len(found) <= SUMMED:
        return {}
    worst: dict[int, int] = {}
    for mark, _, _, severity in found:
        if severity > worst.get(mark, -1):
            worst[mark] = severity
    # Rows are put together here, since joins and distinct counts of many findings take SQLite several times as long.
    rows = db.execute("SELECT mark, file, stage, task FROM episodes WHERE stop <> 'infrastructure'").fetchall()
    audited = {file for mark, file, _, _ in rows if mark in worst}
    out: dict[str, Sum] = {}
    stages: dict[int, str] = {}
    for mark, file, stage, task in rows:
        if file in audited:
            part = out.get(stage) or out.setdefault(stage, Sum(stage))
            part.episodes += 1
            part.tasks.setdefault(task, []).append(worst.get(mark) == GRAVE)
            if mark in worst:
                stages[mark] = stage
    for mark, layer in {(mark, layer) for mark, layer, _, severity in found if severity > 0}:
        if mark in stages:
            bad = out[stages[mark]].bad
            bad[layer] = bad.get(layer, 0) + 1
    counted: set[tuple[int, str]] = set()
    for mark, layer, rule, severity in found:
        if mark in stages:
            rules = out[stages[mark]].rules
            known, most, times = rules.get(rule, (layer, severity, 0))
            new = (mark, rule) not in counted
            counted.add((mark, rule))
            rules[rule] = (min(known, layer), max(most, severity), times + new)
    return out
