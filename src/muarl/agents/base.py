"""The ``Agent`` protocol: the side that serves the user.

An agent is opened once per episode and is then only ever told what is new, so a token-level agent can only append.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import StopReason, TokenTrace, Usage


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """What an agent did: a message, and why it had to stop, if it had to."""

    message: Message
    """Text, or tool calls with or without text; it may be partial where ``stop`` is set."""
    stop: StopReason | None = None
    """Set when a limit cut the turn (``turn_length``, ``context_full``) or nothing came (``empty_reply``)."""
    usage: Usage = Usage()
    span: tuple[int, int] | None = None
    """Where its sampled ids stand in the session's tokens."""
    version: int | None = None
    """Version of the policy that sampled them."""
    response: str | None = None
    """What the server called its response, if it has a name."""


class AgentSession(Protocol):
    """One agent in one episode."""

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        """Read the messages that came since the last turn and answer. Never gets its own messages back."""
        ...

    @property
    def tokens(self) -> TokenTrace | None:
        """The exact tokens so far, or None where the agent has none."""
        ...

    def close(self) -> None:
        """Free what the session holds (key/value cache). Called once, also after a failure."""
        ...


@runtime_checkable
class TakesTools(Protocol):
    """A session that can be given tools in the middle of an episode; others must be told in words."""

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        """Tools that the agent has from its next turn on, beside those it had."""
        ...


@runtime_checkable
class Reconsiders(TakesTools, Protocol):
    """A session whose last reply can be replaced, as if it had never been given."""

    async def again(self, answers: Sequence[Message]) -> AgentTurn:
        """Another reply in place of the last one. For this turn alone it is shown that one, with these answers to its
        calls."""
        ...

    def instead(self, text: str) -> None:
        """The agent has said this in place of its last reply."""
        ...


@runtime_checkable
class Forks(Protocol):
    """A session that can be copied in the middle of an episode, where it is its turn."""

    def fork(self, session: str, *, seed: int | None = None) -> AgentSession:
        """A copy that goes on by itself as the live episode ``session``, and answers as this one would; with a
        ``seed``, its answers from here on are drawn by that one."""
        ...


class Agent(Protocol):
    """The side that serves the user: a protocol, with one session for each of many episodes at once.

    ``EndpointAgent``, ``SampledAgent`` and ``ExpertAgent`` are such agents; write another by giving it ``name`` and
    ``open``.
    """

    name: str

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> AgentSession:
        """Start an episode with the policy text and the tools. ``session`` is unique among live episodes."""
        ...
