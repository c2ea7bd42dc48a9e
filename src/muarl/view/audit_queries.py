"""What pages ask the index about findings of the audit: those of some episodes, and what a file's come to."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from muarl.view.queries import Found

MOST = 400
"""Findings of one episode that are shown."""


class RuleMark(NamedTuple):
    """A rule that found something in an episode: how bad at worst (2: catastrophic), and how often."""

    rule: str
    layer: str
    severity: int
    times: int


def marks(db: sqlite3.Connection, found: Iterable[Found]) -> dict[int, list[RuleMark]]:
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
    counts that has findings at all, but for those that infrastructure ended."""
    if db.execute("SELECT 1 FROM findings LIMIT 1").fetchone() is None:
        return {}
    out: dict[str, Sum] = {}
    worst = "(SELECT max(severity) FROM findings WHERE findings.mark = episodes.mark)"
    each = f"SELECT file, stage, task, {worst} AS worst FROM episodes WHERE stop <> 'infrastructure'"
    sql = f"SELECT file, stage, task, count(*), count(worst), sum(worst = 2) FROM ({each}) GROUP BY file, task"
    rows = db.execute(sql).fetchall()
    audited = {file for file, _, _, _, marked, _ in rows if marked}
    for file, stage, task, n, _, grave in rows:
        if file in audited:
            found = out.setdefault(stage, Sum(stage))
            found.episodes += n
            found.tasks.setdefault(task, []).extend([True] * (grave or 0) + [False] * (n - (grave or 0)))
    joined = "FROM findings JOIN episodes USING (mark) WHERE stop <> 'infrastructure'"
    sql = f"SELECT stage, layer, count(DISTINCT mark) {joined} AND severity > 0 GROUP BY stage, layer"
    for stage, layer, n in db.execute(sql):
        out[stage].bad[layer] = n
    sql = f"SELECT stage, rule, min(layer), max(severity), count(DISTINCT mark) {joined} GROUP BY stage, rule"
    for stage, rule, layer, severity, n in db.execute(sql):
        out[stage].rules[rule] = (layer, severity, n)
    return out
