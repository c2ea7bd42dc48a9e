"""Messages to token ids and back, over the ``renderers`` library: the Qwen3 format, thinking or not.

A conversation only ever grows by appending: nothing that was sampled is turned into text and tokenised again. Training,
evaluation and cold-start data go through the same three functions (``prompt``, ``extend``, ``reply_ids``), so a context
is the same, id for id, wherever it is built.

Whatever users, tools and policies write is data: text in it that looks like a control token (``<|im_end|>``,
``<tool_call>``) is encoded as ordinary characters.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from renderers.configs import Qwen3RendererConfig
from renderers.qwen3 import Qwen3Renderer
from tokenizers import Tokenizer

from muarl.chat import Message, ToolCall, ToolSpec
from muarl.episode import TokenTrace
from muarl.errors import CheckpointError
from muarl.toolcalls import call_text, parse_call

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

_CUT = "\ud800"  # A lone surrogate cannot stand in a sanitised text, so it can mark where a literal must be cut.
_SURROGATES = re.compile("[\ud800-\udfff]")
_HEADS_KEPT = 64


def _byte_letters() -> dict[str, int]:
    """The letter that stands for each byte in a byte-level vocabulary (GPT-2): itself where it can be seen, else one
    of those from U+0100 on, in order."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in seen]
    return {chr(b): b for b in seen} | {chr(0x100 + n): b for n, b in enumerate(hidden)}


_BYTES = _byte_letters()


class HuggingFaceTokenizer(Protocol):
    """A ``transformers`` fast tokenizer, as far as needed here."""

    @property
    def backend_tokenizer(self) -> Tokenizer: ...


class GuardedTokenizer:
    """The tokenizer as ``renderers`` sees it: encodes text, and breaks control literals where ``guard`` marked them.

    Ordinary added tokens stay usable everywhere; only control tokens, and added tokens that contain one, cannot come
    out of guarded text. A control literal is broken by encoding its first character apart from the rest; a byte-level
    decoder gives back the exact text.
    """

    name_or_path = "muarl"
    unk_token_id = None

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())  # our own copy: nobody else's truncation or padding
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        added = self._tokenizer.get_added_tokens_decoder()
        guarded = set(CONTROL_TOKENS) | {t.content for t in added.values() if t.special}
        short = sorted(t for t in guarded if len(t) < 2)
        if short:
            raise CheckpointError(
                f"The tokenizer's special tokens {short} have one character only; they cannot be guarded."
            )
        # A look-ahead, so that overlapping literals are all found.
        self._literal = re.compile("(?=" + "|".join(map(re.escape, sorted(guarded))) + ")")
        self._first = sorted({t[0] for t in guarded})
        self._normalizer = self._tokenizer.normalizer
        self.control_ids = frozenset(i for i, t in added.items() if any(g in t.content for g in guarded))
        self.eos_token_id = self._tokenizer.token_to_id("<|im_end|>")
        self._short = lru_cache(maxsize=16384)(self._encode)
        self._id = lru_cache(maxsize=1024)(self._tokenizer.token_to_id)  # the renderer asks for markers at every turn

    def guard(self, text: str) -> str:
        """Mark the places where untrusted text must be cut; lone surrogates become U+FFFD. ``encode`` does the rest."""
        if not text.isascii():
            text = _SURROGATES.sub("\ufffd", text)
            if self._normalizer is not None:  # before the search, lest it composes a literal afterwards
                text = self._normalizer.normalize_str(text)
        if not any(c in text for c in self._first):
            return text
        pieces, last = [], 0
        for match in self._literal.finditer(text):
            cut = match.start() + 1
            pieces.append(text[last:cut])
            last = cut
        return _CUT.join([*pieces, text[last:]]) if pieces else text

    def encode(self, text: str, add_special_tokens: bool = False) -> Sequence[int]:
        """Ids of a text; ``add_special_tokens`` is there for the protocol and ignored."""
        return self._short(text) if len(text) <= 512 else self._encode(text)

    def _encode(self, text: str) -> tuple[int, ...]:
        if _CUT not in text:
            return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)
        ids: list[int] = []
        for piece in text.split(_CUT):
            ids.extend(self._tokenizer.encode(piece, add_special_tokens=False).ids)
        return tuple(ids)

    def encode_guarded(self, text: str) -> Sequence[int]:
        """Ids of untrusted text, none of them in ``control_ids``."""
        return self.encode(self.guard(text))

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """The text of ids."""
        return self._tokenizer.decode(list(token_ids), skip_special_tokens=skip_special_tokens)

    def piece(self, token_id: int) -> bytes:
        """The bytes that one id stands for; those of several ids together decode to their text. Empty for an id that
        the tokenizer does not know."""
        token = self._tokenizer.id_to_token(token_id)
        if token is None:
            return b""
        try:
            return bytes(_BYTES[c] for c in token)
        except KeyError:  # an added token, which stands for itself
            return token.encode("utf-8", "replace")

    def convert_tokens_to_ids(self, token: str) -> int | None:
        """The id of one token, None if the tokenizer does not know it."""
        return self._id(token)

    @property
    def vocabulary_size(self) -> int:
        """How many ids the tokenizer knows, added tokens included."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)


class ChatTokens:
    """The chat format of one tokenizer: prompts, extensions, parsing and training tokens.

    tokenizer: a ``transformers`` fast tokenizer or a ``tokenizers.Tokenizer``, byte-level, with the Qwen3 control
    tokens. thinking: False puts the empty think block into every generation prompt, as context. True lets the policy
    write its own think block, which stays in the history.

    CheckpointError if a control token is missing.
    """

    def __init__(self, tokenizer: Tokenizer | HuggingFaceTokenizer, *, thinking: bool = False) -> None:
        raw = tokenizer if isinstance(tokenizer, Tokenizer) else tokenizer.backend_tokenizer
        missing = [t for t in CONTROL_TOKENS if raw.token_to_id(t) is None]
        if missing:
            raise CheckpointError(
                f"The tokenizer lacks the control tokens {', '.join(missing)}; use a checkpoint of the Qwen3 family."
            )
        self.thinking = thinking
        self.tokenizer = GuardedTokenizer(raw)
        self._renderer = Qwen3Renderer(
            self.tokenizer, Qwen3RendererConfig(enable_thinking=thinking, thinking_retention="all")
        )
        self._ids: dict[str, int] = {t: raw.token_to_id(t) or 0 for t in CONTROL_TOKENS}
        self._end = self._ids["<|im_end|>"]
        self.stop_ids: tuple[int, ...] = tuple(self._renderer.get_stop_token_ids())
        self._newline = list(self.tokenizer.encode("\n"))
        opened = self._extension([Message("user", "x")])
        self.generation_prompt: tuple[int, ...] = tuple(opened[_last_index(opened, self._ids["<|im_start|>"]) :])
        """The ids that open an agent turn; context, never sampled."""
        self._heads: OrderedDict[tuple[Any, ...], tuple[Sequence[ToolSpec], tuple[int, ...]]] = OrderedDict()

    # ── building contexts ────────────────────────────────────────────────────────────────────────────────────────

    def prompt(self, system: str, tools: Sequence[ToolSpec], messages: Sequence[Message]) -> list[int]:
        """The context of the first agent turn: system text, tools, messages so far, generation prompt.

        Agent messages among ``messages`` (such as the greeting) are history that nobody sampled. The part up to the
        first message is cached per (system, tools).
        """
        return [*self._head(system, tools), *self._told(messages)]

    def extend(self, previous_ids: Sequence[int], new_messages: Sequence[Message]) -> list[int]:
        """The ids to append to a context and its sampled reply, up to and with the next generation prompt.

        ``previous_ids``: everything so far; only its end is looked at. A reply that was cut before it ended is closed
        here, by ids that carry no loss.
        """
        return self._close(previous_ids) + self._extension(new_messages)

    def resume(self, previous_ids: Sequence[int], messages: Sequence[Message]) -> list[int]:
        """As ``extend``, where agent messages that nobody sampled here may be among the new ones, or nothing is new:
        the agent then speaks again."""
        return self._close(previous_ids) + self._newline + self._told(messages)

    def _told(self, messages: Sequence[Message]) -> list[int]:
        """Messages and the generation prompt, after the newline that ends what was before."""
        ids: list[int] = []
        segment: list[Message] = []
        for message in messages:
            if message.role != "assistant":
                segment.append(message)
                continue
            ids += self._extension(segment)[len(self._newline) :] if segment else self.generation_prompt
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
        rows = []
        for m in messages:
            if m.role not in ("user", "tool", "system"):
                raise ValueError(f"a conversation is extended by user and tool messages, not by {m.role!r}")
            rows.append({"role": m.role, "content": self.tokenizer.guard(m.content or "")})
        # The renderer looks at previous ids only to find the end of the turn, so one closing token stands for them all:
        # the work is proportional to what is new.
        bridged = self._renderer.bridge_to_next_turn([self._end], [self._end], rows)
        if bridged is None:
            raise ValueError("a conversation is extended by at least one message")
        return list(bridged.token_ids[2:])

    def _head(self, system: str, tools: Sequence[ToolSpec]) -> tuple[int, ...]:
        key = (system, *map(id, tools))
        kept = self._heads.get(key)
        if kept is None:
            kept = (tuple(tools), self._render_head(system, tools))  # holds the specs: their ids stay theirs
            self._heads[key] = kept
            while len(self._heads) > _HEADS_KEPT:
                self._heads.popitem(last=False)
        return kept[1]

    def _render_head(self, system: str, tools: Sequence[ToolSpec]) -> tuple[int, ...]:
        if not system and not tools:
            return ()
        rows = [{"role": "system", "content": self.tokenizer.guard(system)}] if system else []
        specs = [_guard_json(t.to_openai(), self.tokenizer) for t in tools] or None
        if not rows:  # The renderer wants a first message; the block before it is the head.
            marker = len(self._renderer.render_ids([{"role": "user", "content": "x"}]))
            return tuple(self._renderer.render_ids([{"role": "user", "content": "x"}], tools=specs)[:-marker])
        return tuple(self._renderer.render_ids(rows, tools=specs))

    # ── what the policy writes ───────────────────────────────────────────────────────────────────────────────────

    def reply_ids(self, message: Message) -> list[int]:
        """An agent message as the policy would have to sample it after the generation prompt, <|im_end|> included."""
        encode = self.tokenizer.encode_guarded
        ids: list[int] = []
        if self.thinking:
            ids += [self._ids["<think>"], *encode("\n" + (message.reasoning or "").strip("\n") + "\n")]
            ids += [self._ids["</think>"]]
        lead = "\n\n" if self.thinking else ""
        ids += encode(lead + (message.content or "") + ("\n" if message.content and message.tool_calls else ""))
        for n, call in enumerate(message.tool_calls):
            if n:
                ids += self._newline
            ids += [self._ids["<tool_call>"], *encode("\n" + call_text(call) + "\n"), self._ids["</tool_call>"]]
        return [*ids, self._end]

    def parse(self, completion_ids: Sequence[int], *, first_call: int = 0) -> Message:
        """The agent message that sampled ids stand for.

        Calls get the ids "call_<n>", counted from ``first_call``. A call whose JSON is broken, ambiguous or of the
        wrong shape, or whose block does not end, comes back with ``invalid`` set; the world answers with an error.
        Text after the first call belongs to no message; control tokens inside the text are shown as text.
        """
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

    def text(self, ids: Sequence[int]) -> str:
        """The ids as text, control tokens included; for display and parsing."""
        return self.tokenizer.decode(ids) if ids else ""

    def control(self, token: str) -> int:
        """The id of one of ``CONTROL_TOKENS``."""
        return self._ids[token]

    # ── training ─────────────────────────────────────────────────────────────────────────────────────────────────

    def training_tokens(
        self, system: str, tools: Sequence[ToolSpec], messages: Sequence[Message], *, skip: Collection[int] = ()
    ) -> TokenTrace:
        """A recorded conversation as the policy would have lived it: same contexts, loss on what it would sample.

        ``messages``: what the agent saw and said, without the system message. Agent messages before the first other
        message (the greeting) are context. ``skip``: indices of agent messages that stay context too, such as a
        demonstrator's mistakes. Ends after the last agent message; log-probabilities are 0, versions 0 where sampled.
        """
        trace = TokenTrace()
        told = next((i for i, m in enumerate(messages) if m.role != "assistant"), len(messages))
        new = list(messages[:told])
        for index, message in enumerate(messages[told:], told):
            if message.role != "assistant":
                new.append(message)
                continue
            if trace.ids and not new:
                raise ValueError(f"messages[{index}]: two agent messages with nothing between them")
            trace.append_given(self.extend(trace.ids[-1:], new) if trace.ids else self.prompt(system, tools, new))
            ids = self.reply_ids(message)
            if index in skip:
                trace.append_given(ids)
            else:
                trace.append_sampled(ids, [0.0] * len(ids), 0)
            new = []
        return trace


def _guard_json(value: Any, tokenizer: GuardedTokenizer) -> Any:
    if isinstance(value, str):
        return tokenizer.guard(value)
    if isinstance(value, Mapping):
        return {tokenizer.guard(str(k)): _guard_json(v, tokenizer) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_guard_json(v, tokenizer) for v in value]
    return value


def _find(ids: list[int], token: int, start: int = 0) -> int:
    """Where ``token`` first stands at or after ``start``; the length of ``ids`` if nowhere."""
    try:
        return ids.index(token, start)
    except ValueError:
        return len(ids)


def _last_index(ids: Sequence[int], token: int) -> int:
    return len(ids) - 1 - list(reversed(ids)).index(token)
