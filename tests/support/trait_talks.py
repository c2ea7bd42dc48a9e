"""Conversations of users with traits and a domain's scripted expert."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from muarl.agents.expert import ExpertAgent
from muarl.domains.tasks import Task
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.environments.registry import find
from muarl.types.episode import Episode
from muarl.users.agenda import AgendaUserFactory
from muarl.users.base import UserFactory
from muarl.users.traits.levels import TraitRanges


@cache
def drawn(name: str, count: int) -> Sequence[Task]:
    """The first test tasks of a domain."""
    return find(name).make_tasks("test", count)


def talks(
    name: str, levels: Mapping[str, Any], count: int, *, seed: int = 0, users: UserFactory | None = None
) -> Sequence[Episode]:
    """The expert's episodes on so many test tasks of a domain. ``users``: None for those with these levels."""
    environment = find(name)
    place = environment.place()
    given = users or AgendaUserFactory(environment.rule_based_user, traits=TraitRanges.of(levels))
    tasks = drawn(name, count)
    played = asyncio.run(play_in(Places([place]), ExpertAgent(make=environment.expert), given, tasks, 1, seed=seed))
    return played.episodes


def said(episodes: Sequence[Episode]) -> list[list[tuple[str, str | None, list[Any]]]]:
    """What was said and called in each."""
    return [[(m.role, m.content, [c.arguments for c in m.tool_calls]) for m in e.messages] for e in episodes]
