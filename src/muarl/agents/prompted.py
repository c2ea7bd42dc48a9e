"""An agent that writes its tool calls as text, in a form of the benchmark's own, around any agent that writes text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from muarl.agents.base import Agent, AgentSession, AgentTurn
from muarl.basics.event_loop import Closable
from muarl.basics.seeds import derive_seed
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import TokenTrace
from muarl.types.toolcalls import call_text


class Codec(Protocol):
    """How tools, calls and results travel as text.

    ``whole``: the agent sees everything so far anew at each turn (ACEBench), rather than what is new.
    """

    @property
    def whole(self) -> bool:
        """See the class."""
        ...

    def system(self, system: str, tools: Sequence[ToolSpec]) -> str:
        """The system prompt that tells of the tools."""
        ...

    def given(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        """What the agent is to read, with tools' results in words: of what is new or, with ``whole``, of everything,
        the agent's own messages included."""
        ...

    def calls(self, text: str) -> tuple[ToolCall, ...]:
        """The calls in what the agent wrote; none where there are none or they cannot be read. Ids are not needed."""
        ...


class PromptedAgent:
    """Serves episodes through another agent, which is offered no tools and told of them in words.

    ``codec``: the same for all episodes, or one chosen by the system prompt.
    """

    def __init__(self, agent: Agent, codec: Codec | Callable[[str], Codec]) -> None:
        self.agent, self.codec = agent, codec
        self.name = agent.name

    async def aclose(self) -> None:
        """Close the agent inside, if it holds something."""
        if isinstance(self.agent, Closable):
            await self.agent.aclose()

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> PromptedSession:
        """Start an episode."""
        return PromptedSession(self, system, tools, seed, session)


class PromptedSession:
    """One episode of a PromptedAgent."""

    def __init__(self, owner: PromptedAgent, system: str, tools: Sequence[ToolSpec], seed: int, session: str) -> None:
        self._agent, self._tools = owner.agent, tuple(tools)
        self._codec = owner.codec(system) if callable(owner.codec) else owner.codec
        self._system, self._seed, self._session = self._codec.system(system, tools), seed, session
        self._inner: AgentSession | None = None
        self._history: list[Message] = []
        self._written: dict[str, str] = {}
        self._turns = self._calls = 0

    @property
    def tokens(self) -> TokenTrace | None:
        """The agent's exact tokens; None where it sees its history anew at each turn, since those are no one trace."""
        return None if self._codec.whole or self._inner is None else self._inner.tokens

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        """Tell what came in words, let the agent write, and read its calls.

        A result is named by its call as the agent wrote it.
        """
        new = [replace(m, name=self._written.get(m.tool_call_id or "", m.name)) for m in new]
        self._history.extend(new)
        if self._inner is None or self._codec.whole:
            self.close()
            name, seed = self._session, self._seed
            if self._codec.whole:  # a session of one turn knows nothing of those before it, so its seed must differ
                name, seed = f"{name}/{self._turns}", derive_seed(seed, self._turns)
            self._inner = self._agent.open(self._system, (), seed=seed, session=name)
        self._turns += 1
        turn = await self._inner.act(self._codec.given(self._history if self._codec.whole else new, self._tools))
        text = _as_written(turn.message)
        calls = []
        for call in self._codec.calls(text):
            calls.append(replace(call, id=f"call_{self._calls}"))
            self._written[calls[-1].id] = call.raw or call.name
            self._calls += 1
        message = replace(turn.message, content=text, tool_calls=tuple(calls))
        self._history.append(message)
        return replace(turn, message=message, span=None if self._codec.whole else turn.span)

    def close(self) -> None:
        """Close the agent's session."""
        if self._inner is not None:
            self._inner.close()


def _as_written(message: Message) -> str:
    """The text of a message, native calls included: those are only words here."""
    calls = [f"<tool_call>\n{call_text(call)}\n</tool_call>" for call in message.tool_calls]
    return "\n".join([message.content or "", *calls] if message.content else calls)
