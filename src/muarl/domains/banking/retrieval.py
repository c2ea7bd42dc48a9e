"""How an agent may look into the bank's documents: TAU2's retrieval variants, their tools and their policies.

The prompts are the benchmark's own, read from the installed data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muarl.domains.base import Domain, tool
from muarl.errors import ConfigError, DataError
from muarl.retrieval import BM25Search, Document, GrepSearch, Hit, Knowledge

ReadPrompt = Callable[[str], str]


@dataclass(frozen=True)
class Variant:
    """A retrieval variant. ``prompt``: its template's name; ``tools``: its search tools; ``inlined``: which documents
    stand in the policy itself, "all", "required" (the task's) or None."""

    prompt: str
    tools: tuple[str, ...] = ()
    inlined: str | None = None


VARIANTS = {
    "no_knowledge": Variant("no_knowledge"),
    "full_kb": Variant("full_kb", inlined="all"),
    "golden_retrieval": Variant("required_docs", inlined="required"),
    "bm25_grep": Variant("classic_rag_bm25", ("KB_search", "grep")),
    "bm25": Variant("classic_rag_bm25_no_grep", ("KB_search",)),
    "grep_only": Variant("grep_only", ("grep",)),
}
"""The variants that need no network."""

DEFAULT = "bm25_grep"
"""TAU2's own default, "alltools", needs an embedding service and a shell."""

_NEED_NETWORK = (
    "qwen_embeddings_grep", "openai_embeddings_grep", "qwen_embeddings_reranker_grep",
    "openai_embeddings_reranker_grep", "bm25_reranker_grep", "qwen_embeddings", "openai_embeddings",
    "qwen_embeddings_reranker", "openai_embeddings_reranker", "bm25_reranker",
)  # fmt: skip
_NEED_SHELL = ("terminal_use", "terminal_use_write")
_NEED_BOTH = ("alltools", "alltools-qwen", "AllTools")


def variant(name: str) -> Variant:
    """A variant by TAU2's name. ConfigError if TAU2 has none of that name, or it needs what is not offered here."""
    for names, need in (
        (_NEED_NETWORK, "an embedding or ranking model"),
        (_NEED_SHELL, "a shell"),
        (_NEED_BOTH, "an embedding model and a shell"),
    ):
        if name in names:
            raise ConfigError(f"retrieval {name!r} needs {need}, which is not offered here; use {', '.join(VARIANTS)}")
    if name not in VARIANTS:
        raise ConfigError(f"retrieval: must be one of {', '.join(VARIANTS)}, not {name!r}")
    return VARIANTS[name]


def policy(chosen: Variant, read: ReadPrompt, knowledge: Callable[[], Knowledge], required: Sequence[str] = ()) -> str:
    """A variant's policy, put together as TAU2 does.

    ``read``: the text of a file of the prompts' folder. ``required``: ids or titles of the documents that the task
    needs, for the variant that inlines them; DataError names one that does not exist.
    """

    def component(found: re.Match[str]) -> str:
        return read(f"components/{found.group(1)}.md")

    text = re.sub(r"\{\{component:(\w+)\}\}", component, read(f"{chosen.prompt}.md"))
    if chosen.inlined == "all":
        text = text.replace("{{full_knowledge_base}}", _laid_out(knowledge().documents))
    elif chosen.inlined == "required":
        find = knowledge().find
        found = [(reference, find(reference)) for reference in required]
        for reference, document in found:
            if document is None:
                raise DataError(f"there is no document {reference!r}")
        documents = [document for _, document in found if document is not None]
        text = text.replace("{{required_documents}}", _laid_out(documents) or "(No documents provided)")
    return text


def _laid_out(documents: Sequence[Document]) -> str:
    return "\n\n---\n\n".join(f"## {d.title}\n\n{d.content}" for d in documents)


def _shown(hits: Sequence[Hit]) -> str:
    return "\n".join(
        f"{n}. {d.title or 'Untitled'}\n   ID: {d.id}\n   Score: {score:.4f}\n   Content: {d.content}\n"
        for n, (d, score) in enumerate(hits, 1)
    )


class _Searching(Domain):
    """What searches are made in."""

    @property
    def knowledge(self) -> Knowledge:
        """The documents."""
        raise NotImplementedError


class KBSearchMixin(_Searching):
    """Search by words."""

    top_k: int

    @tool
    def KB_search(self, query: str) -> str:
        """Search the knowledge base for relevant documents.

        Args:
            query: The search query to find relevant documents

        Returns:
            Relevant document excerpts matching the query
        """
        hits = BM25Search(self.knowledge).search(query, self.top_k)
        text = _shown(hits) if hits else "No relevant documents found."
        if self.semantics == "fixed":
            return text
        # TAU2 measures its times; here the same call must answer the same
        return f"{text}\n\n[Timing: retrieval=0ms, reranking=0ms, total=0ms]"


class GrepMixin(_Searching):
    """Search by regular expressions."""

    grep_top_k: int
    case_sensitive: bool

    @tool
    def grep(self, pattern: str) -> str:
        """Search for a regex pattern in all knowledge base documents.

        Returns documents ranked by number of matches, with full content.

        Args:
            pattern: The regex pattern to search for (e.g., 'credit.*card', 'fee|charge')

        Returns:
            Matching documents ranked by relevance (match count)
        """
        hits = GrepSearch(self.knowledge, case_sensitive=self.case_sensitive).search(pattern, self.grep_top_k)
        return _shown(hits) if hits else f"No matches found for pattern: {pattern}"
