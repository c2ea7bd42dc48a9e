"""Agents that a simulated user is tried on: each does one thing that real agents do now and then, all the time.

They need no model and no domain. What they do is no measure of any agent's quality: they are there so that a user's
faults do not depend on how good its agent happens to be.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from muarl.agents.base import Agent, AgentSession, AgentTurn, TakesTools
from muarl.language.acts import asks_for_yes
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import TokenTrace

QUESTIONS = (
    "Before I begin: how did you hear about us?",
    "Could you tell me your date of birth, please?",
    "What is your phone number, in case we get cut off?",
    "Which e-mail address may I use for you?",
    "Are you calling from home?",
    "Could you give me your middle name as well?",
    "What is your customer number with our partner company?",
    "Would you rate our last conversation from 1 to 5?",
)
"""Questions that nothing hangs on; most scenarios have no answer to them."""
STALLS = "One moment please, I am still looking into your request."
CLAIMS = "That has been done for you. Is there anything else I can help you with?"


class InquisitiveAgent:
    """Asks ``questions`` needless questions before it lets ``agent`` act on what was said."""

    def __init__(self, agent: Agent, questions: int = 3, *, name: str = "inquisitive") -> None:
        self.agent, self.questions, self.name = agent, questions, name

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> AgentSession:
        """Start an episode; ``seed`` also draws the questions."""
        inner = self.agent.open(system, tools, seed=seed, session=session)
        return _Inquisitive(inner, random.Random(f"questions {seed}").sample(QUESTIONS, self.questions))


class MistakenAgent:
    """Gets a number wrong in each of ``agent``'s proposals when it makes it for the first time: a user has to say no.

    It does not hear of its own mistake: ``agent`` is told what the user answers.
    """

    def __init__(self, agent: Agent, *, name: str = "mistaken") -> None:
        self.agent, self.name = agent, name

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> AgentSession:
        """Start an episode."""
        return _Mistaken(self.agent.open(system, tools, seed=seed, session=session), with_another_number)


class _Around:
    """A session whose agent's messages may be changed on their way out."""

    def __init__(self, inner: AgentSession) -> None:
        self._inner = inner

    @property
    def tokens(self) -> TokenTrace | None:
        return self._inner.tokens

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        if isinstance(self._inner, TakesTools):
            self._inner.offer(tools)

    def close(self) -> None:
        self._inner.close()


class _Inquisitive(_Around):
    def __init__(self, inner: AgentSession, questions: Sequence[str]) -> None:
        super().__init__(inner)
        self._questions, self._held = list(questions), list[Message]()

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        self._held += new
        if self._questions:
            return AgentTurn(Message("assistant", self._questions.pop(0)))
        held, self._held = self._held, []
        return await self._inner.act(held)


class _Mistaken(_Around):
    def __init__(self, inner: AgentSession, change: Callable[[str], str]) -> None:
        super().__init__(inner)
        self._change, self._made = change, set[str]()

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        turn = await self._inner.act(new)
        text = turn.message.content or ""
        if turn.message.tool_calls or not asks_for_yes(text) or text in self._made:
            return turn
        self._made.add(text)
        return AgentTurn(Message("assistant", self._change(text)), turn.stop, turn.usage)


def with_another_number(text: str) -> str:
    """A text whose longest run of digits ends in another one; a text without any stays as it is."""
    runs = list(re.finditer(r"\d+", text))
    if not runs:
        return text
    run = max(runs, key=lambda m: len(m[0]))
    return f"{text[: run.end() - 1]}{(int(run[0][-1]) + 1) % 10}{text[run.end() :]}"
