"""What it costs an agent to write without asking, measured with scripted experts that talk with the environment's own
users: one that serves by the policy, and one that never asks.

Where the second earns as much, a yes is worth nothing, and nothing keeps an agent that learns from these rewards from
writing without one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from muarl.domains.base import Domain
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.types.episode import Episode

UNASKED = ErrorProfile(skip_confirmation=1.0)
"""The mistakes of an expert that never asks before it writes."""
ENOUGH = 20
"""Tasks below which nothing is said of a share of them."""
WORTH = 0.1
"""The share of the tasks with something to ask about that never asking must cost at least."""
MANY = 80
"""Tasks from which on a share is judged as it is; of fewer it may be lower by two standard errors."""
OF_ONE_INTENT = 30
"""Tasks with one request of one kind below which nothing is said of that kind."""
REMEDY = (
    "Let some users change their mind or say no to a right proposal in every intent, let the reward look at all of the "
    "database, or count writes without consent in the reward (rl.layers)"
)


@dataclass(frozen=True, slots=True)
class ExpertPlay:
    """What came of a conversation: its reward, and the writes that succeeded."""

    reward: float
    writes: tuple[str, ...]


@dataclass(frozen=True)
class AskingCost:
    """What never asking costs. ``due``: tasks that the expert that asks earns and in which the one that never asks
    writes. ``lost``: how many of these the latter does not earn. ``unpaid``: kinds of requests in which it loses none,
    with their number of tasks."""

    due: int
    lost: int
    unpaid: Mapping[str, int]

    @property
    def share(self) -> float:
        """The share of the due tasks that are lost; 0 without any."""
        return self.lost / self.due if self.due else 0.0

    @property
    def problem(self) -> str:
        """Why asking is worth too little, in a sentence without its full stop; empty if it is not."""
        slack = 0.0 if self.due >= MANY else 2 * sqrt(WORTH * (1 - WORTH) / max(1, self.due))
        if self.due >= ENOUGH and self.share < WORTH - slack:
            return f"{self.lost_text}: an agent that is paid by the outcome alone learns not to ask"
        if self.unpaid:
            kinds = ", ".join(f"{name} (0 of {count})" for name, count in self.unpaid.items())
            return f"never asking loses nothing in some intents: {kinds}"
        return ""

    @property
    def lost_text(self) -> str:
        """What never asking loses, in words."""
        return f"of {self.due} tasks with something to ask about, never asking loses {self.lost} ({self.share:.0%})"


def asking_cost(
    tasks: Sequence[Task], asked: Sequence[ExpertPlay | None], unasked: Sequence[ExpertPlay | None]
) -> AskingCost:
    """Compare what came of the same tasks, in the same order; None where an episode has no verdict."""
    both = [(t, a, u) for t, a, u in zip(tasks, asked, unasked, strict=True) if a is not None and u is not None]
    due = [(task, u.reward < 1) for task, a, u in both if a.reward == 1 and u.writes]
    kinds: dict[str, list[bool]] = {}
    for task, lost in due:
        requests = (task.agenda or {}).get("requests", ())
        if len(requests) == 1 and "kind" in requests[0]:
            kinds.setdefault(str(requests[0]["kind"]), []).append(lost)
    return AskingCost(
        len(due),
        sum(lost for _, lost in due),
        {kind: len(seen) for kind, seen in kinds.items() if len(seen) >= OF_ONE_INTENT and not any(seen)},
    )


def expert_plays(domain: Domain, episodes: Iterable[Episode]) -> list[ExpertPlay | None]:
    """What came of each episode; None for one without a verdict."""
    return [None if one.verdict is None else _played(domain, one) for one in episodes]


def _played(domain: Domain, episode: Episode) -> ExpertPlay:
    failed = {m.tool_call_id for m in episode.messages if m.role == "tool" and m.error}
    calls = [c for m in episode.messages if m.role == "assistant" for c in m.tool_calls if c.id not in failed]
    writes = (c for c in calls if c.name in domain.tool_names() and domain.kind_of(c.name) == "write")
    return ExpertPlay(episode.reward, tuple(f"{c.name}({_shown(c.arguments)})" for c in writes))


def _shown(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False, default=str)
