"""What an OpenAI-compatible server answers, read strictly: text, reasoning, tool calls and token counts.

Servers differ in small ways (tool arguments as text or as an object, thinking inside or beside the text, missing
usage), and a broken reply must never crash an episode, so everything that reads a reply stands here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from muarl.types.chat import Requestor, ToolCall
from muarl.types.episode import Usage
from muarl.types.toolcalls import parse_call

AS_READ = "muarl_reply"
"""The field of a message of `muarl serve` that has a call which cannot be read: the reply with it as a call. Other
clients get it as text."""


class MalformedReply(ValueError):
    """A reply that is not what the chat completions API promises. Its text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of an endpoint."""

    content: str | None
    """The text without thinking, None if there is none."""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    """The thinking, where the server shows it."""
    finish_reason: str = "stop"
    """The server's own word ("stop", "length", "tool_calls", "content_filter", ...)."""
    usage: Usage = field(default_factory=Usage)
    """Covers every attempt that this answer took."""
    cached: bool = False
    """True if it came from the response cache."""
    said: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    """The message as the server said it."""
    id: str | None = field(default=None, repr=False, compare=False)
    """What the server calls the response, if anything."""

    @property
    def empty(self) -> bool:
        """True if there is neither text nor a tool call."""
        return not self.tool_calls and not (self.content or "").strip()


def read_reply(body: object, *, requestor: Requestor = "assistant") -> Reply:
    """Read the JSON body of a chat completion; its first choice counts. MalformedReply says what is wrong with it."""
    if not isinstance(body, Mapping):
        raise MalformedReply("the reply is not a JSON object")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        raise MalformedReply("the reply has no choices")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        raise MalformedReply("the reply's first choice has no message")
    content = _text(message.get("content"))
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    content, thought = split_thinking(content)
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise MalformedReply("the reply's tool_calls are not a list")
    finish = choice.get("finish_reason")
    as_read = message.get(AS_READ)
    if isinstance(as_read, Mapping):
        content, read = _text(as_read.get("content")), _read_marked(as_read.get("tool_calls"), requestor)
    else:
        read = _read_calls(calls, requestor)
    return Reply(
        content=content,
        tool_calls=read,
        reasoning=_whole(reasoning) if isinstance(reasoning, str) else thought,
        finish_reason=finish if isinstance(finish, str) else "stop",
        said=message,
        id=name if isinstance(name := body.get("id"), str) else None,
    )


def read_chat(body: object, *, requestor: Requestor = "assistant", empty_ok: bool = False) -> Reply:
    """The same, but that MalformedReply is also raised for a reply without text or calls, unless ``empty_ok``."""
    reply = read_reply(body, requestor=requestor)
    if reply.empty and not empty_ok:
        raise MalformedReply(f"the reply is empty (finish reason {reply.finish_reason})")
    return reply


def read_token_counts(body: object) -> tuple[int, int]:
    """Prompt and completion tokens of a reply, 0 where the server does not say. Rerankers may only say a total,
    which counts as the prompt's."""
    prompt, completion = _token_counts(body)
    return prompt or 0, completion or 0


def tells_usage(body: object) -> bool:
    """Whether a reply says how many tokens it took. True also for what is no answer at all, such as an error.

    A count that cannot be true is none: a text, a negative number, no tokens for a prompt, or for words that were said.
    """
    if not isinstance(body, Mapping) or not any(body.get(name) for name in ("choices", "data", "results")):
        return True
    prompt, completion = _token_counts(body)
    if not prompt:
        return False
    choices = body.get("choices")
    if not choices:  # of embeddings and rankings
        return True
    choice = choices[0] if isinstance(choices, list) else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    said = isinstance(message, Mapping) and any(message.get(name) for name in _SAID)
    return completion is not None and (completion > 0 or not said)


_SAID = ("content", "tool_calls", "reasoning_content", "reasoning")
_MOST_TOKENS = 1 << 40


def _token_counts(body: object) -> tuple[int | None, int | None]:
    usage = body.get("usage") if isinstance(body, Mapping) else None
    if not isinstance(usage, Mapping):
        return None, None
    return _count(usage.get("prompt_tokens", usage.get("total_tokens"))), _count(usage.get("completion_tokens"))


def _count(value: object) -> int | None:
    """A number of tokens, some servers' 1000.0 included; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def read_embeddings(body: object, *, count: int) -> list[list[float]]:
    """The vectors of an answer to an embedding request, in the order of its texts. MalformedReply unless there are
    ``count`` of one length."""
    vectors = [_numbers(row.get("embedding")) for row in _by_index(body, "data", count)]
    if len({len(vector) for vector in vectors}) > 1:
        raise MalformedReply("the embeddings differ in length")
    return vectors


def read_ranking(body: object, *, count: int) -> list[float]:
    """The relevance of each of ``count`` documents. MalformedReply unless each has one."""
    return [_numbers([row.get("relevance_score")])[0] for row in _by_index(body, "results", count)]


def _by_index(body: object, name: str, count: int) -> list[Mapping[str, Any]]:
    """The objects of a list in the order of the requests' texts that they answer."""
    rows = body.get(name) if isinstance(body, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise MalformedReply(f"the reply has no list {name}")
    by_index = {row.get("index", number): row for number, row in enumerate(rows)}
    if len(rows) != count or set(by_index) != set(range(count)):
        raise MalformedReply(f"the reply has {len(rows)} of {count} {name}, or numbers them wrongly")
    return [by_index[number] for number in range(count)]


def _numbers(values: object) -> list[float]:
    if not isinstance(values, list) or not values:
        raise MalformedReply("the reply has no numbers where they should be")
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in values):
        raise MalformedReply("the reply has something else where numbers should be")
    return [float(v) for v in values]


def read_tool_call(call_id: str, name: object, arguments: object, *, requestor: Requestor = "assistant") -> ToolCall:
    """A ToolCall from a model's own name and arguments (JSON text, or an object already parsed).

    What can't be read becomes a call with ``invalid`` set, never an exception: the world answers it with an error that
    the model can fix.
    """
    raw = _whole(arguments) if isinstance(arguments, str) else json.dumps(arguments)
    if not isinstance(name, str) or not name:
        return ToolCall(call_id, "", requestor=requestor, invalid="the call has no tool name", raw=raw)
    name = _whole(name)
    if arguments is None or raw == "":
        return ToolCall(call_id, name, requestor=requestor)
    try:
        json.loads(raw)  # Alone first: it must be one JSON value, and error positions should fit the text.
        call = parse_call(f'{{"name": {json.dumps(name)}, "arguments": {raw}}}', call_id)
    except (ValueError, RecursionError) as problem:
        call = ToolCall(call_id, name, invalid=f"the arguments are not valid JSON: {problem}")
    if call.invalid is not None:
        return ToolCall(call_id, name, requestor=requestor, invalid=call.invalid, raw=raw)
    return replace(call, requestor=requestor)


def split_thinking(content: str | None) -> tuple[str | None, str | None]:
    """Split a leading ``<think>`` block from the text, for servers that leave it in; returns (text, thinking).

    An unclosed block, which a length limit leaves, is all thinking: it must not reach the other side as speech.
    """
    if content is None or not content.lstrip().startswith("<think>"):
        return content, None
    thought, closed, rest = content.lstrip().removeprefix("<think>").partition("</think>")
    return (rest.lstrip() or None) if closed else None, thought.strip()


def _read_marked(calls: object, requestor: Requestor) -> tuple[ToolCall, ...]:
    """The calls of ``AS_READ``, in the order in which the model made them."""
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise MalformedReply(f"{AS_READ}.tool_calls is no list of calls")
    ids = [call.get("id") for call in calls]
    if not all(isinstance(each, str) and each for each in ids) or len(set(ids)) < len(ids):
        raise MalformedReply(f"{AS_READ}: each call needs an id of its own")
    return tuple(_marked(call, requestor) for call in calls)


def _marked(call: Mapping[str, Any], requestor: Requestor) -> ToolCall:
    invalid, name, raw = call.get("invalid"), call.get("name"), call.get("raw")
    if not isinstance(invalid, str):
        return read_tool_call(call["id"], name, call.get("arguments"), requestor=requestor)
    name, raw = (_whole(text) if isinstance(text, str) else "" for text in (name, raw))
    return ToolCall(call["id"], name, requestor=requestor, invalid=_whole(invalid), raw=raw)


def _read_calls(calls: list[Any] | tuple[Any, ...], requestor: Requestor) -> tuple[ToolCall, ...]:
    out: list[ToolCall] = []
    seen: set[str] = set()
    for number, call in enumerate(calls):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise MalformedReply(f"tool call {number} has no function")
        call_id = call.get("id")
        if not isinstance(call_id, str) or not call_id or call_id in seen:
            # Some servers leave ids out or repeat one; results could then not be told apart.
            call_id = f"call_{number}" if f"call_{number}" not in seen else f"call_{number}_{len(seen)}"
        seen.add(call_id)
        out.append(read_tool_call(call_id, function.get("name"), function.get("arguments"), requestor=requestor))
    return tuple(out)


def _text(content: object) -> str | None:
    """The text of a message: a string, None, or a list of typed parts of which the text ones are joined."""
    if content is None:
        return None
    if isinstance(content, str):
        return _whole(content)
    if isinstance(content, list):
        parts = [p.get("text") for p in content if isinstance(p, Mapping) and p.get("type") == "text"]
        return _whole("".join(p for p in parts if isinstance(p, str)))
    raise MalformedReply("the reply's content is neither text nor a list of parts")


def _whole(text: str) -> str:
    """The text with half characters replaced: an escape can smuggle them in, and no file could store them."""
    return text.encode("utf-8", "replace").decode("utf-8")
