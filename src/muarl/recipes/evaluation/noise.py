"""Repeats that tell the agent's noise from the user's: every seed of the agent meets every seed of the user."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.environments.places import Places
from muarl.rollouts.episode_runner import RolloutRequest


@dataclass(frozen=True)
class NoiseGrid:
    """How many seeds of the agent and of the user are crossed, and how often each pair of them is played."""

    agents: int
    users: int
    repeats: int = 1

    @classmethod
    def of(cls, text: str) -> NoiseGrid:
        """From "3x3" or "3x3x2". ConfigError if it is none, or a single attempt."""
        match = re.fullmatch(r"(\d{1,3})x(\d{1,3})(?:x(\d{1,3}))?", text)
        numbers = [int(n) for n in match.groups(default="1")] if match else []
        if not numbers or min(numbers) < 1 or max(numbers) < 2:
            raise ConfigError(
                f"eval.noise: {text!r} must look like 3x3 (seeds of the agent x seeds of the user) or 3x3x2 (each "
                "twice), with more than one attempt in all"
            )
        return cls(*numbers)

    @property
    def attempts(self) -> int:
        """Episodes of each task."""
        return self.agents * self.users * self.repeats


def noise_requests(
    places: Places, tasks: Sequence[Task], grid: NoiseGrid, seed: int, label: str
) -> list[RolloutRequest]:
    """The episodes of such an evaluation, all tasks of one pair of seeds before the next.

    The seeds are those of ordinary trials: where agent and user have the same number, it is that trial.
    """
    trials = places.requests(tasks, max(grid.agents, grid.users), seed, label)
    by_group: dict[str, dict[int, RolloutRequest]] = {}
    for request in trials:
        by_group.setdefault(request.group, {})[request.number] = request
    out = []
    for agent in range(grid.agents):
        for user in range(grid.users):
            for repeat in range(grid.repeats):
                number = (agent * grid.users + user) * grid.repeats + repeat
                for own in by_group.values():
                    met = own[user]
                    user_seed = met.seed if met.user_seed is None else met.user_seed
                    out.append(replace(own[agent], number=number, user_seed=user_seed))
    return out


def noise_tag(request: RolloutRequest, grid: NoiseGrid) -> dict[str, Any]:
    """What the episode of a request is tagged with."""
    return {"user_seed": request.user_seed, "repeat": request.number % grid.repeats}
