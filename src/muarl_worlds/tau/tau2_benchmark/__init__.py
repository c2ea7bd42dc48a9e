"""TAU2's official domains, tasks, policies and prompts, read from the installed data (``muarl data add tau2``).

retail, airline, telecom (with the manual as policy), telecom-workflow (the same with the workflow), mock and
banking_knowledge, whose data may be missing where the others' are installed. The data, the agent's prompt and the
scenario's layout are the benchmark's own, word for word (sierra-research/tau2-bench, MIT licence, Copyright Sierra
Research).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.domains.base import Domain, Renderer, Semantics
from muarl.domains.tasks import Task
from muarl_worlds import data
from muarl_worlds.tau.tau2_benchmark.prompts import AGENT_PROMPT, agent_prompt, user_guidelines
from muarl_worlds.tau.tau2_benchmark.sources import SOURCES, Tau2Source, databases, source
from muarl_worlds.tau.tau2_benchmark.tasks import NAME, REWARD_PARTS, scenario_text, task_from_json

__all__ = [
    "AGENT_PROMPT", "DOMAINS", "NAME", "REWARD_PARTS", "agent_prompt", "domain", "scenario_text", "splits",
    "task", "task_from_json", "task_rows", "tasks", "user_guidelines",
]  # fmt: skip

DOMAINS = tuple(SOURCES)


def domain(
    name: str,
    *,
    semantics: Semantics = "official",
    tools: Sequence[str] | None = None,
    render: Renderer | None = None,
    **options: Any,
) -> Domain:
    """An official domain with its own databases and policy. DataError if unknown or not installed.

    ``options``: whatever else the domain's class takes, such as banking_knowledge's ``retrieval``.
    """
    installed = _installed(name)
    known = source(name)
    given = databases(known.folder, installed)
    return known.kind()(**given, semantics=semantics, tools=tools, render=render, **options)


def _installed(name: str) -> str:
    """Where the data are. DataError first of all if the benchmark has no such domain."""
    source(name)
    return str(data.path(NAME))


@cache
def _all_tasks(name: str, installed: str) -> dict[str, Task]:
    rows = _rows(source(name), installed)
    known = _splits(name, installed)
    home = {i: split for split in ("test", "train") for i in known.get(split, ())}
    made = (task_from_json(row, name, split=home.get(row.get("id"))) for row in rows)
    return {task.id: task for task in made}


@cache
def _rows(known: Tau2Source, installed: str) -> list[Any]:
    """The tasks as the files have them, in TAU2's order. DataError if they are not installed."""
    if known.one_list:
        found: list[Any] = data.read_json(NAME, f"{known.folder}/tasks.json")
        return found
    files = sorted((Path(installed) / known.folder / "tasks").glob("task_*.json"))
    if not files:
        data.read_text(NAME, f"{known.folder}/tasks/task_001.json")  # says what is missing
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


@cache
def _splits(name: str, installed: str) -> dict[str, frozenset[str]]:
    if not source(name).one_list:
        return {"base": frozenset(row["id"] for row in _rows(source(name), installed))}
    found = data.read_json(NAME, f"{source(name).folder}/split_tasks.json")
    return {k: frozenset(v) for k, v in found.items()}


def splits(name: str) -> dict[str, frozenset[str]]:
    """The task ids of each official split: base, and (but for mock and banking_knowledge, which has no other) train and
    test; telecom has full and small too."""
    return dict(_splits(name, _installed(name)))


def task_rows(name: str) -> list[Any]:
    """All official tasks of a domain as its files have them, in TAU2's order. DataError if they are not installed."""
    return list(_rows(source(name), _installed(name)))


def tasks(name: str, split: str | None = "base") -> tuple[Task, ...]:
    """The official tasks of a split, in file order; None gives all. DataError if there is no such domain or split."""
    everything = _all_tasks(name, _installed(name))
    if split is None:
        return tuple(everything.values())
    ids = splits(name)
    if split not in ids:
        raise DataError(f"{NAME} {name} has no split {split!r}; it has {', '.join(ids)}")
    return tuple(t for t in everything.values() if t.id in ids[split])


def task(name: str, task_id: str) -> Task:
    """One official task. DataError if there is none of that id."""
    found = _all_tasks(name, _installed(name)).get(task_id)
    if found is None:
        raise DataError(f"task_id {task_id!r}: {NAME} {name} has no such task")
    return found
