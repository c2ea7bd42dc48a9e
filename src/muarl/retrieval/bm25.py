"""Search by words: Okapi BM25, with the orders and scores of TAU2 (and of rank-bm25, which TAU2 uses)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from muarl.retrieval.documents import Knowledge, OverlaidKnowledge
from muarl.retrieval.search import Hit, Search

_NONE = np.zeros(0, np.int64)


class BM25Search(Search):
    """Ranks documents by BM25 over lower-case words between blanks. Titles are not searched."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge

    def search(self, query: str, top_k: int = 10) -> list[Hit]:
        """The documents that rank first, those with a score of 0 included."""
        documents = self.knowledge.documents
        if not query or not query.strip() or not documents:
            return []
        scores = _index(self.knowledge).scores(query.lower().split())
        order = sorted(range(len(scores)), key=lambda i: scores[i], reverse=True)[:top_k]
        return [Hit(documents[i], scores[i]) for i in order]


def _index(knowledge: Knowledge) -> BM25:
    """The index of a collection; of one that is laid over another, what differs from the other's."""

    def make() -> BM25:
        if isinstance(knowledge, OverlaidKnowledge) and knowledge.base.documents:
            before = knowledge.base.documents
            replaced = {n: _words(before[n].content) for n in knowledge.changed if n < len(before)}
            return _index(knowledge.base).changed(
                replaced, {n: _words(d.content) for n, d in knowledge.changed.items()}
            )
        return BM25([_words(document.content) for document in knowledge.documents])

    return knowledge.index("bm25", make)


def _words(text: str) -> list[str]:
    return text.lower().split()


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
        self._lengths = np.array([len(words) for words in texts])
        self._postings = {w: (np.array(list(c)), np.array(list(c.values()))) for w, c in postings.items()}
        self._measure()

    def _measure(self) -> None:
        """What the lengths of documents and the numbers of those with a word say of each."""
        lengths, postings, size = self._lengths, self._postings, len(self._lengths)
        average = int(lengths.sum()) / size
        self._norms = self.K1 * (1 - self.B + self.B * lengths / average) if postings else np.zeros(size)
        self._weights = self._weigh({word: len(where) for word, (where, _) in postings.items()}, size)

    def changed(self, replaced: Mapping[int, Sequence[str]], texts: Mapping[int, Sequence[str]]) -> BM25:
        """The index with other texts at some places, further ones behind the last place; this one stays as it is.

        ``replaced``: the words that the known places among them have here. Equal to an index made anew; where texts are
        replaced, but for the last bit of the floor, which depends on the order in which words are first met.
        """
        new = object.__new__(BM25)
        added = [len(words) for place, words in sorted(texts.items()) if place >= len(self._lengths)]
        new._lengths = np.concatenate([self._lengths, np.array(added, self._lengths.dtype)])
        new._postings = dict(self._postings)
        for place, words in replaced.items():
            new._lengths[place] = len(texts[place])
            for word in set(words):
                where, counts = new._postings[word]
                others = where != place
                new._postings[word] = where[others], counts[others]
        for place, words in sorted(texts.items()):
            for word, count in Counter(words).items():
                where, counts = new._postings.get(word, (_NONE, _NONE))
                new._postings[word] = np.append(where, place), np.append(counts, count)
        new._postings = {word: posting for word, posting in new._postings.items() if len(posting[0])}
        new._measure()
        return new

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
        scores = np.zeros(len(self._norms))
        for word in query:
            if word in self._postings:
                where, counts = self._postings[word]
                scores[where] += self._weights[word] * (counts * (self.K1 + 1) / (counts + self._norms[where]))
        return [float(score) for score in scores]
