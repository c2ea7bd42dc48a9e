"""How people, or simulated ones, write: length, questions, hesitation, words; and how far two of them are apart.

A *conversation* is here the list of one side's messages. Figures are over messages; their intervals come from drawing
whole conversations with replacement (a fixed seed), since the messages of one person resemble each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np

Conversation = Sequence[str]

RESAMPLES = 500
SPLITS = 20
"""Random halves of the logs that the distance of people from people is taken over."""

_HESITATES = re.compile(
    r"\b(?:u+h+m*|u+m+|e+r+m*|h+m+|well,|let me (?:see|think|check)|i (?:think|guess|believe|suppose)|maybe|perhaps"
    r"|(?:not|n['’]t) (?:really |quite |so |too )?sure|not certain|kind of|sort of|i mean|you know|actually)(?!\w)"
    r"|\.\.\.|…",
    re.IGNORECASE,
)
_POLITE = re.compile(r"\b(?:please|thanks?|thank you|thx|appreciate|kindly|sorry)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

FEATURES: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "words": ("words a message", lambda text: float(len(_WORD.findall(text)))),
    "questions": ("messages with a question", lambda text: float("?" in text)),
    "hesitation": ("messages that hesitate", lambda text: float(bool(_HESITATES.search(text)))),
    "politeness": ("messages with please, thanks or sorry", lambda text: float(bool(_POLITE.search(text)))),
    "small_letter": ("messages that begin with a small letter", lambda text: float(text.lstrip()[:1].islower())),
    "no_stop": (
        "messages that end without punctuation",
        lambda text: float(bool(text.strip()) and text.strip()[-1].isalnum()),
    ),
}
"""Figures over messages: name to what it is, and its value of one message."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of two sides."""

    about: str
    here: float
    there: float
    interval: tuple[float, float]
    """95%, of theirs minus the other's."""

    @property
    def differs(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.interval[0] > 0 or self.interval[1] < 0

    def to_json(self) -> dict[str, Any]:
        """A plain dict of the fields, with ``differs``."""
        return {
            "about": self.about, "user": self.here, "logs": self.there, "interval": list(self.interval),
            "differs": self.differs,
        }  # fmt: skip


def style(conversations: Sequence[Conversation]) -> dict[str, float]:
    """Figures of one side: those of ``FEATURES``, and words of the first message, messages a conversation, and distinct
    words among 100 (a mean over windows of 100 words)."""
    texts = [text for one in conversations for text in one]
    out = {name: float(np.mean([f(t) for t in texts])) if texts else 0.0 for name, (_, f) in FEATURES.items()}
    firsts = [len(_WORD.findall(one[0])) for one in conversations if one]
    return out | {
        "first_words": float(np.mean(firsts)) if firsts else 0.0,
        "messages": float(np.mean([len(one) for one in conversations])) if conversations else 0.0,
        "distinct_of_100": _distinct(_tokens(texts)),
    }


def compare(here: Sequence[Conversation], there: Sequence[Conversation], *, seed: int = 0) -> dict[str, Any]:
    """How far a user's messages (``here``) are from those of logs (``there``), as plain JSON.

    ``features``: each a ``Difference``. ``length``: Kolmogorov and Smirnov's distance between the distributions of
    words a message, 0 to 1. ``vocabulary``: Jensen and Shannon's divergence of the frequencies of words (digits all
    alike), 0 for the same to 1 for none in common, over as many words of either side. ``people``: the same two between
    random halves of the logs, which says how much of them the size of the logs alone makes: a user that writes as these
    people do comes near it. ValueError if a side has no words, or the logs fewer than two conversations.
    """
    here, there = [c for c in here if c], [c for c in there if c]
    if not here or len(there) < 2:
        raise ValueError("a comparison needs a user's conversations, and at least two of logs")
    rng = np.random.default_rng(seed)
    features = {}
    for name, (about, figure) in FEATURES.items():
        mine, theirs = ([[figure(t) for t in one] for one in side] for side in (here, there))
        features[name] = Difference(about, _mean(mine), _mean(theirs), _interval(mine, theirs, rng)).to_json()
    for name, about, lengths in (
        ("first_words", "words of the first message", lambda one: [float(len(_WORD.findall(one[0])))]),
        ("messages", "messages a conversation", lambda one: [float(len(one))]),
    ):
        mine, theirs = ([lengths(one) for one in side] for side in (here, there))
        features[name] = Difference(about, _mean(mine), _mean(theirs), _interval(mine, theirs, rng)).to_json()
    halves = [_distances(*_halves(there, rng), rng) for _ in range(SPLITS)]
    half = max(1, len(there) // 2)
    apart = [_distances(_draw(here, half, rng), _draw(there, half, rng), rng) for _ in range(SPLITS)]
    return {
        "features": features,
        "length": float(np.mean([d[0] for d in apart])),
        "vocabulary": float(np.mean([d[1] for d in apart])),
        "people": {
            "length": float(np.mean([d[0] for d in halves])),
            "vocabulary": float(np.mean([d[1] for d in halves])),
        },
        "conversations": {"user": len(here), "logs": len(there)},
        "words": {"user": len(_tokens(_texts(here))), "logs": len(_tokens(_texts(there)))},
        "typical_of_user": _typical(here, there),
        "typical_of_logs": _typical(there, here),
    }


def _texts(conversations: Sequence[Conversation]) -> list[str]:
    return [text for one in conversations for text in one]


def _tokens(texts: Sequence[str]) -> list[str]:
    return [re.sub(r"\d", "0", w.lower()) for text in texts for w in _WORD.findall(text)]


def _distinct(tokens: Sequence[str], window: int = 100) -> float:
    if len(tokens) < window:
        return float(len(set(tokens)))
    starts = range(0, len(tokens) - window + 1, window)
    return float(np.mean([len(set(tokens[i : i + window])) for i in starts]))


def _mean(rows: Sequence[Sequence[float]]) -> float:
    return sum(map(sum, rows)) / sum(map(len, rows))


def _interval(
    mine: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], rng: np.random.Generator
) -> tuple[float, float]:
    drawn = _means(mine, rng) - _means(theirs, rng)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _means(rows: Sequence[Sequence[float]], rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    sums, counts = np.array([sum(r) for r in rows], dtype=np.float64), np.array([len(r) for r in rows])
    drawn = rng.integers(0, len(rows), size=(RESAMPLES, len(rows)))
    return np.asarray(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), dtype=np.float64)


def _halves(rows: Sequence[Conversation], rng: np.random.Generator) -> tuple[list[Conversation], list[Conversation]]:
    order = rng.permutation(len(rows))
    cut = len(rows) // 2
    return [rows[i] for i in order[:cut]], [rows[i] for i in order[cut:]]


def _draw(rows: Sequence[Conversation], most: int, rng: np.random.Generator) -> list[Conversation]:
    return [rows[i] for i in rng.permutation(len(rows))[:most]]


def _distances(
    one: Sequence[Conversation], other: Sequence[Conversation], rng: np.random.Generator
) -> tuple[float, float]:
    """(length, vocabulary); the vocabulary over as many words of either side."""
    lengths = [[len(_WORD.findall(t)) for t in _texts(side)] for side in (one, other)]
    tokens = [_tokens(_texts(side)) for side in (one, other)]
    most = min(map(len, tokens))
    cut = [[t[i] for i in rng.permutation(len(t))[:most]] for t in tokens]
    return _smirnov(*lengths), divergence(*cut)


def _smirnov(one: Sequence[int], other: Sequence[int]) -> float:
    grid = np.unique([*one, *other])
    a, b = (np.searchsorted(np.sort(side), grid, side="right") / len(side) for side in (one, other))
    return float(np.max(np.abs(a - b)))


def divergence(one: Sequence[str], other: Sequence[str]) -> float:
    """Jensen and Shannon's divergence of two lists of words, to base 2: 0 to 1."""
    if not one or not other:
        return 1.0 if one or other else 0.0
    a, b = Counter(one), Counter(other)
    total = 0.0
    for word in a.keys() | b.keys():
        p, q = a[word] / len(one), b[word] / len(other)
        middle = (p + q) / 2
        total += (p * log2(p / middle) if p else 0.0) + (q * log2(q / middle) if q else 0.0)
    return min(1.0, max(0.0, total / 2))


def _typical(one: Sequence[Conversation], other: Sequence[Conversation], most: int = 12) -> list[str]:
    """Words that more of one side's conversations have than of the other's, the most telling ones first."""
    sides = [Counter(w for c in side for w in set(_tokens(c))) for side in (one, other)]
    share = {w: sides[0][w] / len(one) - sides[1][w] / len(other) for w in sides[0] if not re.search(r"\d", w)}
    return [w for w, more in sorted(share.items(), key=lambda item: (-item[1], item[0])) if more > 0.1][:most]
