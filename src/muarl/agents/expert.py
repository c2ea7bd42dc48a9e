"""The expert agent: a scripted policy that needs no model. Demonstrations, upper bounds and terminal chats use it."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.agents.base import AgentTurn, TakesTools
from muarl.basics.copies import copied
from muarl.basics.errors import ConfigError
from muarl.domains.generated import MakeExpert
from muarl.domains.scripted_expert import ErrorProfile, Expert
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import TokenTrace


class ExpertSession:
    """One expert in one episode."""

    tokens: TokenTrace | None = None

    def __init__(self, brain: Expert) -> None:
        self._brain = brain

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        """Hear the user, read what the tools answered, and take the next step: one call or one sentence."""
        said = self._brain.act(new)
        if not isinstance(said, Message) or said.role != "assistant":
            returned = (
                f"a message with the role {said.role!r}" if isinstance(said, Message) else f"a {type(said).__name__}"
            )
            raise ConfigError(
                f"expert {type(self._brain).__name__}: act returned {returned}, and must return "
                "Message('assistant', TEXT) or Message('assistant', None, CALLS)"
            )
        return AgentTurn(said)

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        """Tell an expert of its tools that minds them."""
        if isinstance(self._brain, TakesTools):
            self._brain.offer(tools)

    def fork(self, session: str, *, seed: int | None = None) -> ExpertSession:
        """A copy. An expert draws nothing anew: ``seed`` is not read."""
        return ExpertSession(copied(f"the expert {type(self._brain).__name__}", self._brain, {}))

    def close(self) -> None:
        """Nothing is held."""


class ExpertAgent:
    """An agent of rules that solves the tasks of a domain.

    ``make``: makes a domain's scripted expert (``environment.needed_expert()``). ``error_profile``: which errors it
    makes.
    """

    def __init__(self, error_profile: ErrorProfile = ErrorProfile(), *, make: MakeExpert) -> None:
        self._error_profile, self._make = error_profile, make
        self.name = "expert" if error_profile == ErrorProfile() else "expert with errors"

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> ExpertSession:
        """Start an episode. It knows the policy, so ``system`` is not read; ``tools`` are by experts that mind them."""
        opened = ExpertSession(self._make(seed=seed, error_profile=self._error_profile))
        opened.offer(tools)
        return opened
