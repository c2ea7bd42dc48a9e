"""Documents laid over a collection: found as in a collection made anew, while the collection stays as it is."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.retrieval.bm25 import BM25Search
from muarl.retrieval.documents import Document, Knowledge, OverlaidKnowledge, overlaid
from muarl.retrieval.embedders import HashedEmbedder
from muarl.retrieval.embeddings import EmbeddingSearch
from muarl.retrieval.grep import GrepSearch

WORDS = st.lists(st.sampled_from(["fee", "card", "atm", "a", "of", "loan", "new"]), max_size=10).map(" ".join)
BASE = st.lists(WORDS, min_size=0, max_size=6)
OWN = st.dictionaries(st.integers(0, 8), WORDS, max_size=3)


def documents(texts):
    return [Document(str(n), f"T{n}", text) for n, text in texts]


def both(base, own):
    """(the base, something laid over it, the same made anew)."""
    below = Knowledge(documents(enumerate(base)))
    BM25Search(below).search("fee", 3)
    return below, overlaid(below, tuple(documents(own.items()))), Knowledge(documents([*enumerate(base), *own.items()]))


@given(BASE, OWN, WORDS)
def test_words_are_found_as_in_a_collection_made_anew(base, own, query):
    below, laid, anew = both(base, own)
    before = BM25Search(below).search(query, 20)
    assert laid.documents == anew.documents and len(laid) == len(anew)
    scores = {hit.document.id: hit.score for hit in BM25Search(laid).search(query, 20)}
    wanted = {hit.document.id: hit.score for hit in BM25Search(anew).search(query, 20)}
    assert scores == pytest.approx(wanted, abs=1e-12)
    assert BM25Search(below).search(query, 20) == before


@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, min_size=1, max_size=2), WORDS)
def test_added_documents_leave_not_a_bit_between_the_two(base, added, query):
    _, laid, anew = both(base, dict(enumerate(added, len(base))))
    assert BM25Search(laid).search(query, 20) == BM25Search(anew).search(query, 20)


@settings(max_examples=20, deadline=None)
@given(BASE, OWN, st.sampled_from(["fee", "a", "n.w|at", "(card|fee) a", "[ao]+"]))
def test_patterns_and_embeddings_too(base, own, query):
    below, laid, anew = both(base, own)
    assert GrepSearch(laid).search(query, 20) == GrepSearch(anew).search(query, 20)
    embedder = HashedEmbedder(16)
    found = EmbeddingSearch(laid, embedder).search(query, 20)
    wanted = EmbeddingSearch(anew, embedder).search(query, 20)
    assert sorted(h.document.id for h in found) == sorted(h.document.id for h in wanted)
    assert [h.score for h in found] == pytest.approx([h.score for h in wanted], abs=1e-6)
    assert len(below) == len(base)


def test_only_what_differs_is_embedded_again():
    class Counting(HashedEmbedder):
        asked: list[str] = []

        async def documents(self, texts):
            self.asked.extend(texts)
            return await super().documents(texts)

    below, embedder = Knowledge(documents([(0, "fee"), (1, "card"), (2, "loan")])), Counting()
    laid = OverlaidKnowledge(below, [Document("1", "T", "card atm"), Document("x", "X", "new")])
    asyncio.run(EmbeddingSearch(laid, embedder).asearch("fee"))
    assert embedder.asked == ["fee", "card", "loan", "card atm", "new"]
    asyncio.run(EmbeddingSearch(OverlaidKnowledge(below, [Document("y", "Y", "of")]), embedder).asearch("fee"))
    assert embedder.asked[5:] == ["of"]


def test_worlds_of_one_task_share_what_is_laid_over():
    below, own = Knowledge(documents([(0, "fee")])), (Document("x", "X", "new"),)
    assert overlaid(below, own) is overlaid(below, own)
    assert overlaid(below, own) is not overlaid(Knowledge(below.documents), own)
    assert [d.id for d in overlaid(below, own).own.documents] == ["x"] and below.find("x") is None
