"""What goes in and out of ``/v1/responses``: OpenAI's Responses API over the chat turns of this server.

It keeps nothing: each request holds the whole conversation, and the exact ids of replies are found by what it says, as
for chat completions. A reply is up to three kinds of items: its reasoning, its text, its calls.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.web.json_api import ApiError, invalid
from muarl.chat_formats.base import ChatFormat
from muarl.records.responses import chat_tools, messages_of
from muarl.types.chat import ToolCall
from muarl_tools.serve_model import answers
from muarl_tools.serve_model.answers import CompletionUsage
from muarl_tools.serve_model.chat_turn import ChatTurn
from muarl_tools.serve_model.problems import unsupported
from muarl_tools.serve_model.reading import ChatRequest
from muarl_tools.serve_model.replies import Piece
from muarl_tools.serve_model.turns import Choice, ServedModel

NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "background": (False,),
    "conversation": (),
    "max_tool_calls": (),
    "previous_response_id": (),
    "prompt": (),
    "top_logprobs": (0,),
    "truncation": ("disabled",),
}
"""Fields that this server has not, with the values (besides null) that ask for nothing."""
STATELESS = ("conversation", "previous_response_id")
LOGPROBS = "message.output_text.logprobs"
_SAME = (
    "model", "temperature", "top_p", "top_k", "seed", "stream", "parallel_tool_calls", "prompt_cache_key",
    "return_token_ids", "chat_template_kwargs", "stop",
)  # fmt: skip
_ECHOED: Mapping[str, Any] = {
    "instructions": None, "max_output_tokens": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0,
    "tool_choice": "auto", "tools": [], "top_p": 1.0, "user": None, "prompt_cache_key": None,
}  # fmt: skip


def as_chat(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The chat completion that a request asks for. ApiError for what this server does not have, or is malformed."""
    for name, neutral in NEUTRAL.items():
        if raw.get(name) is not None and raw[name] not in neutral:
            why = "this server keeps no responses: send the whole conversation as input" if name in STATELESS else ""
            raise unsupported(name, why or "this server does not have it; leave it out")
    form = (raw.get("text") or {}).get("format") if isinstance(raw.get("text") or {}, Mapping) else raw["text"]
    if form not in (None, {"type": "text"}):
        raise unsupported("text.format", "replies are plain text; leave it out")
    asked = raw.get("include") or []
    if not isinstance(asked, list):
        raise invalid("must be a list", "include")
    if "input" not in raw:
        raise invalid("is missing", "input", "missing_required_parameter")
    try:
        messages = messages_of(raw["input"], "input")
        told = raw.get("instructions")
        if told is not None and not isinstance(told, str):
            raise DataError(f"instructions: must be text, not {type(told).__name__}")
        tools = chat_tools(raw["tools"], "tools") if raw.get("tools") else []
    except DataError as problem:
        place, _, said = str(problem).partition(": ")
        raise invalid(said, place) from None
    system = [{"role": "system", "content": told}] if told else []
    sent = [{"reasoning_content" if k == "reasoning" else k: v for k, v in m.items()} for m in messages]
    out = {name: raw[name] for name in _SAME if name in raw} | {"messages": [*system, *sent]}
    out |= {"tools": tools} if tools else {}
    out |= {"max_completion_tokens": raw["max_output_tokens"]} if "max_output_tokens" in raw else {}
    out |= {"tool_choice": _choice(raw["tool_choice"])} if "tool_choice" in raw else {}
    return out | {"logprobs": LOGPROBS in asked}


def as_asked(problem: ApiError) -> ApiError:
    """A problem with the chat completion, by the name of the field that was sent."""
    names = {"max_completion_tokens": "max_output_tokens", "messages": "input"}
    param = problem.param or ""
    first, _, _ = param.partition(".")
    if first not in names:
        return problem
    said = problem.message.replace(f"{param}: ", f"{names[first]}: ", 1)
    return ApiError(problem.status, said, kind=problem.kind, code=problem.code, param=names[first])


def _choice(given: Any) -> Any:
    if isinstance(given, Mapping) and given.get("type") == "function":
        return {"type": "function", "function": {"name": given.get("name")}}
    return given


@dataclass
class _Item:
    """An item of the output, as far as it has come. ``part``: of its content, None for calls."""

    index: int
    id: str
    kind: str
    text: str = ""
    call: ToolCall | None = None
    logprobs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def part(self) -> dict[str, Any]:
        """Its one part of content."""
        if self.kind == "reasoning":
            return {"type": "reasoning_text", "text": self.text}
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": self.logprobs}

    def to_json(self, status: str) -> dict[str, Any]:
        """The item."""
        head: dict[str, Any] = {"id": self.id, "type": self.kind, "status": status}
        if self.call is not None:
            arguments = json.dumps(dict(self.call.arguments), ensure_ascii=False)
            return head | {"call_id": self.call.id, "name": self.call.name, "arguments": arguments}
        content = [self.part] if self.text else []
        more: dict[str, Any] = {"summary": []} if self.kind == "reasoning" else {"role": "assistant"}
        return head | more | {"content": content}


class ResponsesTurn(ChatTurn):
    """A response on its way."""

    kind = "response"

    def __init__(self, served: ServedModel, request: ChatRequest, chat: ChatFormat, raw: Mapping[str, Any]) -> None:
        super().__init__(served, request, chat)
        self._raw = raw
        self._id = f"resp_{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._items: list[_Item] = []
        self._sent = 0

    async def answer(self) -> dict[str, Any]:
        """The response in one piece."""
        (choice,) = await self._all()
        reader = choice.reader
        pieces = [Piece("reasoning", reader.reasoning), Piece("content", reader.content)]
        for piece in (p for p in pieces if p.text):
            self._item(piece).text = piece.text
        for number, call in enumerate(reader.calls):
            self._item(Piece("call", call=call, number=number))
        self._end(choice)
        return self._response(choice)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The response as server-sent events."""
        begun = False
        async with aclosing(self._arriving()) as arriving:
            async for news in arriving:
                if not begun:
                    begun = True
                    yield self._event("response.created", response=self._response(None))
                    yield self._event("response.in_progress", response=self._response(None))
                if news is None:
                    yield answers.WAITING
                    continue
                for event in (e for piece in news.pieces for e in self._piece(piece)):
                    yield event
                if news.over:
                    for event in self._finish(news.choice):
                        yield event

    # ---- the items

    def _item(self, piece: Piece) -> _Item:
        kind = {"reasoning": "reasoning", "content": "message", "call": "function_call"}[piece.kind]
        prefix = {"reasoning": "rs", "message": "msg", "function_call": "fc"}[kind]
        item = _Item(len(self._items), f"{prefix}_{self._id[5:]}{len(self._items)}", kind, call=piece.call)
        self._items.append(item)
        return item

    def _end(self, choice: Choice) -> None:
        """The log-probabilities are known; a reply of nothing is a message of nothing."""
        if not self._items:
            self._item(Piece("content"))
        if self.wanted.logprobs:
            spoken = next((i for i in self._items if i.kind == "message"), None)
            if spoken is not None:
                spoken.logprobs = answers.logprobs_json(self.chat, choice.sampled, choice.logprobs)["content"]

    def _response(self, choice: Choice | None) -> dict[str, Any]:
        """The response, as far as it has come where there is no ``choice`` yet."""
        cut = choice is not None and choice.reader.finish_reason == "length"
        status = "in_progress" if choice is None else "incomplete" if cut else "completed"
        raw = self._raw
        out: dict[str, Any] = {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "model": self.served.name,
            "output": [] if choice is None else [i.to_json("completed") for i in self._items],
            "previous_response_id": None,
            "store": False,
            "text": {"format": {"type": "text"}},
            "truncation": "disabled",
            "usage": None if choice is None else _usage(self._usage([choice])),
        }
        out |= {name: default if raw.get(name) is None else raw[name] for name, default in _ECHOED.items()}
        if cut and self._items:
            out["output"][-1]["status"] = "incomplete"
        if choice is not None and choice.report is not None:
            out["guard"] = choice.report.to_json()
        if self.wanted.ids and choice is not None:
            out |= {"prompt_token_ids": self._prompt, "token_ids": choice.sampled}
        return out

    # ---- the events

    def _piece(self, piece: Piece) -> Iterator[bytes]:
        item = self._items[-1] if self._items else None
        if item is None or item.call is not None or piece.call is not None or item.kind != _kind(piece):
            if item is not None and item.call is None:
                yield from self._close_item(item)
            item = self._item(piece)
            yield self._event("response.output_item.added", output_index=item.index, item=self._begun(item))
            if piece.call is None:
                yield self._event("response.content_part.added", **_at(item), part=item.part)
        if piece.call is not None:
            arguments = json.dumps(dict(piece.call.arguments), ensure_ascii=False)
            place = {"item_id": item.id, "output_index": item.index}
            yield self._event("response.function_call_arguments.delta", **place, delta=arguments)
            done = {"arguments": arguments, "name": piece.call.name}
            yield self._event("response.function_call_arguments.done", **place, **done)
            yield self._event("response.output_item.done", output_index=item.index, item=item.to_json("completed"))
            return
        item.text += piece.text
        yield self._event(f"{_name(item)}.delta", **_at(item), delta=piece.text, **_no_logprobs(item))

    def _begun(self, item: _Item) -> dict[str, Any]:
        made = item.to_json("in_progress")
        return made if item.call is None else made | {"arguments": ""}

    def _close_item(self, item: _Item, status: str = "completed") -> Iterator[bytes]:
        shown = {"logprobs": item.logprobs} if item.kind == "message" else {}
        yield self._event(f"{_name(item)}.done", **_at(item), text=item.text, **shown)
        yield self._event("response.content_part.done", **_at(item), part=item.part)
        yield self._event("response.output_item.done", output_index=item.index, item=item.to_json(status))

    def _finish(self, choice: Choice) -> Iterator[bytes]:
        if not self._items:
            yield from self._piece(Piece("content"))
        self._end(choice)
        cut = choice.reader.finish_reason == "length"
        if self._items[-1].call is None:
            yield from self._close_item(self._items[-1], "incomplete" if cut else "completed")
        name = "response.incomplete" if cut else "response.completed"
        yield self._event(name, response=self._response(choice))

    def _event(self, name: str, /, **data: Any) -> bytes:
        number, self._sent = self._sent, self._sent + 1
        return b"event: " + name.encode() + b"\n" + answers.event({"type": name, "sequence_number": number, **data})


def _kind(piece: Piece) -> str:
    return "reasoning" if piece.kind == "reasoning" else "message"


def _name(item: _Item) -> str:
    return "response.reasoning_text" if item.kind == "reasoning" else "response.output_text"


def _at(item: _Item) -> dict[str, Any]:
    return {"item_id": item.id, "output_index": item.index, "content_index": 0}


def _no_logprobs(item: _Item) -> dict[str, Any]:
    return {"logprobs": []} if item.kind == "message" else {}


def _usage(used: CompletionUsage) -> dict[str, Any]:
    return {
        "input_tokens": used.prompt,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": used.completion,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.prompt + used.completion,
    }
