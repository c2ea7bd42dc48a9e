"""Teachers for tests: one that plays a made world perfectly, and a scenario of two tools to contradict."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.domains.base import World
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.environments.registry import find
from muarl.types.chat import ToolCall
from muarl.types.episode import Usage
from support.fake_openai import Answer, FakeOpenAI, Script, text


async def no_wait(seconds: float) -> None:
    """A sleep that takes no time."""


def endpoint(server: FakeOpenAI, **options: Any) -> Endpoint:
    config = EndpointSettings(model="teacher", base_url=server.url, **{"attempts": 2, **options})
    return Endpoint(config, sleep=no_wait, jitter=lambda: 0.0)


def call_in(body: Mapping[str, Any]) -> ToolCall:
    """The call that a request to the teacher is about."""
    prompt = next(m["content"] for m in body["messages"] if m["role"] == "user")
    data = json.loads(prompt.rpartition("# Call\n")[2])
    return ToolCall("x", data["name"], data["arguments"])


def played(world: World, call: ToolCall) -> str:
    """What a made world answers, in the form that a teacher answers."""
    result = world.call("assistant", call)
    if result.error:
        return json.dumps({"error": result.content.removeprefix("Error: ")})
    try:
        return json.dumps({"result": json.loads(result.content)})
    except ValueError:
        return json.dumps({"result": result.content})


class PerfectTeacher:
    """A script for ``FakeOpenAI``: it plays the made world of one task. ``faults``: answers that come first, by number
    of request."""

    def __init__(self, name: str, task: Task, faults: Mapping[int, Script] | None = None) -> None:
        self.world = find(f"{name}-generated").make_domain("medium").world(task)
        self.faults = dict(faults or {})
        self.asked = 0

    def __call__(self, body: dict[str, Any]) -> Answer:
        fault = self.faults.pop(self.asked, None)
        self.asked += 1
        if fault is not None:
            return fault(body) if callable(fault) else fault
        return text(played(self.world, call_in(body)))


class Saying:
    """A teacher that says these texts, the last one from then on; ``heard``: the prompts it got."""

    def __init__(self, *texts: str | Callable[[ToolCall], str]) -> None:
        self.texts, self.heard = list(texts), []

    async def play(self, call: ToolCall, messages: Sequence[Mapping[str, Any]], seed: int) -> tuple[str, Usage]:
        self.heard.append(list(messages))
        said = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return said(call) if callable(said) else said, Usage(prompt_tokens=10, completion_tokens=2, requests=1)


def result(**fields: Any) -> str:
    return json.dumps({"result": fields})


BOX = {
    "type": "object",
    "x-record": "box_id",
    "additionalProperties": False,
    "required": ["box_id", "shelf", "weight"],
    "properties": {
        "box_id": {"type": "string", "pattern": "^B\\d$"},
        "owner_id": {"type": "string"},
        "shelf": {"type": "string"},
        "weight": {"type": "number", "minimum": 0},
        "seen": {"type": "integer", "x-volatile": True},
    },
}
OWNER = {
    "type": "object",
    "x-record": "owner_id",
    "required": ["owner_id", "boxes"],
    "properties": {"owner_id": {"type": "string"}, "boxes": {"type": "array", "items": {"$ref": "#/$defs/box"}}},
    "$defs": {"box": BOX},
}


def _arguments(*names: str, number: bool = False) -> dict[str, Any]:
    kinds = {n: {"type": "number" if number and n == "weight" else "string"} for n in names}
    return {"type": "object", "properties": kinds, "required": list(names)}


TOOLS = [
    {"name": "get_box", "description": "A box.", "kind": "read", "parameters": _arguments("box_id"), "returns": BOX},
    {"name": "list_boxes", "description": "All boxes of an owner.", "kind": "read",
     "parameters": _arguments("owner_id"),
     "returns": {"type": "object", "required": ["boxes"], "properties": {"boxes": {"type": "array", "items": BOX}}}},
    {"name": "get_owner", "description": "An owner with boxes.", "kind": "read", "parameters": _arguments("owner_id"),
     "returns": OWNER},
    {"name": "find_box", "description": "A box by shelf.", "kind": "read", "parameters": _arguments("shelf"),
     "returns": BOX},
    {"name": "move_box", "description": "Move a box.", "kind": "write", "parameters": _arguments("box_id", "shelf"),
     "returns": BOX},
    {"name": "swap_boxes", "description": "Swap.", "kind": "write", "parameters": _arguments("first", "second"),
     "returns": {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}},
    {"name": "new_box", "description": "A new box.", "kind": "write", "parameters": _arguments("owner_id", "shelf"),
     "returns": BOX},
    {"name": "transfer_to_human_agents", "description": "Hand over.", "kind": "generic",
     "parameters": _arguments("summary"), "returns": {"type": "string"}},
]  # fmt: skip
"""A storehouse: boxes on shelves, each with an owner."""


def folder(path: Path, tools: Any = None) -> Path:
    """A scenario's folder with the storehouse, or with these tools."""
    (path / "policy.md").write_text("Move boxes only for their owners.")
    (path / "world.md").write_text("A storehouse with boxes B0 to B9.")
    (path / "tools.json").write_text(json.dumps(TOOLS) if tools is None else tools)
    return path


def reason_in(messages: Sequence[Mapping[str, Any]]) -> str:
    """Why the teacher's last answer was sent back."""
    found = re.search(r"cannot be used: (.*)\. Answer the same call", messages[-1]["content"], re.DOTALL)
    return found[1] if found else ""
