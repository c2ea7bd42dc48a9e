"""The agent whose tokens a ``Sampler`` draws: the policy that is trained and evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

from muarl.agents.base import AgentTurn
from muarl.basics.seeds import derive_seed
from muarl.chat_formats.base import ChatFormat
from muarl.chat_formats.families import EarlierThoughts
from muarl.chat_formats.guarded import HuggingFaceTokenizer
from muarl.chat_formats.rendered import with_tool_names
from muarl.inference.base import Sampler, SamplingParams
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import StopReason, TokenTrace, Usage


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the policy speaks, and how long."""

    turn_tokens: int = 1024
    """Cap on the tokens of one reply."""
    context: int = 32768
    """Cap on the tokens before the agent, its reply included: on a whole episode, unless the format drops earlier
    thoughts."""
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    """1 is off."""
    top_k: int = 0
    """0 is off."""


class SampledAgent:
    """The agent that is trained: it samples replies, and keeps them id for id with log-probabilities and versions."""

    def __init__(
        self, sampler: Sampler, chat: ChatFormat, sampling: Sampling | None = None, *, name: str = "policy"
    ) -> None:
        self.sampler = sampler
        self.chat = chat
        self.sampling = sampling or Sampling()
        self.name = name

    @classmethod
    def of(
        cls,
        sampler: Sampler,
        tokenizer: HuggingFaceTokenizer,
        *,
        turn_tokens: int = 1024,
        context: int = 32768,
        temperature: float = 1.0,
        thinking: bool = False,
        earlier_thoughts: EarlierThoughts = "family",
        name: str = "policy",
    ) -> SampledAgent:
        """An agent that samples in the chat format of a tokenizer. ``turn_tokens``, ``context``, ``temperature``: see
        ``Sampling``; ``thinking``, ``earlier_thoughts``: see ``chat_format``. CheckpointError if the tokenizer's chat
        format is not known."""
        from muarl.chat_formats.choice import chat_format  # a run brings a format that was chosen

        chat = chat_format(tokenizer, thinking=thinking, earlier_thoughts=earlier_thoughts)
        return cls(sampler, chat, Sampling(turn_tokens, context, temperature), name=name)

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> SampledSession:
        """Start an episode. Its context is built from policy text and tools when the first message comes."""
        return SampledSession(self, system, tools, seed, session)


class SampledSession:
    """One episode of a SampledAgent. Every reply has a seed of its own, which follows from the session's seed."""

    def __init__(self, agent: SampledAgent, system: str, tools: Sequence[ToolSpec], seed: int, session: str) -> None:
        self._agent, self._system, self._tools, self._seed, self._session = agent, system, tools, seed, session
        self._trace = TokenTrace()
        self._said: list[Message] = []  # for formats that write contexts anew
        self._turns = 0
        self._calls = 0
        self._asked: tuple[ToolCall, ...] = ()

    @property
    def tokens(self) -> TokenTrace:
        """The episode's exact tokens so far: what was given and what was sampled."""
        return self._trace

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        """Append what is new (or begin a new segment, where the format drops earlier thoughts), sample a reply, parse
        it.

        ``stop``: ``turn_length`` or ``context_full`` if the reply was cut by that limit, ``context_full`` too if there
        was no room to begin one, ``empty_reply`` if it has neither text nor tool calls.
        """
        chat, limits, trace = self._agent.chat, self._agent.sampling, self._trace
        new = with_tool_names(new, self._asked)
        anew = chat.written_anew(trace.context(), self._system, self._tools, self._said, new)
        if anew is None:
            ids = chat.extend(trace.context(), new) if trace.ids else chat.prompt(self._system, self._tools, new)
        else:
            ids = anew
        room = limits.context - len(ids) - (trace.context_length if anew is None else 0)
        if room < 1:
            return AgentTurn(Message("assistant", ""), StopReason.CONTEXT_FULL)
        if anew is not None:
            trace.restart()
        trace.append_given(ids)
        params = SamplingParams(
            max_tokens=min(limits.turn_tokens, room),
            temperature=limits.temperature,
            top_p=limits.top_p,
            top_k=limits.top_k,
            stop_ids=chat.stop_ids,
            seed=derive_seed(self._seed, self._turns),
        )
        self._turns += 1
        sampled = await self._agent.sampler.sample(tuple(trace.context()), params, session=self._session)
        usage = Usage(prompt_tokens=trace.context_length, completion_tokens=len(sampled.ids), requests=1)
        span = trace.append_sampled(sampled.ids, sampled.logprobs, sampled.version)
        message = chat.parse(sampled.ids, first_call=self._calls, tools=self._tools)
        self._asked = message.tool_calls
        if chat.drops_thoughts:
            self._said += [*new, message]
        self._calls += len(message.tool_calls)
        stop = None
        if sampled.finish_reason == "length":
            stop = StopReason.TURN_LENGTH if limits.turn_tokens <= room else StopReason.CONTEXT_FULL
        elif not message.content and not message.tool_calls:
            stop = StopReason.EMPTY_REPLY
        return AgentTurn(message, stop, usage, span, sampled.version)

    def fork(self, session: str, *, seed: int | None = None) -> SampledSession:
        """A copy; see ``agents.base.Forks``. Its sampler computes the tokens that both begin with once, if it keeps a
        cache."""
        new = copy(self)
        new._session, new._seed = session, self._seed if seed is None else seed
        new._trace, new._said = self._trace.copy(), [*self._said]
        return new

    def close(self) -> None:
        """Let the sampler free the episode's key/value cache."""
        self._agent.sampler.close_session(self._session)
