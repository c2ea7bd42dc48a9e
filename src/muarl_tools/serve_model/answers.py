"""What goes out: chat completions, their chunks, completions, models; in the shapes of OpenAI's API."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.basics.web.json_api import to_bytes
from muarl.chat_formats.base import ChatFormat
from muarl.endpoints.replies import AS_READ
from muarl.types.chat import Message, ToolCall
from muarl_tools.serve_model.replies import Piece

DONE = b"data: [DONE]\n\n"
WAITING = b": waiting\n\n"
"""A comment, which clients skip; it keeps connections open on which nothing has been sent for long."""


@dataclass(frozen=True, slots=True)
class CompletionUsage:
    """Ids of the prompt, which all choices share, and of all completions; of these, ids of reasoning."""

    prompt: int
    completion: int
    reasoning: int = 0

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
        }
        return out | ({"completion_tokens_details": {"reasoning_tokens": self.reasoning}} if self.reasoning else {})


@dataclass(frozen=True, slots=True)
class Header:
    """What all messages about one completion begin with. ``kind``: "chat.completion" or "text_completion"."""

    model: str
    kind: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, choices: Sequence[dict[str, Any]], usage: CompletionUsage, **more: Any) -> dict[str, Any]:
        """The answer in one piece."""
        return {**self._head(self.kind), "choices": list(choices), "usage": usage.to_json(), **more}

    def chunk(self, choices: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """One message of a stream."""
        kind = f"{self.kind}.chunk" if self.kind == "chat.completion" else self.kind
        return {**self._head(kind), "choices": list(choices), **more}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def call_json(call: ToolCall) -> dict[str, Any]:
    """A call as part of a message."""
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def message_json(
    content: str, calls: Sequence[ToolCall], reasoning: str, with_unread: Message | None = None
) -> dict[str, Any]:
    """A whole assistant message. ``with_unread``: see ``ReplyReader``; muarl's own endpoint agents read it."""
    out: dict[str, Any] = {"role": "assistant", "content": content if content or not calls else None, "refusal": None}
    if calls:
        out["tool_calls"] = [call_json(c) for c in calls]
    if with_unread is not None:
        found = [{k: v for k, v in c.to_json().items() if k != "requestor"} for c in with_unread.tool_calls]
        out[AS_READ] = {"content": with_unread.content, "tool_calls": found}
    return out | ({"reasoning_content": reasoning} if reasoning else {})


def delta_json(piece: Piece) -> dict[str, Any]:
    """A piece of a message."""
    if piece.call is not None:
        return {"tool_calls": [{"index": piece.number, **call_json(piece.call)}]}
    return {"content" if piece.kind == "content" else "reasoning_content": piece.text}


def logprobs_json(chat: ChatFormat, ids: Sequence[int], logprobs: Sequence[float]) -> dict[str, Any]:
    """Every sampled id of a stretch: its text, its bytes, its log-probability."""
    rows = []
    for i, logprob in zip(ids, logprobs, strict=True):
        data = chat.tokenizer.piece(i)
        text = data.decode("utf-8", "replace")
        rows.append({"token": text, "logprob": max(logprob, -9999.0), "bytes": list(data), "top_logprobs": []})
    return {"content": rows, "refusal": None}


def text_logprobs_json(chat: ChatFormat, ids: Sequence[int], logprobs: Sequence[float]) -> dict[str, Any]:
    """The same in the older shape of text completions."""
    pieces = [chat.tokenizer.piece(i).decode("utf-8", "replace") for i in ids]
    offsets = [sum(map(len, pieces[:n])) for n in range(len(pieces))]
    return {
        "tokens": pieces,
        "token_logprobs": [max(p, -9999.0) for p in logprobs],
        "top_logprobs": None,
        "text_offset": offsets,
    }


def models_json(name: str, created: int, context: int) -> dict[str, Any]:
    """The one model there is."""
    return {"object": "list", "data": [model_json(name, created, context)]}


def model_json(name: str, created: int, context: int) -> dict[str, Any]:
    """A model; ``max_model_len`` as vLLM calls it."""
    return {"id": name, "object": "model", "created": created, "owned_by": "muarl", "max_model_len": context}


def event(data: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + to_bytes(data) + b"\n\n"
