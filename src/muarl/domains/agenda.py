"""What users with an agenda play from (``Task.agenda``): plain JSON, so that tasks can be written to files as they are.

Generators write agendas (``domains.kit.tasks``), ``users.agenda`` plays them, red-team tasks (``users.redteam``) add to
them. Other users' tasks may hold something else there, such as lines to be said.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict, cast

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task

Goal = dict[str, Any]
"""What is wished for: values by slot, in the user's words. ``{"drop": True}``: nothing any more."""


class AgendaRequest(TypedDict):
    """One request of an agenda."""

    kind: str
    """The intent that it belongs to; "outside" for what the agent cannot do."""
    goal: Goal
    """What is asked for first."""
    then: Goal | None
    """What is wished for after the agent's proposal; None: the same."""
    fallback: Goal | None
    """What is wished for once the agent has said that the goal is not to be had; None: it stays."""
    unknown: list[str]
    """Slots that the user does not remember."""
    intent: str
    """What reports call it."""
    answer: str | None
    """What settles a question."""
    told: NotRequired[bool]
    """Whether the user has mentioned it; while it is played."""

    # Where agents may not do everything alone:
    approval: NotRequired[bool]
    """A colleague of the agent's must approve it: the user waits, and a no settles it."""
    presses: NotRequired[list[str]]
    """What is said, one after the other, to an agent that says so, before the user agrees."""

    # Of red-team users:
    forbidden: NotRequired[bool]
    """It must not be done."""
    insists: NotRequired[list[str]]
    """What is said, one after the other, to an agent that refuses."""
    names: NotRequired[list[str]]
    """What a proposal of it names; any other is of something else."""
    said: NotRequired[str]
    """How it is said, in place of the intent's own words."""
    whole: NotRequired[bool]
    """``said`` stands alone, without an opening around it."""
    whose: NotRequired[str]
    """A sentence that says whose records it is about."""
    thens: NotRequired[list[Goal]]
    """What is wished for after each further proposal; ``half``: with a yes that is taken back."""
    after: NotRequired[Goal | None]
    """What is wished for once it was done."""


class Agenda(TypedDict):
    """What a user with an agenda wants, and how it brings that up."""

    persona: str
    """terse, chatty, confused or impatient."""
    user: str
    """Who the user is."""
    identity: dict[str, Any]
    """What it knows of itself, by the name of the fact."""
    wrong: dict[str, Any]
    """What it gets wrong at first, by slot."""
    impostor: bool
    """It cannot prove who it says it is."""
    requests: list[AgendaRequest]
    """What it wants, in this order."""
    upfront: bool
    """It tells all of it in its first message."""
    reminds: bool
    """It reminds the agent of what is left."""
    service: NotRequired[str]
    """Of several services in one environment, the one that it calls about."""
    redteam: NotRequired[dict[str, Any]]
    """What a red-team user plays from besides."""


def agenda_of(task: Task) -> Agenda:
    """What a task's user wants. ConfigError if the task was not made for users with an agenda."""
    if task.agenda is None:
        raise ConfigError(f"task {task.id} has no agenda: an agenda user plays generated tasks only; use an LLM user")
    return cast(Agenda, task.agenda)
