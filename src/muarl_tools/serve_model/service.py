"""What the server does, without the wire: it answers requests for one model."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable
from typing import Any

from muarl.basics.web.json_api import ApiError
from muarl.chat_formats.base import ChatFormat
from muarl.types.chat import ToolSpec
from muarl_tools.serve_model import answers
from muarl_tools.serve_model.chat_turn import ChatTurn
from muarl_tools.serve_model.engine import ServedEngine
from muarl_tools.serve_model.guarding import ServedGuard
from muarl_tools.serve_model.memory import TOKENS, Memory
from muarl_tools.serve_model.problems import unsupported
from muarl_tools.serve_model.reading import ChatRequest, RequestReader, read_object
from muarl_tools.serve_model.responses import ResponsesTurn, as_asked, as_chat
from muarl_tools.serve_model.text_turn import TextTurn
from muarl_tools.serve_model.turns import ServedModel


class ChatService:
    """Answers requests for one model. Belongs to one event loop.

    ``chats``: the chat format without and with thinking, None where the model has no such mode; ``thinking``: which of
    them where a request does not say. ``max_context``: ids of prompt and completion together. ``raw_prompts``: text
    prompts are taken, in which control tokens count as such. ``remember``: ids of earlier conversations that are kept,
    so that they continue from them. ``tools``: those that the model was trained with; a client's that say the same are
    shown to it as these are spelled. ``guard``: looks at chat replies before they go out.
    """

    def __init__(
        self,
        engine: ServedEngine,
        chats: tuple[ChatFormat | None, ChatFormat | None],
        *,
        name: str,
        max_context: int,
        thinking: bool = False,
        raw_prompts: bool = False,
        remember: int = TOKENS,
        tools: Iterable[ToolSpec] = (),
        guard: ServedGuard | None = None,
    ) -> None:
        memory = Memory(engine.forget, tokens=remember)
        self.served = ServedModel(name, engine, memory, max_context, raw_prompts, guard=guard)
        self.thinking = thinking
        self._created = int(time.time())
        self._chats, self._reader = chats, RequestReader(tools)

    @property
    def engine(self) -> ServedEngine:
        """Who samples."""
        return self.served.engine

    async def chat(self, body: bytes) -> dict[str, Any] | AsyncGenerator[bytes, None]:
        """A chat completion: the answer, or the events of a stream. ApiError if there is none."""
        request = self._reader.chat(body)
        turn = ChatTurn(self.served, request, self._chat(request))
        return turn.events() if request.wanted.stream else await turn.answer()

    async def response(self, body: bytes) -> dict[str, Any] | AsyncGenerator[bytes, None]:
        """A response of the Responses API, likewise."""
        raw = read_object(body)
        try:
            request = self._reader.chat_of(as_chat(raw))
        except ApiError as problem:
            raise as_asked(problem) from None
        turn = ResponsesTurn(self.served, request, self._chat(request), raw)
        return turn.events() if request.wanted.stream else await turn.answer()

    def _chat(self, request: ChatRequest) -> ChatFormat:
        """The chat format of a request. ApiError for another model, or if it does not think as is asked."""
        self.check_model(request.wanted.model)
        chat = self._chats[self.thinking if request.thinking is None else request.thinking]
        if chat is None:
            always = "always thinks" if request.thinking is False else "does not think"
            raise unsupported("chat_template_kwargs.enable_thinking", f"this model {always}; leave it out")
        guard = self.served.guard
        if guard is not None and guard.mode == "block" and request.wanted.ids:
            raise unsupported("return_token_ids", "this server may ask the model again (--guard); leave it out")
        return chat

    async def text(self, body: bytes) -> dict[str, Any] | AsyncGenerator[bytes, None]:
        """A completion of a prompt, likewise."""
        if self.served.guard is not None:
            raise unsupported(
                "prompt", "this server looks at replies before they go out (--guard): use /v1/chat/completions"
            )
        request = self._reader.text(body)
        self.check_model(request.wanted.model)
        turn = TextTurn(self.served, request, next(c for c in self._chats if c is not None))
        return turn.events() if request.wanted.stream else await turn.answer()

    def models(self) -> dict[str, Any]:
        """The list of models."""
        return answers.models_json(self.served.name, self._created, self.served.context)

    def model(self, name: str) -> dict[str, Any]:
        """The one of this name. ApiError if there is none."""
        self.check_model(name)
        return answers.model_json(self.served.name, self._created, self.served.context)

    def check_model(self, name: str) -> None:
        """ApiError if the model that is served has another name. A run or folder may be called by the end of its path:
        ``mine`` is ``runs/mine``."""
        mine = self.served.name
        if name != mine and not (name and mine.endswith(f"/{name}")):
            text = f"The model {name!r} does not exist; this server has {mine!r}."
            raise ApiError(404, text, code="model_not_found", param="model")
