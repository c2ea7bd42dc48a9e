"""BFCL's multi-turn entries as tasks, from the installed data (``muarl data add bfcl``).

A task's ``agenda`` holds "turns" (what the user says, None where the turn brings missing functions), "brings" (turn to
the names of those functions) and "ground_truth" (the gold call strings of each turn). Its ``initial_data`` is the
world's: "involved_classes", "initial_config", "long_context". Generated tasks have the same form.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from muarl.basics.errors import DataError
from muarl.domains.tasks import Action, Task
from muarl.types.chat import ToolSpec
from muarl_worlds import data
from muarl_worlds.bfcl.api import Revision
from muarl_worlds.bfcl.apis import CLASSES
from muarl_worlds.bfcl.calls import ToolNames, argument_values, parse
from muarl_worlds.bfcl.domain import withheld
from muarl_worlds.bfcl.environment import class_tools, tool_names
from muarl_worlds.bfcl.official import prompts, toolspecs
from muarl_worlds.bfcl.official.toolspecs import DOMAINS, NAME, revision_named, revision_of

CATEGORIES = ("base", "miss_func", "miss_param", "long_context")

SPLITS: Mapping[str, tuple[str, ...]] = dict.fromkeys(DOMAINS, ("test", *CATEGORIES))
"""Each revision's splits: "test" is all 800 entries, the others are its categories of 200."""

Line = tuple[str, tuple[ToolSpec, ...]]


def tasks(name: str, split: str | None = "test") -> tuple[Task, ...]:
    """The entries of a split, in the order of BFCL's files; None gives all. DataError if there is none of that name."""
    revision = revision_named(name)
    if split is not None and split not in SPLITS[revision]:
        raise DataError(f"{NAME} {name} has no split {split!r}; it has {', '.join(SPLITS[revision])}")
    installed = str(data.path(NAME))
    wanted = CATEGORIES if split in (None, "test") else (split,)
    return tuple(t for category in wanted for t in _category(revision, category, installed).values())


def task(name: str, task_id: str) -> Task:
    """One entry by its id, such as "multi_turn_base_0". DataError if there is none of that id."""
    revision = revision_named(name)
    category = category_of(task_id)
    installed = str(data.path(NAME))
    found = _category(revision, category, installed).get(task_id) if category in CATEGORIES else None
    if found is None:
        raise DataError(f"task_id {task_id!r}: {NAME} {name} has no such entry")
    return found


def splits(name: str) -> dict[str, frozenset[str]]:
    """The task ids of each split."""
    return {split: frozenset(t.id for t in tasks(name, split)) for split in SPLITS[revision_named(name)]}


def category_of(task_id: Any) -> str:
    """The category that an id names, such as "miss_func"; empty if it names none."""
    if not isinstance(task_id, str) or not task_id.startswith("multi_turn_"):
        return ""
    return task_id.rsplit("_", 1)[0].removeprefix("multi_turn_")


@cache
def _category(revision: Revision, category: str, installed: str) -> dict[str, Task]:
    file = f"BFCL_{revision}_multi_turn_{category}.json"
    entries = data.read_json_lines(NAME, f"{revision}/{file}")
    answers = data.read_json_lines(NAME, f"{revision}/possible_answer/{file}")
    truths = {row["id"]: row["ground_truth"] for row in answers}
    made = (task_from_json(entry, truths.get(entry.get("id")), revision) for entry in entries)
    return {task.id: task for task in made}


def task_from_json(entry: Mapping[str, Any], ground_truth: Any, revision: Revision) -> Task:
    """A task from one entry and its ground truth. DataError names the entry and what is malformed."""
    try:
        task_id, classes = entry["id"], entry["involved_classes"]
        turns = [turn[0]["content"] if turn else None for turn in entry["question"]]
        brings = {str(int(turn)): list(names) for turn, names in entry.get("missed_function", {}).items()}
        truth = [[str(call) for call in turn] for turn in ground_truth]
        if not all(text is None or isinstance(text, str) for text in turns):
            raise TypeError("question must be lists of messages with a text")
        unknown = next((name for name in classes if name not in CLASSES), None)
        if unknown is not None:
            raise ValueError(f"there is no API class {unknown!r}")
        category = category_of(task_id)
        return Task(
            id=task_id,
            domain=NAME,
            scenario="\n\n".join(text for text in turns if text is not None),
            actions=gold_actions(truth, tool_names(revision, tuple(classes)), revision),
            initial_data={
                "involved_classes": list(classes),
                "initial_config": entry["initial_config"],
                "long_context": category == "long_context",
            },
            agenda={"turns": turns, "brings": brings, "ground_truth": truth},
            tags={"benchmark": NAME, "revision": revision, "category": category, "split": category},
            benchmark=True,
        )
    except KeyError as missing:
        raise DataError(f"{NAME} {revision} entry {entry.get('id')!r}: it lacks the field {missing}") from None
    except (TypeError, ValueError, AttributeError, IndexError) as problem:
        raise DataError(f"{NAME} {revision} entry {entry.get('id')!r} is malformed: {problem}") from None


def gold_actions(truth: Sequence[Sequence[str]], names: ToolNames, revision: Revision) -> tuple[Action, ...]:
    """Gold call strings as actions with named arguments; what is no plain call of a tool is left out.

    ``action_id`` is the turn and the call's number in it.
    """
    found = []
    for turn, calls in enumerate(truth):
        for number, text in enumerate(calls):
            parsed = parse(text, names, rewrite=False)
            tree, values = parsed.tree, None
            if parsed.plain is not None:
                name, values = parsed.plain[0].tool, parsed.plain[1:]
            elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in names.owners:
                name, values = tree.func.id, argument_values(tree)
            if values is None:
                continue
            order = class_tools(revision, names.owners[name])[name].schema.spec.parameters.get("properties", {})
            arguments = {**dict(zip(order, values[0], strict=False)), **values[1]}
            found.append(Action(name, arguments, action_id=f"{turn}.{number}"))
    return tuple(found)


def ground_truth(task: Task) -> tuple[tuple[str, ...], ...]:
    """The gold call strings of each turn."""
    return tuple(tuple(calls) for calls in (task.agenda or {}).get("ground_truth", ()))


def user_lines(task: Task, mode: Literal["native", "text"] = "native") -> list[Line]:
    """What the user says turn by turn, and the tools that come with it.

    "native": as in BFCL's function calling, where tools come as such: those that are new and, in v3, the others with
    another description (tools of the same name take the place of those before). "text": as in its prompting, where
    their documents stand in the message.
    """
    later = withheld(task)
    _, documents = toolspecs.task_documents(task)
    lines: list[Line] = []
    for turn, text in enumerate((task.agenda or {})["turns"]):
        new: tuple[ToolSpec, ...] = ()
        words = text or ""
        if turn in later:
            in_words = prompts.more_tools(documents[turn]) if mode == "text" else prompts.MORE_TOOLS
            words = f"{words}\n{in_words}" if words else in_words
            new = toolspecs.brought(task, turn) if mode == "native" else ()
        lines.append((words, new))
    return lines


__all__ = [
    "CATEGORIES", "DOMAINS", "SPLITS", "category_of", "gold_actions", "ground_truth", "revision_of",
    "splits", "task", "task_from_json", "tasks", "user_lines",
]  # fmt: skip
