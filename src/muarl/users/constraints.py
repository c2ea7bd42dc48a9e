"""What keeps a user within its scenario while it is trained: who leaves it, or ends with a request open, is void.

An agent fails easily with a user that says something untrue or talks nonsense, so a user model that is paid for the
agent's failures would learn to do that. A conversation is therefore looked at once more when it is over, message by
message: by the check of the task's goal that user models are sampled under (goal_check.py), by the rules of the guard
(guard.py), and by two of its own (``MARKUP``, ``HIDES``). Whatever any finds makes the episode void (``void_rewards``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from muarl.domains.tasks import Task
from muarl.types.chat import STOP_WORDS, Message, ToolSpec, visible_to_user
from muarl.user_errors.conduct import find_all
from muarl.users.guard import GUARDED

if TYPE_CHECKING:  # who samples needs muarl[train]
    from muarl.users.sampled import MessageCheck

GOAL = "goal"
"""The name of the goal's check among the rules of the guard."""
MARKUP = "markup"
"""The name of the rule against pieces of markers and of data, which nobody says. A broken stop word leaves an agent in
a conversation that its user has ended, and was the first thing that a user model learned without this rule."""
_MARKUP = re.compile(r'##|STOP|TRANSFER|OUT-OF-SCOPE|<\||\|>|"\s*[:,]\s*"')
HIDES = "hides_request"
"""The name of the rule against a user that has said so many messages (``HIDDEN``) and none of its requests. An agent
that cannot know what it is to do fails, and was to blame for nothing."""
HIDDEN = 2
VOID = "user_left_scenario"
"""The tag of an episode whose user left its scenario: its breaches, as JSON."""


@runtime_checkable
class KnowsRequests(Protocol):
    """A check that follows which requests a user has spoken of."""

    @property
    def untold(self) -> bool:
        """Whether it has not spoken of any yet."""
        ...


@dataclass(frozen=True, slots=True)
class ScenarioBreach:
    """Where a user left its scenario."""

    rule: str
    """``GOAL``, ``MARKUP``, ``HIDES``, or the name of a rule (``user_errors.conduct.RULES``)."""

    message: int
    """Index of the user's message among the episode's messages."""

    detail: str
    """What was found, in words."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict of the fields."""
        return {"rule": self.rule, "message": self.message, "detail": self.detail}


def breaches(
    task: Task,
    messages: Sequence[Message],
    *,
    check: MessageCheck | None,
    rules: Collection[str] = GUARDED,
    user_tools: Sequence[ToolSpec] = (),
) -> tuple[ScenarioBreach, ...]:
    """Where the user of a finished conversation left its scenario, in order; empty if it did not.

    ``check``: of the task's goal, fresh; None where the task has none. ``rules``: those of the guard that count.
    ``user_tools``: the tools that the user had.
    """
    all_breaches = [*_off_goal(messages, check)] if check is not None else []
    errors = find_all(task, messages, user_tools=user_tools)
    all_breaches += _markup(messages)
    all_breaches += [ScenarioBreach(error.rule, error.turn, error.detail) for error in errors if error.rule in rules]
    return tuple(sorted(all_breaches, key=lambda breach: (breach.message, breach.rule)))


def _off_goal(messages: Sequence[Message], check: MessageCheck) -> list[ScenarioBreach]:
    """What the check finds; it hears and is told the same, in the same order, as when it is asked beforehand."""
    off_goal, spoken = [], 0
    for index, message in enumerate(messages):
        if not visible_to_user([message]) or message.role not in ("user", "assistant"):
            continue
        text = message.content or ""
        if message.role == "assistant":
            check.hears(text)
            continue
        if (problem := check.problem(text)) is not None:
            off_goal.append(ScenarioBreach(GOAL, index, problem))
        check.said(text)
        spoken += 1
        if spoken == HIDDEN and isinstance(check, KnowsRequests) and check.untold:
            off_goal.append(ScenarioBreach(HIDES, index, f"has said {spoken} messages, and nothing of what it wants"))
    return off_goal


def _markup(messages: Sequence[Message]) -> list[ScenarioBreach]:
    """Messages of the user with pieces of markers or data in them, whole stop words aside."""
    marked = []
    for index, message in enumerate(messages):
        if message.role != "user":
            continue
        text = message.content or ""
        for word in STOP_WORDS:
            text = text.replace(word, " ")
        if (piece := _MARKUP.search(text)) is not None:
            marked.append(ScenarioBreach(MARKUP, index, f"writes {piece.group()!r}"))
    return marked


def void_rewards(rewards: Sequence[float], void: Sequence[bool], *, margin: float) -> list[float]:
    """The rewards of one group, those of void episodes replaced: each gets what the lowest of the others has, less
    ``margin`` (above 0), so that no void episode is ever better than one within its scenario. Where all are void they
    are equal, and the group has nothing to say. ValueError if lengths differ."""
    valid = [reward for reward, out in zip(rewards, void, strict=True) if not out]
    floor = (min(valid) if valid else 0.0) - margin
    return [floor if out else float(reward) for reward, out in zip(rewards, void, strict=True)]
