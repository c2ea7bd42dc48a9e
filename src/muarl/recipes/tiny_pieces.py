"""The pieces that become single tokens of a tiny model which reads several worlds.

Added tokens are found from left to right, the longest first, so that a piece of one world may reach into a value of
another: where somebody's tip is "$12", the amount "$12.00" is read as "$12" and what is left of it, but "12.00" as one
token, and nobody can copy one from the other. Such pieces are cut where the value begins.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tokenizers import AddedToken, Tokenizer, models

Span = tuple[int, int]

_BEFORE, _AFTER = re.compile(r"\w$|\d[.,]$"), re.compile(r"\w|[.,]\d")
"""What may not stand before or after a value, lest it be a part of a longer word or number."""


def piece_reader(pieces: Iterable[str]) -> Tokenizer:
    """A tokenizer that knows these pieces and nothing else."""
    reader = Tokenizer(models.BPE())
    reader.add_tokens([AddedToken(piece, normalized=False) for piece in pieces])
    return reader


class Values:
    """Ids, names and amounts, to be found in texts."""

    def __init__(self, values: Iterable[str]) -> None:
        self._longest_first: dict[str, list[str]] = defaultdict(list)
        for value in sorted(set(values), key=len, reverse=True):
            self._longest_first[value[0]].append(value)

    def spans(self, text: str) -> Iterator[Span]:
        """Where values stand in a text by themselves, not within a longer word or number."""
        start = 0
        while start < len(text):
            value = self._at(text, start)
            if value is not None:
                yield start, start + len(value)
            start += 1 if value is None else len(value)

    def _at(self, text: str, start: int) -> str | None:
        if text[start].isalnum() and _BEFORE.search(text[max(0, start - 2) : start]):
            return None
        for value in self._longest_first.get(text[start], ()):
            after = text[start + len(value) : start + len(value) + 2]
            if text.startswith(value, start) and not (value[-1].isalnum() and _AFTER.match(after)):
                return value
        return None


def straddling(text: str, spans: Iterable[Span], values: Iterable[Span]) -> Iterator[tuple[Span, int]]:
    """The tokens (by their ``spans``) that begin before a value and end within it, and where the value begins."""
    tokens = list(spans)
    for start, end in values:
        for token in tokens:
            if token[0] < start < token[1] < end:
                yield token, start


def untangled(pieces: Sequence[str], values: Collection[str], texts: Iterable[str]) -> list[str]:
    """The pieces, those cut in two that reach into a value somewhere in the texts: afterwards every value that stands
    there by itself lies within one token.

    ``values``: the ids, names and amounts among the pieces.
    """
    lookup = Values(values)
    places = {text: spans for text in set(texts) if (spans := list(lookup.spans(text)))}
    cut_pieces = list(dict.fromkeys(pieces))
    while cuts := _cuts(cut_pieces, places):
        cut_pieces = list(dict.fromkeys(part for piece in cut_pieces for part in _parts(piece, cuts.get(piece))))
    return cut_pieces


def _cuts(pieces: Sequence[str], places: Mapping[str, Sequence[Span]]) -> dict[str, int]:
    """By piece, after how many letters it is to be cut."""
    reader, cuts = piece_reader(pieces), dict[str, int]()
    for text, values in places.items():
        spans = reader.encode(text, add_special_tokens=False).offsets
        for (start, end), value in straddling(text, spans, values):
            cuts[text[start:end]] = value - start
    return cuts


def _parts(piece: str, cut: int | None) -> list[str]:
    """A piece, or both halves of it; but none that is a letter or a space alone, which stand in every word."""
    if cut is None:
        return [piece]
    return [part for part in (piece[:cut], piece[cut:]) if len(part) > 1 or not (part.isalpha() or part.isspace())]
