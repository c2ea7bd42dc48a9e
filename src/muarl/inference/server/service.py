"""What the server does, without the wire: it answers requests for one model."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import Any

from muarl.inference.server import answers
from muarl.inference.server.engine import ServedEngine
from muarl.inference.server.memory import TOKENS, Memory
from muarl.inference.server.problems import ApiError
from muarl.inference.server.reading import Reader
from muarl.inference.server.turns import ChatTurn, Served, TextTurn
from muarl.tokens import ChatTokens


class ChatService:
    """Answers requests for one model. Belongs to one event loop.

    ``chats``: the chat format without and with thinking; ``thinking``: which of them where a request does not say.
    ``max_context``: ids of prompt and completion together. ``raw_prompts``: text prompts are taken, in which control
    tokens count as such. ``remember``: ids of earlier conversations that are kept, so that they go on from them.
    """

    def __init__(
        self,
        engine: ServedEngine,
        chats: tuple[ChatTokens, ChatTokens],
        *,
        name: str,
        max_context: int,
        thinking: bool = False,
        raw_prompts: bool = False,
        remember: int = TOKENS,
    ) -> None:
        memory = Memory(engine.forget, tokens=remember)
        self.served = Served(name, engine, memory, max_context, raw_prompts)
        self.thinking = thinking
        self._created = int(time.time())
        self._chats, self._reader = chats, Reader()

    @property
    def engine(self) -> ServedEngine:
        """Who samples."""
        return self.served.engine

    async def chat(self, body: bytes) -> dict[str, Any] | AsyncGenerator[bytes, None]:
        """A chat completion: the answer, or the events of a stream. ApiError if there is none."""
        request = self._reader.chat(body)
        self.check_model(request.wanted.model)
        chat = self._chats[self.thinking if request.thinking is None else request.thinking]
        turn = ChatTurn(self.served, request, chat)
        return turn.events() if request.wanted.stream else await turn.answer()

    async def text(self, body: bytes) -> dict[str, Any] | AsyncGenerator[bytes, None]:
        """A completion of a prompt, likewise."""
        request = self._reader.text(body)
        self.check_model(request.wanted.model)
        turn = TextTurn(self.served, request, self._chats[0])
        return turn.events() if request.wanted.stream else await turn.answer()

    def models(self) -> dict[str, Any]:
        """The list of models."""
        return answers.models_json(self.served.name, self._created, self.served.context)

    def model(self, name: str) -> dict[str, Any]:
        """The one of this name. ApiError if there is none."""
        self.check_model(name)
        return answers.model_json(self.served.name, self._created, self.served.context)

    def check_model(self, name: str) -> None:
        """ApiError if the model that is served has another name."""
        mine = self.served.name
        if name != mine:
            text = f"The model {name!r} does not exist; this server has {mine!r}."
            raise ApiError(404, text, code="model_not_found", param="model")
