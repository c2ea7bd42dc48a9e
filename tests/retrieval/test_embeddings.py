"""Search by embeddings: what is found, and what is asked of whom."""

from __future__ import annotations

import asyncio
import math

import numpy as np
import pytest

from muarl.accounts.budgets import metered
from muarl.basics.errors import InfrastructureError
from muarl.endpoints.client import Endpoint
from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.embedders import QWEN_TASK, EndpointEmbedder, HashedEmbedder
from muarl.retrieval.embeddings import EmbeddingCache, EmbeddingSearch
from support.fake_openai import FakeOpenAI, json_answer, status

DOCUMENTS = (
    Document("fees", "Fees", "The ATM fee is three dollars."),
    Document("cards", "Cards", "Credit cards and debit cards."),
    Document("loans", "Loans", "Home loans have a fixed rate."),
    Document("again", "Fees again", "The ATM fee is three dollars."),
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Counting:
    """Vectors of letters, and a record of what was asked."""

    name = "letters"

    def __init__(self):
        self.asked: list[list[str]] = []
        self.queries: list[str] = []

    @staticmethod
    def vector(text):
        return np.array([text.lower().count(letter) for letter in LETTERS], np.float32)

    async def documents(self, texts):
        self.asked.append(list(texts))
        await asyncio.sleep(0)
        return np.stack([self.vector(text) for text in texts])

    async def query(self, text):
        self.queries.append(text)
        return self.vector(text)

    async def aclose(self):
        pass


def cosine(a, b):
    a, b = ([text.lower().count(letter) for letter in LETTERS] for text in (a, b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


async def test_documents_are_ranked_by_the_cosine():
    hits = await EmbeddingSearch(Knowledge(DOCUMENTS), Counting()).asearch("the fee of an ATM", 3)
    wanted = [(d.id, cosine(d.content, "the fee of an ATM")) for d in DOCUMENTS]
    best = sorted(wanted, key=lambda pair: -pair[1])[:3]
    assert [hit.document.id for hit in hits] == [name for name, _ in best]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in best], abs=1e-6)
    equal = await EmbeddingSearch(Knowledge(DOCUMENTS), Counting()).asearch("The ATM fee is three dollars.", 2)
    assert [hit.document.id for hit in equal] == ["fees", "again"] and equal[0].score == pytest.approx(1)


async def test_a_blank_query_and_an_empty_collection_ask_nobody():
    embedder = Counting()
    assert await EmbeddingSearch(Knowledge(DOCUMENTS), embedder).asearch(" ") == []
    assert await EmbeddingSearch(Knowledge(()), embedder).asearch("fee") == []
    assert embedder.asked == embedder.queries == []


async def test_all_who_search_a_collection_share_its_vectors():
    known, embedder = Knowledge(DOCUMENTS), Counting()
    searches = [EmbeddingSearch(known, embedder) for _ in range(5)]
    found = await asyncio.gather(*(search.asearch("fee") for search in searches))
    assert len(embedder.asked) == 1 and len(embedder.asked[0]) == 3  # two documents have one text
    assert all(hits == found[0] for hits in found)
    await searches[0].asearch("fee")
    assert "fee" in embedder.queries and len(embedder.asked) == 1


async def test_a_query_is_embedded_once():
    search = EmbeddingSearch(Knowledge(DOCUMENTS), embedder := Counting())
    first = await search.asearch("fee")
    assert await search.asearch("fee") == first and embedder.queries == ["fee"]


def test_plain_code_may_search_too():
    search = EmbeddingSearch(Knowledge(DOCUMENTS), Counting())
    assert search.search("fee") == asyncio.run(search.asearch("fee"))

    async def within():
        return search.search("fee")

    assert asyncio.run(within()) == search.search("fee")


async def test_embeddings_on_disk_are_not_made_again(tmp_path):
    first, second, third = Counting(), Counting(), Counting()
    hits = await EmbeddingSearch(Knowledge(DOCUMENTS), first, EmbeddingCache(tmp_path)).asearch("fee")
    more = (*DOCUMENTS, Document("new", "New", "Something else."))
    again = await EmbeddingSearch(Knowledge(DOCUMENTS), second, EmbeddingCache(tmp_path)).asearch("fee")
    assert hits == again and len(first.asked) == 1 and second.asked == []
    await EmbeddingSearch(Knowledge(more), third, EmbeddingCache(tmp_path)).asearch("fee")
    assert third.asked == [["Something else."]]
    other = Counting()
    other.name = "another model"
    await EmbeddingSearch(Knowledge(DOCUMENTS), other, EmbeddingCache(tmp_path)).asearch("fee")
    assert len(other.asked) == 1
    assert not list(tmp_path.rglob("*.tmp"))


async def test_a_damaged_file_of_the_cache_is_made_again(tmp_path):
    cache, embedder = EmbeddingCache(tmp_path), Counting()
    await EmbeddingSearch(Knowledge(DOCUMENTS), embedder, cache).asearch("fee")
    cache.path("letters", DOCUMENTS[1].content).write_bytes(b"\x93NUMPY broken")
    await EmbeddingSearch(Knowledge(DOCUMENTS), embedder, cache).asearch("fee")
    assert embedder.asked[1:] == [[DOCUMENTS[1].content]]
    assert cache.get("letters", DOCUMENTS[1].content) is not None


async def test_embeddings_of_another_length_are_noticed(tmp_path):
    cache = EmbeddingCache(tmp_path)
    cache.put("letters", [DOCUMENTS[0].content], [np.ones(3, np.float32)])
    with pytest.raises(InfrastructureError, match="embeddings differ in length"):
        await EmbeddingSearch(Knowledge(DOCUMENTS), Counting(), cache).asearch("fee")


def letters_server(body):
    rows = [{"index": n, "embedding": [float(v) for v in Counting.vector(t)]} for n, t in enumerate(body["input"])]
    return json_answer({"data": rows[::-1], "usage": {"prompt_tokens": 7 * len(rows), "total_tokens": 7 * len(rows)}})


async def test_an_endpoint_is_asked_and_paid_as_any_other(tmp_path):
    with FakeOpenAI(letters_server) as server:
        endpoint = Endpoint.of(f"qwen3-embedding-8b@{server.url}", api_key_env="")
        embedder = EndpointEmbedder(endpoint)
        search = EmbeddingSearch(Knowledge(DOCUMENTS), embedder, EmbeddingCache(tmp_path))
        with metered() as meter:
            assert len(await search.asearch("Fee")) == 4
        assert [r.path for r in server.requests] == ["/v1/embeddings", "/v1/embeddings"]
        assert server.bodies[0]["input"] == [d.content for d in DOCUMENTS[:3]]
        assert server.bodies[1]["input"] == [f"Instruct: {QWEN_TASK}\nQuery:Fee"]
        assert meter.besides.prompt_tokens == endpoint.usage.prompt_tokens == 28 and meter.besides.requests == 2
        await embedder.aclose()


async def test_only_queries_of_models_that_want_it_name_a_task():
    with FakeOpenAI(letters_server) as server:
        embedder = EndpointEmbedder(Endpoint.of(f"text-embedding-3-large@{server.url}", api_key_env=""))
        await embedder.query("Fee")
        assert server.bodies[0]["input"] == ["Fee"]
        await embedder.aclose()


@pytest.mark.parametrize(
    "broken",
    [
        {}, {"data": []}, {"data": [{"index": 0, "embedding": []}]}, {"data": [{"index": 3, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": ["x"]}]}, {"data": [{"index": 0, "embedding": [float("nan")]}]},
    ],
)  # fmt: skip
async def test_a_broken_answer_is_asked_again_and_then_a_failure(broken):
    with FakeOpenAI(json_answer(broken)) as server:
        endpoint = Endpoint.of(f"m@{server.url}", api_key_env="", attempts=2, backoff=0.001)
        async with endpoint:
            with pytest.raises(InfrastructureError):
                await endpoint.embed(["a"])
        assert len(server.requests) == 2


async def test_an_endpoint_that_fails_is_an_infrastructure_error_and_nothing_is_kept(tmp_path):
    with FakeOpenAI([status(400, message="no"), letters_server]) as server:
        embedder = EndpointEmbedder(Endpoint.of(f"m@{server.url}", api_key_env="", attempts=1))
        search = EmbeddingSearch(Knowledge(DOCUMENTS), embedder, EmbeddingCache(tmp_path))
        with pytest.raises(InfrastructureError):
            await search.asearch("fee")
        assert len(await search.asearch("fee")) == 4
        await embedder.aclose()


async def test_plain_code_may_ask_an_endpoint_that_serves_a_running_loop():
    with FakeOpenAI(letters_server) as server:
        embedder = EndpointEmbedder(Endpoint.of(f"m@{server.url}", api_key_env=""))
        search = EmbeddingSearch(Knowledge(DOCUMENTS), embedder)
        await search.asearch("fee")
        with metered() as meter:
            assert len(search.search("another one")) == 4  # in a loop of its own, while this one runs
        assert meter.usage.requests == 1
        await embedder.aclose()


async def test_hashed_embeddings_find_what_shares_words():
    search = EmbeddingSearch(Knowledge(DOCUMENTS), HashedEmbedder())
    assert [(await search.asearch(query, 1))[0].document.id for query in ("a debit card", "rate of a home loan")] == [
        "cards", "loans",
    ]  # fmt: skip
