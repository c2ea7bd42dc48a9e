"""A user with traits as its episode sees it: what it says, and what its levels were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from muarl.types.chat import Message
from muarl.users.base import AsksAgain, User, UserTurn
from muarl.users.traits.levels import GAVE_UP, SLIPS, TAG, Traits


class Difficult(Protocol):
    """A user that knows whether it gave up, and which values it got wrong."""

    gave_up: bool
    slips: list[str]


class TraitUser:
    """A user with traits, whatever plays it."""

    def __init__(self, user: User, traits: Traits, core: Difficult | None = None) -> None:
        self._user, self._traits, self._core = user, traits, core

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """What the user says or does next."""
        return await self._user.reply(conversation)

    async def again(self, conversation: Sequence[Message], rejected: Message, faults: Sequence[str]) -> UserTurn:
        """What it says in place of ``rejected``, if it can say something else."""
        if isinstance(self._user, AsksAgain):
            return await self._user.again(conversation, rejected, faults)
        return UserTurn(rejected)

    def episode_tags(self) -> Mapping[str, Any]:
        """The levels; of agenda users also whether they gave up, and what they got wrong and then put right."""
        found: dict[str, Any] = {TAG: {name: round(level, 4) for name, level in self._traits.levels().items()}}
        if self._core is not None:
            found[GAVE_UP] = self._core.gave_up
            if self._core.slips:
                found[SLIPS] = list(self._core.slips)
        return found
