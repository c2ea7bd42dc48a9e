"""Users that take their time: any user, with a random wait before each reply, as a person or a remote model has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.basics.event_loop import Closable
from muarl.basics.seeds import derive_seed
from muarl.domains.tasks import Task
from muarl.types.chat import Message
from muarl.users.base import HoldsSomething, LeavesTags, User, UserFactory, UserTurn, recall


class SlowUser:
    """A user that waits ``low`` to ``high`` seconds before each reply, uniformly; ``seed`` draws the waits."""

    def __init__(self, user: User, low: float, high: float, *, seed: int) -> None:
        self._user, self._low, self._high = user, low, high
        self._random = random.Random(derive_seed(seed, "delay"))

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """What the user itself says, later."""
        await asyncio.sleep(self._random.uniform(self._low, self._high))
        return await self._user.reply(conversation)

    async def recall(self, conversation: Sequence[Message], said: Message) -> None:
        """Let the user take note of it, at once."""
        await recall(self._user, conversation, said)

    def episode_tags(self) -> Mapping[str, Any]:
        """The user's own."""
        return self._user.episode_tags() if isinstance(self._user, LeavesTags) else {}

    def close(self) -> None:
        """Close the user, if it holds something."""
        if isinstance(self._user, HoldsSomething):
            self._user.close()


class SlowUserFactory:
    """Makes slow users of another factory's."""

    def __init__(self, users: UserFactory, low: float, high: float) -> None:
        self.users, self.low, self.high = users, low, high
        self.name = users.name

    async def aclose(self) -> None:
        """Close the other factory, if it holds something."""
        if isinstance(self.users, Closable):
            await self.users.aclose()

    def __call__(self, task: Task, *, seed: int) -> User:
        return SlowUser(self.users(task, seed=seed), self.low, self.high, seed=seed)
