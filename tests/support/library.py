"""A scenario of a team's own, a lending library with one tool, and a model that plays everybody in it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from support.fake_openai import Answer, call, completion, text

READY = "Answer with the word ready."
"""What a model is asked before a run."""


_requests = itertools.count()


def own_folder(folder: Path) -> Path:
    """A lending library with one tool, as a team would write it."""
    folder.mkdir()
    (folder / "policy.md").write_text("You serve readers of a library. Look every book up before you promise it.")
    (folder / "world.md").write_text("A small library with a few hundred books. Every book has an id such as B12.")
    (folder / "intents.txt").write_text("# what readers come for\nborrow a book\nask for opening hours\n")
    book = {"type": "object", "properties": {"book_id": {"type": "string"}, "free": {"type": "boolean"}}}
    tool = {
        "name": "find_book", "kind": "read", "description": "Look a book up by its title.",
        "parameters": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
        "returns": {**book, "required": ["book_id", "free"], "x-record": "book_id"},
    }  # fmt: skip
    (folder / "tools.json").write_text(json.dumps([tool]))
    return folder


def role_of(body: dict[str, Any]) -> str:
    """Who is asked: "ready", "writer", "teacher", "tools" or "user"; by the model's name, where that is one of them."""
    if body["messages"][-1]["content"] == READY:
        return "ready"
    asked = str(body["messages"][0]["content"])
    if "You write scenarios" in asked:
        return "writer"
    if body["model"] in ("teacher", "tools", "user"):
        return str(body["model"])
    if body.get("tools"):
        return "teacher"
    return "tools" if "find_book" in asked or "find_book" in str(body["messages"]) else "user"


def everybody(body: dict[str, Any]) -> Answer:
    """Writer, teacher, customer and tools, by what they are asked."""
    asked, role = str(body["messages"][0]["content"]), role_of(body)
    if role == "ready":
        return text("ready")
    if role == "writer":
        wanted = int(asked.split("Write ")[1].split()[0])
        start = next(_requests)  # or scenarios would be the same again
        texts = [f"You want to borrow {' '.join(f'w{start}x{n}x{k}' for k in range(14))}." for n in range(wanted)]
        return text(json.dumps({"scenarios": [{"scenario": t} for t in texts]}))
    if role == "teacher":
        last = body["messages"][-1]
        if last["role"] == "tool":
            return text(f"Yes, it is here: {last['content']}. Anything else?")
        return completion(tool_calls=[call("find_book", {"title": "Emma"}, f"c{len(body['messages'])}")])
    if role == "tools":
        return text(json.dumps({"result": {"book_id": "B12", "free": True}}))
    said = sum(m["role"] == "assistant" for m in body["messages"])
    return text("Have you got Emma for me, please?" if said < 2 else "That was all, thank you. ###STOP###")
