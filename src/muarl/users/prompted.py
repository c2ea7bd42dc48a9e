"""A user played by an LLM that is prompted in a benchmark's own way, with its own roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muarl.endpoints import Endpoint
from muarl.types.chat import Message
from muarl.users.base import UserTurn

MessagesOf = Callable[[Sequence[Message]], Sequence[Mapping[str, Any]]]
"""From the conversation as the user sees it to what the model is sent, in the OpenAI form."""


class PromptedUser:
    """Says what the model answers to ``messages_of(conversation)``; an empty answer is what it says, too."""

    def __init__(self, endpoint: Endpoint, messages_of: MessagesOf) -> None:
        self._endpoint, self._messages_of = endpoint, messages_of

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Ask the model. InfrastructureError if the endpoint fails."""
        sent = [dict(m) for m in self._messages_of(conversation)]
        answer = await self._endpoint.chat(sent, boundary="user", empty_ok=True)
        return UserTurn(Message("user", answer.content or ""), answer.usage)
