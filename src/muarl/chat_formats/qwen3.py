"""The Qwen3 format, thinking or not: the fast path, whose work is proportional to what is new."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from renderers.configs import Qwen3RendererConfig
from renderers.qwen3 import Qwen3Renderer
from tokenizers import Tokenizer

from muarl.basics.errors import CheckpointError
from muarl.chat_formats.base import ChatFormat, Markers
from muarl.chat_formats.guarded import GuardedTokenizer, HuggingFaceTokenizer, guard_json, raw_tokenizer
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.toolcalls import call_text, parse_call

CONTROL_TOKENS = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
)
"""The tokens that give the Qwen3 chat format its structure; each must be one id of the tokenizer."""

_HEADS_KEPT = 64
_EXTENSIONS_KEPT, _LONGEST_KEPT = 4096, 1024
"""How many extensions are remembered, and up to how many characters of messages: some ten megabytes as a rule."""


class Qwen3Format(ChatFormat):
    """Qwen3's format.

    tokenizer: a ``transformers`` fast tokenizer or a ``tokenizers.Tokenizer``, byte-level, with the Qwen3 control
    tokens. thinking: False puts the empty think block into every generation prompt, as context. True lets the policy
    write its own think block, which stays in the history, unless ``drops_thoughts``: it then goes when the user speaks
    again, as Qwen3's own template has it.

    CheckpointError if a control token is missing.
    """

    name = "qwen3"

    def __init__(
        self, tokenizer: Tokenizer | HuggingFaceTokenizer, *, thinking: bool = False, drops_thoughts: bool = False
    ) -> None:
        raw = raw_tokenizer(tokenizer)
        missing = [t for t in CONTROL_TOKENS if raw.token_to_id(t) is None]
        if missing:
            raise CheckpointError(
                f"The tokenizer lacks the control tokens {', '.join(missing)}; use a checkpoint of the Qwen3 family."
            )
        self.thinking, self.drops_thoughts = thinking, drops_thoughts and thinking
        self.tokenizer = GuardedTokenizer(raw, CONTROL_TOKENS, end="<|im_end|>")
        self._renderer = Qwen3Renderer(
            self.tokenizer, Qwen3RendererConfig(enable_thinking=thinking, thinking_retention="all")
        )
        self._ids: dict[str, int] = {t: raw.token_to_id(t) or 0 for t in CONTROL_TOKENS}
        self._end = self._ids["<|im_end|>"]
        self.thought_opener = (self._ids["<think>"],)
        self.markers = Markers(*(self._ids[t] for t in ("<think>", "</think>", "<tool_call>", "</tool_call>")))
        self.stop_ids: tuple[int, ...] = tuple(self._renderer.get_stop_token_ids())
        self._newline = list(self.tokenizer.encode("\n"))
        self._short = lru_cache(maxsize=_EXTENSIONS_KEPT)(self._bridged)  # a group's users and tools say much twice
        opened = self._extension([Message("user", "x")])
        self.generation_prompt: tuple[int, ...] = tuple(opened[_last_index(opened, self._ids["<|im_start|>"]) :])
        self._heads: OrderedDict[tuple[Any, ...], tuple[Sequence[ToolSpec], tuple[int, ...]]] = OrderedDict()

    # ── building contexts ────────────────────────────────────────────────────────────────────────────────────────

    def prompt(self, system: str, tools: Sequence[ToolSpec], messages: Sequence[Message]) -> list[int]:
        """As in ``ChatFormat``. The part up to the first message is cached per (system, tools)."""
        return [*self._head(system, tools), *self._told(messages)]

    def extend(self, previous_ids: Sequence[int], new_messages: Sequence[Message]) -> list[int]:
        return self._close(previous_ids) + self._extension(new_messages)

    def resume(self, previous_ids: Sequence[int], messages: Sequence[Message]) -> list[int]:
        return self._close(previous_ids) + self._newline + self._told(messages)

    def _told(self, messages: Sequence[Message]) -> list[int]:
        """Messages and the generation prompt, after the newline that ends what was before."""
        ids: list[int] = []
        segment: list[Message] = []
        asked = max((n for n, m in enumerate(messages) if m.role == "user"), default=-1)
        for number, message in enumerate(messages):
            if message.role != "assistant":
                segment.append(message)
                continue
            ids += self._extension(segment)[len(self._newline) :] if segment else self.generation_prompt
            if self.drops_thoughts and not (number > asked and message.reasoning):
                ids += self._answer_ids(message)
            else:
                ids += self.reply_ids(message)
            ids += self._newline
            segment = []
        ids += self._extension(segment)[len(self._newline) :] if segment else self.generation_prompt
        return ids

    def _close(self, previous_ids: Sequence[int]) -> list[int]:
        if previous_ids and previous_ids[-1] in self.stop_ids:
            return []
        return ([self._ids["</think>"]] if self._think_open(previous_ids) else []) + [self._end]

    def _think_open(self, ids: Sequence[int]) -> bool:
        """True if the reply at the end of ``ids`` stands inside a think block."""
        for i in reversed(ids):
            if i == self._ids["<think>"]:
                return True
            if i in (self._ids["</think>"], self._ids["<|im_start|>"], self._ids["<tool_call>"]):
                return False
        return False

    def _extension(self, messages: Sequence[Message]) -> list[int]:
        """From after the <|im_end|> of a reply to the next generation prompt; begins with the newline after it."""
        turns: list[tuple[str, str]] = []
        for m in messages:
            if m.role not in ("user", "tool", "system"):
                raise ValueError(f"a conversation is extended by user and tool messages, not by {m.role!r}")
            turns.append((m.role, m.content or ""))
        short = sum(len(content) for _, content in turns) <= _LONGEST_KEPT
        return list(self._short(*turns) if short else self._bridged(*turns))

    def _bridged(self, *turns: tuple[str, str]) -> tuple[int, ...]:
        """The extension by messages as (role, content)."""
        rows = [{"role": role, "content": self.tokenizer.guard(content)} for role, content in turns]
        # The renderer looks at previous ids only to find the end of the turn, so one closing token stands for them all:
        # the work is proportional to what is new.
        bridged = self._renderer.bridge_to_next_turn([self._end], [self._end], rows)
        if bridged is None:
            raise ValueError("a conversation is extended by at least one message")
        return tuple(bridged.token_ids[2:])

    def _head(self, system: str, tools: Sequence[ToolSpec]) -> tuple[int, ...]:
        key = (system, *map(id, tools))
        head = self._heads.get(key)
        if head is None:
            head = (tuple(tools), self._render_head(system, tools))  # holds the specs: their ids stay theirs
            self._heads[key] = head
            while len(self._heads) > _HEADS_KEPT:
                self._heads.popitem(last=False)
        return head[1]

    def _render_head(self, system: str, tools: Sequence[ToolSpec]) -> tuple[int, ...]:
        if not system and not tools:
            return ()
        rows = [{"role": "system", "content": self.tokenizer.guard(system)}] if system else []
        specs = [guard_json(t.to_openai(), self.tokenizer) for t in tools] or None
        if not rows:  # The renderer wants a first message; the block before it is the head.
            marker = len(self._renderer.render_ids([{"role": "user", "content": "x"}]))
            return tuple(self._renderer.render_ids([{"role": "user", "content": "x"}], tools=specs)[:-marker])
        return tuple(self._renderer.render_ids(rows, tools=specs))

    # ── what the policy writes ───────────────────────────────────────────────────────────────────────────────────

    def reply_ids(self, message: Message) -> list[int]:
        encode = self.tokenizer.encode_guarded
        ids: list[int] = []
        if self.thinking:
            ids += [self._ids["<think>"], *encode("\n" + (message.reasoning or "").strip("\n") + "\n")]
            ids += [self._ids["</think>"]]
        lead = "\n\n" if self.thinking else ""
        return ids + self._answer_ids(message, lead)

    def _answer_ids(self, message: Message, lead: str = "") -> list[int]:
        """A reply without its thoughts, its end included."""
        encode = self.tokenizer.encode_guarded
        lead += (message.content or "") + ("\n" if message.content and message.tool_calls else "")
        ids: list[int] = list(encode(lead))
        for n, call in enumerate(message.tool_calls):
            if n:
                ids += self._newline
            ids += [self._ids["<tool_call>"], *encode("\n" + call_text(call) + "\n"), self._ids["</tool_call>"]]
        return [*ids, self._end]

    def call_opening(self, name: str | None) -> tuple[int, ...]:
        encode = self.tokenizer.encode_guarded
        ids: list[int] = []
        if self.thinking:
            ids += [self._ids["<think>"], *encode("\n\n"), self._ids["</think>"], *encode("\n\n")]
        ids.append(self._ids["<tool_call>"])
        if name is not None:
            ids += encode(f'\n{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments":')
        return tuple(ids)

    def parse(self, completion_ids: Sequence[int], *, first_call: int = 0, tools: Sequence[ToolSpec] = ()) -> Message:
        """As in ``ChatFormat``. Text after the first call belongs to no message; control tokens inside the text are
        shown as text."""
        ids = list(completion_ids)
        del ids[min(_find(ids, s) for s in self.stop_ids) :]
        reasoning, ids = self._split_reasoning(ids)
        opener, closer = self._ids["<tool_call>"], self._ids["</tool_call>"]
        at = _find(ids, opener)
        content = self.text(ids[:at]).strip()
        calls: list[ToolCall] = []
        while at < len(ids):
            end = _find(ids, closer, at)
            text = self.text(ids[at + 1 : end]).strip()
            calls.append(parse_call(text, f"call_{first_call + len(calls)}", closed=end < len(ids)))
            at = _find(ids, opener, end)
        return Message("assistant", content, tuple(calls), reasoning=reasoning)

    def _split_reasoning(self, ids: list[int]) -> tuple[str | None, list[int]]:
        """Reasoning and rest. Only a think block at the very start is reasoning; it ends at the first closing token,
        or, where that is missing, at the first tool call."""
        start = _find(ids, self._ids["<think>"])
        if start == len(ids) or self.text(ids[:start]).strip():
            return None, ids
        end = _find(ids, self._ids["</think>"], start)
        rest = end + 1
        if end == len(ids):
            end = rest = _find(ids, self._ids["<tool_call>"], start)
        return self.text(ids[start + 1 : end]).strip() or None, ids[rest:]


def _find(ids: list[int], token: int, start: int = 0) -> int:
    """Where ``token`` first stands at or after ``start``; the length of ``ids`` if nowhere."""
    try:
        return ids.index(token, start)
    except ValueError:
        return len(ids)


def _last_index(ids: Sequence[int], token: int) -> int:
    return len(ids) - 1 - list(reversed(ids)).index(token)
