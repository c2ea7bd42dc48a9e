"""The scripted replies as other programs' loops can say them, and the native episodes that they must equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest

from muarl.basics.errors import InfrastructureError
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.rewards.judge import FixedJudge
from muarl.types.chat import Message
from muarl.users.base import UserTurn
from support.scripted_replies import Outcome, Replies, by_gold, natively, written

GENERATED = ("retail-generated", "airline-generated", "telecom-generated")


@dataclass(frozen=True)
class Told:
    """Tasks, and what is said about each: where other programs lead the conversation, the same must come of it as
    natively. ``means``: the users and the judge, where they are not the environment's own. ``many``: 200 tasks."""

    environment: Environment
    split: str
    tasks: list[Task]
    replies: Mapping[str, Sequence[Message]]
    means: Mapping[str, Any]
    many: bool

    def check(self, rewards: Counter[float | None]) -> None:
        """What the conversations were worth: of many, some went well and some went wrong."""
        if not self.many:
            assert set(rewards) <= {0.0, 1.0}
        least = min(10, len(self.tasks) // 10)  # one benchmark has 50 tasks
        assert not self.many or rewards[1.0] > least
        assert not self.many or rewards[0.0] > least


AS_NATIVELY = pytest.mark.parametrize(
    "told",
    [
        *((name, "test", 5) for name in GENERATED[:2]),
        *(pytest.param((name, "test", 200), marks=pytest.mark.slow) for name in GENERATED),
        *(
            pytest.param((f"tau2-{name}", split, 200), marks=[pytest.mark.slow, pytest.mark.data])
            for name, split in (("retail", "base"), ("airline", "base"), ("telecom", "full"))
        ),
    ],
    ids=lambda case: f"{case[0]}-{case[2]}",
    indirect=True,
)
"""For tests that compare with native conversations; the fixture ``told`` makes them."""


@pytest.fixture
def told(request: pytest.FixtureRequest) -> Told:
    """The tasks of a case of ``AS_NATIVELY``, and what is said about them. conftest.py of a folder names it."""
    name, split, count = request.param
    if not name.startswith("tau2-"):
        environment = find(name)
        tasks = environment.make_tasks(split, count)
        return Told(environment, split, tasks, written(environment, tasks), {}, count > 5)
    request.getfixturevalue("install_data")("tau2")
    environment = find(name)
    tasks = environment.make_tasks(split, count)
    replies, users = by_gold(tasks)
    return Told(environment, split, tasks, replies, {"users": users, "judge": FixedJudge(True)}, True)


@contextmanager
def as_if_installed() -> Iterator[None]:
    """Within, modules of ``muarl_integrations`` can be imported whose package is not installed: for what they do
    without it."""
    with patch("muarl.basics.extras.is_installed", return_value=True):
        yield


def one_call_at_a_time(replies: Sequence[Message]) -> list[Message]:
    """The replies as a loop brings them that runs one readable call after the other."""
    out: list[Message] = []
    for message in replies:
        readable = [call for call in message.tool_calls if not call.invalid]
        if not message.tool_calls:
            out.append(message)
        out += [replace(message, content=None, tool_calls=(call,)) for call in readable]
    return out


def sayable(replies: Mapping[str, Sequence[Message]]) -> dict[str, list[Message]]:
    """What is said about each task, one call at a time."""
    return {name: one_call_at_a_time(each) for name, each in replies.items()}


def native_outcome(
    environment: Environment, task: Task, replies: Mapping[str, Sequence[Message]], seed: int, **played: Any
) -> Outcome:
    """What comes of the replies in muarl's own evaluation. ``played``: its users and its judge."""
    return Outcome.of(natively(environment, [task], Replies(replies), seed, **played)[task.id])


class BrokenUsers:
    """Users whose model is away, from a turn of theirs on."""

    name = "broken"

    def __init__(self, says: int = 0, *, retryable: bool = False) -> None:
        self.says, self.retryable, self.made = says, retryable, 0

    def __call__(self, task: Task, *, seed: int) -> Any:
        self.made += 1
        return _Broken(self.says, self.retryable)


class _Broken:
    name = "broken"

    def __init__(self, says: int, retryable: bool) -> None:
        self.left, self.retryable = says, retryable

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        if not self.left:
            raise InfrastructureError("no answer", boundary="user", retryable=self.retryable)
        self.left -= 1
        return UserTurn(Message("user", "Please help me."))
