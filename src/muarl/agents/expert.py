"""The expert agent: a scripted policy that needs no model. Demonstrations, upper bounds and terminal chats use it."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.agents.base import AgentTurn, TakesTools
from muarl.chat import Message, ToolSpec
from muarl.domains.experts import Expert, Habits
from muarl.domains.generated import MakeExpert, generated
from muarl.episode import TokenTrace


class ExpertSession:
    """One expert in one episode."""

    tokens: TokenTrace | None = None

    def __init__(self, brain: Expert) -> None:
        self._brain = brain

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        """Hear the caller, read what the tools answered, and take the next step: one call or one sentence."""
        return AgentTurn(self._brain.act(new))

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        """Tell an expert of its tools that minds them."""
        if isinstance(self._brain, TakesTools):
            self._brain.offer(tools)

    def close(self) -> None:
        """Nothing is held."""


class ExpertAgent:
    """Opens a domain's scripted experts, retail's by default; ``habits`` makes them imperfect (domains/experts.py)."""

    def __init__(self, habits: Habits = Habits(), make: MakeExpert | None = None) -> None:
        self._habits = habits
        self._make = generated("retail-generated").expert if make is None else make
        self.name = "expert" if habits == Habits() else "expert with bad habits"

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> ExpertSession:
        """Start an episode. It knows the policy, so ``system`` is not read; ``tools`` are by experts that mind them."""
        opened = ExpertSession(self._make(seed=seed, habits=self._habits))
        opened.offer(tools)
        return opened
