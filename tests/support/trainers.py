"""The scripted replies as other programs' loops can say them, and the native episodes that they must equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
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
from muarl_worlds import install
from support.scripted_replies import Outcome, Replies, by_gold, natively, written

TAU2 = (("retail", "base"), ("airline", "base"), ("telecom", "full"))
GENERATED = ("retail-generated", "airline-generated", "telecom-generated")


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


def sayable(environment: Environment, tasks: Sequence[Task]) -> dict[str, list[Message]]:
    """What an expert that makes mistakes says about each task, one call at a time."""
    return {name: one_call_at_a_time(replies) for name, replies in written(environment, tasks).items()}


def native_outcome(
    environment: Environment, task: Task, replies: Mapping[str, Sequence[Message]], seed: int, **played: Any
) -> Outcome:
    """What comes of the replies in muarl's own evaluation. ``played``: its users and its judge."""
    return Outcome.of(natively(environment, [task], Replies(replies), seed, **played)[task.id])


def generated(name: str, count: int) -> tuple[Environment, list[Task], dict[str, list[Message]]]:
    """So many tasks of a generated domain, and what is said about them."""
    environment = find(name)
    tasks = environment.make_tasks("test", count)
    return environment, tasks, sayable(environment, tasks)


def of_tau2(
    name: str, split: str, data: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Environment, list[Task], dict[str, list[Message]], dict[str, Any]]:
    """200 tasks of a domain of TAU2's, what is said about them, one call at a time, and its users and judge."""
    monkeypatch.setenv("MUARL_DATA", str(installed))
    install.add("tau2", data / "tau2")
    environment = find(f"tau2-{name}")
    tasks = environment.make_tasks(split, 200)
    replies, users = by_gold(tasks)
    said = {task: one_call_at_a_time(each) for task, each in replies.items()}
    return environment, tasks, said, {"users": users, "judge": FixedJudge(True)}


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
