"""JSON lines with an attempt each, as ``muarl score`` and anybody's script write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muarl.comparison.attempts import Excluded, PlayedTask, Results, numbered
from muarl.errors import DataError
from muarl.metrics import SUCCESS_WITHOUT_VIOLATION, is_success
from muarl.untrusted import parse_json, read_lines


@dataclass
class _Read:
    """What a file's lines say so far."""

    rows: list[tuple[str, int | None, int | None, bool | None, str, bool | None]] = field(default_factory=list)
    told: dict[str, dict[str, None]] = field(default_factory=dict)


def read_rows(path: Path) -> Results:
    """A file whose lines have ``task_id`` (or ``id``) and ``success``, ``valid`` or ``reward``, and may have ``trial``,
    ``seed``, ``domain``, ``agent``, ``user``, ``judge``, ``excluded``, ``error`` and ``success_without_violation``
    (true, false; null or absent: not checked). A null reward is an attempt that
    could not be scored. Of lines with ``verdict`` (``muarl score --verdicts``), the first of each conversation is its
    score. DataError names line and field."""
    found = _Read()
    try:
        for number, line in read_lines(path):
            if not line.strip():
                continue
            place = f"{path}, line {number}"
            try:
                row = parse_json(line)
            except ValueError as problem:
                raise DataError(f"{place}: not JSON: {problem}") from None
            if not isinstance(row, dict):
                raise DataError(f"{place}: must be an object, not {type(row).__name__}")
            if row.get("verdict", 0) == 0:
                _take(row, place, found)
    except OSError as problem:
        raise DataError(f"{path}: cannot be read: {problem.strerror or problem}") from None
    trials = numbered([(task, trial) for task, trial, *_ in found.rows], str(path))
    attempts, excluded = list[PlayedTask](), list[Excluded]()
    for (task, _, seed, good, why, clean), trial in zip(found.rows, trials, strict=True):
        if good is None:
            excluded.append(Excluded(task, trial, why, seed))
        else:
            attempts.append(PlayedTask(task, trial, good, seed, clean=clean))
    told = {name: ", ".join(values) for name, values in found.told.items()}
    return Results(
        name=path.stem,
        path=str(path),
        kind="rows",
        attempts=tuple(attempts),
        excluded=tuple(excluded),
        domain=told.get("domain"),
        agent=told.get("agent"),
        user=told.get("user"),
        judge=told.get("judge"),
    )


def _take(row: Mapping[str, Any], place: str, found: _Read) -> None:
    task = row.get("task_id", row.get("id"))
    if type(task) not in (str, int):
        raise DataError(f"{place}: it lacks the field task_id (a text or a number)")
    good, why = _outcome(row, place)
    numbers = {name: row.get(name) for name in ("trial", "seed")}
    for name, value in numbers.items():
        if value is not None and type(value) is not int:
            raise DataError(f"{place}: {name} must be a whole number, not {value!r}")
    clean = row.get(SUCCESS_WITHOUT_VIOLATION)
    if clean is not None and not isinstance(clean, bool):
        raise DataError(f"{place}: {SUCCESS_WITHOUT_VIOLATION} must be true, false or null, not {clean!r}")
    for name in ("domain", "agent", "user", "judge"):
        if isinstance(value := row.get(name), str):
            found.told.setdefault(name, {})[value] = None
    domain = row.get("domain")
    several = f"{domain}:{task}" if isinstance(domain, str) and len(found.told["domain"]) > 1 else str(task)
    found.rows.append((several, numbers["trial"], numbers["seed"], good, why, clean))


def _outcome(row: Mapping[str, Any], place: str) -> tuple[bool | None, str]:
    """(success, why not): success None where the attempt may not be counted."""
    if row.get("excluded"):
        return None, str(row.get("error") or "excluded")
    name = next((n for n in ("success", "valid", "reward") if n in row), None)
    if name is None:
        raise DataError(f"{place}: it lacks the field success (or valid, or reward)")
    value = row[name]
    if value is None:
        return None, str(row.get("error") or "it could not be scored")
    if isinstance(value, bool):
        return value, ""
    if isinstance(value, (int, float)):
        return is_success(float(value)), ""
    raise DataError(f"{place}: {name} must be true, false, a number or null, not {value!r}")


def verdicts_of(path: Path) -> dict[str, list[list[bool]]]:
    """All verdicts on each conversation of a file of ``muarl score --verdicts N``, by task; empty if it is none.

    Conversations that a verdict is missing of are left out.
    """
    by_task: dict[str, dict[int, list[bool | None]]] = {}
    counts: dict[tuple[str, int], int] = {}
    try:
        for number, line in read_lines(path):
            row = parse_json(line) if line.strip() else None
            if not isinstance(row, dict) or type(row.get("verdict")) is not int:
                continue
            task, judged = str(row.get("task_id", row.get("id"))), row["verdict"]
            conversation = counts.get((task, judged), 0)
            counts[task, judged] = conversation + 1
            good, _ = _outcome(row, f"{path}, line {number}")
            by_task.setdefault(task, {}).setdefault(conversation, []).append(good)
    except (OSError, ValueError):
        return {}
    most = max((len(c) for own in by_task.values() for c in own.values()), default=0)
    out = {}
    for task, own in by_task.items():
        whole = [[bool(v) for v in c] for c in own.values() if len(c) == most and None not in c]
        if whole:
            out[task] = whole
    return out
