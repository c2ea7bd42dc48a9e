"""Near-duplicates among conversations: MinHash over word 5-grams, and the exact overlap where hashes agree.

Numbers and ids do not tell two conversations apart, so that the same dialogue about another order is a duplicate.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict

import numpy as np

from muarl.types.episode import Episode

GRAM = 5
HASHES = 64
_ID = re.compile(r"\S*\d\S*")


class NearDuplicates:
    """The conversations kept so far. ``threshold``: the Jaccard overlap from which on two are the same."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        # Two conversations of overlap s share a band of r hashes with probability 1 - (1 - s**r)**(64/r), which is
        # above 0.99 from these thresholds on.
        self._bands = HASHES // (4 if threshold >= 0.75 else 2 if threshold >= 0.4 else 1)
        draw = np.random.default_rng(0)
        self._a = draw.integers(0, 1 << 63, HASHES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        self._b = draw.integers(0, 1 << 63, HASHES, dtype=np.uint64)
        self._grams: dict[str, frozenset[int]] = {}
        self._buckets: dict[tuple[int, bytes], list[str]] = defaultdict(list)

    def twin(self, episode: Episode) -> str | None:
        """The id of a kept conversation that this one repeats, None if there is none."""
        grams = shingles(episode)
        near = {name for key in self._keys(grams) for name in self._buckets.get(key, ())}
        for name in sorted(near):
            other = self._grams[name]
            if len(grams & other) > self._threshold * len(grams | other):
                return name
        return None

    def keep(self, episode: Episode) -> None:
        """Remember a conversation."""
        grams = shingles(episode)
        self._grams[episode.id] = grams
        for key in self._keys(grams):
            self._buckets[key].append(episode.id)

    def _keys(self, grams: frozenset[int]) -> list[tuple[int, bytes]]:
        """A key per band of the signature."""
        if not grams:
            return [(0, b"")]
        values = np.fromiter(grams, np.uint64, len(grams))[:, None]
        signature = ((values * self._a + self._b) >> np.uint64(32)).min(axis=0)  # multiply-shift, modulo 2**64
        return [(n, band.tobytes()) for n, band in enumerate(signature.reshape(self._bands, -1))]


def shingles(episode: Episode) -> frozenset[int]:
    """Hashes (32 bits) of the word 5-grams that agent and user say to each other, and of the names of tools called."""
    words: list[str] = []
    for message in episode.messages:
        if message.role in ("user", "assistant"):
            words.append(f"<{message.role}>")
            words += [f"<{c.name}>" for c in message.tool_calls]
            words += ["<id>" if _ID.fullmatch(w) else w for w in (message.content or "").lower().split()]
    grams = (" ".join(words[i : i + GRAM]) for i in range(max(1, len(words) - GRAM + 1)))
    return frozenset(int.from_bytes(hashlib.blake2b(g.encode(), digest_size=4).digest(), "big") for g in grams)
