"""What the generators of tasks share: requests, splits, and the replay that proves a task's gold actions."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from muarl.chat import ToolCall
from muarl.domains.base import Domain, Task

DRAWS = 5
"""How many kinds of first request are tried for a task before it is given up: rare worlds have no place for some."""


class Infeasible(Exception):
    """The world that was made cannot host the request that was drawn; another one is tried."""


def split_of(*key: str) -> str:
    """The split that a combination belongs to: eight tenths train, one tenth each validation and test, by hash."""
    bucket = int(hashlib.sha256("|".join(key).encode()).hexdigest(), 16) % 10
    return "train" if bucket < 8 else "validation" if bucket == 8 else "test"


@dataclass(slots=True)
class Request:
    """One thing the caller wants. Slots are in the caller's words; ``final`` holds what is right in the end.

    ``wish``: what is asked first. ``then``: the wish after the agent's proposal was heard. ``fallback``: the wish after
    the agent said that the first is not available. ``final`` None: nothing is to be done (refused or given up).
    ``unknown``: slots that the caller does not remember. ``answer``: what the agent must say. ``intent``: what reports
    call it, the kind where empty.
    """

    kind: str
    wish: dict[str, Any]
    then: dict[str, Any] | None = None
    fallback: dict[str, Any] | None = None
    final: dict[str, Any] | None = None
    unknown: list[str] = field(default_factory=list)
    intent: str = ""
    answer: str | None = None

    def to_agenda(self) -> dict[str, Any]:
        """What an agenda user may know of it: everything but ``final``."""
        return {
            "kind": self.kind, "wish": self.wish, "then": self.then, "fallback": self.fallback, "unknown": self.unknown,
            "intent": self.intent, "answer": self.answer,
        }  # fmt: skip


def replay_gold(task: Task, domain: Domain, writes: Collection[str]) -> None:
    """Replay the gold actions in a fresh world. Infeasible if a call fails, or if ``writes`` leave no trace."""
    world = domain.world(task)
    before = world.digest()
    wrote = False
    for action in task.actions or ():
        if world.call("assistant", ToolCall("gold", action.name, action.arguments)).error:
            raise Infeasible
        wrote = wrote or action.name in writes
    if wrote == (world.digest() == before):
        raise Infeasible
