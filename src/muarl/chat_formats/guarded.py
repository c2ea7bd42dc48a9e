"""Text to token ids where text that others write cannot become control tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from tokenizers import Tokenizer

from muarl.basics.errors import CheckpointError

_CUT = "\ud800"  # A lone surrogate cannot stand in a sanitised text, so it can mark where a literal must be cut.
_SURROGATES = re.compile("[\ud800-\udfff]")


def _byte_letters() -> dict[str, int]:
    """The letter that stands for each byte in a byte-level vocabulary (GPT-2): itself where it can be seen, else one
    of those from U+0100 on, in order."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in seen]
    return {chr(b): b for b in seen} | {chr(0x100 + n): b for n, b in enumerate(hidden)}


_BYTES = _byte_letters()
_BYTE_PIECE = re.compile("<0x([0-9A-F]{2})>")


class HuggingFaceTokenizer(Protocol):
    """A ``transformers`` fast tokenizer, as far as needed here."""

    @property
    def backend_tokenizer(self) -> Tokenizer: ...


class GuardedTokenizer:
    """The tokenizer as ``renderers`` sees it: encodes text, and breaks control literals where ``guard`` marked them.

    Ordinary added tokens stay usable everywhere; only control tokens, and added tokens that contain one, cannot come
    out of guarded text. A control literal is broken by encoding its first character apart from the rest; the decoder
    gives back the exact text.

    ``control``: the format's own control tokens; the tokenizer's special ones are guarded besides. ``end``: the token
    that ends a message. ``template``: the checkpoint's chat template, for renderers that ask for it.
    """

    name_or_path = "muarl"
    unk_token_id = None

    def __init__(self, tokenizer: Tokenizer, control: Collection[str], *, end: str, template: str = "") -> None:
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())  # our own copy: nobody else's truncation or padding
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        added = self._tokenizer.get_added_tokens_decoder()
        guarded = set(control) | {t.content for t in added.values() if t.special}
        short = sorted(t for t in guarded if len(t) < 2)
        if short:
            raise CheckpointError(
                f"The tokenizer's special tokens {short} have one character only; they cannot be guarded."
            )
        # A look-ahead, so that overlapping literals are all found.
        self._literal = re.compile("(?=" + "|".join(map(re.escape, sorted(guarded))) + ")")
        self._first = sorted({t[0] for t in guarded})
        self._normalizer = _composing(self._tokenizer.normalizer)
        self._byte_level = _is_byte_level(self._tokenizer)
        self.chat_template = template
        self.control_ids = frozenset(i for i, t in added.items() if any(g in t.content for g in guarded))
        self.eos_token_id = self._tokenizer.token_to_id(end)
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
        if not self._byte_level:
            byte = _BYTE_PIECE.fullmatch(token)
            return bytes([int(byte[1], 16)]) if byte else token.replace("\u2581", " ").encode("utf-8", "replace")
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


def raw_tokenizer(tokenizer: Tokenizer | HuggingFaceTokenizer) -> Tokenizer:
    """The ``tokenizers`` part of either."""
    return tokenizer if isinstance(tokenizer, Tokenizer) else tokenizer.backend_tokenizer


def guard_json(value: Any, tokenizer: GuardedTokenizer) -> Any:
    """A JSON value with every string in it guarded."""
    if isinstance(value, str):
        return tokenizer.guard(value)
    if isinstance(value, Mapping):
        return {tokenizer.guard(str(k)): guard_json(v, tokenizer) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [guard_json(v, tokenizer) for v in value]
    return value


def _composing(normalizer: Any) -> Any:
    """The normalizer, if what it makes of a text still is that text (NFC); None for one that writes spaces anew."""
    return None if normalizer is None or normalizer.normalize_str("a b") != "a b" else normalizer


def _is_byte_level(tokenizer: Tokenizer) -> bool:
    """Whether letters of the vocabulary stand for bytes, as in GPT-2; else spaces are written as in SentencePiece."""
    decoder = tokenizer.decoder
    if decoder is None:
        return True
    state = json.loads(decoder.__getstate__())
    kinds = {state.get("type")} | {d.get("type") for d in state.get("decoders", ())}
    return not kinds & {"ByteFallback", "Metaspace"}
