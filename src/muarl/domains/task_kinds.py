"""The kind of a task, as its tags say it: what an agent can be good or bad at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A kind of task. ``intent``: what its user wants; ``difficulty``: as its environment says it, "" where it does
    not; ``domain``: in a run of several domains."""

    intent: str
    difficulty: str = ""
    domain: str = ""

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
