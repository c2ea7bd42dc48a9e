"""Reranking: a model puts what was found in order."""

from __future__ import annotations

import json

import pytest

from muarl.accounts.budgets import metered
from muarl.basics.errors import InfrastructureError
from muarl.endpoints.client import Endpoint
from muarl.retrieval.bm25 import BM25Search
from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.reranking import EndpointReranker, RatingReranker, RerankedSearch, read_rating
from support.fake_openai import FakeOpenAI, json_answer, text

KNOWN = Knowledge([
    Document("a", "A", "fee fee fee"), Document("b", "B", "fee {document} card"),
    Document("c", "C", "the fee of an atm"), Document("e", "E", ""),
])  # fmt: skip


class Fixed:
    def __init__(self, **scores):
        self.given = scores

    async def scores(self, query, documents):
        return [self.given.get(d.id) for d in documents]

    async def aclose(self):
        pass


async def test_the_rerankers_order_and_scores_count():
    hits = await RerankedSearch(BM25Search(KNOWN), Fixed(a=3, b=9, c=5)).asearch("fee")
    assert [(hit.document.id, hit.score) for hit in hits] == [("b", 9.0), ("c", 5.0), ("a", 3.0)]


async def test_low_scores_and_unjudged_documents_are_left_out():
    hits = await RerankedSearch(BM25Search(KNOWN), Fixed(a=4, b=5), least=5).asearch("fee")
    assert [hit.document.id for hit in hits] == ["b"]


async def test_only_the_first_documents_of_the_search_are_judged_and_ties_keep_its_order():
    found = [hit.document.id for hit in BM25Search(KNOWN).search("fee", 2)]
    hits = await RerankedSearch(BM25Search(KNOWN), Fixed(a=1, b=1, c=1)).asearch("fee", 2)
    assert [hit.document.id for hit in hits] == found


async def test_a_reranking_endpoint():
    def serve(body):
        assert body["model"] == "rerank-3"
        rows = [{"index": n, "relevance_score": len(d) / 100} for n, d in enumerate(body["documents"])]
        return json_answer({"results": rows[::-1], "usage": {"total_tokens": 30}})

    with FakeOpenAI(serve) as server:
        reranker = EndpointReranker(Endpoint.of(f"rerank-3@{server.url}", api_key_env=""))
        with metered() as meter:
            hits = await RerankedSearch(BM25Search(KNOWN), reranker).asearch("fee")
        assert [hit.document.id for hit in hits] == ["b", "c", "a"] and meter.besides.prompt_tokens == 30
        assert server.requests[0].path == "/v1/rerank" and server.bodies[0]["query"] == "fee"
        await reranker.aclose()


@pytest.mark.parametrize("results", [None, [], [{"index": 0}], [{"index": 0, "relevance_score": "high"}]])
async def test_a_ranking_that_is_none_is_a_failure(results):
    with FakeOpenAI(json_answer({"results": results})) as server:
        async with Endpoint.of(f"m@{server.url}", api_key_env="", attempts=1) as endpoint:
            with pytest.raises(InfrastructureError):
                await endpoint.rerank("q", ["d"])


async def test_a_model_rates_each_document_by_the_benchmarks_prompt():
    def serve(body):
        asked = body["messages"][0]["content"]
        document = asked.partition("<start_document>\n")[2].partition("\n<end_document>")[0]
        assert "<start_query>\nfee {document}\n<end_query>" in asked and "Rate the relevance from 0-10." in asked
        rating = {"fee fee fee": 2, "fee {document} card": 8}.get(document)
        return text("I cannot say" if rating is None else json.dumps({"relevance_score": rating}))

    with FakeOpenAI(serve) as server:
        reranker = RatingReranker(Endpoint.of(f"m@{server.url}", api_key_env=""))
        hits = await RerankedSearch(BM25Search(KNOWN), reranker, least=5).asearch("fee {document}")
        assert [(hit.document.id, hit.score) for hit in hits] == [("b", 8.0)] and len(server.requests) == 3
        await reranker.aclose()


@pytest.mark.parametrize(
    ("answer", "rating"),
    [
        ('{"relevance_score": 7}', 7.0), ("7", 7.0), ('{"relevance_score": 99}', 10.0),
        ('{"relevance_score": -1}', 0.0), ('Sure: {"relevance_score": 4}', 4.0),
        ("", None), ("high", None), ('{"relevance_score": true}', None),
        ('{"relevance_score": 7.5}', None), ("[1]", None),
    ],
)  # fmt: skip
def test_a_rating_is_read_strictly(answer, rating):
    assert read_rating(answer) == rating
