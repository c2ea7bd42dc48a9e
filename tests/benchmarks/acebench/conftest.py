"""ACEBench's data, installed once, and tasks of our own for what needs none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muarl.domains.tasks import Task
from muarl_worlds.acebench.official.tasks import task_from_json


@pytest.fixture(scope="module")
def official_acebench(module_data: Any) -> Path:
    """ACEBench's data, installed in a folder of their own."""
    return module_data("acebench") / "acebench"


def make_task(category: str = "multi_turn", language: str = "en", **changes: Any) -> Task:
    """A small task about the phone: a message is to be deleted. ``changes``: of entry and answer."""
    entry = {
        "id": f"agent_{category}_0",
        "question": "Delete message {3}.",
        "initial_config": {"BaseApi": {"wifi": True, "logged_in": False}},
        "path": [],
        "function": [
            {
                "name": "delete_message",
                "description": "Delete it.",
                "parameters": {
                    "type": "dict",
                    "required": ["message_id"],
                    "properties": {"message_id": {"type": "integer", "description": "Its number."}},
                },
            }
        ],
        "involved_classes": ["BaseApi", "MessageApi"],
    }
    answer = {
        "id": entry["id"],
        "ground_truth": [{"BaseApi": {"wifi": True, "logged_in": True}}, {"MessageApi": {"inbox": {}}}],
        "mile_stone": ["[login_device()]", "[delete_message(message_id=3)]"],
    }
    for name, value in changes.items():
        (entry if name in entry else answer)[name] = value
    return task_from_json(entry, answer, language, category)  # type: ignore[arg-type]


@pytest.fixture
def make() -> Any:
    """``make_task``."""
    return make_task
