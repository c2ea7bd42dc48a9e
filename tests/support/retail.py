"""Generated retail tasks for tests: drawn once, and played by an agent or the expert against the rule-based user."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.agents.base import Agent
from muarl.domains.kit.worlds import Tables, Worlds
from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl.types.episode import Episode
from muarl_worlds.tau.retail.intents import SERVICE
from support import kit

RETAIL = find("retail-generated")
WRITES = tuple(name for name, kind in SERVICE.tool_kinds.items() if kind == "write")


def made(size: str, split: str, count: int, seed: int = 0) -> tuple[Task, ...]:
    return kit.made(RETAIL, size, split, count, seed)


def play(agent: Agent, tasks: Sequence[Task], size: str = "tiny", *, user_seed: int = 1) -> list[Episode]:
    """One scored and audited episode of every task."""
    return kit.play(RETAIL, agent, tasks, size, seed=user_seed)


def expert(tasks: Sequence[Task], size: str = "tiny", **errors: float) -> list[Episode]:
    """The same, of the scripted expert."""
    return kit.expert(RETAIL, tasks, size, **errors)


def tables(seed: str, size: str) -> Tables:
    """A made shop."""
    return Worlds(SERVICE).made(seed, "train", SERVICE.size(size))[0]
