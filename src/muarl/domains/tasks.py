"""Tasks: what a user wants, what a right ending looks like, and the kind of a task, as its tags say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from muarl.basics.errors import ConfigError
from muarl.domains.authoring import nearest
from muarl.domains.database import Database
from muarl.types.chat import Message, Requestor


@dataclass(frozen=True)
class Action:
    """One call of a task's right solution: a tool, by name, with its arguments."""

    name: str
    arguments: Mapping[str, Any]
    requestor: Requestor = "assistant"
    """The side that makes it."""
    action_id: str = ""
    compare_args: tuple[str, ...] | None = None
    """Argument names that count when calls are compared, None: all of the call's."""


REWARD_BASIS = frozenset({"DB", "ACTION", "COMMUNICATE", "NL_ASSERTION", "ENV_ASSERTION", "SAFE"})
"""What the reward of a task may be made of (rewards/outcome.py)."""


@dataclass(frozen=True)
class Task:
    """What a user wants, and what the right ending is: one problem for an agent to solve in conversation."""

    id: str
    domain: str
    scenario: str
    """Full text for an LLM user."""
    actions: tuple[Action, ...] | None
    """Gold actions, None where the final state is not checked."""
    reward_basis: tuple[str, ...] = ("DB",)
    """TAU2's component names (DB, ACTION, COMMUNICATE, NL_ASSERTION, ENV_ASSERTION), and SAFE where a task has traps;
    ConfigError for another, but in official tasks."""
    communicate_info: tuple[str, ...] = ()
    nl_assertions: tuple[str, ...] = ()
    env_assertions: tuple[Mapping[str, Any], ...] = ()
    database: Database | None = None
    """The task's own base, None for the domain's."""
    initial_data: Mapping[str, Any] | None = None
    """Side to partial tables, laid over the base by the domain's ``prepare``."""
    initial_actions: tuple[Mapping[str, Any], ...] = ()
    """(TAU2's env_type, func_name, arguments), run on the base by the domain's ``prepare``."""
    history: tuple[Message, ...] = ()
    """What was said and done before the episode begins (its calls are not yet run in a fresh world)."""
    ticket: str | None = None
    """What an agent that works alone is told."""
    user_tools: tuple[str, ...] | None = None
    """The tools the user may use, None: all."""
    agenda: Mapping[str, Any] | None = None
    """What an agenda user plays from."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    """Intent, persona, difficulty, split, seed."""
    benchmark: bool = False
    """An official task, which training refuses unless told otherwise."""
    origin: Any = field(default=None, compare=False, repr=False)
    """The environment that made it and its address there (``environments.task_addresses``); it stays in this process,
    and is no part of what the task is."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "origin": None}

    def __post_init__(self) -> None:
        if not self.benchmark and not REWARD_BASIS.issuperset(self.reward_basis):
            raise ConfigError(_strange_basis(self))


def _strange_basis(task: Task) -> str:
    if isinstance(task.reward_basis, str):
        return f"task {task.id}: reward_basis must be a tuple of names, such as ({task.reward_basis!r},)"
    strange = next(name for name in task.reward_basis if name not in REWARD_BASIS)
    components = sorted(REWARD_BASIS)
    hint = nearest(str(strange), components)
    return f"task {task.id}: reward_basis: there is no component {strange!r}; known: {', '.join(components)}{hint}"


class Kind(NamedTuple):
    """A kind of task."""

    intent: str
    """What its user wants."""
    difficulty: str = ""
    """As its environment says it, "" where it does not."""
    domain: str = ""
    """The domain, in a run of several."""

    def __str__(self) -> str:
        """Such as "return", or "return (difficulty 2)"."""
        name = f"{self.domain}: {self.intent}" if self.domain else self.intent
        return f"{name} (difficulty {self.difficulty})" if self.difficulty else name


def kind_of(tags: Mapping[str, Any]) -> Kind | None:
    """The kind of a task with these tags, or of an episode of it; None if they name no ``intent``."""
    intent = tags.get("intent")
    if intent is None:
        return None
    return Kind(str(intent), str(tags.get("difficulty", "")), str(tags.get("domain", "")))
