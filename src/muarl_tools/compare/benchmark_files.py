"""The benchmarks' own files as results: TAU2's, TAU1's, BFCL's and ACEBench's.

BFCL's and ACEBench's are known by their names. A score file of theirs begins with a line of totals and lists failures
only, so that the tasks that succeeded are known by number (ACEBench; BFCL's multi-turn categories) or from the result
file beside it. Result files hold no score: they are scored here, by the benchmarks' own rules, which needs the
installed data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.accounts.metrics import is_success
from muarl.basics.errors import DataError
from muarl.records.rows import json_lines
from muarl_tools.compare.attempts import Excluded, PlayedTask, Results, digest, no_reward
from muarl_worlds.tau.tau1_trajectories import Tau1Conversation
from muarl_worlds.tau.tau2_results import Simulation, Tau2Results

VOID = ("infrastructure_error", "unexpected_error")
"""TAU2's terminations that say nothing about the agent."""
ENDED = ("user_stop", "agent_stop")

_BFCL = re.compile(r"BFCL_(v[34])_(.+)_(result|score)\.json")
_ACEBENCH = re.compile(r"data_agent_(multi_turn|multi_step)_(result|score)\.json")
KINDS: Mapping[str, re.Pattern[str]] = {"bfcl": _BFCL, "acebench": _ACEBENCH}
MULTI_TURN = 200
"""Entries of each of BFCL's multi-turn categories, numbered from 0."""
FILE_BYTES = 512 << 20


# ---- TAU2


def tau2(found: Tau2Results) -> Results:
    """A run of TAU2, as its own metrics count it: a conversation that did not end by itself has failed."""
    if not found.simulations:
        raise DataError(f"{found.path}: there is no simulation in it")
    file = found.path
    return Results.of(
        _simulations(found),
        name=file.resolve().parent.name if file.name == "results.json" else file.stem,
        path=str(file),
        kind="tau2",
        domain=f"tau2-{found.domain}",
        agent=found.agent,
        user="none (solo mode)" if found.solo else found.user,
        fingerprints={task: _tau2_digest(row) for task, row in found.rows.items()},
    )


def _simulations(found: Tau2Results) -> Iterator[PlayedTask | Excluded]:
    counts: Counter[str] = Counter()
    for simulation in found.simulations:
        task, trial = simulation.task_id, simulation.trial
        trial = counts[task] if trial is None else trial
        counts[task] += 1
        why, reward = _void(simulation), simulation.reward
        if why is not None:
            yield Excluded(task, trial, why, simulation.seed)
        else:
            yield PlayedTask(task, trial, reward is not None and is_success(reward), simulation.seed)


def _void(simulation: Simulation) -> str | None:
    """Why no score may count a simulation, None if it counts."""
    reason = simulation.value.get("termination_reason")
    if reason in VOID:
        return str(reason)
    if simulation.reward is None:
        return "it has no reward" if reason in ENDED else None
    return no_reward(simulation.reward, f"{simulation.place}: reward_info.reward")


def _tau2_digest(row: Mapping[str, Any]) -> str:
    """What a user wants and what is checked, without fields that are empty or only describe."""
    scenario, criteria = row.get("user_scenario"), row.get("evaluation_criteria")
    instructions = scenario.get("instructions") if isinstance(scenario, Mapping) else scenario
    actions = criteria.get("actions") if isinstance(criteria, Mapping) else None
    checked = [
        [a.get("name"), a.get("arguments"), a.get("requestor", "assistant")]
        for a in actions or ()
        if isinstance(a, Mapping)
    ]
    others = {k: v for k, v in criteria.items() if k != "actions"} if isinstance(criteria, Mapping) else None
    return digest([_filled(instructions), checked, _filled(others)])


def _filled(value: Any) -> Any:
    """Without what is null or empty, which versions of TAU2 write or leave out."""
    if isinstance(value, Mapping):
        kept = {k: _filled(v) for k, v in value.items()}
        return {k: v for k, v in kept.items() if v not in (None, [], {}, "")}
    if isinstance(value, list):
        return [_filled(v) for v in value]
    return value


# ---- TAU1


def tau1(found: Sequence[Tau1Conversation], path: Path) -> Results:
    """A run of TAU1. Its tasks are numbers of a split that the file does not name: the test split, as published runs
    have it. A run that broke off before anything was said counts as failed upstream, and is left out here."""
    domains = dict.fromkeys(name for one in found if (name := one.domain) is not None)
    prints = {
        _tau1_task(one): digest([row.get(name) for name in ("instruction", "actions", "outputs")])
        for one in found
        if (row := one.task_row) is not None
    }
    return Results.of(
        (_tau1_attempt(one, path) for one in found),
        name=path.stem,
        path=str(path),
        kind="tau1",
        domain=", ".join(f"tau1-{name.removeprefix('tau1-')}" for name in domains) or None,
        fingerprints=prints,
    )


def _tau1_task(one: Tau1Conversation) -> str:
    return f"test/{one.index}"


def _tau1_attempt(one: Tau1Conversation, path: Path) -> PlayedTask | Excluded:
    task = _tau1_task(one)
    if one.error is not None and not one.messages:
        return Excluded(task, one.trial, one.error)
    if one.reward is None:
        return Excluded(task, one.trial, "it has no reward")
    if (why := no_reward(one.reward, f"{path}: task {one.index}, reward")) is not None:
        return Excluded(task, one.trial, why)
    return PlayedTask(task, one.trial, is_success(one.reward))


# ---- BFCL, ACEBench


def kind_of(path: Path) -> str | None:
    """The benchmark that a file's name says, None if it says none."""
    return next((kind for kind, pattern in KINDS.items() if pattern.fullmatch(path.name)), None)


def files(kind: str, path: Path) -> list[Path]:
    """The benchmark's files at or below a path."""
    found = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    return [file for file in found if KINDS[kind].fullmatch(file.name)]


def read(kind: str, path: Path) -> Results:
    """A file's or folder's results. DataError where a folder holds those of several models, or says what is missing."""
    found = files(kind, path)
    folders = {file.parent.name for file in found}
    scores = {_category(kind, f): f for f in found if f.stem.endswith("_score")}
    plain = {_category(kind, f): f for f in found if f.stem.endswith("_result")}
    if len(scores) + len(plain) < len(found):
        raise DataError(
            f"{path}: there are results of several models in it ({', '.join(sorted(folders)[:4])}): name one's folder"
        )
    attempts: list[PlayedTask] = []
    for category in dict.fromkeys((*scores, *plain)):
        if category in scores:
            attempts += _scored(kind, category, scores[category], plain.get(category))
        else:
            attempts += _bfcl(plain[category]) if kind == "bfcl" else _acebench(plain[category])
    if not attempts:
        raise DataError(f"{path}: there are no results in it")
    version = _BFCL.fullmatch(found[0].name)
    return Results(
        name=path.resolve().name if path.is_dir() else f"{path.resolve().parent.name} {path.stem}",
        path=str(path),
        kind=kind,
        attempts=tuple(attempts),
        domain=f"bfcl-{version[1]}" if version else _language(found[0]),
    )


def _category(kind: str, file: Path) -> str:
    match = KINDS[kind].fullmatch(file.name)
    assert match is not None
    return match[2] if kind == "bfcl" else match[1]


def _language(file: Path) -> str:
    ending = next((p.rpartition("_")[2] for p in reversed(file.parts) if p.endswith(("_en", "_zh"))), None)
    return "acebench" if ending is None else f"acebench-{ending}"


def _rows(file: Path) -> list[tuple[Mapping[str, Any], str]]:
    if file.stat().st_size > FILE_BYTES:
        raise DataError(f"{file}: is larger than {FILE_BYTES >> 10} KiB, which no such file should be.")
    return [(row.value, row.place) for row in json_lines(file)]


@dataclass(frozen=True)
class _Totals:
    correct: int
    total: int


def _scored(kind: str, category: str, file: Path, results: Path | None) -> list[PlayedTask]:
    """The attempts of a score file."""
    rows = _rows(file)
    if not rows:
        raise DataError(f"{file}: is empty")
    totals = _totals(*rows[0])
    failed = {_task_id(kind, category, row, place) for row, place in rows[1:] if row.get("valid") is not True}
    if results is not None:
        tasks = [_task_id(kind, category, row, place) for row, place in _rows(results)]
        source = str(results)
    elif kind == "acebench" or (category.startswith("multi_turn") and totals.total == MULTI_TURN):
        stem = f"agent_{category}" if kind == "acebench" else category
        tasks, source = [f"{stem}_{i}" for i in range(totals.total)], "its own total"
    else:
        raise DataError(
            f"{file}: a score file lists failures only, and which of the {totals.total} entries succeeded is not "
            f"known. Name a folder that also has {file.name.replace('_score', '_result')}"
        )
    if len(tasks) != totals.total or not failed <= set(tasks) or len(failed) != totals.total - totals.correct:
        raise DataError(
            f"{file}: it tells of {totals.correct} of {totals.total} correct and lists {len(failed)} failures, which "
            f"does not fit {len(tasks)} tasks by {source}"
        )
    return [PlayedTask(task, 0, task not in failed) for task in tasks]


def _totals(row: Mapping[str, Any], place: str) -> _Totals:
    counts = [row.get("correct_count"), row.get("total_count")]
    correct, total = (c if type(c) is int else -1 for c in counts)
    if not 0 <= correct <= total:
        raise DataError(f"{place}: must hold the totals correct_count and total_count of a score file")
    return _Totals(correct, total)


def _task_id(kind: str, category: str, row: Mapping[str, Any], place: str) -> str:
    given = row.get("id")
    if type(given) is int and kind == "acebench":
        return f"agent_{category}_{given}"
    if not isinstance(given, str):
        raise DataError(f"{place}: it lacks the field id")
    return given


def _bfcl(file: Path) -> list[PlayedTask]:
    """A result file, checked as BFCL does. Of multi-turn categories only, which muarl has the checker of."""
    from muarl_worlds.bfcl import official as bfcl

    match = _BFCL.fullmatch(file.name)
    assert match is not None
    if not match[2].startswith("multi_turn"):
        raise DataError(f"{file}: muarl checks multi-turn categories only; name BFCL's own score files of {match[2]}")
    revision: Any = match[1]
    lines = [bfcl.score_row(row, place, revision) for row, place in _rows(file)]
    return [PlayedTask(str(line["id"]), 0, bool(line["valid"])) for line in lines]


def _acebench(file: Path) -> list[PlayedTask]:
    """A result file, scored end to end as upstream does."""
    from muarl_worlds.acebench import official as acebench

    return [PlayedTask(str(row["id"]), 0, bool(row["valid"])) for row in acebench.read_results([file]).rows]
