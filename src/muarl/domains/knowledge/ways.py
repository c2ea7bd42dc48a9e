"""Other ways to search a domain's documents: the variants of TAU2's bank, as far as any domain can host them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from muarl.basics.errors import ConfigError
from muarl.endpoints.client import Endpoint
from muarl.retrieval.bm25 import BM25Search
from muarl.retrieval.documents import Knowledge
from muarl.retrieval.embedders import EndpointEmbedder
from muarl.retrieval.embeddings import Embedder, EmbeddingCache, EmbeddingSearch
from muarl.retrieval.reranking import RatingReranker, RerankedSearch, Reranker
from muarl.retrieval.search import Search
from muarl.retrieval.variants import EMBEDDINGS, LEAST_RATING, RERANKER, VARIANTS, Variant
from muarl.types.episode import Usage

SEARCHES = ("KB_search", "grep")
OFFERED = tuple(name for name, one in VARIANTS.items() if one.tools and set(one.tools) <= set(SEARCHES))
"""The variants of ``KB_search`` and ``grep``. The others have prompts or tools of TAU2's own."""


@dataclass(frozen=True, eq=False)
class Ways:
    """How documents are searched, shared by all worlds of a domain."""

    variant: Variant | None = None
    """None leaves it to the domain."""
    top_k: int | None = None
    """How many documents are shown, None: as many as the domain says."""
    grep_top_k: int | None = None
    """How many documents ``grep`` shows, None: as many as the domain says."""
    case_sensitive: bool = False
    embedder: Embedder | None = None
    """The model in place of the one that TAU2 asks."""
    reranker: Reranker | None = None
    """The model in place of the one that TAU2 asks."""
    least: float | None = LEAST_RATING
    """The lowest rating of a document that is shown."""
    cache: EmbeddingCache | None = None
    """The cache of embeddings."""

    @cached_property
    def _embedder(self) -> Embedder:
        assert self.variant is not None
        return self.embedder or EndpointEmbedder(Endpoint(EMBEDDINGS[str(self.variant.ranking)]))

    @cached_property
    def _reranker(self) -> Reranker:
        return self.reranker or RatingReranker(Endpoint(RERANKER))

    @property
    def waits(self) -> bool:
        """Whether ``KB_search`` asks somebody else."""
        return self.variant is not None and (self.variant.embeds or self.variant.reranked)

    def ranked(self, knowledge: Knowledge) -> Search | None:
        """What ``KB_search`` searches with; None where that is the domain's own. Indexes are kept with the documents,
        so that worlds which share these share them."""
        if self.variant is None:
            return None
        search: Search = BM25Search(knowledge)
        if self.variant.embeds:
            search = EmbeddingSearch(knowledge, self._embedder, self.cache)
        return RerankedSearch(search, self._reranker, least=self.least) if self.variant.reranked else search

    @property
    def usage(self) -> Usage:
        """What the models that were asked have used."""
        asked = (vars(self)[part] for part in ("_embedder", "_reranker") if part in vars(self))
        return sum((getattr(part, "usage", Usage()) for part in asked), Usage())

    async def aclose(self) -> None:
        """Close the connections of the models that were asked."""
        for part in ("_embedder", "_reranker"):
            if part in vars(self):
                await vars(self)[part].aclose()


def fitting(name: str, domain: str, tools: Collection[str]) -> Variant:
    """The variant of that name. ConfigError if a domain with these tools cannot host it."""
    if name not in OFFERED:
        variant = VARIANTS.get(name)
        why = "there is no such variant"
        if variant is not None:
            why = "it needs a shell, which only TAU2's bank has" if "shell" in variant.tools else (
                "what it tells the agent is a prompt of TAU2's bank"
            )  # fmt: skip
        raise ConfigError(f"retrieval: {domain} cannot be searched by {name!r}: {why}; {_remedy(tools)}")
    lacking = [tool for tool in VARIANTS[name].tools if tool not in tools]
    if lacking:
        raise ConfigError(
            f"retrieval: {domain} cannot be searched by {name!r}: it does not offer {lacking[0]} (at this size); "
            f"{_remedy(tools)}"
        )
    return VARIANTS[name]


def _remedy(tools: Collection[str]) -> str:
    fit = [name for name in OFFERED if set(VARIANTS[name].tools) <= set(tools)]
    return f"take {' or '.join(fit)}" if len(fit) < 2 else f"take one of {', '.join(fit)}" if fit else "leave it out"
