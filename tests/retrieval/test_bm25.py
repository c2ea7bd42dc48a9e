"""Search by words: the formula, and the order of what is found."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.retrieval.bm25 import BM25, BM25Search
from muarl.retrieval.documents import Document, Knowledge

WORDS = st.lists(st.sampled_from(["fee", "card", "atm", "a", "of", "loan"]), max_size=12)


def plain_bm25(texts, query):
    """The formula, one document and one word at a time."""
    size, average = len(texts), sum(map(len, texts)) / len(texts)
    vocabulary = {word for text in texts for word in text}
    number = {word: sum(word in text for text in texts) for word in vocabulary}
    weight = {word: math.log((size - n + 0.5) / (n + 0.5)) for word, n in number.items()}
    floor = 0.25 * sum(weight.values()) / max(1, len(weight))
    weight = {word: value if value >= -1e-12 else floor for word, value in weight.items()}
    return [
        sum(
            weight.get(word, 0)
            * text.count(word)
            * 2.5
            / (text.count(word) + 1.5 * (0.25 + 0.75 * len(text) / average))
            for word in query
        )
        for text in texts
    ]


@given(st.lists(WORDS.filter(bool), min_size=1, max_size=6), WORDS)
def test_bm25_is_the_formula(texts, query):
    assert BM25(texts).scores(query) == pytest.approx(plain_bm25(texts, query), abs=1e-9)


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS, st.integers(1, 8))
def test_documents_stand_in_the_order_of_their_scores_and_ties_in_the_collections(texts, query, top_k):
    known = Knowledge(Document(str(n), "", " ".join(words).upper()) for n, words in enumerate(texts))
    hits = BM25Search(known).search(" ".join(query), top_k)
    scores = BM25(texts).scores(query) if any(texts) else [0.0] * len(texts)
    order = sorted(range(len(texts)), key=lambda n: (-scores[n], n))[:top_k]
    assert [(int(hit.document.id), hit.score) for hit in hits] == ([(n, scores[n]) for n in order] if query else [])


def test_documents_without_words_score_nothing():
    assert BM25([[], []]).scores(["a"]) == [0.0, 0.0]
    assert BM25Search(Knowledge([])).search("a") == []
