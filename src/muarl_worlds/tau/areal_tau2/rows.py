"""The tasks of AReaL-tau2-data (inclusionAI, Apache-2.0) as their file has them, a JSON object on each line.

A line is a task of TAU2 in TAU2's own layout, but for two things: ``evaluation_criteria`` may be a string that holds
the JSON object, and ``db_path`` names the snapshot of the database that the task is played on. The format was read from
public loaders (docs/data.md names them); a field that none of them knows is counted and told, never dropped in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.untrusted import parse_json
from muarl.domains.tasks import Task
from muarl.records.rows import LineRules, PlacedRow, json_lines
from muarl.records.rows import field as read_field
from muarl_worlds.tau.tau2_benchmark.tasks import task_from_json

NAME = "areal-tau2"
DOMAINS = ("airline", "retail", "telecom")
TASKS_FILE = "tau2_rl_train.jsonl"
DATABASES = "tau2_rl_database"
_LINE = LineRules(most=16 << 20)

_FIELDS: Mapping[str, frozenset[str]] = {
    "": frozenset(
        (
            "id", "description", "user_scenario", "ticket", "initial_state", "evaluation_criteria", "user_tools",
            "db_path",
            # of how the task was made; kept in the file, and used by nothing here
            "issues", "required_documents", "pattern_id", "original_id", "reward", "op", "correct",
        )
    ),
    "user_scenario": frozenset(("persona", "instructions")),
    "user_scenario.instructions": frozenset(
        ("domain", "reason_for_call", "known_info", "unknown_info", "task_instructions")
    ),
    "initial_state": frozenset(("initialization_data", "initialization_actions", "message_history")),
    "evaluation_criteria": frozenset(
        ("actions", "env_assertions", "communicate_info", "nl_assertions", "reward_basis")
    ),
}  # fmt: skip
"""The fields that are known, by the object that they stand in."""


@dataclass(frozen=True)
class ArealTask:
    """One line: a task, and the snapshot that it is played on."""

    task: Task
    """As TAU2's own tasks are, but none of the benchmark. Its id is the file's; that of a line whose id stood on an
    earlier one ends in ``#2``, ``#3`` and so on."""

    domain: str
    """TAU2's name of the domain: one of DOMAINS."""

    snapshot: str
    """The name of a file in DATABASES."""

    row: Mapping[str, Any]
    """The line in the layout of TAU2's task files."""

    place: str
    """File and line."""


@dataclass
class ArealFile:
    """All lines of a file of tasks, read when they are asked for."""

    path: Path
    unknown: Counter[str] = field(default_factory=Counter)
    """Fields that are not known, with how many lines have them."""

    repeated: int = 0
    """Lines whose id stands on an earlier one."""

    def __iter__(self) -> Iterator[ArealTask]:
        """The tasks in order. DataError names file, line and field of what is wrong."""
        seen: Counter[str] = Counter()
        self.unknown.clear()
        for row in json_lines(self.path, _LINE):
            one = self._read(row)
            seen[one.task.id] += 1
            if (times := seen[one.task.id]) > 1:
                name = f"{one.task.id}#{times}"
                if name in seen:
                    raise DataError(f"{one.place}: the id {name!r} is used twice")
                seen[name] += 1
                one = replace(one, task=replace(one.task, id=name), row={**one.row, "id": name})
            yield one
        self.repeated = sum(times - 1 for name, times in seen.items() if times > 1)

    def _read(self, line: PlacedRow) -> ArealTask:
        row, place = dict(line.value), line.place
        name = read_field(row, "id", str, "a string", place)
        if not name:
            raise DataError(f"{place}: id must not be empty")
        row["evaluation_criteria"] = _criteria(row, place)
        if not isinstance(row.get("user_scenario"), Mapping):
            raise DataError(f"{place}: user_scenario must be an object")
        self._count_unknown(row)
        snapshot = _snapshot(read_field(row, "db_path", str, "a string", place), place)
        domain = _domain(row, place)
        try:
            task = task_from_json(row, f"{NAME}-{domain}")
        except DataError as problem:
            raise DataError(f"{place}: {problem}") from None
        tags = {**task.tags, "benchmark": None, "snapshot": snapshot}
        return ArealTask(replace(task, benchmark=False, tags=tags), domain, snapshot, row, place)

    def _count_unknown(self, row: Mapping[str, Any]) -> None:
        for where, known in _FIELDS.items():
            inside: Any = row
            for part in where.split(".") if where else ():
                inside = inside.get(part) if isinstance(inside, Mapping) else None
            if isinstance(inside, Mapping):
                self.unknown.update(f"{where}.{name}".lstrip(".") for name in inside.keys() - known)


def _criteria(row: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    given = row.get("evaluation_criteria")
    if isinstance(given, str):
        try:
            given = parse_json(given)
        except ValueError as problem:
            raise DataError(f"{place}: evaluation_criteria is a string, and not of JSON: {problem}") from None
    if not isinstance(given, Mapping):
        raise DataError(f"{place}: evaluation_criteria must be an object, or a string that holds one as JSON")
    return given


def _snapshot(db_path: str, place: str) -> str:
    """The name of the file. Its folder is always DATABASES: where a path leads on another machine is of no use here."""
    name = PurePosixPath(db_path.replace("\\", "/")).name
    if not name or name.startswith(".") or PurePosixPath(name).suffix not in (".json", ".toml"):
        raise DataError(f"{place}: db_path must name a .json or .toml file in {DATABASES}, not {db_path!r}")
    return name


def _domain(row: Mapping[str, Any], place: str) -> str:
    """What the scenario says, else what the id begins with. DataError if neither is a domain, or the two differ."""
    instructions = row["user_scenario"].get("instructions")
    told = instructions.get("domain") if isinstance(instructions, Mapping) else None
    begun = next((d for d in DOMAINS if row["id"].startswith(f"{d}_")), None)
    if told is not None and told not in DOMAINS:
        raise DataError(f"{place}: user_scenario.instructions.domain must be one of {', '.join(DOMAINS)}, not {told!r}")
    if told is not None and begun is not None and told != begun:
        raise DataError(f"{place}: the id {row['id']!r} is of {begun}, and user_scenario.instructions.domain is {told}")
    found = told or begun
    if found is None:
        raise DataError(
            f"{place}: neither user_scenario.instructions.domain nor the beginning of the id {row['id']!r} names one "
            f"of {', '.join(DOMAINS)}"
        )
    return str(found)
