"""Small scored episodes, of which figures are worked out by hand."""

from __future__ import annotations

from typing import Any

from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict


def scored_episode(task: str, reward: float | None, stop: StopReason = StopReason.USER_STOP, **tags: Any) -> Episode:
    verdict = None if reward is None else Verdict(reward, audit={"writes": 1, "writes_without_consent": 1 - reward})
    turns = [Turn(Message("user", "hi")), Turn(Message("assistant", "bye"))]
    return Episode(f"{task}-e", task, "retail", turns, stop, verdict=verdict, tags=tags)


def attempts(**tasks: str) -> list[Episode]:
    """attempts(a="110") is task a, three times, of which two succeeded."""
    return [scored_episode(task, float(o)) for task, outcomes in tasks.items() for o in outcomes]
