"""The ``User`` protocol: the side that wants something. A user is made afresh for every episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from muarl.basics.copies import copied, shared
from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import Usage


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What a user said or did, and what it cost. A stop word in the text ends the episode (chat.STOP_WORDS)."""

    message: Message
    usage: Usage = Usage()
    tools: tuple[ToolSpec, ...] = ()
    """What the agent may call from now on, beside what it had (BFCL's missing functions)."""


def check_reply(user: object, reply: object) -> UserTurn:
    """What a user's ``reply`` returned. ConfigError, naming the class, if it is not a turn of a user's."""
    message = reply.message if isinstance(reply, UserTurn) else None
    if isinstance(reply, UserTurn) and isinstance(message, Message) and message.role == "user":
        return reply
    if message is None:
        returned = f"returned a {type(reply).__name__}"
    elif not isinstance(message, Message):
        returned = f"returned a UserTurn with a {type(message).__name__}"
    else:
        returned = f"returned a message with the role {message.role!r}"
    raise ConfigError(f"user {type(user).__name__}: reply {returned}, and must return UserTurn(Message('user', TEXT))")


def fork_user(user: User, task: Task, conversation: Sequence[Message]) -> User:
    """A copy of a user in the middle of an episode, which goes on as the user would. Task and messages are shared, and
    what is ``SharedInCopies``, such as connections. ConfigError for one that cannot be copied."""
    return copied(f"the user {type(user).__name__}", user, shared(task, *conversation))


class User(Protocol):
    """The side that wants something, in one episode: a protocol with one method, ``reply``.

    ``reply`` gets the conversation so far as the user may see it (chat.visible_to_user), first the agent's greeting.
    Raises ``muarl.basics.errors.InfrastructureError`` when the simulator itself failed: the episode is not scored.
    """

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """What the user says or does next."""
        ...


@runtime_checkable
class HoldsSomething(Protocol):
    """A user that holds something to be freed when its episode is over."""

    def close(self) -> None:
        """Called once, also after a failure."""
        ...


@runtime_checkable
class LeavesTags(Protocol):
    """A user, or an agent's session, that has something to say about the episode, besides its words."""

    def episode_tags(self) -> Mapping[str, Any]:
        """Tags for the episode, as JSON; asked once, when it is over, also after a failure."""
        ...


@runtime_checkable
class Recalls(Protocol):
    """A user that can take note of what it has said in a conversation that is replayed from its record, so that nobody
    is asked (and paid) for it again."""

    async def recall(self, conversation: Sequence[Message], said: Message) -> None:
        """It answered ``conversation`` with ``said``."""
        ...


async def recall(user: User, conversation: Sequence[Message], said: Message) -> None:
    """Have a user take note of what it has said; one that cannot is asked again, and what it says now is left."""
    if isinstance(user, Recalls):
        await user.recall(conversation, said)
    else:
        check_reply(user, await user.reply(conversation))


@runtime_checkable
class AsksAgain(Protocol):
    """A user that can say something else in place of what it said last."""

    async def again(self, conversation: Sequence[Message], rejected: Message, faults: Sequence[str]) -> UserTurn:
        """Its next message to the same conversation, which ``reply`` has answered with ``rejected``. ``faults``: what
        is wrong with that one, in sentences."""
        ...


class UserFactory(Protocol):
    """Makes the user of an episode from its task."""

    name: str
    """What reports call this simulator."""

    def __call__(self, task: Task, *, seed: int) -> User: ...
