"""A chat format over a renderer of the ``renderers`` package: its prompts, its bridge to the next turn, its parser,
whose tool calls are held to muarl's own rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from muarl.chat_formats.base import ChatFormat
from muarl.chat_formats.families import Family
from muarl.chat_formats.guarded import GuardedTokenizer, guard_json
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.toolcalls import argument_problem, strict_json

_REASONS = {
    "invalid_json": "the arguments are not valid JSON, or not of the type that the tool declares",
    "unclosed_block": "the call does not end",
    "missing_name": "the tool call has no name",
    "malformed_structure": "the call is not written as the chat format asks for",
}
_WORDS = {"True": True, "False": False, "None": None}
_NONE: Mapping[str, Any] = MappingProxyType({})
_NUMBER = re.compile(r"\d+$")


def checked_call(parsed: Any, call_id: str, *, json_arguments: bool, parameters: Mapping[str, Any] = _NONE) -> ToolCall:
    """A ``ParsedToolCall`` as a ToolCall; never raises. What is wrong with it stands in ``invalid``.

    ``json_arguments``: the arguments were written as one JSON object, which is read once more, strictly.
    ``parameters``: what the tool declares of each argument, where they were written one by one. That a tool or an
    argument is unknown is for the world to say.
    """
    name = parsed.name if isinstance(parsed.name, str) else ""
    raw = parsed.raw if isinstance(parsed.raw, str) else ""

    def bad(reason: str) -> ToolCall:
        return ToolCall(call_id, name, invalid=reason, raw=raw)

    status = str(getattr(parsed.status, "value", parsed.status))
    arguments = {} if parsed.arguments is None else parsed.arguments
    if status == "invalid_json" and isinstance(arguments, dict):
        arguments, status = _by_word(arguments, parameters)
    if status in _REASONS:
        return bad(_REASONS[status])
    if not name:
        return bad(_REASONS["missing_name"])
    if not isinstance(arguments, dict):
        return bad("arguments must be a JSON object")
    if not arguments and not json_arguments and raw.partition("{")[2].rpartition("}")[0].strip():
        return bad(_REASONS["malformed_structure"])  # Gemma's parser drops what it cannot read
    problem = _strictly(raw) if json_arguments else None
    problem = problem or argument_problem(arguments)
    return bad(problem) if problem else ToolCall(call_id, name, arguments)


def _by_word(arguments: dict[str, Any], parameters: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Arguments that were written without quotes and are no JSON: Python's words, which Qwen3.5's template writes, are
    values, text is text unless the tool declares something else. With the status that follows."""
    out = {}
    for key, value in arguments.items():
        declared = parameters.get(key)
        kinds = declared.get("type") if isinstance(declared, Mapping) else None
        if not isinstance(value, str) or kinds is None or "string" in kinds:
            out[key] = value
        elif value in _WORDS:
            out[key] = _WORDS[value]
        else:
            return arguments, "invalid_json"
    return out, "ok"


def _strictly(raw: str) -> str | None:
    """What is wrong with the JSON object in a call's text, if there is one."""
    begin, end = raw.find("{"), raw.rfind("}")
    return strict_json(raw[begin : end + 1]) if 0 <= begin < end else None


def native_id(call_id: str, name: str, position: int) -> str:
    """A call's id as Kimi's models write it, ``functions.NAME:NUMBER``, counted over the conversation; for all formats
    that show ids. A call without a number in its id has that of its position."""
    number = _NUMBER.search(call_id)
    return f"functions.{name}:{number[0] if number else position}"


_OPENING = Message("user", "x")


class RenderedFormat(ChatFormat):
    """The format that a renderer writes.

    renderer: of the ``renderers`` package, over the same tokenizer. Contexts are the renderer's render of the first
    messages, and from then on what its bridge appends; a recorded reply is what the render of it adds to its context.
    """

    markers = None

    def __init__(
        self,
        family: Family,
        tokenizer: GuardedTokenizer,
        renderer: Any,
        *,
        thinking: bool,
        drops_thoughts: bool = False,
    ) -> None:
        self.name, self.thinking, self.tokenizer = family.name, thinking, tokenizer
        self._family, self._renderer = family, renderer
        self.drops_thoughts = drops_thoughts and thinking
        self.thought_opener = tuple(tokenizer.encode(family.thoughts[0]))
        self._ends = tuple(tokenizer.convert_tokens_to_ids(t) or 0 for t in family.ends)
        further_ends = [i for i in renderer.get_stop_token_ids() if i != self._ends[0]]
        self.stop_ids = (self._ends[0], *further_ends)
        self._opened = tuple(self._render([_OPENING], begin=True))
        shut = self._render([_OPENING])
        self.generation_prompt = self._opened[_common(self._opened, shut) :]
        self._canonical = lru_cache(maxsize=256)(self._make_canonical)

    # ── building contexts ────────────────────────────────────────────────────────────────────────────────────────

    def prompt(self, system: str, tools: Sequence[ToolSpec], messages: Sequence[Message]) -> list[int]:
        rows = [{"role": "system", "content": self.tokenizer.guard(system)}] if system else []
        conversation = with_tool_names(messages)
        if self.drops_thoughts:
            asked = max((n for n, m in enumerate(conversation) if m.role == "user"), default=-1)
            conversation = [self._earlier(m) if n < asked else m for n, m in enumerate(conversation)]
        if all(m.role == "assistant" for m in conversation):
            conversation = [*conversation, Message("user", "")]  # templates want somebody to have spoken
        return self._render([*rows, *conversation], tools=tools, begin=True)

    def extend(self, previous_ids: Sequence[int], new_messages: Sequence[Message]) -> list[int]:
        if not new_messages:
            raise ValueError("a conversation is extended by at least one message")
        closing = self._close(previous_ids, new_messages)
        return closing + self._extension((closing or previous_ids)[-1], new_messages)

    def resume(self, previous_ids: Sequence[int], messages: Sequence[Message]) -> list[int]:
        ids = self._close(previous_ids, messages)
        segment: list[Message] = []
        last = (ids or previous_ids)[-1]
        for message in with_tool_names(messages):
            if message.role != "assistant":
                segment.append(message)
                continue
            ids += self._extension(last, segment) + self.reply_ids(message)
            last, segment = ids[-1], []
        return ids + self._extension(last, segment)

    def _extension(self, stop: int, messages: Sequence[Message]) -> list[int]:
        """What follows the id that ended a reply, up to and with the next generation prompt."""
        if not messages:  # the agent speaks again
            said = Message("assistant", "x")
            again, reply = self._after(self._render([_OPENING, said], begin=True)), self.reply_ids(said)
            return again[_common(again, reply) :] or list(self.generation_prompt)
        for m in messages:
            if m.role not in ("user", "tool", "system"):
                raise ValueError(f"a conversation is extended by user and tool messages, not by {m.role!r}")
        rows = [self._row(m, n) for n, m in enumerate(messages)]
        calls = tuple(str(row["name"]) for row in rows if row["role"] == "tool")
        end = self._ends[bool(calls)]
        for closing in ((), (end,)):  # a reply that ended otherwise than its next message asks for is ended anew
            before = [*self._canonical(calls), closing[0] if closing else stop]
            bridged = self._renderer.bridge_to_next_turn(list(self.generation_prompt), list(before), rows)
            length = len(self.generation_prompt) + len(before)
            if bridged is not None and list(bridged.token_ids[len(self.generation_prompt) : length]) == before:
                return [*closing, *bridged.token_ids[length:]]
            if before[-1] == end and (extension := self._rendered_extension(messages)):
                return [*closing, *extension]
        raise ValueError(f"the chat format {self.name} cannot go on with {[m.role for m in messages]}")

    def _rendered_extension(self, messages: Sequence[Message]) -> list[int]:
        """As ``_extension`` after a reply that ended as it should, for turns that the renderer has no bridge to: what
        its render of them adds to a reply that asked for them. Empty if it rewrites the reply."""
        asked = tuple(ToolCall(m.tool_call_id or "", m.name or "unknown") for m in messages if m.role == "tool")
        said = Message("assistant", "" if asked else "x", asked)
        reply = self.reply_ids(said)
        whole = self._after(self._render([_OPENING, said, *messages], begin=True))
        return whole[len(reply) :] if whole[: len(reply)] == reply else []

    def _make_canonical(self, calls: tuple[str, ...]) -> tuple[int, ...]:
        """A reply without the id that ends it. The renderer's bridge looks at a reply to see that it is over, that
        it thinks no more, and which tools it called: one like this stands for them all, so that the work is
        proportional to what is new."""
        asked = tuple(ToolCall(f"call_{n}", name) for n, name in enumerate(calls))
        reply = Message("assistant", "" if calls else "x", asked[:1] if self._family.single else asked)
        return tuple(self.reply_ids(reply)[:-1])

    def _close(self, previous_ids: Sequence[int], messages: Sequence[Message]) -> list[int]:
        """What ends a reply that was cut, as it would have to end before these messages."""
        if previous_ids and previous_ids[-1] in self.stop_ids:
            return []
        opener, closer = self._family.thoughts
        start = _last_of(previous_ids, self.generation_prompt[0])
        said = self.text(previous_ids[start:])
        thinks = self.thinking and said.rfind(opener) > said.rfind(closer)
        end = self._ends[bool(messages) and messages[0].role == "tool"]
        return [*(self.tokenizer.encode(closer) if thinks else ()), end]

    def _render(
        self, messages: Sequence[Message | Mapping[str, Any]], *, tools: Sequence[ToolSpec] = (), begin: bool = False
    ) -> list[int]:
        rows = [self._row(m, n) if isinstance(m, Message) else dict(m) for n, m in enumerate(messages)]
        specs = [guard_json(t.to_openai(), self.tokenizer) for t in tools] or None
        return list(self._renderer.render_ids(rows, tools=specs, add_generation_prompt=begin))

    def _earlier(self, message: Message) -> Message:
        """A message of an earlier turn, without the thoughts that go. Where replies have a single call, templates want
        one before each result, so that one which could not be read is written without its arguments."""
        calls = message.tool_calls
        if self._family.single:
            calls = tuple(c if c.invalid is None else ToolCall(c.id, c.name or "unknown") for c in calls)
        return replace(message, reasoning=None, tool_calls=calls)

    def _row(self, message: Message, number: int) -> dict[str, Any]:
        """A message as renderers and templates take it, everything in it guarded."""
        guard = self.tokenizer.guard
        row: dict[str, Any] = {"role": message.role, "content": guard(message.content or "")}
        if message.role == "tool":
            row["name"] = guard(message.name or "unknown")
            row["tool_call_id"] = guard(native_id(message.tool_call_id or "", message.name or "unknown", number))
        if message.role != "assistant":
            return row
        broken = [c.raw for c in message.tool_calls if c.invalid is not None and c.raw]
        calls = [c for c in message.tool_calls if c.invalid is None]
        row["content"] = guard("\n".join(t for t in (message.content, *broken) if t))
        if self.thinking and message.reasoning:
            row["reasoning_content"] = guard(message.reasoning)
        if len(calls) > 1 and self._family.single:
            raise ValueError(f"the chat format {self.name} has one tool call a reply, and this one has {len(calls)}")
        if calls:
            row["tool_calls"] = [
                {
                    "id": guard(native_id(c.id, c.name, n)),
                    "type": "function",
                    "function": {"name": guard(c.name), "arguments": guard_json(dict(c.arguments), self.tokenizer)},
                }
                for n, c in enumerate(calls)
            ]
        return row

    # ── what the policy writes ───────────────────────────────────────────────────────────────────────────────────

    def reply_ids(self, message: Message) -> list[int]:
        """As in ``ChatFormat``. ValueError for several calls where the format has one a reply."""
        ids = self._with_thoughts(self._after(self._render([_OPENING, message])), message)
        last = max((n for n, i in enumerate(ids) if i in self.stop_ids), default=-1)
        if last < 0:  # this template lets the next message's first token end a reply
            return [*ids, self._ends[bool(message.tool_calls)]]
        return ids[: last + 1]

    def _with_thoughts(self, ids: list[int], message: Message) -> list[int]:
        """A reply with the message's thoughts, where the template drops them even from the last turn."""
        thoughts = (message.reasoning or "").strip() if self.thinking else ""
        said = self.text(ids)
        if not thoughts or thoughts in said:
            return ids
        if not said.startswith(self._family.thoughts[1]):
            raise ValueError(f"the chat format {self.name} has no place for the thoughts of a recorded reply")
        return [*self.tokenizer.encode_guarded(thoughts), *ids]

    def _after(self, ids: list[int]) -> list[int]:
        """What ``ids`` add to the opened context. Where their tokens do not part there, text does: what is left of a
        token that holds both is encoded by itself, as a policy would have to write it."""
        opened = self._opened
        same = _common(opened, ids)
        over, rest = self.text(opened[same:]).encode(), ids[same:]
        while over and rest:
            piece = self.tokenizer.piece(rest[0])
            if piece.startswith(over):
                return [*self.tokenizer.encode_guarded(piece[len(over) :].decode("utf-8", "replace")), *rest[1:]]
            if not over.startswith(piece):
                break
            over, rest = over[len(piece) :], rest[1:]
        opener, closer = self._family.thoughts
        if over.decode("utf-8", "replace").strip() in ("", opener) and self.text(ids[same:]).startswith(closer):
            return ids[same:]  # thoughts of nothing end at once
        if over:
            raise ValueError(f"the chat format {self.name} writes replies otherwise than its generation prompt begins")
        return rest

    def call_opening(self, name: str | None) -> tuple[int, ...] | None:
        return None

    def parse(self, completion_ids: Sequence[int], *, first_call: int = 0, tools: Sequence[ToolSpec] = ()) -> Message:
        ids = list(completion_ids)
        del ids[next((n + 1 for n, i in enumerate(ids) if i in self.stop_ids), len(ids)) :]
        specs = [t.to_openai() for t in tools] or None
        try:
            read = self._renderer.parse_response(ids, tools=specs, prompt_ids=list(self.generation_prompt))
        except Exception as problem:  # whatever a model's ids make a parser raise
            raw = self.text(ids).strip()
            reason = f"the reply cannot be read ({type(problem).__name__})"
            return Message("assistant", "", (ToolCall(f"call_{first_call}", "", invalid=reason, raw=raw),))
        declared = {t.name: t.parameters.get("properties") or {} for t in tools}
        calls = tuple(
            checked_call(
                call,
                f"call_{first_call + n}",
                json_arguments=self._family.json,
                parameters=declared.get(call.name or "", {}),
            )
            for n, call in enumerate(read.tool_calls)
        )
        content, reasoning = read.content.strip(), (read.reasoning_content or "").strip() or None
        if self._family.bare and not calls and content.startswith("{"):
            reason = strict_json(content) or "a tool call is a JSON object with name and parameters"
            calls, content = (ToolCall(f"call_{first_call}", "", invalid=reason, raw=content),), ""
        return Message("assistant", content, calls, reasoning=reasoning)


def with_tool_names(messages: Iterable[Message], calls: Iterable[ToolCall] = ()) -> list[Message]:
    """The messages, each tool's with the name of the tool, where one of the calls in or before them says it."""
    names = {c.id: c.name for c in calls}
    out = []
    for message in messages:
        names |= {c.id: c.name for c in message.tool_calls}
        if message.role == "tool" and message.name is None and message.tool_call_id in names:
            message = replace(message, name=names[message.tool_call_id])
        out.append(message)
    return out


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _last_of(ids: Sequence[int], id_: int) -> int:
    return next((n for n in range(len(ids) - 1, -1, -1) if ids[n] == id_), 0)
