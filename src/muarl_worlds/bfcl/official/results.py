"""Recorded calls and upstream's result files: what ``muarl replay`` and ``muarl score`` make of a line of them.

Upstream's result files hold one entry a line: "id" and "result", the model's messages by turn, each a text or, from
function calling, a list of ``{name: arguments as JSON}``; where inference failed, "result" is the error's text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from muarl.basics.errors import DataError
from muarl.domains.tasks import Task
from muarl.records.rows import PlacedRow, items, json_lines
from muarl.records.rows import field as read_field
from muarl_worlds import data
from muarl_worlds.bfcl.api import Revision
from muarl_worlds.bfcl.apis import CLASSES
from muarl_worlds.bfcl.domain import Bfcl, classes_of
from muarl_worlds.bfcl.environment import Instances, json_state, load_apis
from muarl_worlds.bfcl.official.checker import judge
from muarl_worlds.bfcl.official.decoding import Style, decode
from muarl_worlds.bfcl.official.strict import strict
from muarl_worlds.bfcl.official.tasks import task
from muarl_worlds.bfcl.official.toolspecs import NAME
from muarl_worlds.bfcl.official.worlds import domain, long_context

Values = Mapping[str, Any]
Reading = Literal["auto", "native", "prompt", "qwen"]
"""How a result file's messages are read; "auto" tells from the messages themselves."""


def replay_row(row: Values, place: str, revision: Revision) -> dict[str, Any]:
    """Run a line of recorded calls: {"id", "long_context", "calls": [{"class", "name", "kwargs"}]}.

    Each call gets its exact result as "content"; "final_state" is class to public attribute to value, in Python's
    writing where JSON has no form for it. "long_context" is what the id says where it is left out. DataError names
    place and field of what is malformed.
    """
    entry = _entry(row, place, revision)
    flag = row.get("long_context", entry.tags["category"] == "long_context")
    if not isinstance(flag, bool):
        raise DataError(f"{place}.long_context: must be true or false")
    calls = [_named_call(call, where) for call, where in items(row, "calls", place)]
    instances = _instances(entry, revision, flag, [owner for owner, _, _ in calls])
    done = [{**given, "content": instances.run(*call).content} for given, call in zip(row["calls"], calls, strict=True)]
    return {**row, "calls": done, "final_state": json_state(instances.state())}


def _entry(row: Values, place: str, revision: Revision) -> Task:
    task_id = read_field(row, "id", str, "a string", place)
    try:
        return task(revision, task_id)
    except DataError as problem:
        raise DataError(f"{place}: {problem}") from None


def _named_call(given: Any, place: str) -> tuple[str, str, Mapping[str, Any]]:
    owner = read_field(given, "class", str, "a string", place)
    if owner not in CLASSES:
        raise DataError(f"{place}.class: {owner!r} is not one of {', '.join(CLASSES)}")
    name = read_field(given, "name", str, "a string", place)
    return owner, name, read_field(given, "kwargs", dict, "an object", place)


def _instances(entry: Task, revision: Revision, flag: bool, called: Sequence[str]) -> Instances:
    """Fresh objects of an entry's classes, and of others that are called."""
    classes = dict.fromkeys((*classes_of(entry), *called))
    literals = long_context(revision, str(data.path(NAME))) if flag else None
    config = (entry.initial_data or {})["initial_config"]
    return Instances(revision, load_apis(revision, classes, config, literals), label=f"muarl_{entry.id}")


def score_row(row: Values, place: str, revision: Revision, reading: Reading = "auto") -> dict[str, Any]:
    """Judge a line of recorded calls, {"id", "calls": [turn][message][call string]}, or one of a result file.

    The answer has "id", BFCL's "valid" and "error_type", and the strict score as "strict" and "strict_error_type".
    "calls" that are a text or null are an inference that failed. DataError names place and field of what is malformed.
    """
    entry = _entry(row, place, revision)
    if "calls" not in row and "result" in row:
        calls = result_calls(row["result"], revision, reading, f"{place}.result")
    else:
        calls = _calls(row, place)
    judged = judge(_domain(revision, str(data.path(NAME))), entry, calls)
    firm = strict(judged)
    return {
        "id": entry.id,
        "valid": judged.valid,
        "error_type": judged.error_type,
        "strict": firm.valid,
        "strict_error_type": firm.error_type,
    }


@cache
def _domain(revision: Revision, installed: str) -> Bfcl:
    return domain(revision)


def _calls(row: Values, place: str) -> list[list[list[str]]] | None:
    if row.get("calls", ()) is None or isinstance(row.get("calls"), str):
        return None
    return [[_strings(step, where) for step, where in _list(turn, whole)] for turn, whole in items(row, "calls", place)]


def _list(value: Any, place: str) -> Iterator[tuple[Any, str]]:
    if not isinstance(value, list):
        raise DataError(f"{place}: must be a list")
    return ((item, f"{place}[{i}]") for i, item in enumerate(value))


def _strings(value: Any, place: str) -> list[str]:
    for item, where in _list(value, place):
        if not isinstance(item, str):
            raise DataError(f"{where}: must be a string")
    return list(value)


def result_calls(
    result: Any, revision: Revision, reading: Reading = "auto", place: str = "result"
) -> list[list[list[str]]] | None:
    """The call strings of a result by turn and message, messages without calls left out; None if inference failed.

    "auto": function calling if any message is a list; else Qwen's form if any has its tags, and a Python list
    otherwise. DataError if a turn is no list, or if there is no such way of reading.
    """
    if reading not in get_args(Reading):
        raise DataError(f"{place}: there is no reading {reading!r}; there are {', '.join(get_args(Reading))}")
    if not isinstance(result, list):
        return None
    turns = [[message for message, _ in _list(turn, where)] for turn, where in _list(result, place)]
    style = _style(turns) if reading == "auto" else reading
    decoded = [[decode(message, style, revision) for message in turn] for turn in turns]
    return [[calls for calls in turn if calls] for turn in decoded]


def _style(turns: Sequence[Sequence[Any]]) -> Style:
    messages = [message for turn in turns for message in turn]
    if any(isinstance(message, (list, dict)) for message in messages):
        return "native"
    return "qwen" if any(isinstance(m, str) and "<tool_call>" in m for m in messages) else "prompt"


def read_results(path: Path) -> Iterator[PlacedRow]:
    """The lines of a result file, or of all the multi-turn ones under a folder.

    DataError if there are none, or where a line is no object.
    """
    files = [path] if path.is_file() else sorted(path.rglob("BFCL_v*_multi_turn_*_result.json"))
    if not files:
        raise DataError(f"{path}: there is no result file of BFCL's multi-turn entries")
    for file in files:
        yield from json_lines(file)
