"""Search by words: Okapi BM25, with the orders and scores of TAU2 (and of rank-bm25, which TAU2 uses)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from muarl.retrieval.documents import Knowledge
from muarl.retrieval.search import Hit, Search


class BM25Search(Search):
    """Ranks documents by BM25 over lower-case words between blanks. Titles are not searched."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge

    def search(self, query: str, top_k: int = 10) -> list[Hit]:
        """The documents that rank first, those with a score of 0 included."""
        documents = self.knowledge.documents
        if not query or not query.strip() or not documents:
            return []
        index = self.knowledge.index("bm25", lambda: BM25([d.content.lower().split() for d in documents]))
        scores = index.scores(query.lower().split())
        order = sorted(range(len(scores)), key=lambda i: scores[i], reverse=True)[:top_k]
        return [Hit(documents[i], scores[i]) for i in order]


class BM25:
    """Okapi BM25 with a floor under the weights of frequent words, as rank-bm25's BM25Okapi has it.

    ``texts``: the words of each document. k1 is 1.5, b 0.75, and negative weights become a quarter of the mean.
    """

    K1, B, FLOOR = 1.5, 0.75, 0.25

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        postings: dict[str, dict[int, int]] = {}
        for number, words in enumerate(texts):
            for word in words:
                counts = postings.setdefault(word, {})
                counts[number] = counts.get(number, 0) + 1
        lengths = np.array([len(words) for words in texts])
        average = sum(len(words) for words in texts) / len(texts)
        self._norms = self.K1 * (1 - self.B + self.B * lengths / average) if postings else np.zeros(len(texts))
        self._weights = self._weigh({word: len(counts) for word, counts in postings.items()}, len(texts))
        self._postings = {w: (np.array(list(c)), np.array(list(c.values()))) for w, c in postings.items()}

    def _weigh(self, frequencies: dict[str, int], size: int) -> dict[str, float]:
        """A word's weight by the number of documents that have it. The mean's sum is in the words' order, as upstream's
        is, since its rounding depends on it."""
        weights = {w: math.log(size - n + 0.5) - math.log(n + 0.5) for w, n in frequencies.items()}
        total = 0.0
        for weight in weights.values():
            total += weight
        floor = self.FLOOR * (total / len(weights)) if weights else 0.0
        return {word: floor if weight < 0 else weight for word, weight in weights.items()}

    def scores(self, query: Sequence[str]) -> list[float]:
        """The score of each document."""
        found = np.zeros(len(self._norms))
        for word in query:
            if word in self._postings:
                where, counts = self._postings[word]
                found[where] += self._weights[word] * (counts * (self.K1 + 1) / (counts + self._norms[where]))
        return [float(score) for score in found]
