"""Generated airline tasks for tests: drawn once, and played by the expert against the rule-based user."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.domains.kit.worlds import Tables, Worlds
from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl.types.episode import Episode
from muarl_worlds.tau.airline.intents import SERVICE
from support import kit

AIRLINE = find("airline-generated")
WRITES = tuple(name for name, kind in SERVICE.tool_kinds.items() if kind == "write")


def made(size: str, split: str, count: int, seed: int = 0) -> tuple[Task, ...]:
    return kit.made(AIRLINE, size, split, count, seed)


def expert(tasks: Sequence[Task], size: str = "tiny", **errors: float) -> list[Episode]:
    """One scored and audited episode of every task."""
    return kit.expert(AIRLINE, tasks, size, **errors)


def tables(seed: str, size: str) -> Tables:
    """A made airline."""
    return Worlds(SERVICE).made(seed, "train", SERVICE.size(size))[0]
