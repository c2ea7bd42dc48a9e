"""Two baselines that every score should stand beside: an agent that does nothing, and one that always transfers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from muarl.agents.base import AgentTurn
from muarl.basics.errors import ConfigError
from muarl.types.chat import Message, ToolCall, ToolSpec

SORRY = "I am sorry, but I cannot do that for you."
TRANSFERRED = "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON."


class IdleAgent:
    """Does nothing: says the same polite sentence at every turn and never calls a tool."""

    def __init__(self, sentence: str = SORRY, *, name: str = "do-nothing") -> None:
        self.sentence, self.name = sentence, name

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> _Scripted:
        """Start an episode; nothing that is given is read."""
        return _Scripted(None, self.sentence)


class TransferAgent:
    """Transfers every user to a human at once.

    ``tool``: the transfer tool's name, or those of several domains; None for the first offered one that begins with
    "transfer". ConfigError at the start of an episode if there is none.
    """

    def __init__(self, tool: str | Collection[str] | None = None, *, name: str = "always-transfer") -> None:
        self.tools, self.name = {tool} if isinstance(tool, str) else tool, name

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> _Scripted:
        """Start an episode. ConfigError if no offered tool transfers."""
        for spec in tools:
            if spec.name.startswith("transfer") if self.tools is None else spec.name in self.tools:
                properties = spec.parameters.get("properties", {})
                required = spec.parameters.get("required", list(properties))
                return _Scripted(ToolCall("call_0", spec.name, dict.fromkeys(required, "The user asks for help.")))
        raise ConfigError(f"no transfer tool among {', '.join(t.name for t in tools) or 'no tools'}")


class _Scripted:
    """A session that makes one call, if any, and then repeats a sentence."""

    tokens = None

    def __init__(self, call: ToolCall | None, sentence: str = TRANSFERRED) -> None:
        self._call, self._sentence = call, sentence

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        call, self._call = self._call, None
        return AgentTurn(Message("assistant", None, (call,)) if call else Message("assistant", self._sentence))

    def fork(self, session: str, *, seed: int | None = None) -> _Scripted:
        return _Scripted(self._call, self._sentence)

    def close(self) -> None:
        pass
