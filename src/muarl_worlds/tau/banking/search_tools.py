"""The tools with which an agent looks into the bank's documents, and what is behind them.

The docstrings are the tools' interface, word for word as TAU2 gives it to models (sierra-research/tau2-bench, MIT
licence, Copyright Sierra Research). What the tools do is written anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import cast

from muarl.domains.base import Domain
from muarl.domains.tooling import tool
from muarl.endpoints.client import Endpoint
from muarl.retrieval.bm25 import BM25Search
from muarl.retrieval.documents import Knowledge
from muarl.retrieval.embedders import EndpointEmbedder
from muarl.retrieval.embeddings import Embedder, EmbeddingCache, EmbeddingSearch
from muarl.retrieval.grep import GrepSearch
from muarl.retrieval.reranking import RatingReranker, RerankedSearch, Reranker
from muarl.retrieval.search import Hit, Search
from muarl.retrieval.variants import EMBEDDINGS, LEAST_RATING, RERANKER, Variant
from muarl.types.episode import Usage
from muarl_worlds.tau.banking.shell.files import files_of
from muarl_worlds.tau.banking.shell.run import Shell

NAMES = ("KB_search", "grep", "KB_search_bm25", "KB_search_dense", "shell")
"""All search tools, in TAU2's order."""


class BankSearch:
    """What is behind the search tools of one bank, shared by all of its worlds.

    ``knowledge``: gives the documents when they are first needed. ``embedder``, ``reranker``: models in place of those
    that TAU2 asks; ``least``: the lowest rating of a document that is shown; ``cache``: of embeddings.
    """

    def __init__(
        self,
        chosen: Variant,
        knowledge: Callable[[], Knowledge],
        *,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        least: float | None = LEAST_RATING,
        cache: EmbeddingCache | None = None,
        case_sensitive: bool = False,
    ) -> None:
        self.variant, self._knowledge, self._least, self._cache = chosen, knowledge, least, cache
        self._given, self._given_reranker, self._case_sensitive = embedder, reranker, case_sensitive

    @property
    def knowledge(self) -> Knowledge:
        """The documents. DataError if they are not installed."""
        return self._knowledge()

    @cached_property
    def embedder(self) -> Embedder:
        """The embedding model."""
        return self._given or EndpointEmbedder(Endpoint(EMBEDDINGS[str(self.variant.ranking)]))

    @cached_property
    def reranker(self) -> Reranker:
        """The model that rates documents."""
        return self._given_reranker or RatingReranker(Endpoint(RERANKER))

    @cached_property
    def grep(self) -> GrepSearch:
        """By regular expressions."""
        return GrepSearch(self.knowledge, case_sensitive=self._case_sensitive)

    @cached_property
    def bm25(self) -> BM25Search:
        """By words."""
        return BM25Search(self.knowledge)

    @cached_property
    def ranked(self) -> Search:
        """As the variant ranks documents."""
        found: Search = self.bm25
        if self.variant.embeds:
            found = EmbeddingSearch(self.knowledge, self.embedder, self._cache)
        return RerankedSearch(found, self.reranker, least=self._least) if self.variant.reranked else found

    def files(self) -> Shell:
        """A shell over the documents as files, for one conversation."""
        return Shell(self.knowledge.index("files", lambda: files_of(self.knowledge)), writes=self.variant.writes)

    def waits(self, name: str) -> bool:
        """Whether a tool asks somebody else."""
        return name in ("KB_search", "KB_search_dense") and (self.variant.embeds or self.variant.reranked)

    @property
    def stand_ins(self) -> list[str]:
        """What is used in place of the models that TAU2 asks for this variant, in words."""
        found = []
        if self.variant.embeds and self._given is not None:
            model = getattr(self._given, "model", self._given.name)
            found += [] if model == EMBEDDINGS[str(self.variant.ranking)].model else [f"embeddings by {model}"]
        if self.variant.reranked and self._given_reranker is not None:
            model = getattr(self._given_reranker, "model", type(self._given_reranker).__name__)
            found += [] if model == RERANKER.model else [f"reranked by {model}"]
        return found

    @property
    def usage(self) -> Usage:
        """What the models that were asked have used."""
        asked = (vars(self)[part] for part in ("embedder", "reranker") if part in vars(self))
        return sum((getattr(part, "usage", Usage()) for part in asked), Usage())

    async def aclose(self) -> None:
        """Close the connections of the models that were asked."""
        for part in ("embedder", "reranker"):
            if part in vars(self):
                await vars(self)[part].aclose()


class _Searching(Domain):
    finding: BankSearch
    top_k: int

    def _timed(self, text: str) -> str:
        """TAU2 ends its answers with measured times; here the same call must answer the same."""
        return text if self.semantics == "fixed" else f"{text}\n\n[Timing: retrieval=0ms, reranking=0ms, total=0ms]"

    def _found(self, hits: Sequence[Hit]) -> str:
        return self._timed(_shown(hits) if hits else "No relevant documents found.")

    def _searched(self, search: Search, query: str, most: int | None = None) -> str:
        """The answer of a search; where it waits, a coroutine that gives it."""
        embeds = search is not self.finding.bm25 and self.finding.variant.embeds
        if self.semantics == "official" and embeds and not (query and query.strip()):
            raise ValueError(
                "Empty or missing input for key 'query': cannot generate embedding from blank text."
            )  # TAU2's words
        if search.waits:
            return cast(str, self._waited(search, query, most))
        return self._found(search.search(query, self.top_k)[:most])

    async def _waited(self, search: Search, query: str, most: int | None) -> str:
        return self._found((await search.asearch(query, self.top_k))[:most])


class KBSearchMixin(_Searching):
    """Search as the variant ranks documents."""

    @tool
    def KB_search(self, query: str) -> str:
        """Search the knowledge base for relevant documents.

        Args:
            query: The search query to find relevant documents

        Returns:
            Relevant document excerpts matching the query
        """
        return self._searched(self.finding.ranked, query)


class GrepMixin(_Searching):
    """Search by regular expressions."""

    grep_top_k: int

    @tool
    def grep(self, pattern: str) -> str:
        """Search for a regex pattern in all knowledge base documents.

        Returns documents ranked by number of matches, with full content.

        Args:
            pattern: The regex pattern to search for (e.g., 'credit.*card', 'fee|charge')

        Returns:
            Matching documents ranked by relevance (match count)
        """
        hits = self.finding.grep.search(pattern, self.grep_top_k)
        return _shown(hits) if hits else f"No matches found for pattern: {pattern}"


class KBSearchBm25AllToolsMixin(_Searching):
    """Search by words, beside embeddings."""

    @tool
    def KB_search_bm25(self, query: str, k: int = 10) -> str:
        """Search the knowledge base using BM25 sparse retrieval.

        Args:
            query: The search query to find relevant documents.
            k: Maximum number of documents to return (default 10).

        Returns:
            Relevant document excerpts matching the query.
        """
        return self._searched(self.finding.bm25, query, k)


class KBSearchDenseAllToolsMixin(_Searching):
    """Search by embeddings, beside words."""

    @tool
    def KB_search_dense(self, query: str, k: int = 10) -> str:
        """Search the knowledge base using dense embedding retrieval.

        Args:
            query: The search query to find relevant documents.
            k: Maximum number of documents to return (default 10).

        Returns:
            Relevant document excerpts matching the query.
        """
        return self._searched(self.finding.ranked, query, k)


class ShellMixin(_Searching):
    """A shell over the documents as files (``banking/shell/``)."""

    files: Shell

    @tool
    def shell(self, command: str) -> str:
        """Execute a shell command in the knowledge base directory.

        Use standard Unix utilities to explore and search the knowledge base files.
        Common commands: ls, cat, grep, head, tail, find, wc, awk, sed, etc.

        Args:
            command: The shell command to execute (e.g., "ls -la", "grep -r 'credit card' .", "cat INDEX.txt")

        Returns:
            The command output (stdout) or error message
        """
        found = self.files.run(command)
        if found.code == 0:
            return found.out or "(no output)"
        if found.code == 1 and "grep" in command and not found.err:
            return "No matches found."
        if found.err:
            return f"Error (exit code {found.code}): {found.err}"
        return f"Command failed with exit code {found.code}"


def _shown(hits: Sequence[Hit]) -> str:
    return "\n".join(
        f"{n}. {d.title or 'Untitled'}\n   ID: {d.id}\n   Score: {score:.4f}\n   Content: {d.content}\n"
        for n, (d, score) in enumerate(hits, 1)
    )
