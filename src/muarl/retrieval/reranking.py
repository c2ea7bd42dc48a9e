"""Reranking: what one search found, put in order by a model that reads query and document together."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Protocol

from muarl.endpoints.client import Endpoint
from muarl.retrieval.documents import Document
from muarl.retrieval.embedders import OwnLoop, together
from muarl.retrieval.search import Hit, Search, WaitingSearch
from muarl.types.episode import Usage

RATING_PROMPT = """\
A document is relevant if it contains information that helps answer or address the query.
A document is not relevant if it doesn't contain information that helps answer the query, even if it mentions similar \
topics.
Is the document below relevant to answering the query below?
Rate the relevance from 0-10. 0 means completely irrelevant, 10 means highly relevant and completely addresses the \
query.

Here is the query:
<start_query>
{query}
<end_query>

Here is the document:
<start_document>
{document}
<end_document>"""
"""TAU2's, word for word (sierra-research/tau2-bench, MIT licence, Copyright Sierra Research)."""

RATING_FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "RelevanceScore",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"relevance_score": {"type": "integer"}},
            "required": ["relevance_score"],
            "additionalProperties": False,
        },
    },
}
"""The form of the answer, as a field of the request (``response_format``)."""


class Reranker(Protocol):
    """Says how relevant documents are for a query."""

    async def scores(self, query: str, documents: Sequence[Document]) -> Sequence[float | None]:
        """One score for each document; None for one that could not be judged. InfrastructureError if the model cannot
        be asked."""

    async def aclose(self) -> None:
        """Close connections."""


class RerankedSearch(WaitingSearch):
    """Searches, and orders what was found by a reranker's scores. ``least``: documents with a lower score are left
    out; None leaves out none."""

    def __init__(self, search: Search, reranker: Reranker, *, least: float | None = None) -> None:
        self.inner, self.reranker, self.least = search, reranker, least

    async def asearch(self, query: str, top_k: int = 10) -> list[Hit]:
        """The ``top_k`` documents of the search, in the reranker's order; of equal ones the search's first."""
        candidates = await self.inner.asearch(query, top_k)
        texts = [hit.document for hit in candidates if hit.document.content]
        if not texts:
            return []
        rated = zip(texts, await self.reranker.scores(query, texts), strict=True)
        hits = [Hit(d, float(s)) for d, s in rated if s is not None and (self.least is None or s >= self.least)]
        return sorted(hits, key=lambda hit: hit.score, reverse=True)


class EndpointReranker:
    """A reranking model behind a server with ``/v1/rerank`` (Cohere's, Jina's, vLLM's)."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = OwnLoop(endpoint)

    @property
    def model(self) -> str:
        """The model's name, as its server knows it."""
        return self._endpoint.endpoint.model

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return self._endpoint.usage

    async def scores(self, query: str, documents: Sequence[Document]) -> Sequence[float | None]:
        """The model's relevance scores, on its own scale."""
        async with self._endpoint.asked() as endpoint:
            return await endpoint.rerank(query, [d.content for d in documents])

    async def aclose(self) -> None:
        """Close connections."""
        await self._endpoint.aclose()


class RatingReranker:
    """A language model that rates each document from 0 to 10, as TAU2's does. ``endpoint``: without a temperature of
    its own, and with ``RATING_FORMAT`` in its ``extra``, it asks as TAU2 asks."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = OwnLoop(endpoint)

    @property
    def model(self) -> str:
        """The model's name, as its server knows it."""
        return self._endpoint.endpoint.model

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return self._endpoint.usage

    async def scores(self, query: str, documents: Sequence[Document]) -> Sequence[float | None]:
        """The ratings; None where the model's answer holds none."""
        async with self._endpoint.asked() as endpoint:
            return await together(_rating(endpoint, query, document.content) for document in documents)

    async def aclose(self) -> None:
        """Close connections."""
        await self._endpoint.aclose()


async def _rating(endpoint: Endpoint, query: str, document: str) -> float | None:
    text = RATING_PROMPT.replace("{query}", query, 1)
    before, _, after = text.rpartition("{document}")  # the last one: a query may say the word, too
    reply = await endpoint.chat(
        [{"role": "user", "content": f"{before}{document}{after}"}], boundary="world", empty_ok=True
    )
    return read_rating(reply.content or "")


def read_rating(answer: str) -> float | None:
    """The rating in a model's answer, brought into [0, 10]: of the JSON object it is asked for, or a bare number."""
    try:
        rating = json.loads(answer)
        value = rating.get("relevance_score") if isinstance(rating, dict) else rating
    except (ValueError, RecursionError):
        match = re.search(r'"relevance_score"\s*:\s*(-?\d{1,6})', answer)
        value = int(match.group(1)) if match else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return float(max(0, min(10, value)))
