"""What pages ask the index: lists of episodes by filter and page, their neighbours, and how tasks fare."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from muarl_tools.view.rows import COLUMNS, FIRST, LAST, IndexRow

PAGE = 50
RESULTS = {
    "solved": "solved = 1",
    "failed": "solved = 0",
    "partly": "reward > 0 AND solved = 0",
    "unscored": "reward IS NULL",
}
"""What the filter "result" can say, and what it asks of a row."""
SORTS = {
    "newest": ("moment", True),
    "oldest": ("moment", False),
    "longest": ("turns", True),
    "shortest": ("turns", False),
    "highest advantage": ("coalesce(advantage, -1e300)", True),
    "lowest advantage": ("coalesce(advantage, 1e300)", False),
    "most tool errors": ("tool_errors", True),
    "most expensive": ("cost", True),
    "worst findings": (
        "(SELECT coalesce(sum(CASE severity WHEN 2 THEN 1000000 ELSE severity * 1000 END), 0) FROM findings "
        "WHERE findings.mark = episodes.mark)",
        True,
    ),
}
SEVERITY_AT_LEAST = {"catastrophic": 2, "violation": 1, "note": 0}
"""What the filter "severity" can say: findings as bad as this, or worse."""
FACETS = ("stage", "domain", "intent", "persona", "stop")
_COLUMNS = f"{COLUMNS}, file, start, length"


@dataclass(frozen=True, slots=True)
class IndexedEpisode(IndexRow):
    """An episode as the index knows it, and where it stands: bytes ``start`` to ``start + length`` of file ``file``."""

    file: int
    start: int
    length: int


@dataclass(frozen=True)
class Filter:
    """Which episodes, in which order; every field is text from an address, "" where nothing is asked.

    ``steps``: "12" or "10-20". ``tool``: a tool that the agent called. ``trouble``: "user" (the user failed) or "tool".
    ``severity``, ``layer``, ``rule``: of one and the same finding of the audit. ``text``: words in the conversation;
    the index has no texts, so ``where`` leaves them out (see search.py).
    """

    stage: str = ""
    steps: str = ""
    task: str = ""
    domain: str = ""
    intent: str = ""
    persona: str = ""
    result: str = ""
    stop: str = ""
    tool: str = ""
    trouble: str = ""
    severity: str = ""
    layer: str = ""
    rule: str = ""
    group: str = ""
    text: str = ""
    sort: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filter:
        """From an address's query; what is unknown or nonsense is left out."""
        found = cls(**{f.name: query.get(f.name, "")[:300] for f in fields(cls)})
        return replace(
            found,
            result=found.result if found.result in RESULTS else "",
            sort=found.sort if found.sort in SORTS else "",
            trouble=found.trouble if found.trouble in ("user", "tool") else "",
            severity=found.severity if found.severity in SEVERITY_AT_LEAST else "",
            text=found.text.strip(),
            steps=found.steps if _span(found.steps) else "",
        )

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """The filter as it stands in addresses."""
        return tuple((f.name, v) for f in fields(self) if (v := getattr(self, f.name)))

    @property
    def narrowed(self) -> bool:
        """True if it leaves anything out."""
        return any(name != "sort" for name, _ in self.query)

    def where(self) -> tuple[str, list[Any]]:
        """The condition in SQL, and its values."""
        parts, values = ["1"], []
        for name in ("stage", "domain", "intent", "persona", "stop"):
            if value := getattr(self, name):
                parts.append(f"{name} = ?")
                values.append(value)
        if self.group:
            parts.append("grp = ?")
            values.append(self.group)
        if self.task:
            parts.append("instr(task, ?)")
            values.append(self.task)
        if self.tool:
            parts.append("instr(tools, ?)")
            values.append(f"\n{self.tool}\n")
        if span := _span(self.steps):
            parts.append("step BETWEEN ? AND ?")
            values += span
        if self.result:
            parts.append(f"({RESULTS[self.result]})")
        if self.trouble:
            parts.append("user_errors > 0" if self.trouble == "user" else "tool_errors > 0")
        if self.severity or self.layer or self.rule:
            asked = [("severity >= ?", SEVERITY_AT_LEAST.get(self.severity, 0))]
            asked += [(f"{name} = ?", value) for name in ("layer", "rule") if (value := getattr(self, name))]
            parts.append(f"mark IN (SELECT mark FROM findings WHERE {' AND '.join(sql for sql, _ in asked)})")
            values += [value for _, value in asked]
        return " AND ".join(parts), values


def _span(text: str) -> tuple[int, int] | None:
    first, dash, last = (part.strip() for part in text.partition("-"))
    if not first.isdecimal() or len(text) > 24 or not first.isascii():
        return None
    if not dash:
        return int(first), int(first)
    return (int(first), int(last) if last.isdecimal() and last.isascii() else LAST - 1)


def count(db: sqlite3.Connection, wanted: Filter) -> int:
    """How many episodes a filter lets through."""
    where, values = wanted.where()
    return int(db.execute(f"SELECT count(*) FROM episodes WHERE {where}", values).fetchone()[0])


def episodes(db: sqlite3.Connection, wanted: Filter, *, page: int = 0, size: int = PAGE) -> list[IndexedEpisode]:
    """One page of a filter's episodes."""
    where, values = wanted.where()
    by, down = SORTS[wanted.sort or "newest"]
    way = "DESC" if down else "ASC"
    sql = f"SELECT {_COLUMNS} FROM episodes WHERE {where} ORDER BY {_order(by, way)} LIMIT ? OFFSET ?"
    return [IndexedEpisode(*row) for row in db.execute(sql, [*values, size, page * size])]


def _order(by: str, way: str) -> str:
    return ", ".join(f"{column} {way}" for column in dict.fromkeys((by, "moment", "file", "start")))


def episode(db: sqlite3.Connection, key: int) -> IndexedEpisode | None:
    """One episode by its key."""
    row = db.execute(f"SELECT {_COLUMNS} FROM episodes WHERE key = ?", (key,)).fetchone()
    return None if row is None else IndexedEpisode(*row)


class Spot(NamedTuple):
    """Where an episode stands."""

    key: int
    name: str
    file: int
    start: int
    length: int


_SPOT = "SELECT key, name, file, start, length FROM episodes"


def in_order(db: sqlite3.Connection, wanted: Filter, *, skip: int = 0) -> Iterator[Spot]:
    """A filter's episodes one after another, as many as the caller takes, from the ``skip``th on."""
    where, values = wanted.where()
    by, down = SORTS[wanted.sort or "newest"]
    sql = f"{_SPOT} WHERE {where} ORDER BY {_order(by, 'DESC' if down else 'ASC')} LIMIT -1 OFFSET ?"
    for row in db.execute(sql, [*values, skip]):
        yield Spot(*row)


def beside(
    db: sqlite3.Connection, wanted: Filter, at: IndexedEpisode, *, after: bool, most: int = -1
) -> Iterator[Spot]:
    """The episodes after (or before) one in a filter's list, the nearest first; ``most``: -1 for all."""
    where, values = wanted.where()
    by, down = SORTS[wanted.sort or "newest"]
    mark = db.execute(f"SELECT {by} FROM episodes WHERE key = ?", (at.key,)).fetchone()
    if mark is None:
        return
    way, sign = ("DESC", "<") if after == down else ("ASC", ">")
    sql = (
        f"{_SPOT} WHERE {where} AND ({by}, moment, file, start) {sign} (?, ?, ?, ?) ORDER BY {_order(by, way)} LIMIT ?"
    )
    for row in db.execute(sql, [*values, mark[0], at.moment, at.file, at.start, most]):
        yield Spot(*row)


def neighbours(db: sqlite3.Connection, wanted: Filter, at: IndexedEpisode) -> tuple[int | None, int | None]:
    """Keys of the episodes before and after one in a filter's list; None at its ends."""
    before, after = (next(beside(db, wanted, at, after=way, most=1), None) for way in (False, True))
    return None if before is None else before.key, None if after is None else after.key


def facets(db: sqlite3.Connection) -> dict[str, list[tuple[str, int]]]:
    """For every facet its values and how many episodes have each, frequent ones first; stages in the run's order."""
    out = {}
    for name in FACETS:
        order = "min(moment), 1" if name == "stage" else "2 DESC, 1"
        sql = f"SELECT {name}, count(*) FROM episodes WHERE {name} <> '' GROUP BY {name} ORDER BY {order} LIMIT 200"
        out[name] = [(str(value), int(n)) for value, n in db.execute(sql)]
    found: dict[str, int] = {}
    for tools, n in db.execute("SELECT tools, count(*) FROM episodes GROUP BY tools"):
        for tool in tools.split("\n"):
            if tool:
                found[tool] = found.get(tool, 0) + n
    out["tool"] = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:200]
    for name in ("layer", "rule"):
        sql = (
            f"SELECT {name}, count(DISTINCT mark) FROM findings GROUP BY {name} ORDER BY max(severity) DESC, 2 DESC, 1"
        )
        out[name] = [(str(value), int(n)) for value, n in db.execute(f"{sql} LIMIT 200")]
    worst = db.execute("SELECT severity, count(*) FROM (SELECT max(severity) AS severity FROM findings GROUP BY mark) "
                       "GROUP BY severity").fetchall()  # fmt: skip
    out["severity"] = [
        (name, n) for name, least in SEVERITY_AT_LEAST.items() if (n := sum(k for s, k in worst if s >= least))
    ]
    return out


class StageMeans(NamedTuple):
    """Episodes of one stage together: means over scored ones (``without_violation``: over audited ones), except
    ``episodes``, ``cost`` and ``excluded``."""

    stage: str
    episodes: int
    tasks: int
    success: float | None
    without_violation: float | None
    turns: float
    tokens: float
    tool_errors: float
    user_errors: float
    excluded: int
    cost: float


_MEANS = (
    "stage, count(*), count(DISTINCT task), avg(solved), avg(without_violation), avg(turns), avg(tokens), "
    "avg(tool_errors), avg(user_errors > 0), sum(stop = 'infrastructure'), sum(cost)"
)


def stages(db: sqlite3.Connection) -> list[StageMeans]:
    """Every stage of the run, in order."""
    rows = db.execute(f"SELECT {_MEANS} FROM episodes GROUP BY stage ORDER BY min(moment)")
    return [StageMeans(*row) for row in rows]


def stages_by_domain(db: sqlite3.Connection) -> list[tuple[str, StageMeans]]:
    """(domain, means of one stage in it), in order; none for a run of one domain."""
    rows = db.execute(
        f"SELECT domain, {_MEANS} FROM episodes WHERE domain <> '' GROUP BY stage, domain ORDER BY min(moment), domain"
    )
    return [(str(domain), StageMeans(*means)) for domain, *means in rows]


def by_moment(db: sqlite3.Connection, figure: str, condition: str = "1") -> list[tuple[float, float]]:
    """(step, mean of an expression) over training steps on file. ``figure`` and ``condition`` are SQL of this module's
    callers, never text from outside."""
    sql = (
        f"SELECT step, avg({figure}) FROM episodes WHERE stage = 'training' AND {condition} GROUP BY step ORDER BY step"
    )
    return [(float(x), float(y)) for x, y in db.execute(sql) if x is not None and y is not None]


@dataclass
class Fate:
    """How one task (or kind of task) fared: ``seen``, (moment, share solved, attempts) in order of moments."""

    name: str
    intent: str = ""
    persona: str = ""
    difficulty: str = ""
    seen: list[tuple[int, float, int]] = field(default_factory=list)

    @property
    def attempts(self) -> int:
        return sum(n for _, _, n in self.seen)

    @property
    def success(self) -> float:
        """Share of all attempts that solved it."""
        return sum(share * n for _, share, n in self.seen) / self.attempts

    def half(self, second: bool) -> float | None:
        """Share solved earlier or later: in the evaluations before and after training where it was in both, else in
        the halves of its moments (the middle of an odd number is in the later one). None if it had one moment only."""
        measured = self.seen[0][0] == FIRST and self.seen[-1][0] == LAST
        if measured:
            return self.seen[-1 if second else 0][1]
        size = len(self.seen) // 2
        part = (self.seen[size:] if second else self.seen[:size]) if size else []
        attempts = sum(n for _, _, n in part)
        return sum(share * n for _, share, n in part) / attempts if attempts else None

    @property
    def change(self) -> float | None:
        """Later half minus earlier half."""
        early, late = self.half(False), self.half(True)
        return None if early is None or late is None else late - early


def fates(db: sqlite3.Connection, by: str = "task") -> list[Fate]:
    """How every task fared, or every ``by="domain"``, "intent" or "persona"; demonstrations, which are somebody else's,
    are left out."""
    column = by if by in ("task", "domain", "intent", "persona", "difficulty") else "task"
    found: dict[str, Fate] = {}
    rows = db.execute(
        f"SELECT {column}, moment, avg(solved), count(*), min(intent), min(persona), min(difficulty) FROM episodes "
        f"WHERE solved IS NOT NULL AND {column} <> '' AND (moment >= ? OR NOT EXISTS "
        f"(SELECT 1 FROM episodes WHERE moment >= ?)) GROUP BY {column}, moment ORDER BY {column}, moment",
        (FIRST, FIRST),
    )
    for name, moment, share, n, intent, persona, difficulty in rows:
        fate = found.get(name)
        if fate is None:
            fate = found[name] = Fate(str(name), intent or "", persona or "", difficulty or "")
        fate.seen.append((moment, share, n))
    return list(found.values())


def chosen(found: Sequence[Fate], kind: str) -> list[Fate]:
    """The hardest, newly learnt or forgotten of some tasks, the clearest cases first; for any other word all, by name.

    Learnt: solved in at least half of the later attempts, and at least 0.3 more often than in the earlier ones.
    Forgotten: the other way round.
    """
    if kind == "hardest":
        return sorted((f for f in found if f.success < 0.5), key=lambda f: (f.success, -f.attempts, f.name))
    moved = [(f, f.half(False), f.half(True)) for f in found]
    known = [(f, early, late) for f, early, late in moved if early is not None and late is not None]
    if kind == "learnt":
        kept = [(f, late - early) for f, early, late in known if late >= 0.5 and late - early >= 0.3]
    elif kind == "forgotten":
        kept = [(f, early - late) for f, early, late in known if early >= 0.5 and early - late >= 0.3]
    else:
        return sorted(found, key=lambda f: f.name)
    return [f for f, _ in sorted(kept, key=lambda p: (-p[1], -p[0].attempts, p[0].name))]


def group_rewards(db: sqlite3.Connection, group: str, stage: str) -> list[float]:
    """The rewards of a group's scored episodes."""
    sql = "SELECT reward FROM episodes WHERE grp = ? AND stage = ? AND reward IS NOT NULL"
    return [float(r) for (r,) in db.execute(sql, (group, stage))]


def first_and_last(attempts: Sequence[IndexedEpisode]) -> tuple[IndexedEpisode, IndexedEpisode] | None:
    """The earliest and the latest scored attempt at a task, demonstrations aside; None where there is but one."""
    own = [e for e in attempts if e.solved is not None and e.moment >= FIRST]
    return (own[0], own[-1]) if len(own) > 1 else None


def of_group(db: sqlite3.Connection, group: str, stage: str, most: int) -> list[IndexedEpisode]:
    """The episodes of one group, in the order of the file."""
    sql = f"SELECT {_COLUMNS} FROM episodes WHERE grp = ? AND stage = ? ORDER BY file, start LIMIT ?"
    return [IndexedEpisode(*row) for row in db.execute(sql, (group, stage, most))]


def of_task(db: sqlite3.Connection, task: str, most: int = 400) -> list[IndexedEpisode]:
    """A task's episodes in the order of the run."""
    sql = f"SELECT {_COLUMNS} FROM episodes WHERE task = ? ORDER BY moment, file, start LIMIT ?"
    return [IndexedEpisode(*row) for row in db.execute(sql, (task, most))]
