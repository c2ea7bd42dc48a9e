"""Recorded messages and final states, as ``muarl replay acebench`` and ``muarl score acebench`` read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl.basics.errors import DataError
from muarl.domains.tasks import Task
from muarl.records.rows import field, items
from muarl_worlds.acebench.decode import UndecodableMessage, to_execution
from muarl_worlds.acebench.official import scoring
from muarl_worlds.acebench.official.scoring import Score
from muarl_worlds.acebench.official.tasks import domain, language_of, task

Row = Mapping[str, Any]


def replay_row(row: Row, place: str, *, language: str | None = None) -> dict[str, Any]:
    """A row with what upstream's executor answers: "output" on every step, and the "final_state".

    ``row``: {"id", "language", "steps": [{"message"}]}; ``language``: meant where the row names none. The output is
    null where the executor of multi-turn tasks breaks off, which it does at messages that do not go to it. DataError
    names the place and the field of what is malformed.
    """
    found = _task(row, place, language)
    world = domain(found.tags["language"]).world(found)
    steps = []
    for step, where in items(row, "steps", place):
        message = field(step, "message", str, "a string", where)
        try:
            output = world.execute_message(message)
        except UndecodableMessage:
            output = None
        steps.append({**step, "output": output})
    return {**row, "steps": steps, "final_state": world.final_state()}


def score_row(row: Row, place: str, *, language: str | None = None) -> dict[str, Any]:
    """The scores of a row: upstream's "end_to_end", "process" (rounded as upstream reports it), "valid" and
    "error_type", and the fixed "fixed_end_to_end" and "fixed_process".

    ``row``: {"id", "language"}, the final state as "final_state" or "result", and the agent's messages as "process"
    (texts, those that went to the executor), "steps" ([{"message"}], the same) or "messages" (texts, or a whole
    conversation, whose messages to the executor are picked out). DataError as in ``replay_row``.
    """
    found = _task(row, place, language)
    result, process = _state(row, place), _process(row, place, found)
    return {"id": found.id, "language": found.tags["language"], **shown(*scores(found, result, process))}


def scores(task: Task, result: scoring.State, process: list[str]) -> tuple[Score, Score]:
    """A task's official and fixed score of a final state and the messages that went to the executor."""
    data = task.initial_data or {}
    truth, milestones = data["ground_truth"], data["milestones"]
    return scoring.official(result, process, truth, milestones), scoring.fixed(result, process, truth, milestones)


def shown(official: Score, fixed: Score) -> dict[str, Any]:
    """Both scores as a row has them."""
    return {
        "end_to_end": float(official.valid),
        "process": round(official.process, 3),
        "valid": official.valid,
        "error_type": official.error_type,
        "fixed_end_to_end": float(fixed.valid),
        "fixed_process": round(fixed.process, 3),
    }


def _task(row: Row, place: str, language: str | None) -> Task:
    name = field(row, "language", str, "a string", place) if "language" in row or language is None else language
    given = field(row, "id", str, "a string", place)
    try:
        return task(language_of(name), given)
    except DataError as problem:
        raise DataError(f"{place}: {problem}") from None


def _state(row: Row, place: str) -> list[dict[str, Any]]:
    name = next((n for n in ("final_state", "result") if n in row), None)
    if name is None:
        raise DataError(f"{place}: it lacks the field final_state (or result)")
    for entry, where in items(row, name, place):
        if not isinstance(entry, Mapping) or not all(isinstance(v, Mapping) for v in entry.values()):
            raise DataError(f"{where}: must be an object of classes with their attributes")
    found: list[dict[str, Any]] = row[name]
    return found


def _process(row: Row, place: str, task: Task) -> list[str]:
    name = next((n for n in ("process", "messages", "steps") if n in row), None)
    if name is None:
        raise DataError(f"{place}: it lacks the field process (or messages, or steps)")
    out = []
    for entry, where in items(row, name, place):
        text = _executed(entry, where, task)
        if text is not None:
            out.append(text)
    return out


def _executed(entry: Any, place: str, task: Task) -> str | None:
    """The text of a message that went to the executor, None of another."""
    if isinstance(entry, str):
        return entry
    whole = isinstance(entry, Mapping) and ("role" in entry or "sender" in entry)
    if not whole:
        return str(field(entry, "message", str, "a string", place))
    side = "role" if "role" in entry else "sender"
    if field(entry, side, str, "a string", place) not in ("assistant", "agent"):
        return None
    key = "content" if "content" in entry else "message"
    text = str(field(entry, key, str, "a string", place))
    multi_step = (task.initial_data or {})["category"] == "multi_step"
    return text if multi_step or to_execution(text) else None
