"""A guard around any simulated user: what it says is looked at before it is sent, and a fault is asked again.

The rules are those of ``muarl user check`` (``user_errors.conduct``). What stays bad is sent all the same, since an
episode cannot go on without a user, and the episode is marked, so that training leaves it out (``Episode.learnable``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.event_loop import Closable
from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import GUARD, SPOILED, Usage
from muarl.user_errors.conduct import RULES, find_all
from muarl.user_errors.errors import UserError
from muarl.users.base import AsksAgain, HoldsSomething, LeavesTags, User, UserFactory, UserTurn, check_reply, recall

GUARDED = (
    "contradicts", "invents", "leaks", "breaks_character", "pretends", "omits_actions",
    "stops_early", "agrees_and_stops", "agrees_wrongly", "unknown_tool", "loops", "empty", "incoherent",
)  # fmt: skip
"""The rules that a guard goes by where nobody names others: those that spoil a conversation and that another message
can fix."""


def fault(error: UserError) -> str:
    """A finding as a user that is asked again is told it."""
    return f"{RULES[error.rule]} ({error.detail})"


class GuardedUser:
    """``user`` in one episode, behind a guard.

    ``rules``: those that it goes by. ``retries``: how often a message is asked again at most; a user that cannot be
    asked again (``AsksAgain``) is only marked. ``exclude``: whether what stays bad marks the episode for training.
    """

    def __init__(
        self,
        user: User,
        task: Task,
        *,
        tools: Sequence[ToolSpec] = (),
        rules: Collection[str] = GUARDED,
        retries: int = 2,
        exclude: bool = True,
    ) -> None:
        self._user, self._task, self._tools = user, task, tuple(tools)
        self._rules, self._retries, self._exclude = frozenset(rules), retries, exclude
        self._asked = self._mended = 0
        self._left: list[dict[str, Any]] = []
        self._number = -1

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """What the user says, or says when it is asked again. Usage is that of all tries; an InfrastructureError of a
        later try carries what the earlier ones took."""
        self._number += 1
        turn = check_reply(self._user, await self._user.reply(conversation))
        errors = self.faults(conversation, turn.message)
        if not errors:
            return turn
        usage, tries = turn.usage, 0
        while errors and tries < self._retries and isinstance(self._user, AsksAgain):
            tries += 1
            self._asked += 1
            try:
                turn = await self._user.again(conversation, turn.message, [fault(e) for e in errors])
            except InfrastructureError as failure:
                failure.usage = usage + (failure.usage or Usage())
                raise
            usage += turn.usage
            errors = self.faults(conversation, turn.message)
        if errors:
            self._left += [{"message": self._number, "rule": e.rule, "detail": e.detail} for e in errors]
        else:
            self._mended += 1
        return replace(turn, usage=usage)

    async def recall(self, conversation: Sequence[Message], said: Message) -> None:
        """Take note of it, and let the user do so. What the guard had done about it is not told again."""
        self._number += 1
        await recall(self._user, conversation, said)

    def faults(self, conversation: Sequence[Message], message: Message) -> tuple[UserError, ...]:
        """What the rules find in a message as the next one of a conversation."""
        place = len(conversation)
        errors = find_all(self._task, [*conversation, message], user_tools=self._tools, only=place)
        return tuple(error for error in errors if error.rule in self._rules)

    def episode_tags(self) -> Mapping[str, Any]:
        """What became of it: how often it was asked again, how many messages that fixed, and what was left; and the
        user's own."""
        own = self._user.episode_tags() if isinstance(self._user, LeavesTags) else {}
        record = {"asked_again": self._asked, "fixed": self._mended, "left": list(self._left)}
        return {**own, GUARD: record, **({SPOILED: True} if self._left and self._exclude else {})}

    def close(self) -> None:
        """Close the user, if it holds something."""
        if isinstance(self._user, HoldsSomething):
            self._user.close()


class GuardedUserFactory:
    """Makes another factory's users behind a guard. ``tools``: the user's tools in a task. Others: see
    ``GuardedUser``. ConfigError for a rule that there is not."""

    def __init__(
        self,
        users: UserFactory,
        *,
        tools: Callable[[Task], Sequence[ToolSpec]] = lambda task: (),
        rules: Collection[str] = GUARDED,
        retries: int = 2,
        exclude: bool = True,
    ) -> None:
        if unknown := sorted(set(rules) - (RULES.keys() - {"judge"})):
            raise ConfigError(f"guard.rules: there is no rule {unknown[0]!r}; there are: {', '.join(RULES)}")
        self.users, self.tools, self.rules = users, tools, tuple(rules)
        self.retries, self.exclude = retries, exclude
        self.name = f"{users.name}, guarded"

    async def aclose(self) -> None:
        """Close the other factory, if it holds something."""
        if isinstance(self.users, Closable):
            await self.users.aclose()

    def __call__(self, task: Task, *, seed: int) -> User:
        return GuardedUser(
            self.users(task, seed=seed),
            task,
            tools=self.tools(task),
            rules=self.rules,
            retries=self.retries,
            exclude=self.exclude,
        )
