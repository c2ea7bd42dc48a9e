"""The tools of a task as BFCL offers them: the benchmark's documents, and what function calling makes of them.

In both revisions every document ends with a hint on the language. v4 gives it to the tools that are there from the
start, never to those that come later. v3 gives it anew whenever it makes its list of tools, so that in function calling
a tool has it twice once others have come.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_args

from muarl.basics.errors import DataError
from muarl.domains.tasks import Task
from muarl.types.chat import ToolSpec
from muarl_worlds import data
from muarl_worlds.bfcl.api import Revision
from muarl_worlds.bfcl.domain import classes_of, offered_specs, withheld
from muarl_worlds.bfcl.environment import class_tools, tool_names

NAME = "bfcl"
Doc = Mapping[str, Any]

DOMAINS: tuple[Revision, ...] = get_args(Revision)
"""The revisions: v3 is bfcl-eval 2025.8.6.2, v4 2026.3.23."""

HINT = " Note that the provided function is in Python 3 syntax."

_DOC_FILES = {
    "GorillaFileSystem": "gorilla_file_system", "MathAPI": "math_api", "MessageAPI": "message_api",
    "TwitterAPI": "posting_api", "TicketAPI": "ticket_api", "TradingBot": "trading_bot", "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}  # fmt: skip

_OPENAI_TYPES = {
    "integer": "integer", "number": "number", "float": "number", "string": "string", "boolean": "boolean",
    "bool": "boolean", "array": "array", "list": "array", "dict": "object", "object": "object", "tuple": "array",
    "any": "string",
}  # fmt: skip


def documents(revision: Revision, owner: str) -> tuple[Doc, ...]:
    """The documents of a class's tools, as installed. DataError if the revision is not."""
    return _documents(revision, owner, str(data.path(NAME)))


@cache
def _documents(revision: Revision, owner: str, installed: str) -> tuple[Doc, ...]:
    file = f"{revision}/multi_turn_func_doc/{_DOC_FILES[owner]}.json"
    return tuple(data.read_json_lines(NAME, file))


def revision_named(name: str) -> Revision:
    """The revision of that name. DataError if there is none."""
    for revision in DOMAINS:
        if name == revision:
            return revision
    raise DataError(f"domain {name!r}: {NAME} has {', '.join(DOMAINS)}")


def revision_of(task: Task) -> Revision:
    """The revision that a task belongs to; v4 where it does not say."""
    found: Revision = task.tags.get("revision", "v4")
    return found


def task_documents(task: Task) -> tuple[list[Doc], dict[int, list[Doc]]]:
    """A task's documents without hints: those from the start, and those that a turn brings.

    They are the benchmark's for its tasks, and for others what our own docstrings say.
    """
    revision = revision_of(task)
    if task.benchmark:
        start = [doc for owner in classes_of(task) for doc in documents(revision, owner)]
    else:
        later = withheld(task)
        owners = tool_names(revision, classes_of(task)).owners
        named = {n: class_tools(revision, owners[n])[n].schema.spec for names in later.values() for n in names}
        brought = {turn: [_own_document(named[n]) for n in names] for turn, names in later.items()}
        return [_own_document(spec) for spec in offered_specs(revision, task)], brought
    found: dict[int, list[Doc]] = {}
    for turn, names in withheld(task).items():
        found[turn] = []
        for name in names:
            doc = next((d for d in start if d["name"] == name), None)
            if doc is not None:
                found[turn].append(doc)
                start.remove(doc)
    return start, found


def _own_document(spec: ToolSpec) -> Doc:
    return {"name": spec.name, "description": spec.description, "parameters": spec.parameters}


def offered(task: Task) -> tuple[ToolSpec, ...]:
    """The tools that a task offers at its start."""
    start, _ = task_documents(task)
    hints = 1 if task.benchmark else 0
    return tuple(spec_of(doc, hints=hints) for doc in start)


def brought(task: Task, turn: int) -> tuple[ToolSpec, ...]:
    """The tools that come with a turn in function calling.

    In v3 the list is made anew: those from before come again with one hint more, the new ones after them.
    """
    start, later = task_documents(task)
    new = later.get(turn, [])
    if not task.benchmark or revision_of(task) == "v4":
        return tuple(spec_of(doc) for doc in new)
    turns = sorted(t for t in later if t <= turn)
    specs = [spec_of(doc, hints=1 + len(turns)) for doc in start]
    for place, when in enumerate(turns):
        specs += [spec_of(doc, hints=len(turns) - place) for doc in later[when]]
    return tuple(specs)


def offered_after(task: Task, turn: int) -> tuple[ToolSpec, ...]:
    """All tools that function calling has in a turn, in their order."""
    found = {spec.name: spec for spec in offered(task)}
    for when in sorted(withheld(task)):
        if when <= turn:
            found |= {spec.name: spec for spec in brought(task, when)}
    return tuple(found.values())


def spec_of(doc: Doc, *, hints: int = 0) -> ToolSpec:
    """A document as a tool of the OpenAI chat API, in which it keeps its "response"; ``doc`` is the document itself."""
    text = doc["description"] + HINT * hints
    if "response" not in doc:
        return ToolSpec(doc["name"], text, doc["parameters"], doc={**doc, "description": text})
    parameters = copy.deepcopy(dict(doc["parameters"]))
    parameters["type"] = "object"
    parameters["properties"] = _as_openai(parameters["properties"])
    return ToolSpec(
        doc["name"],
        text,
        parameters,
        doc={**doc, "description": text},
        extra={key: value for key, value in doc.items() if key not in ("name", "description", "parameters")},
    )


def _as_openai(properties: dict[str, Any]) -> dict[str, Any]:
    """BFCL's types of parameters as those of JSON Schema; in place."""
    for part in properties.values():
        given = part.get("type")
        if given == "float":
            part["format"] = "float"
            part["description"] += " This is a float type value."
        part["type"] = _OPENAI_TYPES.get(given, "string")
        if part["type"] in ("array", "object"):
            _inside(part)
    return properties


def _inside(part: dict[str, Any]) -> None:
    """The types within an object, or within an array down to its second level."""
    if "properties" in part:
        _as_openai(part["properties"])
    elif "items" in part:
        items = part["items"]
        items["type"] = _OPENAI_TYPES[items["type"]]
        if items["type"] == "array" and "items" in items:
            items["items"]["type"] = _OPENAI_TYPES[items["items"]["type"]]
        elif items["type"] == "object" and "properties" in items:
            _as_openai(items["properties"])


def shown(tools: Sequence[ToolSpec]) -> list[Doc]:
    """The documents of tools as prompts show them."""
    return [spec.doc if spec.doc is not None else _own_document(spec) for spec in tools]
