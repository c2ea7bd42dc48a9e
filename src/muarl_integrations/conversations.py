"""Conversations for trainers that hold settings and tasks as plain values: text in files, and rows of data sets."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.endpoints.connections import shared_connections
from muarl.environments.play import named_users, play
from muarl.environments.registry import load_task
from muarl.environments.results import PlayResult
from muarl.environments.session import Session
from muarl.rewards.judge import make_judge

ONCE: Mapping[str, Any] = {"attempts": 1, "timeout": 3600.0, "deadline": 3600.0}
"""How a policy is asked: a server that records what it is asked would record a lost attempt too."""


@dataclass(frozen=True)
class Conversations:
    """How conversations with a trainer's policy are led.

    ``user``: who plays the customers: agenda (by rules), endpoint:MODEL or endpoint:MODEL@URL. ``judge``: of assertions
    in words, endpoint:MODEL. ``void_is_zero``: what a benchmark voids because of what the policy wrote counts as
    reward 0, and is no failure. ``model``: what the trainer's server calls the policy. ``options``: how it is asked
    (``muarl.play``), by default once, with an hour's time.
    """

    user: str = "agenda"
    judge: str | None = None
    void_is_zero: bool = False
    model: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_variables(cls) -> Conversations:
        """What the environment variables MUARL_USER, MUARL_JUDGE and MUARL_VOID_IS_ZERO (1 or 0) say, for trainers
        that hand no settings on."""
        void = os.environ.get("MUARL_VOID_IS_ZERO") or "0"
        if void not in ("0", "1"):
            raise ConfigError(f"MUARL_VOID_IS_ZERO: must be 0 or 1, not {void!r}")
        judge = os.environ.get("MUARL_JUDGE") or None
        return cls(user=os.environ.get("MUARL_USER") or "agenda", judge=judge, void_is_zero=void == "1")

    def check(self) -> None:
        """ConfigError, before any work, for a user or a judge that there is not."""
        named_users(self.user)
        if self.judge is not None:
            make_judge(self.judge)

    async def play(self, row: Mapping[str, Any], *, base_url: str, api_key: str, **options: Any) -> PlayResult:
        """Play the task of a row to its end with the policy at ``base_url``.

        ``row``: ``task``, its address, and, where they are to be fixed, ``seed`` and ``user_seed``. ``options``: those
        of this conversation. ConfigError for what cannot be played. What failed is the result's ``failure``.
        """
        async with self._means(row) as means:
            asked = {"model": self.model, **ONCE, **self.options, **options}
            return self.counted(await play(base_url=base_url, api_key=api_key, **means, **asked))

    @asynccontextmanager
    async def session(self, row: Mapping[str, Any]) -> AsyncIterator[Session]:
        """The conversation about a row's task, for a policy that is asked elsewhere. Read its result by ``counted``."""
        async with self._means(row) as means:
            task: Task = means.pop("task")
            assert task.origin is not None
            async with task.origin.environment.start(task, **means) as session:
                yield session

    def counted(self, result: PlayResult) -> PlayResult:
        """The result, with a reward of 0 for what a benchmark voids, if that was asked for."""
        failure = result.failure
        if failure is None or not (self.void_is_zero and failure.void and failure.boundary == "agent"):
            return result
        return replace(result, reward=0.0, failure=None)

    @staticmethod
    def task(row: Mapping[str, Any]) -> Task:
        """The task of a row. ConfigError for a row without one."""
        return _task(row)

    @asynccontextmanager
    async def _means(self, row: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The row's task and seeds, with users and judge."""
        async with AsyncExitStack() as stack:
            connections = await stack.enter_async_context(shared_connections())
            judge = None
            if self.judge is not None:
                judge = make_judge(self.judge)
                stack.push_async_callback(judge.aclose)
            seed, user_seed = (None if row.get(name) is None else int(row[name]) for name in ("seed", "user_seed"))
            yield {
                "task": _task(row),
                "seed": random.SystemRandom().getrandbits(31) if seed is None else seed,
                "user_seed": user_seed,
                "users": named_users(self.user, connections=connections),
                "judge": judge,
            }


def _task(row: Mapping[str, Any]) -> Task:
    address = row.get("task")
    if not isinstance(address, str) or not address:
        raise ConfigError(
            "the row has no task: rows need a column `task` with addresses such as retail-generated:train:17, as "
            f"str(task.origin.address) gives them; this one has {', '.join(sorted(map(str, row))) or 'no columns'}"
        )
    return load_task(address)
