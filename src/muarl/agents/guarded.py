"""A guard around an agent: calls that the audit's rules would find are held back, as `muarl serve --guard` does.

The agent is asked again with the reason as the calls' result, and says a plain sentence if it insists. Its conversation
goes on with what was said in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from muarl.agents.base import Agent, AgentTurn, Reconsiders
from muarl.audit.guard import INSTEAD, CallGuard, held_back
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.event_loop import Closable
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import AGENT_GUARD, StopReason, TokenTrace, Usage


class GuardedAgent:
    """``agent`` behind a guard. ``tries``: how often it is asked again for one reply. ``text``: said where it insists.

    Its sessions must be able to take a reply back (``Reconsiders``), as those of an ``EndpointAgent`` are.
    """

    def __init__(self, agent: Agent, guard: CallGuard, *, tries: int = 2, text: str = INSTEAD) -> None:
        self.agent, self.guard, self.tries, self.text = agent, guard, tries, text
        self.name = f"{agent.name}, guarded"

    async def aclose(self) -> None:
        """Close the agent, if it holds something."""
        if isinstance(self.agent, Closable):
            await self.agent.aclose()

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> GuardedSession:
        """Start an episode. ConfigError for an agent that cannot take a reply back."""
        inner = self.agent.open(system, tools, seed=seed, session=session)
        if not isinstance(inner, Reconsiders):
            inner.close()
            raise ConfigError(f"the agent {self.agent.name} cannot take a reply back, as a guard asks it to")
        return GuardedSession(self, inner)


class GuardedSession:
    """One episode of a GuardedAgent."""

    def __init__(self, owner: GuardedAgent, session: Any) -> None:
        self._owner, self._session = owner, session
        self._messages: list[Message] = []
        self._held = self._given_up = 0
        self._findings = Counter[str]()

    @property
    def tokens(self) -> TokenTrace | None:
        """The agent's."""
        tokens: TokenTrace | None = self._session.tokens
        return tokens

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        """What the agent does, or does when it is asked again. Usage is that of all tries; an InfrastructureError of a
        later try carries what the earlier ones took."""
        owner = self._owner
        self._messages += new
        turn: AgentTurn = await self._session.act(new)
        before, usage = [*self._messages], turn.usage
        for tries in range(owner.tries + 1):
            findings = () if turn.stop is not None else owner.guard.findings(before, turn.message)
            if not findings:
                break
            self._held += 1
            self._findings.update(f.rule for f in findings)
            answers = held_back(turn.message, findings)
            before += [turn.message, *answers]
            if tries < owner.tries:
                turn = await self._again(answers, usage)
                usage += turn.usage
            if tries == owner.tries or turn.stop is StopReason.CONTEXT_FULL:
                turn = self._insisted(turn)
        self._messages.append(turn.message)
        return replace(turn, usage=usage)

    async def _again(self, answers: Sequence[Message], usage: Usage) -> AgentTurn:
        try:
            turn: AgentTurn = await self._session.again(answers)
        except InfrastructureError as failure:
            failure.usage = usage + (failure.usage or Usage())
            raise
        return turn

    def _insisted(self, turn: AgentTurn) -> AgentTurn:
        self._given_up += 1
        self._session.instead(self._owner.text)
        return replace(turn, message=Message("assistant", self._owner.text), stop=None)

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        """Tools that the agent has from its next turn on."""
        self._session.offer(tools)

    def episode_tags(self) -> Mapping[str, Any]:
        """What the guard has done: replies held back, turns in which a plain sentence was said, and why."""
        findings = dict(sorted(self._findings.items()))
        return {AGENT_GUARD: {"held_back": self._held, "given_up": self._given_up, "findings": findings}}

    def close(self) -> None:
        """Free what the agent's session holds."""
        self._session.close()
