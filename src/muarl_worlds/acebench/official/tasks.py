"""ACEBench's agent tasks from the installed data (``muarl data add acebench``): 30 multi-turn and 20 multi-step ones in
each language (ACEBench/ACEBench, MIT licence).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from muarl.basics.errors import DataError
from muarl.domains.base import Renderer, Semantics
from muarl.domains.tasks import Task
from muarl_worlds import data
from muarl_worlds.acebench.domain import AceBench
from muarl_worlds.acebench.execute import Category
from muarl_worlds.acebench.scenario import Language

NAME = "acebench"

DOMAINS: tuple[Language, ...] = ("en", "zh")
"""The languages."""

CATEGORIES: tuple[Category, ...] = ("multi_turn", "multi_step")

SPLITS = ("test", *CATEGORIES)
"""Every task of a language, or those of one category."""


def language_of(name: Any) -> Language:
    """A language's name. DataError if there are no tasks in it."""
    for known in DOMAINS:
        if name == known:
            return known
    raise DataError(f"domain {name!r}: {NAME} has {', '.join(DOMAINS)}")


def domain(name: str, *, semantics: Semantics = "official", render: Renderer | None = None) -> AceBench:
    """The domain of one language. DataError if there is none. It needs no installed data; its tasks do."""
    return AceBench(language_of(name), semantics=semantics, render=render)


def tasks(name: str, split: str | None = "test") -> tuple[Task, ...]:
    """The tasks of a split in upstream's order, multi-turn ones first. DataError if there is no such split."""
    language = language_of(name)
    if split is not None and split not in SPLITS:
        raise DataError(f"{NAME} {name} has no split {split!r}; it has {', '.join(SPLITS)}")
    installed = str(data.path(NAME))
    chosen = [c for c in CATEGORIES if split in (None, "test", c)]
    return tuple(task for category in chosen for task in _category(language, category, installed))


def task(name: str, task_id: str) -> Task:
    """One task by its id, such as "agent_multi_turn_3". DataError if there is none."""
    found = next((t for t in tasks(name) if t.id == task_id), None)
    if found is None:
        raise DataError(f"task {task_id!r}: {NAME} {name} has no such task")
    return found


@cache
def _category(language: Language, category: Category, installed: str) -> tuple[Task, ...]:
    file = f"data_{language}/{{}}data_agent_{category}.json"
    entries = data.read_json_lines(NAME, file.format(""))
    answers = {row.get("id"): row for row in data.read_json_lines(NAME, file.format("possible_answer/"))}
    return tuple(task_from_json(entry, answers.get(entry.get("id")), language, category) for entry in entries)


def task_from_json(entry: Any, answer: Any, language: Language, category: Category) -> Task:
    """A task from one of upstream's entries and its answer. DataError says which is malformed and how."""
    name = entry.get("id") if isinstance(entry, Mapping) else None
    try:
        truth, milestones = answer["ground_truth"], answer["mile_stone"]
        functions = entry["function"]
        return Task(
            id=str(entry["id"]),
            domain=NAME,
            scenario=entry["question"],
            actions=None,
            reward_basis=("END_TO_END",),
            initial_data={
                "classes": tuple(entry["involved_classes"]),
                "config": dict(entry["initial_config"]),
                "category": category,
                "functions": functions if isinstance(functions, list) else [functions],
                "ground_truth": truth if isinstance(truth, list) else [truth],
                "milestones": milestones,
            },
            tags={"benchmark": NAME, "split": "test", "category": category, "language": language},
            benchmark=True,
        )
    except KeyError as missing:
        raise DataError(f"{NAME} {language} task {name!r}: it lacks the field {missing}") from None
    except (TypeError, ValueError, AttributeError) as problem:
        raise DataError(f"{NAME} {language} task {name!r} is malformed: {problem}") from None
