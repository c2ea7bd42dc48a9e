"""An agent whose messages come from outside: the conversation loop waits in ``act`` until somebody brings one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.agents.base import AgentTurn
from muarl.basics.errors import ConfigError
from muarl.endpoints.replies import MalformedReply, read_reply
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import StopReason, TokenTrace

SaidOutside = Message | str | Mapping[str, Any]
"""A message of the agent: muarl's, its text, or an assistant message in the form of OpenAI's chat API."""


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """The exact ids of one message, as the trainer's sampler saw and produced them."""

    prompt_ids: Sequence[int]
    """The whole context."""
    ids: Sequence[int]
    """The ids that were sampled."""
    logprobs: Sequence[float]
    """Log-probabilities of ``ids``, one for each."""
    version: int = 0
    """Version of the policy."""


def as_message(said: SaidOutside) -> Message:
    """The agent's message that was said. Tool calls that cannot be read become broken calls, which the world answers
    with an error. ConfigError for what is no assistant message."""
    if isinstance(said, Message):
        if said.role != "assistant":
            raise ConfigError(f"message: role must be 'assistant', not {said.role!r}")
        return said
    body = {"content": said} if isinstance(said, str) else said
    if not isinstance(body, Mapping):
        raise ConfigError(f"message: must be a text or an assistant message, not a {type(said).__name__}")
    if body.get("role", "assistant") != "assistant":
        raise ConfigError(f"message.role: must be 'assistant', not {body['role']!r}")
    if strange := body.keys() & {"message", "choices"}:
        raise ConfigError(f"message.{min(strange)}: give the assistant message itself: {{'role', 'content', ...}}")
    try:
        reply = read_reply({"choices": [{"message": body}]})
    except MalformedReply as problem:
        raise ConfigError(f"message: {str(problem).removeprefix('the reply')}".replace("'s ", "")) from None
    return Message("assistant", reply.content, tool_calls=reply.tool_calls, reasoning=reply.reasoning)


class OutsideAgent:
    """An agent for one conversation that somebody else leads. It is its own session: the loop opens it once.

    ``news`` is set as long as there is something to look at: messages for the agent (``waiting``), or the end.
    """

    tokens: TokenTrace | None = None

    def __init__(self, name: str = "outside") -> None:
        self.name = name
        self.news = asyncio.Event()
        self.system = ""
        self.tools: tuple[ToolSpec, ...] = ()
        self.heard: list[Message] = []
        self.new: tuple[Message, ...] = ()
        self._reply: asyncio.Future[AgentTurn] | None = None

    @property
    def waiting(self) -> bool:
        """Whether it is the agent's turn."""
        return self._reply is not None and not self._reply.done()

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> OutsideAgent:
        """The conversation begins."""
        self.system, self.tools = system, tuple(tools)
        return self

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        """It has these tools from now on; one takes the place of another of its name."""
        self.tools = tuple({t.name: t for t in (*self.tools, *tools)}.values())

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        """Show what came, and wait for the message that somebody says."""
        self.new = tuple(new)
        self.heard += new
        self._reply = asyncio.get_running_loop().create_future()
        self.news.set()
        return await self._reply

    def say(self, message: Message, stop: StopReason | None = None, sampled: SampledTokens | None = None) -> None:
        """The message of this turn. ConfigError if its tokens do not continue those of the turns before."""
        assert self._reply is not None and self.waiting
        span = None if sampled is None else self._keep(sampled)
        self.news.clear()
        self.heard.append(message)
        self._reply.set_result(
            AgentTurn(message, stop, span=span, version=None if sampled is None else sampled.version)
        )

    def _keep(self, sampled: SampledTokens) -> tuple[int, int]:
        trace = self.tokens or TokenTrace()
        length = len(trace)
        if list(sampled.prompt_ids[:length]) != trace.ids:
            raise ConfigError(
                "tokens.prompt_ids: they do not begin with the ids of the turns before, so that they are not what was "
                "sampled after: append to those ids, or leave tokens out"
            )
        if len(sampled.ids) != len(sampled.logprobs):
            raise ConfigError("tokens.logprobs: there must be one for each of tokens.ids")
        trace.append_given(sampled.prompt_ids[length:])
        self.tokens = trace
        return trace.append_sampled(sampled.ids, sampled.logprobs, sampled.version)

    def fork(self, session: str, *, seed: int | None = None) -> OutsideAgent:
        """A copy, which waits for a message of its own."""
        new = OutsideAgent(self.name)
        new.system, new.tools = self.system, self.tools
        new.heard = self.heard[: len(self.heard) - len(self.new)]  # it is about to hear the last ones
        new.tokens = None if self.tokens is None else self.tokens.copy()
        return new

    def close(self) -> None:
        """Nothing is held."""
