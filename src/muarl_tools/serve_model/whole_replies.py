"""Replies of formats that cannot be taken apart while they come: read when they are over, as the format reads them."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Literal

import numpy as np

from muarl.chat_formats.base import ChatFormat
from muarl.inference.base import FinishReason
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl_tools.serve_model.replies import Piece


class WholeReplyReader:
    """Reads one reply as ``ReplyReader`` does, but sends all of it at its end. ``given``: ids that it is made to begin
    with. ``tools``: those that were offered, whose calls are read; without any, calls are text. With ``one_call`` the
    reply is over after its first call, of formats whose calls are lines as soon as the line is."""

    reasoned = 0

    def __init__(
        self,
        chat: ChatFormat,
        context: Sequence[int],
        *,
        given: Sequence[int] = (),
        stop: Sequence[str] = (),
        tools: Sequence[ToolSpec] = (),
        one_call: bool = False,
    ) -> None:
        self._chat, self._stop, self._tools, self._one_call = chat, tuple(stop), tuple(tools), one_call
        self._digest = sha256(np.asarray(context, dtype="<u4").tobytes())
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._written = ""
        self._first_line_ends = one_call and bool(tools) and chat.calls_are_lines
        self.ends_early = bool(stop) or self._first_line_ends
        self.ids: list[int] = []
        self.calls: list[ToolCall] = []
        self.content = self.reasoning = ""
        self.with_unread: Message | None = None
        self.done = self.cut = False
        self.finish: FinishReason = "stop"
        self.feed(given)

    def feed(self, ids: Sequence[int]) -> list[Piece]:
        """What these further ids bring; ids after the reply's end are ignored."""
        for i in ids:
            if self.done:
                break
            self.ids.append(i)
            if i in self._chat.stop_ids:
                return self._read()
            new = self._decoder.decode(self._chat.tokenizer.piece(i))
            self._written += new
            called = self._first_line_ends and "\n" in new and self._has_call()
            if called or any(s in self._written for s in self._stop):
                self.cut = True
                return self._read()
        return []

    def end(self, finish: FinishReason) -> list[Piece]:
        """The reply is over, because the model ended it or ("length") because it had to."""
        if self.done:
            return []
        self.finish = finish
        return self._read()

    @property
    def finish_reason(self) -> Literal["stop", "length", "tool_calls"]:
        """OpenAI's word for how the reply ended."""
        if self.finish == "length":
            return "length"
        return "tool_calls" if self.calls else "stop"

    def _has_call(self) -> bool:
        return any(call.invalid is None for call in self._chat.parse(self.ids, tools=self._tools).tool_calls)

    def _read(self) -> list[Piece]:
        self.done = True
        message = self._chat.parse(self.ids, tools=self._tools)
        self.reasoning = message.reasoning or ""
        found = [c for c in message.tool_calls if c.invalid is None] if self._tools else []
        if self._one_call:
            self.cut = self.cut or len(found) > 1  # what follows the first call is not what was said
            found = found[:1]
        self.calls = [replace(call, id=self._call_id(n)) for n, call in enumerate(found)]
        unread = [c.raw or c.name for c in message.tool_calls if c.invalid is not None] if self._tools else []
        if message.tool_calls and not self._tools:
            ends = [i for i in self.ids if i not in self._chat.stop_ids]
            self.content = self._chat.text(ends).strip()
        else:
            self.content = "\n".join(t for t in (message.content or "", *unread) if t)
        at = [n for n in (self.content.find(s) for s in self._stop) if n >= 0]
        self.content = self.content[: min(at)] if at else self.content
        if unread and not self.cut:  # see ReplyReader.with_unread
            named = (replace(call, id=self._call_id(n)) for n, call in enumerate(message.tool_calls, len(found)))
            read = iter(self.calls)
            calls = tuple(next(read) if call.invalid is None else call for call in named)
            self.with_unread = Message("assistant", message.content, calls)
        pieces = [Piece("reasoning", self.reasoning), Piece("content", self.content)]
        sent = [p for p in pieces if p.text]
        return [*sent, *(Piece("call", call=call, number=n) for n, call in enumerate(self.calls))]

    def _call_id(self, number: int) -> str:
        """Unlike that of any other call, and the same whenever the same ids are read."""
        digest = self._digest.copy()
        digest.update(np.asarray([*self.ids, number], dtype="<u4").tobytes())
        return "call_" + digest.hexdigest()[:24]
